"""Sums over uses: by whom, of what, where; and what of it is wasted.

Wasted is what is held and not used: of every device whose utilisation was measured, the part held times what
is missing from its median utilisation to 100 %. So a pod that holds eight devices at a median of 25 % wastes
six. What was not measured is not wasted, and is told beside it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from fairway.usage.definitions import Finding
from fairway.usage.percent import percent as _percent
from fairway.usage.use import WHOLE_MILLI, ClusterUsage, Use


class By(StrEnum):
    """What uses are summed up by."""

    NAMESPACE = "namespace"
    QUEUE = "queue"
    OWNER = "owner"
    POD = "pod"
    NODE = "node"
    DEVICE = "device"
    PRODUCT = "product"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class Group:
    """Sums, in thousandths of devices unless a name says otherwise; all but the names and ages add up.

    ``name``: what the group is called, the namespace or cluster that it is in first. ``used_milli`` is held
    times the median utilisation, ``used_p95_milli`` held times the 95th percentile, both of what is
    ``measured_milli``; ``wasted_milli`` is what is measured and not used. Memory: of devices whose memory was
    measured, what is held of it and the peaks. ``idle_device_seconds``: of idle devices, devices times the
    seconds for which they have been idle while this pod was there. ``idle_s``: the longest of these, 0 for
    none. ``age_s``: of the oldest pod, None where nobody tells.
    """

    name: tuple[str, ...]
    pods: int = 0
    allocated_milli: int = 0
    measured_milli: int = 0
    used_milli: int = 0
    used_p95_milli: int = 0
    wasted_milli: int = 0
    memory_held_bytes: int = 0
    memory_peak_bytes: int = 0
    idle_milli: int = 0
    idle_holding_memory_milli: int = 0
    idle_device_seconds: int = 0
    under_used_milli: int = 0
    oversized_milli: int = 0
    throttled_milli: int = 0
    failing_milli: int = 0
    idle_s: int = 0
    age_s: int | None = None

    @property
    def used_percent(self) -> int | None:
        """The mean of the devices' median utilisation; None where none was measured."""
        return _percent(self.used_milli, self.measured_milli)

    @property
    def used_p95_percent(self) -> int | None:
        """The mean of the devices' 95th percentiles; None where none was measured."""
        return _percent(self.used_p95_milli, self.measured_milli)

    @property
    def memory_percent(self) -> int | None:
        """What of the memory that is held was used at the peaks; None where none was measured."""
        return _percent(self.memory_peak_bytes, self.memory_held_bytes)

    def plus(self, other: "Group") -> "Group":
        """The sum of both, under this one's name."""
        ages = [age_s for age_s in (self.age_s, other.age_s) if age_s is not None]
        return Group(
            self.name,
            self.pods + other.pods,
            self.allocated_milli + other.allocated_milli,
            self.measured_milli + other.measured_milli,
            self.used_milli + other.used_milli,
            self.used_p95_milli + other.used_p95_milli,
            self.wasted_milli + other.wasted_milli,
            self.memory_held_bytes + other.memory_held_bytes,
            self.memory_peak_bytes + other.memory_peak_bytes,
            self.idle_milli + other.idle_milli,
            self.idle_holding_memory_milli + other.idle_holding_memory_milli,
            self.idle_device_seconds + other.idle_device_seconds,
            self.under_used_milli + other.under_used_milli,
            self.oversized_milli + other.oversized_milli,
            self.throttled_milli + other.throttled_milli,
            self.failing_milli + other.failing_milli,
            max(self.idle_s, other.idle_s),
            max(ages, default=None),
        )


_Counted = tuple[str, Use, int]
_Key = Callable[[str, Use], tuple[str, ...]]

_KEYS: Mapping[By, _Key] = {
    By.NAMESPACE: lambda cluster, use: (use.pod.namespace,),
    By.QUEUE: lambda cluster, use: (use.pod.namespace, use.pod.queue) if use.pod.queue else ("", ""),
    By.OWNER: lambda cluster, use: (use.pod.namespace, str(use.pod.owner)),
    By.POD: lambda cluster, use: (cluster, use.pod.namespace, use.pod.name),
    By.NODE: lambda cluster, use: (cluster, use.pod.node),
    By.DEVICE: lambda cluster, use: (cluster, use.pod.node, device_name(use)),
    By.PRODUCT: lambda cluster, use: (use.product,),
    By.CLUSTER: lambda cluster, use: (cluster,),
}


def device_name(use: Use) -> str:
    """The device by its number on the node and its id; empty where nobody tells which."""
    return "" if use.device is None else f"{use.device.index} {use.device.id}"


def groups(clusters: Iterable[ClusterUsage], by: By) -> tuple[Group, ...]:
    """The sums, those that waste most first, then those that hold most, then by name.

    One namespace, queue or owner in several clusters is one group, as Karmada spreads them.
    """
    key_of = _KEYS[by]
    of: dict[tuple[str, ...], list[_Counted]] = {}
    for counted in _counted(clusters):
        of.setdefault(key_of(*counted[:2]), []).append(counted)
    return by_waste(_group(name, uses) for name, uses in of.items())


def by_waste(found: Iterable[Group]) -> tuple[Group, ...]:
    """The groups in the order of `groups`."""
    return tuple(sorted(found, key=lambda one: (-one.wasted_milli, -one.allocated_milli, one.name)))


def merged(parts: Iterable[Group]) -> tuple[Group, ...]:
    """Groups of different clusters, those of one name added up, in the order of `groups`."""
    of: dict[tuple[str, ...], list[Group]] = {}
    for part in parts:
        of.setdefault(part.name, []).append(part)
    return by_waste(added(name, same) for name, same in of.items())


def total(clusters: Iterable[ClusterUsage], parts: Iterable[Group] | None = None) -> Group:
    """The sum over everything; ``parts``: the `groups` by anything, where they are known already."""
    clusters = tuple(clusters)
    if parts is None:
        return _group((), list(_counted(clusters)))
    pods = {
        (cluster.cluster, use.pod.namespace, use.pod.name) for cluster in clusters for use in cluster.uses
    }
    return replace(added((), parts), pods=len(pods))


def added(name: tuple[str, ...], parts: Iterable[Group]) -> Group:
    """The sum of groups that have no pod in common."""
    sums = Group(name)
    for part in parts:
        sums = sums.plus(part)
    return sums


def _counted(clusters: Iterable[ClusterUsage]) -> Iterator[_Counted]:
    """Every use with what others hold of its device that come before it, in thousandths."""
    for cluster in clusters:
        begins: Counter[tuple[str, str]] = Counter()
        for use in cluster.uses:
            begin_milli = 0
            if use.device is not None and use.milli < WHOLE_MILLI:
                key = use.pod.node, use.device.id
                begin_milli = begins[key]
                begins[key] += use.allocated_milli
            yield cluster.cluster, use, begin_milli


def _group(name: tuple[str, ...], uses: list[_Counted]) -> Group:
    if not uses:
        return Group(name)
    pods = {(cluster, use.pod.namespace, use.pod.name) for cluster, use, _ in uses}
    sums = map(sum, zip(*(_amounts(use, begin_milli) for _, use, begin_milli in uses), strict=True))
    idle_s = max(_idle_s(use) for _, use, _ in uses)
    ages = (use.pod.age_s for _, use, _ in uses if use.pod.age_s is not None)
    return replace(Group(name, len(pods), *sums), idle_s=idle_s, age_s=max(ages, default=None))


def _amounts(use: Use, begin_milli: int) -> tuple[int, ...]:
    """What of the use adds up, in the order of `Group` from ``allocated_milli`` on.

    What is used of a device is dealt to its parts as they follow each other, so that it adds up as well.
    """
    held, device = use.allocated_milli, use.device
    if device is None:
        return (held, *_NOT_MEASURED)
    measured = used = used_p95 = memory = peak = 0
    if device.p50_percent is not None and device.p95_percent is not None:
        measured = held
        used = _part(begin_milli, held, device.p50_percent)
        used_p95 = max(used, _part(begin_milli, held, device.p95_percent))
    if device.memory_peak_bytes is not None and device.memory_bytes:
        memory = device.memory_bytes * held // WHOLE_MILLI
        peak = device.memory_peak_bytes * held // WHOLE_MILLI
    found = use.findings
    return (
        held,
        measured,
        used,
        used_p95,
        measured - used,
        memory,
        peak,
        held * (Finding.IDLE in found),
        held * (Finding.HOLDS_MEMORY in found),
        held * _idle_s(use) // WHOLE_MILLI,
        held * (Finding.UNDER_USED in found),
        held * (Finding.OVERSIZED in found),
        held * (Finding.THROTTLED in found),
        held * (Finding.FAILING in found),
    )


_NOT_MEASURED = (0,) * 13


def _idle_s(use: Use) -> int:
    return use.idle_s if Finding.IDLE in use.findings else 0


def _part(begin_milli: int, held_milli: int, percent: int) -> int:
    return ((begin_milli + held_milli) * percent + 50) // 100 - (begin_milli * percent + 50) // 100
