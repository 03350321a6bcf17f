"""Where a binding's placement lets Karmada put a workload, and on how many clusters at once.

Mirrors Karmada 1.19: the filters ClusterAffinity, TaintToleration, ClusterEviction and SpreadConstraint
(pkg/scheduler/framework/plugins), util.ClusterMatches (pkg/util/selector.go), AssignReplicas and
SelectBestClusters (pkg/scheduler/core). What those find out only when they run (enabled APIs, inter-workload
affinity, room) is not looked at: the answer is the clusters that are not ruled out by what is written down.

Of several affinity groups Karmada uses the first that works, so a workload may land in any of them, but in
one at a time.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from fairway.selectors import Operator, Requirement
from fairway.taints import Toleration, first_untolerated
from queue_dispatcher.api.selector import EVERYTHING, Selector
from queue_dispatcher.workloads.fleet import Cluster

PROVIDER = "provider"
REGION = "region"
ZONE = "zone"


class Division(StrEnum):
    """How Karmada divides replicas over the clusters that it chooses."""

    DUPLICATED = "Duplicated"
    """Each gets all of them."""
    AGGREGATED = "Aggregated"
    """As few clusters as there is room for."""
    DYNAMIC = "DynamicWeight"
    """By the room that each has."""
    STATIC = "StaticWeight"
    """By weights, whatever room there is."""


@dataclass(frozen=True, slots=True)
class ZoneRequirement:
    """A requirement on the zones of a cluster, of which it may have several; unknown operators match none."""

    operator: str
    values: frozenset[str]

    def allows(self, zones: tuple[str, ...]) -> bool:
        """Whether a cluster in these zones satisfies the requirement."""
        match self.operator:
            case Operator.IN:
                return any(zone in self.values for zone in zones)
            case Operator.NOT_IN:
                return all(zone not in self.values for zone in zones)
            case Operator.EXISTS:
                return bool(zones)
            case Operator.DOES_NOT_EXIST:
                return not zones
            case _:
                return False


@dataclass(frozen=True, slots=True)
class ClusterAffinity:
    """Which clusters are meant; all parts must hold. ``names``: empty for any.

    ``fields``: requirements on provider and region, which a cluster without one lacks.
    """

    names: frozenset[str] = frozenset()
    exclude: frozenset[str] = frozenset()
    labels: Selector = EVERYTHING
    fields: tuple[Requirement, ...] = ()
    zones: tuple[ZoneRequirement, ...] = ()

    def matches(self, cluster: Cluster) -> bool:
        """Whether the cluster is one of those meant."""
        if cluster.name in self.exclude or (self.names and cluster.name not in self.names):
            return False
        stated = {PROVIDER: cluster.provider or None, REGION: cluster.region or None}
        return (
            self.labels.selects(cluster.labels)
            and all(requirement.allows(stated.get(requirement.key)) for requirement in self.fields)
            and all(requirement.allows(cluster.zones) for requirement in self.zones)
        )


AffinityGroup = tuple[ClusterAffinity, ...]
"""Affinities of which one is enough: a group's own, and those that it overflows to."""


@dataclass(frozen=True, slots=True)
class Stay:
    """Where a suspended workload is, and nowhere else can go on: its ``cluster``, and the ``flavors`` that it
    ran in there, by resource.
    """

    cluster: str
    flavors: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Placement:
    """A placement policy, reduced.

    ``groups``: empty for every cluster. ``max_clusters``: how many are chosen at most, 0 for no limit;
    ``min_clusters``: at least. ``spread_by``: fields that a cluster must have because the workload is spread
    by them. ``evicting``: clusters that it is being taken off, none of which Karmada gives it meanwhile.
    ``scheduler``: who is to place it, empty for Karmada's own. ``stays_ms``: for how long it tolerates that
    its cluster is lost, None for ever. ``stay``: of what is suspended; whatever the policy permits beside it.
    """

    groups: tuple[AffinityGroup, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    division: Division = Division.AGGREGATED
    min_clusters: int = 0
    max_clusters: int = 0
    spread_by: frozenset[str] = frozenset()
    evicting: frozenset[str] = frozenset()
    scheduler: str = ""
    stays_ms: int | None = 0
    stay: Stay | None = None

    @property
    def is_duplicated(self) -> bool:
        """Whether each chosen cluster gets all replicas, instead of a part."""
        return self.division is Division.DUPLICATED

    def permits(self, cluster: Cluster) -> bool:
        """Whether Karmada may place the workload on the cluster, as far as is written down."""
        return self._admits(cluster) and (
            not self.groups or any(_matches(group, cluster) for group in self.groups)
        )

    def _admits(self, cluster: Cluster) -> bool:
        if cluster.name in self.evicting or (self.stay is not None and cluster.name != self.stay.cluster):
            return False
        if cluster.is_leaving or first_untolerated(cluster.taints, self.tolerations) is not None:
            return False
        lacking = {PROVIDER: not cluster.provider, REGION: not cluster.region, ZONE: not cluster.zones}
        return not any(lacking.get(field, False) for field in self.spread_by)


ANYWHERE = Placement()
"""Permits every cluster that is not tainted."""


def permitted(placement: Placement, fleet: Iterable[Cluster]) -> frozenset[str]:
    """The names of the clusters that the placement permits."""
    return frozenset(cluster.name for cluster in fleet if placement.permits(cluster))


def tiers(placement: Placement, fleet: Iterable[Cluster]) -> tuple[frozenset[str], ...]:
    """The permitted clusters of the first affinity group that permits any, in the order in which it prefers
    them: its own, then those that it overflows to; each cluster where it comes first.
    """
    clusters = [cluster for cluster in fleet if placement.permits(cluster)]
    for group in placement.groups:
        found: list[frozenset[str]] = []
        for affinity in group:
            names = {cluster.name for cluster in clusters if affinity.matches(cluster)}
            found.append(frozenset(names.difference(*found)))
        if any(found):
            return tuple(names for names in found if names)
    return (frozenset(cluster.name for cluster in clusters),)


def missing(placement: Placement, fleet: Iterable[Cluster]) -> tuple[str, ...]:
    """The clusters that the placement names and that are not in the fleet, by name."""
    named: set[str] = set()
    for group in placement.groups:
        for affinity in group:
            named |= affinity.names - affinity.exclude
    return tuple(sorted(named - {cluster.name for cluster in fleet}))


def by_group(placement: Placement, fleet: Iterable[Cluster]) -> tuple[int, ...]:
    """How many of the clusters each affinity group of the placement permits; one number where it has none.

    A cluster counts by itself, so the numbers of a fleet are the sums of those of its clusters.
    """
    clusters = [cluster for cluster in fleet if placement.permits(cluster)]
    if not placement.groups:
        return (len(clusters),)
    return tuple(sum(_matches(group, cluster) for cluster in clusters) for group in placement.groups)


def copies(placement: Placement, is_set: bool, permitted: Iterable[int]) -> int:
    """How many clusters get all of the workload: what its demand is multiplied with; 1 at least.

    More than 1 only where replicas are duplicated, or for a set of components, which Karmada gives to every
    cluster that it chooses. Before placement that is an upper bound: as many as the largest affinity group
    permits (``permitted``: by `by_group`), within the placement's limit.
    """
    if not (placement.is_duplicated or is_set):
        return 1
    most = max(permitted)
    return max(1, min(most, placement.max_clusters) if placement.max_clusters else most)


def _matches(group: AffinityGroup, cluster: Cluster) -> bool:
    return any(affinity.matches(cluster) for affinity in group)
