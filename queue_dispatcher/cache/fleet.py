"""The member clusters and the flavors on them: where a workload may land, and how much there is.

Clusters report anew every few seconds and seldom say anything that matters for where something may land, so
what follows from labels and taints is kept until those change; what follows from amounts is added up anew.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final

from queue_dispatcher.api.resource_flavor import FromEstimator, ResourceFlavor, Static
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cache.outages import Outages
from queue_dispatcher.ledger.cells import Cell, CellTable
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.workloads.demand import Demand
from queue_dispatcher.workloads.flavors import Reach, reach_of
from queue_dispatcher.workloads.fleet import Cluster, grown
from queue_dispatcher.workloads.placement import Placement, by_group, copies, missing, permitted, tiers

GRACE_MS: Final = 300_000
"""For so long a cluster that is not Ready counts for quotas all the same; not for what may be released."""


class Fleet:
    """Clusters, flavors and what the estimators count on them.

    ``moved`` is called with the placements that permit other clusters than before, or with None where what
    flavors mean has changed; and with those of them that permit clusters of other flavors than before.
    ``room`` with a cluster and what more may fit there, by `grown`; ``amounts`` when capacities may have
    changed.
    """

    def __init__(
        self,
        moved: Callable[[Collection[Placement] | None, Collection[Placement]], None],
        room: Callable[[str, Mapping[str, int]], None],
        amounts: Callable[[], None],
    ) -> None:
        self.clusters: Mapping[str, Cluster] = {}
        self.flavors: Mapping[str, ResourceFlavor] = {}
        self.lost: set[str] = set()
        """The clusters that are not Ready."""
        self.excused: frozenset[str] = frozenset()
        """Of those, the ones that are not for longer than `GRACE_MS`."""
        self.outages = Outages(lambda: self.clusters)
        self._estimated: dict[str, Mapping[str, int]] = {}
        self._moved = moved
        self._room = room
        self._amounts = amounts
        self._reaches: dict[str, Reach] | None = None
        self._permitted: dict[Placement, frozenset[str]] = {}
        self._by_group: dict[Placement, tuple[int, ...]] = {}
        self._capacity: dict[str, Mapping[str, int] | None] = {}
        self._owned: dict[str, Mapping[str, int] | None] = {}

    def cluster_changed(self, key: str, before: Cluster | None, after: Cluster | None) -> None:
        """A cluster is there, looks different, or is gone."""
        self.outages.changed(key, before, after)
        if before is None or after is None or before.place != after.place:
            self._place_changed(key, before, after)
        if before is None or after is None or before.amounts != after.amounts:
            self._note_lost(key, after)
            self._forget_amounts((key,))
        growth = grown(before, after) if after is not None else {}
        if growth:
            self._room(key, growth)

    def flavor_changed(self, key: str, before: ResourceFlavor | None, after: ResourceFlavor | None) -> None:
        """A flavor is there, says something else, or is gone."""
        if before is None or after is None or _meaning(before) != _meaning(after):
            self._reaches = None
            self._moved(None, ())
        # Of all flavors: what a cluster was in is not known any more when it changes.
        self._capacity.clear()
        self._owned.clear()
        self._amounts()

    def advance(self, now: Moment, used: Collection[str]) -> None:
        """Time has passed: clusters may not be Ready for too long by now. ``used``: where work is placed."""
        self.outages.advance(now.elapsed_ms, used)
        excused = frozenset(name for name in self.lost if now.day_ms - self.clusters[name].lost_ms < GRACE_MS)
        if excused != self.excused:
            changed, self.excused = excused ^ self.excused, excused
            self._forget_amounts(changed)

    def estimated(self, cluster: str, amounts: Mapping[str, int]) -> None:
        """What the cluster's estimator counts on its nodes."""
        before = self._estimated.get(cluster)
        if before != amounts:
            self._estimated[cluster] = amounts
            self._forget_amounts((cluster,))

    def asks_estimators(self) -> frozenset[str]:
        """The clusters of flavors whose capacity the estimators are to count."""
        found: set[str] = set()
        for flavor in self.flavors.values():
            if isinstance(flavor.capacity, FromEstimator):
                found |= self.reaches[flavor.name].clusters
        return frozenset(found)

    @property
    def reaches(self) -> dict[str, Reach]:
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

    def tiers(self, placement: Placement) -> tuple[frozenset[str], ...]:
        """Where a workload that is placed for the first time may go, as its placement prefers it."""
        if not placement.groups:
            return (self.permitted(placement),)
        return tiers(placement, self.clusters.values())

    def missing(self, placement: Placement) -> tuple[str, ...]:
        """The clusters that a placement names and that have not joined."""
        return missing(placement, self.clusters.values())

    @property
    def placements(self) -> int:
        """How many placements are known."""
        return len(self._permitted) + len(self._by_group)

    def retain(self, placements: Collection[Placement | None]) -> None:
        """Forget all placements but these."""
        self._permitted = {one: found for one, found in self._permitted.items() if one in placements}
        self._by_group = {one: found for one, found in self._by_group.items() if one in placements}

    def copies(self, placement: Placement | None, demand: Demand) -> int:
        """On how many clusters all of a workload is expected."""
        if placement is None or not (placement.is_duplicated or demand.is_set):
            return 1
        found = self._by_group.get(placement)
        if found is None:
            found = self._by_group[placement] = by_group(placement, self.clusters.values())
        return copies(placement, demand.is_set, found)

    def capacity(self, flavor: str) -> Mapping[str, int] | None:
        """What there is of a flavor, by resource; None where nobody says."""
        if flavor not in self._capacity:
            self._capacity[flavor] = self._count(flavor, frozenset())
        return self._capacity[flavor]

    def owned(self, flavor: str) -> Mapping[str, int] | None:
        """What percentages of the flavor are taken of: `capacity` with that of `excused` clusters."""
        if flavor not in self._owned:
            self._owned[flavor] = self._count(flavor, self.excused)
        return self._owned[flavor]

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

    def _count(self, name: str, excused: Collection[str]) -> Mapping[str, int] | None:
        flavor = self.flavors.get(name)
        if flavor is None:
            return {}
        if isinstance(flavor.capacity, Static):
            return flavor.capacity.amounts
        reach = self.reaches[name].clusters
        members = [cluster for of, cluster in self.clusters.items() if of in reach and not cluster.is_leaving]
        # Karmada can be told not to sum up its clusters; then there is no bound but quota.
        if members and not any(cluster.allocatable for cluster in members):
            return None
        of_estimators = self._estimated if isinstance(flavor.capacity, FromEstimator) else {}
        return _total(
            {**cluster.allocatable, **of_estimators.get(cluster.name, {})}
            for cluster in members
            if cluster.is_ready or cluster.name in excused
        )

    def _note_lost(self, key: str, cluster: Cluster | None) -> None:
        if cluster is None or cluster.is_ready:
            self.lost.discard(key)
            self.excused -= {key}
        else:
            self.lost.add(key)

    def _place_changed(self, key: str, before: Cluster | None, after: Cluster | None) -> None:
        """Find out for whom the cluster is another than before; for most it is not."""
        now: tuple[Cluster, ...] = () if after is None else (after,)
        alike = self._alike(key)
        changed, elsewhere = set(), set()
        for placement, found in self._permitted.items():
            is_permitted = after is not None and placement.permits(after)
            if is_permitted != (key in found):
                self._permitted[placement] = found | {key} if is_permitted else found - {key}
                changed.add(placement)
                if found.isdisjoint(alike):
                    elsewhere.add(placement)
            elif not found and (before is None or after is None):
                # Which clusters are missed is told.
                changed.add(placement)
                elsewhere.add(placement)
        was: tuple[Cluster, ...] = () if before is None else (before,)
        for placement, counts in self._by_group.items():
            gone, come = by_group(placement, was), by_group(placement, now)
            if gone != come:
                moved = (count - less + more for count, less, more in zip(counts, gone, come, strict=True))
                self._by_group[placement] = tuple(moved)
                changed.add(placement)
        if self._reach_changed(key, after):
            self._moved(None, ())
        elif changed:
            self._moved(changed, elsewhere)

    def _alike(self, key: str) -> frozenset[str]:
        """The other clusters that are in the flavors that a cluster is in, and in no others.

        As long as a placement permits one of them, whether it permits the cluster too decides nothing about
        which flavors have which places of others.
        """
        alike = frozenset(self.clusters) - {key}
        for reach in (self._reaches or {}).values():
            alike = alike & reach.clusters if key in reach.clusters else alike - reach.clusters
        return alike

    def _reach_changed(self, key: str, cluster: Cluster | None) -> bool:
        """Whether any flavor has gained or lost the cluster."""
        has_changed = False
        for name, reach in (self._reaches or {}).items():
            flavor = self.flavors[name]
            is_in = cluster is not None and flavor.spans(cluster.name, cluster.labels)
            if is_in != (key in reach.clusters):
                clusters = reach.clusters | {key} if is_in else reach.clusters - {key}
                self.reaches[name] = replace(reach, clusters=clusters)
                self._capacity.pop(name, None)
                self._owned.pop(name, None)
                has_changed = True
        if has_changed:
            self._amounts()
        return has_changed

    def _forget_amounts(self, clusters: Iterable[str]) -> None:
        """The capacities of these clusters have changed, and with them those of their flavors."""
        keys = frozenset(clusters)
        for name in self._capacity.keys() | self._owned.keys():
            if name not in self.reaches or not keys.isdisjoint(self.reaches[name].clusters):
                self._capacity.pop(name, None)
                self._owned.pop(name, None)
        self._amounts()


def _total(amounts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for of in amounts:
        for resource, amount in of.items():
            total[resource] = total.get(resource, 0) + amount
    return total


def _meaning(flavor: ResourceFlavor) -> ResourceFlavor:
    """What of a flavor decides which workloads it is for."""
    return replace(flavor, capacity=Static({}), headroom_percent=0, problems=())
