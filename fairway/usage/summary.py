"""Who uses what in one cluster as sums, small enough to keep with a report and to add up over clusters."""

from bisect import bisect_right
from dataclasses import dataclass

from fairway.usage.groups import By, Group, groups, total
from fairway.usage.use import ClusterUsage, SickDevice

BANDS = (0, 1, 10, 25, 50, 75)
"""Where each band of used percent begins that nodes are counted by."""


@dataclass(frozen=True, slots=True)
class NodesByUse:
    """Nodes on which pods hold devices: so many in each of `BANDS`, by how much of that is used."""

    unmeasured: int
    used: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class UsageSummary:
    """Sums over everything, by namespace and by queue; devices that are not healthy; what was not known."""

    total: Group
    namespaces: tuple[Group, ...]
    queues: tuple[Group, ...]
    sick: tuple[SickDevice, ...] = ()
    notes: tuple[str, ...] = ()
    nodes: NodesByUse = NodesByUse(0, ())


def summarized(usage: ClusterUsage) -> UsageSummary:
    """The sums of one cluster."""
    namespaces = groups([usage], By.NAMESPACE)
    return UsageSummary(
        total([usage], namespaces),
        namespaces,
        groups([usage], By.QUEUE),
        usage.sick,
        usage.notes,
        _nodes_by_use(usage),
    )


def _nodes_by_use(usage: ClusterUsage) -> NodesByUse:
    counts = [0] * len(BANDS)
    nodes = groups([usage], By.NODE)
    known = [group.used_percent for group in nodes if group.used_percent is not None]
    for percent in known:
        counts[bisect_right(BANDS, percent) - 1] += 1
    return NodesByUse(len(nodes) - len(known), tuple(counts))
