"""Contest: which queue of a tree goes next.

Two things can be scarce, and each has an order of its own.

Where quota is scarce, a tournament decides who may take it, as in Kueue's fair sharing
(pkg/scheduler/fair_sharing_iterator.go, v0.20): every node of the tree sends up the best of its children,
each of which is weighed by its own share with the item it sends. Comparing all queues at once by their shares
at every level would let a queue with small items starve its neighbour with large ones, because the small ones
add less to the shares of the nodes above them both. Among equal shares the higher priority goes first, then
turns (`turns`), then who came first.

Where all that waits fits its quota together, nobody takes quota from anybody and only the release window is
scarce: it goes to the higher priority, then by turns, whether or not the item borrows and whatever its queue
uses. So `Contest.winner` is first whoever the window is due to. If others could come to lack the quota that
it takes, measured by all that waits (`Backlog`), the tree holds its tournament instead, for the rest of the
cycle: the window may let somebody wait, but it must not decide who gets quota.

Each node keeps its children in a heap. A turn changes the shares and turns on one path only, and all else
that an entry says can only get worse while headroom shrinks, so an entry is looked at again when it comes to
the top. Where a head that would borrow has lost its room, the next of its queue may borrow less, and stands
all the same where that one did, as heads in Kueue do for a whole cycle.
"""

import heapq
from collections.abc import Iterator, Sequence

from queue_dispatcher.cycle.backlog import Backlog
from queue_dispatcher.cycle.head import QueueHead
from queue_dispatcher.cycle.headroom import Fit, Headroom
from queue_dispatcher.cycle.turns import TakenTurns
from queue_dispatcher.ledger.cells import Cell

# The least of them goes next. Tier: 0 if the item makes nobody borrow, else 1 (0 where quota is not scarce),
# and 2 more if its queue has used up a soft budget; urgency: the priority of its queue, negated; the share of
# the child with the item (0 where quota is not scarce); the item's
# effective priority, negated; the child's turn; when the item came, and its id; the child's number, which no
# other child has; the queue that the item is in; how it may be charged.
_Contender = tuple[int, int, int, int, int, int, str, int, QueueHead, Fit]


class Contest:
    """The queues of one tree that have an item with room.

    What may take long are generators, which come to a stop now and then so that others may run.
    """

    def __init__(
        self,
        headroom: Headroom,
        backlog: Backlog,
        turns: TakenTurns,
        root: int,
        queues: Sequence[QueueHead],
        begun: list[QueueHead],
    ) -> None:
        """Whoever begins to compete is noted in ``begun``."""
        self.winner: QueueHead | None = None
        """The queue that goes next, as of the last `find`; None once no item has room."""
        self._headroom = headroom
        self._backlog = backlog
        self._turns = turns
        self._root = root
        self._queues = queues
        self._begun = begun
        self.is_scarce = False
        """Whether the tree holds its tournament."""
        self._heaps: dict[int, list[_Contender]] = {}
        self._refused = 0
        self._enough: set[tuple[int, Cell]] = set()
        self._found_at = -1

    def find(self) -> Iterator[None]:
        """Find the winner: the one that was looked at last, unless its item has no room any more."""
        if self._found_at == self._headroom.changes:
            return
        if not self._heaps:
            self.is_scarce = self._all_may_lack()
            yield from self._seed()
        yield from self._find_best()
        if self.winner is not None and not self.is_scarce and self._may_lack(self.winner):
            self.is_scarce = True
            yield from self._seed()
            yield from self._find_best()
        self._found_at = self._headroom.changes

    def played(self) -> None:
        """The winner has had its turn: its next item takes the place of the one before."""
        queue = self._heaps[self._root][0][8]
        self._settle(queue, self._look(queue))
        self._found_at = -1

    @property
    def candidates(self) -> Iterator[QueueHead]:
        """Those that have not been found to have no item with room."""
        for heap in self._heaps.values():
            for entry in heap:
                queue = entry[8]
                if entry[7] == queue.path[0]:
                    yield queue

    def _look(self, queue: QueueHead) -> Fit | None:
        if not queue.is_begun:
            queue.begin(self._headroom)
            self._begun.append(queue)
        return queue.look()

    def _find_best(self) -> Iterator[None]:
        heap = self._heaps[self._root]
        looks = 0
        while heap:
            looks += 1
            if not looks % _PACE:
                yield
            *_, queue, fit = heap[0]
            item, now = queue.item, self._look(queue)
            is_told = heap[0][0] & 1 or not self._is_borrowing(queue, fit)
            if now == fit and queue.item is item and is_told:
                self.winner = queue
                return
            if now is None:
                yield from self._refuse()
                if self._refused == len(self._queues):
                    for one in self._heaps.values():
                        one.clear()
                    break
            self._settle(queue, now)
        self.winner = None

    def _refuse(self) -> Iterator[None]:
        """Count the queues of which not even the least has room that anything in them needs, up to one that
        may.

        They are not looked at again, as headroom only shrinks; with all of them the contest is over.
        """
        most: dict[Cell, int] = {}
        while self._refused < len(self._queues):
            if not self._refused % _PACE:
                yield
            if not self._is_refused(self._queues[self._refused], most):
                return
            self._refused += 1

    def _is_refused(self, queue: QueueHead, most: dict[Cell, int]) -> bool:
        if queue.state.reserves:
            # Whoever has lost its room may get a reservation when it is looked at.
            return False
        least = queue.least
        for charge in least:
            for cell, amount in charge:
                if cell not in most:
                    most[cell] = self._headroom.most_in(self._root, cell)
                if amount > most[cell]:
                    break
            else:
                return False
        return bool(least)

    def _may_lack(self, queue: QueueHead) -> bool:
        """Whether others of the tree could come to lack what the item takes."""
        fit = queue.fit
        if len(queue.path) == 1 or fit is None:
            return False
        headroom, backlog, node = self._headroom, self._backlog, queue.path[0]
        for cell, _ in fit.alternative.charge:
            if cell in headroom.capacity and backlog.amount(self._root, cell) > headroom.free(cell):
                return True
            # What starts leaves both what waits and what there is for it the less: once enough is enough.
            if (node, cell) in self._enough:
                continue
            bounds = headroom.ledger.bounds(queue.name, cell)
            for above, bound in zip(queue.path[1:], bounds[1:], strict=True):
                if backlog.amount(above, cell) > bound:
                    return True
            self._enough.add((node, cell))
        return False

    def _all_may_lack(self) -> bool:
        """Whether `_may_lack` holds for whoever goes first; only saves finding out who that is."""
        headroom, backlog, root = self._headroom, self._backlog, self._root
        if len(self._queues[0].path) == 1:
            return False
        lacking = {
            cell for cell in backlog.cells if backlog.amount(root, cell) > headroom.most_in(root, cell)
        }
        if not lacking:
            return False
        for queue in self._queues:
            for cell, _ in queue.first:
                if cell in lacking:
                    break
            else:
                return False
        return True

    def _seed(self) -> Iterator[None]:
        """Send up the best of every node, the deepest first."""
        root = self._root
        heaps = self._heaps = {root: []}
        changes = self._headroom.changes
        for number, queue in enumerate(self._queues):
            if not number % _PACE:
                yield
            fit = self._look(queue) if changes else queue.found
            if fit is not None:
                entry = self._own_entry(queue, fit)
                heap = heaps.get(queue.path[1] if len(queue.path) > 1 else root)
                if heap is None:
                    heap = heaps[queue.path[1]] = []
                heap.append(entry)
        waiting = [-node for node in self._heaps]
        heapq.heapify(waiting)
        while waiting:
            node = -heapq.heappop(waiting)
            heap = self._heaps[node]
            heapq.heapify(heap)
            if node == self._root or not heap:
                continue
            parent = self._headroom.ledger.tree.parents[node]
            if parent not in self._heaps:
                self._heaps[parent] = []
                heapq.heappush(waiting, -parent)
            self._heaps[parent].append(self._sent_up(node, heap[0]))

    def _settle(self, queue: QueueHead, fit: Fit | None) -> None:
        """The winner of all nodes above it changes, or drops out: each of them sends up its best anew."""
        entry = self._own_entry(queue, fit) if fit is not None else None
        for node in _judges(queue):
            heap = self._heaps[node]
            if entry is not None:
                heapq.heapreplace(heap, entry)
            else:
                heapq.heappop(heap)
            entry = self._sent_up(node, heap[0]) if heap and node != self._root else None

    def _own_entry(self, queue: QueueHead, fit: Fit) -> _Contender:
        priority, _, came_ms, item_id = queue.rank
        node, tier, share = queue.path[0], 2 if queue.state.is_over_budget else 0, 0
        if self.is_scarce:
            ledger, charge = self._headroom.ledger, fit.alternative.charge
            tier += 1 if ledger.borrows_after(queue.name, charge) else 0
            share = queue.share(self._headroom, fit)
        tag = self._turns.tag(-priority, node)
        return (tier, -queue.state.priority, share, priority, tag, came_ms, item_id, node, queue, fit)

    def _sent_up(self, node: int, best: _Contender) -> _Contender:
        """The node's entry at its parent, with the best of its children.

        The tier is the child's as of when it was looked at. It may have become worse since, which is found
        out if it wins; to send up the worse one now would hide other children that are better by then.
        """
        tier, urgency, share, priority, _, came_ms, item_id, _, queue, fit = best
        if self.is_scarce:
            share = self._headroom.ledger.share_at(queue.name, fit.alternative.charge, queue.path.index(node))
        tag = self._turns.tag(-priority, node)
        return (tier, urgency, share, priority, tag, came_ms, item_id, node, queue, fit)

    def _is_borrowing(self, queue: QueueHead, fit: Fit) -> bool:
        return self.is_scarce and self._headroom.ledger.borrows_after(queue.name, fit.alternative.charge)


def _judges(queue: QueueHead) -> tuple[int, ...]:
    """The nodes at which it competes, the nearest first; a queue without parent competes at itself."""
    return queue.path[1:] or queue.path


_PACE = 16
