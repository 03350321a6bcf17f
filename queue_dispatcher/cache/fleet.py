"""The member clusters and the flavors on them: where a workload may land, and how much there is.

Clusters report anew every few seconds and seldom say anything that matters for where something may land, so
what follows from labels and taints is kept until those change; what follows from amounts is added up anew.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from queue_dispatcher.api.resource_flavor import FromEstimator, ResourceFlavor, Static
from queue_dispatcher.ledger.cells import Cell, CellTable
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.workloads.demand import Demand
from queue_dispatcher.workloads.flavors import Reach, reach_of
from queue_dispatcher.workloads.fleet import Cluster
from queue_dispatcher.workloads.placement import Placement, copies, missing, permitted


class Fleet:
    """Clusters, flavors and what the estimators count on them.

    ``moved`` is called when workloads may land elsewhere than before, ``room`` with the clusters on which
    more may have become free, ``amounts`` when capacities have changed.
    """

    def __init__(
        self,
        moved: Callable[[], None],
        room: Callable[[frozenset[str]], None],
        amounts: Callable[[], None],
    ) -> None:
        self.clusters: Mapping[str, Cluster] = {}
        self.flavors: Mapping[str, ResourceFlavor] = {}
        self._estimated: dict[str, Mapping[str, int]] = {}
        self._moved = moved
        self._room = room
        self._amounts = amounts
        self._reaches: dict[str, Reach] | None = None
        self._permitted: dict[Placement, frozenset[str]] = {}
        self._copies: dict[tuple[Placement, bool], int] = {}
        self._capacity: dict[str, Mapping[str, int] | None] = {}

    def cluster_changed(self, key: str, before: Cluster | None, after: Cluster | None) -> None:
        """A cluster is there, looks different, or is gone."""
        self._capacity.clear()
        if _where(before) != _where(after):
            self._forget_places()
        if after is not None and after.is_ready and (before is None or _has_grown(before, after)):
            self._room(frozenset((key,)))
        self._amounts()

    def flavor_changed(self, key: str, before: ResourceFlavor | None, after: ResourceFlavor | None) -> None:
        """A flavor is there, says something else, or is gone."""
        self._capacity.pop(key, None)
        if before is None or after is None or _meaning(before) != _meaning(after):
            self._forget_places()
        self._amounts()

    def estimated(self, cluster: str, amounts: Mapping[str, int]) -> None:
        """What the cluster's estimator counts on its nodes."""
        before = self._estimated.get(cluster)
        if before != amounts:
            self._estimated[cluster] = amounts
            self._capacity.clear()
            self._amounts()

    def asks_estimators(self) -> frozenset[str]:
        """The clusters of flavors whose capacity the estimators are to count."""
        found: set[str] = set()
        for flavor in self.flavors.values():
            if isinstance(flavor.capacity, FromEstimator):
                found |= self.reaches[flavor.name].clusters
        return frozenset(found)

    @property
    def reaches(self) -> Mapping[str, Reach]:
        """What each flavor means on this fleet."""
        if self._reaches is None:
            self._reaches = {
                name: reach_of(flavor, self.clusters.values()) for name, flavor in self.flavors.items()
            }
        return self._reaches

    def permitted(self, placement: Placement) -> frozenset[str]:
        """The clusters that a placement permits."""
        found = self._permitted.get(placement)
        if found is None:
            found = self._permitted[placement] = permitted(placement, self.clusters.values())
        return found

    def missing(self, placement: Placement) -> tuple[str, ...]:
        """The clusters that a placement names and that have not joined."""
        return missing(placement, self.clusters.values())

    def copies(self, placement: Placement | None, demand: Demand) -> int:
        """On how many clusters all of a workload is expected."""
        if placement is None:
            return 1
        key = (placement, demand.is_set)
        found = self._copies.get(key)
        if found is None:
            found = self._copies[key] = copies(placement, demand.is_set, self.clusters.values())
        return found

    def capacity(self, flavor: str) -> Mapping[str, int] | None:
        """What there is of a flavor, by resource; None where nobody says."""
        if flavor not in self._capacity:
            self._capacity[flavor] = self._count(self.flavors[flavor]) if flavor in self.flavors else {}
        return self._capacity[flavor]

    @property
    def lost(self) -> frozenset[str]:
        """The clusters that are not Ready."""
        return frozenset(name for name, cluster in self.clusters.items() if not cluster.is_ready)

    def envelope(self, table: CellTable, ledger: Ledger, lost: Mapping[Cell, int]) -> dict[Cell, int]:
        """What is physically left of each cell whose capacity is known, below 0 where too much is charged.

        ``lost``: what of the charges is placed on `lost` clusters. Their capacity does not count, so nor does
        what runs there; otherwise it would be taken from the clusters that are left.
        """
        left: dict[Cell, int] = {}
        charged = ledger.totals
        for cell in range(len(table)):
            name = table.name(cell)
            flavor = self.flavors.get(name.flavor)
            capacity = self.capacity(name.flavor)
            if flavor is None or capacity is None:
                continue
            if isinstance(flavor.capacity, Static) and name.resource not in capacity:
                continue
            usable = capacity.get(name.resource, 0) * (100 - flavor.headroom_percent) // 100
            outside = 0 if isinstance(flavor.capacity, Static) else lost.get(cell, 0)
            left[cell] = usable - charged.get(cell, 0) + outside
        return left

    def _count(self, flavor: ResourceFlavor) -> Mapping[str, int] | None:
        if isinstance(flavor.capacity, Static):
            return flavor.capacity.amounts
        members = [
            cluster
            for name, cluster in self.clusters.items()
            if name in self.reaches[flavor.name].clusters and not cluster.is_leaving
        ]
        # Karmada can be told not to sum up its clusters; then there is no bound but quota.
        if members and not any(cluster.allocatable for cluster in members):
            return None
        of_estimators = self._estimated if isinstance(flavor.capacity, FromEstimator) else {}
        return _total(
            {**cluster.allocatable, **of_estimators.get(cluster.name, {})}
            for cluster in members
            if cluster.is_ready
        )

    def _forget_places(self) -> None:
        self._reaches = None
        self._permitted.clear()
        self._copies.clear()
        self._capacity.clear()
        self._moved()


def _total(amounts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for of in amounts:
        for resource, amount in of.items():
            total[resource] = total.get(resource, 0) + amount
    return total


def _where(cluster: Cluster | None) -> Cluster | None:
    """What of a cluster decides whether a workload may land there."""
    return cluster and replace(cluster, is_ready=True, allocatable={}, free={}, problems=())


def _meaning(flavor: ResourceFlavor) -> ResourceFlavor:
    """What of a flavor decides which workloads it is for."""
    return replace(flavor, capacity=Static({}), headroom_percent=0, problems=())


def _has_grown(before: Cluster, after: Cluster) -> bool:
    """Whether something may fit that did not before."""
    return (
        not before.is_ready
        or _where(before) != _where(after)
        or any(amount > before.allocatable.get(name, 0) for name, amount in after.allocatable.items())
        or any(amount > before.free.get(name, 0) for name, amount in after.free.items())
    )
