"""The clusters of the fleet, as far as they decide where a workload may land and what there is.

One `Cluster` per Karmada Cluster object (cluster.karmada.io/v1alpha1), reduced from what
`queue_dispatcher.bindings.cluster` reads.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fairway.taints import Taint
from queue_dispatcher.api.resource_flavor import ResourceFlavor


@dataclass(frozen=True, slots=True)
class Cluster:
    """A member cluster.

    ``is_ready``: its Ready condition is True. ``is_leaving``: being removed from the fleet, so that Karmada
    places nothing there any more. ``allocatable``: milli-cores of cpu, whole units of all else, summed over
    its nodes by Karmada. ``free``: of that, what no pod has been promised, below 0 where more was; it is what
    karmada-scheduler goes by, and up to ten seconds old. ``problems``: what could not be read, by field.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    is_ready: bool = True
    is_leaving: bool = False
    allocatable: Mapping[str, int] = field(default_factory=dict)
    free: Mapping[str, int] = field(default_factory=dict)
    provider: str = ""
    region: str = ""
    zones: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


Fleet = Mapping[str, Cluster]
"""Clusters by name."""


def clusters_of(flavor: ResourceFlavor, fleet: Iterable[Cluster]) -> frozenset[str]:
    """The names of the clusters that belong to the flavor, Ready or not."""
    return frozenset(cluster.name for cluster in fleet if flavor.spans(cluster.name, cluster.labels))
