"""Who uses what in one cluster as sums, small enough to keep with a report and to add up over clusters."""

from dataclasses import dataclass

from fairway.usage.groups import By, Group, groups, total
from fairway.usage.use import ClusterUsage, SickDevice


@dataclass(frozen=True, slots=True)
class UsageSummary:
    """Sums over everything, by namespace and by queue; devices that are not healthy; what was not known."""

    total: Group
    namespaces: tuple[Group, ...]
    queues: tuple[Group, ...]
    sick: tuple[SickDevice, ...] = ()
    notes: tuple[str, ...] = ()


def summarized(usage: ClusterUsage) -> UsageSummary:
    """The sums of one cluster."""
    namespaces = groups([usage], By.NAMESPACE)
    return UsageSummary(
        total([usage], namespaces), namespaces, groups([usage], By.QUEUE), usage.sick, usage.notes
    )
