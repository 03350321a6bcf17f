"""On which object of which API server a workload's Event belongs, and what is said there of all its parts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from admin.notify.document import KARMADA
from admin.notify.notices import Notice, notice
from admin.notify.record import key_of
from admin.notify.workloads import Workload
from fairway.kube.errors import KubeError, Unreachable
from fairway.kube.event_series import Regarding
from fairway.usage.groups import Group, added

if TYPE_CHECKING:
    # What files do not need costs half of the time that the command takes to start.
    from admin.notify.objects import Objects

_MOST_LOOKED_UP = 10
"""For each that may be told, so many are looked up at most: others are theirs, gone, or told already."""


@dataclass(frozen=True, slots=True)
class Place:
    """An object, by the API server that has it; without a uid where nobody could be asked.

    ``is_read``: it was read there; otherwise it is what its pods, or what they name, say of it.
    """

    where: str
    regarding: Regarding
    is_read: bool = False

    @property
    def key(self) -> str:
        """What it is recorded under."""
        return key_of(self.regarding, is_read=self.is_read)


@dataclass(slots=True)
class Found:
    """Workloads by where they are told, the most wasteful first; ``problems``: why others are told nowhere.

    ``left``: by API server and namespace, how many were not looked up.
    """

    of: dict[Place, list[Workload]] = field(default_factory=dict)
    problems: list[tuple[Workload, str]] = field(default_factory=list)
    left: dict[tuple[str, str], int] = field(default_factory=dict)


async def find(
    found: Found,
    some: Iterable[Workload],
    objects: "Objects | None",
    karmada: "Objects | None",
    limit: int,
) -> None:
    """Add the workloads of one cluster; without ``objects`` they are taken for what their pods say.

    ``limit``: how many of a namespace may be told.
    """
    looked_up: dict[str, int] = {}
    gone = ""
    for workload in some:
        namespace = workload.regarding.namespace
        if looked_up.get(namespace, 0) >= limit * _MOST_LOOKED_UP:
            key = (workload.cluster, namespace)
            found.left[key] = found.left.get(key, 0) + 1
            continue
        looked_up[namespace] = looked_up.get(namespace, 0) + 1
        try:
            place = None if gone else await _place(workload, objects, karmada)
        except KubeError as error:
            # Who does not answer is not asked a thousand times.
            gone = str(error) if isinstance(error, Unreachable) else ""
            found.problems.append((workload, str(error)))
            continue
        if gone:
            found.problems.append((workload, gone))
        if place is not None:
            found.of.setdefault(place, []).append(workload)


async def _place(workload: Workload, objects: "Objects | None", karmada: "Objects | None") -> Place | None:
    """None for a workload that is gone. Raises KubeError."""
    if objects is None:
        return Place(workload.cluster, workload.regarding)
    seen = await objects.top(workload.regarding)
    if seen is None:
        return None
    template = await karmada.template(seen) if karmada is not None else None
    if template is not None:
        return Place(KARMADA, template, is_read=True)
    return Place(workload.cluster, seen.regarding, is_read=seen.template_uid is not None)


@dataclass(frozen=True, slots=True)
class Told:
    """What is said where. ``clusters``: those that have parts of it, the most wasteful first."""

    place: Place
    clusters: tuple[str, ...]
    sums: Group
    notice: Notice


def told(of: Mapping[Place, Iterable[Workload]], now_s: float) -> tuple[Told, ...]:
    """One for each place, those that waste most first."""
    found = []
    for place, parts in of.items():
        some = sorted(parts, key=lambda part: (-part.sums.wasted_milli, part.cluster, part.regarding.name))
        clusters = tuple(dict.fromkeys(part.cluster for part in some))
        products = tuple(dict.fromkeys(product for part in some for product in part.products))
        sums = replace(added((), (part.sums for part in some)), pods=sum(part.sums.pods for part in some))
        said = notice(sums, place.regarding.namespace, products, clusters, now_s)
        if said is not None:
            found.append(Told(place, clusters, sums, said))
    return tuple(sorted(found, key=_order))


def _order(one: Told) -> tuple[int, int, str, str, str, str]:
    of = one.place.regarding
    return (-one.sums.wasted_milli, -one.sums.idle_milli, one.place.where, of.namespace, of.kind, of.name)
