"""The clusters of the fleet, as far as they decide where a workload may land and what there is.

One `Cluster` per Karmada Cluster object (cluster.karmada.io/v1alpha1), reduced from what
`queue_dispatcher.bindings.cluster` reads.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from fairway.taints import Taint
from queue_dispatcher.api.resource_flavor import ResourceFlavor

ANYTHING: Final = ""
"""Stands for a resource in `grown` where room of any kind may have appeared."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A member cluster.

    ``is_ready``: its Ready condition is True. ``lost_ms``: of one that is not, since when, epoch
    milliseconds, 0 where nobody says. ``is_leaving``: being removed from the fleet, so that Karmada
    places nothing there any more. ``allocatable``: milli-cores of cpu, whole units of all else, summed over
    its nodes by Karmada. ``free``: of that, what no pod has been promised, below 0 where more was; it is what
    karmada-scheduler goes by, and up to ten seconds old. ``problems``: what could not be read, by field.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    is_ready: bool = True
    lost_ms: int = 0
    is_leaving: bool = False
    allocatable: Mapping[str, int] = field(default_factory=dict)
    free: Mapping[str, int] = field(default_factory=dict)
    provider: str = ""
    region: str = ""
    zones: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def is_here(self) -> bool:
        """Whether it answers and is to stay."""
        return self.is_ready and not self.is_leaving

    @property
    def place(self) -> tuple[object, ...]:
        """All of it that decides whether a workload may land there."""
        return (self.labels, self.taints, self.is_leaving, self.provider, self.region, self.zones)

    @property
    def amounts(self) -> tuple[object, ...]:
        """All of it that decides how much there is."""
        return (self.allocatable, self.is_ready, self.lost_ms, self.is_leaving)


Fleet = Mapping[str, Cluster]
"""Clusters by name."""


def clusters_of(flavor: ResourceFlavor, fleet: Iterable[Cluster]) -> frozenset[str]:
    """The names of the clusters that belong to the flavor, Ready or not."""
    return frozenset(cluster.name for cluster in fleet if flavor.spans(cluster.name, cluster.labels))


def grown(before: Cluster | None, after: Cluster) -> dict[str, int]:
    """By resource, how much more there is, or is free, than before; empty where nothing can fit that did not.

    A cluster that is new, Ready again, or may be used by others than before has room of `ANYTHING`.
    """
    if not after.is_ready:
        return {}
    if before is None or not before.is_ready or before.place != after.place:
        return {ANYTHING: 1}
    return {
        name: more
        for name, amount in after.allocatable.items()
        if (
            more := max(
                amount - before.allocatable.get(name, 0), after.free.get(name, 0) - before.free.get(name, 0)
            )
        )
        > 0
    }
