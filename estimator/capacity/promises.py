"""What is on its way to clusters, as the leader of the dispatchers tells it. Pure, with one writer.

A list says all that is promised in a cluster and takes the place of the list before, so telling the same
again changes nothing. It runs out unless it is told again: a leader that is gone promises nothing for long.
Of two that think they lead, the later one is heard, and the earlier is refused until the later's word has run
out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from estimator.capacity.request import Component, WorkloadReference

WorkloadKey = tuple[str, str, str]
"""Kind, namespace and name: all that Karmada says of the workload that it asks about."""


@dataclass(frozen=True, slots=True, order=True)
class Holder:
    """Who promises; the later one counts. ``since_ms``: since when it leads, by its own clock."""

    since_ms: int
    name: str


class Outranked(Exception):
    """Somebody who leads since later promises already; the message says who, and for how long that holds."""


@dataclass(frozen=True, slots=True)
class Promise:
    """One workload with all of its pods in one cluster, those that have nodes already included.

    ``where``: pods by component and node, as far as that is known. ``waits``: as of `AssumedWorkload`.
    """

    workload: WorkloadReference
    components: tuple[Component, ...]
    where: tuple[tuple[str, str, int], ...] = ()
    waits: bool = False

    @property
    def key(self) -> WorkloadKey:
        """By which questions about the workload itself are known."""
        return key_of(self.workload)

    @property
    def pods(self) -> int:
        """How many pods it has in all."""
        return sum(component.replicas for component in self.components)


def key_of(workload: WorkloadReference) -> WorkloadKey:
    """Without the API group, which the sender of a question does not say."""
    return workload.kind, workload.namespace, workload.name


@dataclass(frozen=True, slots=True, eq=False)
class Promised:
    """All that is promised in one cluster, ordered by content; another object whenever that changes."""

    promises: tuple[Promise, ...] = ()
    keys: frozenset[WorkloadKey] = field(default_factory=frozenset)


NOTHING: Final = Promised()


@dataclass(slots=True)
class _Kept:
    promised: Promised
    until_s: float


class Promises:
    """The promises of all clusters of a process. Times are of one monotonic clock, in seconds."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._holder: tuple[Holder, float] | None = None

    def put(
        self, holder: Holder, ttl_s: float, lists: Mapping[str, tuple[Promise, ...]], now_s: float
    ) -> None:
        """From now on this is promised in these clusters, for ``ttl_s``. Raises Outranked."""
        if self._holder is not None:
            other, until_s = self._holder
            if other > holder and until_s > now_s:
                raise Outranked(
                    f"{other.name} leads since {other.since_ms}, later than {holder.name} since "
                    f"{holder.since_ms}, and what it promises holds for {until_s - now_s:.1f} s yet"
                )
        self._holder = holder, now_s + ttl_s
        for cluster, promises in lists.items():
            self._put(cluster, promises, now_s + ttl_s)

    def of(self, cluster: str, now_s: float) -> Promised:
        """What is promised in the cluster; the same object for as long as that is the same."""
        kept = self._kept.get(cluster)
        if kept is None:
            return NOTHING
        if kept.until_s <= now_s:
            del self._kept[cluster]
            return NOTHING
        return kept.promised

    def _put(self, cluster: str, promises: tuple[Promise, ...], until_s: float) -> None:
        if not promises:
            self._kept.pop(cluster, None)
            return
        kept = self._kept.get(cluster)
        before = {} if kept is None else {promise.workload: promise for promise in kept.promised.promises}
        # What is as it was stays the same object, so that what was worked out of it is found again.
        found = [_same(before.get(promise.workload), promise) for promise in promises]
        ordered = tuple(sorted(found, key=_content))
        if kept is not None and _are_same(kept.promised.promises, ordered):
            kept.until_s = until_s
            return
        keys = frozenset(promise.key for promise in ordered)
        self._kept[cluster] = _Kept(Promised(ordered, keys), until_s)


def _same(before: Promise | None, now: Promise) -> Promise:
    return before if before is not None and before == now else now


def _are_same(before: tuple[Promise, ...], now: tuple[Promise, ...]) -> bool:
    return len(before) == len(now) and all(one is other for one, other in zip(before, now, strict=True))


def _content(promise: Promise) -> tuple[str, str, str, str]:
    workload = promise.workload
    return workload.namespace, workload.kind, workload.group or "", workload.name
