"""Spare quota: what queues could be charged for work that gives back what it is charged in lost clusters."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from queue_dispatcher.api.cluster_queue import ClusterQueue, ResourceGroup
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.ledger.cells import Cell, Charge, added
from queue_dispatcher.workloads.demand import Component, Demand


class SpareQuota:
    """As of one moment, less what was charged here since."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._ledger = cache.charges.ledger.fork()

    @contextmanager
    def without(self, uid: str) -> Iterator[None]:
        """With what the binding is charged given back meanwhile."""
        own = self._cache.charges.get(uid)
        is_own = own is not None and own.queue in self._ledger.tree.paths
        if own is None or not is_own:
            yield
            return
        self._ledger.give_back(own.queue, own.charge)
        yield
        self._ledger.charge(own.queue, own.charge)

    def settle(self, uid: str, queue: str, charge: Charge) -> None:
        """The binding is charged so in the queue, instead of how it is."""
        own = self._cache.charges.get(uid)
        if own is not None and own.queue in self._ledger.tree.paths:
            self._ledger.give_back(own.queue, own.charge)
        self._ledger.charge(queue, charge)

    def charges(self, queue: ClusterQueue, demand: Demand, clusters: Collection[str]) -> dict[str, Charge]:
        """By cluster, of those in whose flavors the queue has enough left for all of it: what it would be
        charged there, each component to the first flavor that has room beside those before it.
        """
        found = {}
        for cluster in sorted(clusters):
            charge = self._at(queue, demand, cluster)
            if charge is not None:
                found[cluster] = charge
        return found

    def _at(self, queue: ClusterQueue, demand: Demand, cluster: str) -> Charge | None:
        charge: Charge = ()
        for component in demand.components:
            for group in queue.groups:
                part = self._part(queue.name, group, component, cluster, dict(charge))
                if part is None:
                    return None
                charge = added(charge, part)
        return charge

    def _part(
        self, queue: str, group: ResourceGroup, component: Component, cluster: str, beside: dict[Cell, int]
    ) -> Charge | None:
        table, reaches = self._ledger.tree.table, self._cache.fleet.reaches
        asked = [one for one in Demand((component,)).total() if one[0] in group.covered]
        if not asked:
            return ()
        for quotas in group.flavors:
            reach = reaches.get(quotas.flavor)
            if reach is None or cluster not in reach.clusters or not reach.takes(component.claim):
                continue
            cells = [(table.cell(quotas.flavor, resource), amount) for resource, amount in asked]
            if all(
                amount + beside.get(cell, 0) <= self._ledger.available(queue, cell) for cell, amount in cells
            ):
                return tuple(sorted(cells))
        return None
