"""What queues use: by flavor and resource, how much of it does not run, and what is left of queues that are
gone."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

import msgspec

from fairway.visibility import QueueView, Usage
from queue_dispatcher.api.cluster_queue import ClusterQueue
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cycle.reservation import Reservations
from queue_dispatcher.ledger.cells import Cell
from queue_dispatcher.visibility.idle import Idle
from queue_dispatcher.visibility.reservations import reserved_in

NO_LIMIT = -1
_ENDLESS = 1 << 63


class QueueUsage:
    """As of one moment, epoch milliseconds; the cache must be settled."""

    def __init__(self, cache: Cache, reservations: Reservations, now_ms: int) -> None:
        self._cache = cache
        self._reserved = reserved_in(cache, reservations)
        self._now_ms = now_ms

    def of(self, queue: ClusterQueue) -> Iterable[Usage]:
        """What is used of each resource that the queue has quota of."""
        ledger, tree = self._cache.charges.ledger, self._cache.resolved.tree
        node = tree.paths[queue.name][0]
        is_stopped = queue.name in self._cache.resolved.stopped
        for group in queue.groups:
            for flavor in group.flavors:
                for resource, quota in flavor.quotas.items():
                    cell = self._cache.table.cell(flavor.flavor, resource)
                    limits = tree.limits(cell)
                    # Quota that nothing is left for is no room, nor is that which is never given.
                    left = min(ledger.available(queue.name, cell), self._left.get(cell, _ENDLESS))
                    if is_stopped or flavor.flavor not in self._cache.fleet.flavors:
                        left = 0
                    yield Usage(
                        flavor=flavor.flavor,
                        resource=resource,
                        nominal=limits.nominal[node],
                        used=ledger.used(queue.name, cell),
                        borrowed=max(0, -ledger.balance(queue.name, cell)),
                        borrowing_limit=NO_LIMIT if quota.borrowing_limit is None else limits.borrowing[node],
                        lending_limit=NO_LIMIT if quota.lending_limit is None else limits.lending[node],
                        available=max(0, left),
                        reserved=self._reserved.get((queue.name, cell), 0),
                    )

    def with_idle(self, queue: ClusterQueue, idle: Idle) -> Iterable[Usage]:
        """The same, with how much of it does not run."""
        for usage in self.of(queue):
            cell = self._cache.table.cell(usage.flavor, usage.resource)
            yield msgspec.structs.replace(usage, not_running=idle.cells.get(cell, 0))

    def orphan(self, name: str, admitted: int) -> QueueView:
        """A queue that is gone and of which so many workloads run on."""
        ledger, table = self._cache.charges.ledger, self._cache.table
        usage = [
            Usage(of.flavor, of.resource, nominal=0, used=used, borrowed=used)
            for cell in range(len(table))
            if (used := ledger.used(name, cell))
            for of in (table.name(cell),)
        ]
        stopped = f"there is no ClusterQueue {name}; what it has admitted runs on, charged to no quota"
        return QueueView(name, stopped=stopped, admitted=admitted, usage=usage)

    def idle(self, queue: str) -> Idle:
        """What does not run of all that is charged to a queue of the tree or to one below it."""
        idle, tree = Idle(), self._cache.resolved.tree
        for node in tree.subtree(tree.paths[queue][0]):
            for entry, charge in self._cache.idle(tree.nodes[node].name):
                idle.add(entry.binding, charge, self._now_ms)
        return idle

    def with_those_above(self, name: str) -> Iterator[str]:
        """The queue and those above it, by name."""
        tree = self._cache.resolved.tree
        path = tree.paths.get(name)
        yield from (tree.nodes[node].name for node in path) if path is not None else (name,)

    @cached_property
    def _left(self) -> Mapping[Cell, int]:
        """What is physically left of each cell whose capacity is known."""
        return self._cache.envelope()
