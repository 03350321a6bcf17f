"""The pods of promised workloads that lack nodes, by kind, as one cluster has them.

Pods that have nodes hold their room by themselves, so only the others are on their way. Of a workload of
several components it is not known whose pods have nodes; then of each component as many are counted as lack
nodes in all. Pods of one kind are counted together, whosever they are.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from estimator.capacity.local import Localizer
from estimator.capacity.promises import Promise, Promised
from estimator.capacity.request import AssumedWorkload, Component
from estimator.fit.pod_shape import ALONE, PodShape
from fairway.resources import devices_asked

Where = tuple[tuple[str, int], ...]
"""Pods by node."""


@dataclass(frozen=True, slots=True)
class Group:
    """So many pods of one kind that are on their way, and where some of them are going to be.

    ``waits``: there may be no room for them yet, see `estimator.capacity.waiting`.
    """

    shape: PodShape
    count: int
    where: Where = ()
    waits: bool = False


@dataclass(frozen=True, slots=True)
class Lacking:
    """One promised workload of which some pods lack nodes: how many in all, and of each component at most."""

    promise: Promise
    pods: int

    @property
    def components(self) -> tuple[Component, ...]:
        """As many pods of each component as may lack nodes."""
        return tuple(
            one if one.replicas <= self.pods else replace(one, replicas=self.pods)
            for one in self.promise.components
        )


class Kinds:
    """The kinds of promised pods, as the cluster's API server stores them."""

    def __init__(self, localizer: Localizer) -> None:
        self._localizer = localizer
        self._version: tuple[int, ...] = ()
        # By the promise, which is kept as long as it is known here: the kind of each component, and where.
        self._parts: dict[int, tuple[Promise, tuple[tuple[PodShape, Where], ...]]] = {}
        self._shapes: dict[PodShape, PodShape] = {}

    def prepare(self, promised: Promised, version: tuple[int, ...]) -> None:
        """Know what is promised, in a cluster whose API server and nodes are as of this version."""
        if version != self._version:
            self._parts, self._shapes = {}, {}
        known = self._parts
        self._parts = {
            id(promise): known.get(id(promise)) or (promise, tuple(self._read(promise)))
            for promise in promised.promises
        }
        if len(self._shapes) > 2 * sum(len(parts) for _, parts in self._parts.values()):
            self._shapes = {shape: shape for _, parts in self._parts.values() for shape, _ in parts}
        self._version = version

    def groups(self, lacking: Iterable[Lacking]) -> tuple[Group, ...]:
        """Pods of one kind together: first those of which it is known where, then the largest.

        Those that wait come last, apart from others of their kind.
        """
        counts: dict[tuple[bool, int], tuple[PodShape, int, list[tuple[str, int]]]] = {}
        for one in lacking:
            _, parts = self._parts[id(one.promise)]
            for component, (shape, where) in zip(one.promise.components, parts, strict=True):
                count = min(component.replicas, one.pods)
                kind = one.promise.waits, id(shape)
                _, before, places = counts.get(kind, (shape, 0, []))
                places.extend(where)
                counts[kind] = (shape, before + count, places)
        found = [
            Group(shape, count, tuple(where), waits)
            for (waits, _), (shape, count, where) in counts.items()
            if count
        ]
        return tuple(sorted(found, key=_order))

    def _read(self, promise: Promise) -> Iterator[tuple[PodShape, Where]]:
        for component in promise.components:
            shape = _kind(self._localizer.admitted(component))
            shape = self._shapes.setdefault(shape, shape)
            yield shape, tuple((node, pods) for name, node, pods in promise.where if name == component.name)


def _kind(shape: PodShape) -> PodShape:
    """As much of the shape as decides what its pods take, and which nodes they accept."""
    return replace(shape, priority_class="", per_domain=(), spread=(), inter_pod=ALONE, volumes=())


def _order(group: Group) -> tuple[object, ...]:
    requests = group.shape.requests
    devices = devices_asked(requests)
    return (group.waits, not group.where, -devices, tuple((name, -amount) for name, amount in requests))


def beyond(assumed: tuple[AssumedWorkload, ...], lacking: Iterable[Lacking]) -> tuple[AssumedWorkload, ...]:
    """What is left of workloads on their way when what is held as promised to the same ones is left out.

    One of a single template is known by its name. One of several has none on the wire, and is known by what
    its pods ask for and how many they are.
    """
    named: dict[tuple[str, str], int] = {}
    alike: dict[tuple[object, ...], int] = {}
    for one in lacking:
        if one.promise.waits:
            continue  # Karmada has placed none of it
        workload, components = one.promise.workload, one.promise.components
        if len(components) == 1:
            name = (workload.namespace, workload.name)
            named[name] = max(one.pods, named.get(name, 0))
        else:
            content = _asked(workload.namespace, components)
            alike[content] = alike.get(content, 0) + 1
    left = []
    for other in assumed:
        if len(other.components) == 1:
            (component,) = other.components
            rest = component.replicas - named.pop((other.namespace, component.name), 0)
            if rest > 0:
                left.append(replace(other, components=(replace(component, replicas=rest),)))
            continue
        content = _asked(other.namespace, other.components)
        if alike.get(content, 0):
            alike[content] -= 1
        else:
            left.append(other)
    return tuple(left)


def _asked(namespace: str, components: Iterable[Component]) -> tuple[object, ...]:
    return namespace, tuple(sorted((one.shape.requests, one.replicas) for one in components if one.replicas))
