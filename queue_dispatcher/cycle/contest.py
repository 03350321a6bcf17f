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
the top.
"""

import heapq
from collections.abc import Sequence

from queue_dispatcher.cycle.backlog import Backlog
from queue_dispatcher.cycle.head import QueueHead
from queue_dispatcher.cycle.headroom import Fit, Headroom
from queue_dispatcher.cycle.turns import TakenTurns

# The least of them goes next. Tier: 0 if the item makes nobody borrow, else 1; urgency: the priority of its
# queue, negated; the share of the child with the item (both 0 where quota is not scarce); the item's
# effective priority, negated; the child's turn; when the item came, and its id; the child's number, which no
# other child has; the queue that the item is in; how it may be charged.
_Contender = tuple[int, int, int, int, int, int, str, int, QueueHead, Fit]


class Contest:
    """The queues of one tree that have an item with room."""

    def __init__(
        self, headroom: Headroom, backlog: Backlog, turns: TakenTurns, root: int, queues: Sequence[QueueHead]
    ) -> None:
        self._headroom = headroom
        self._backlog = backlog
        self._turns = turns
        self._root = root
        self._queues = queues
        self._is_scarce = False
        self._heaps: dict[int, list[_Contender]] = {}
        self._seed()

    @property
    def winner(self) -> tuple[QueueHead, Fit] | None:
        """The queue that goes next, and how its item may be charged; None once no item has room."""
        best = self._best()
        if best is not None and not self._is_scarce and self._may_lack(best):
            self._is_scarce = True
            self._seed()
            best = self._best()
        return best

    def played(self) -> None:
        """The winner has had its turn: its next item takes the place of the one before."""
        queue = self._heaps[self._root][0][8]
        self._settle(queue, queue.look())

    def _best(self) -> tuple[QueueHead, Fit] | None:
        heap = self._heaps[self._root]
        while heap:
            *_, queue, fit = heap[0]
            if queue.looked == self._headroom.changes:
                return queue, fit
            item, now = queue.item, queue.look()
            if now == fit and queue.item is item and (heap[0][0] or not self._is_borrowing(queue, fit)):
                return queue, fit
            self._settle(queue, now)
        return None

    def _may_lack(self, best: tuple[QueueHead, Fit]) -> bool:
        """Whether others of the tree could come to lack what the item takes."""
        queue, fit = best
        if len(queue.path) == 1:
            return False
        headroom, backlog = self._headroom, self._backlog
        for cell, _ in fit.alternative.charge:
            bounds = headroom.ledger.bounds(queue.name, cell)
            if any(
                backlog.amount(node, cell) > bound
                for node, bound in zip(queue.path[1:], bounds[1:], strict=True)
            ):
                return True
            if backlog.amount(self._root, cell) > headroom.free(cell):
                return True
        return False

    def _seed(self) -> None:
        """Send up the best of every node, the deepest first."""
        self._heaps = {self._root: []}
        for queue in self._queues:
            fit = queue.look()
            if fit is not None:
                self._heaps.setdefault(_judges(queue)[0], []).append(self._own_entry(queue, fit))
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
        tier = 1 if self._is_borrowing(queue, fit) else 0
        return self._entry(tier, queue, fit, 0)

    def _sent_up(self, node: int, best: _Contender) -> _Contender:
        """The node's entry at its parent, with the best of its children.

        The tier is the child's as of when it was looked at. It may have become worse since, which is found
        out if it wins; to send up the worse one now would hide other children that are better by then.
        """
        queue, fit = best[8:]
        return self._entry(best[0], queue, fit, queue.path.index(node))

    def _entry(self, tier: int, queue: QueueHead, fit: Fit, level: int) -> _Contender:
        priority, came_ms, item_id = queue.rank
        node, share = queue.path[level], 0
        if self._is_scarce:
            share = self._headroom.ledger.share_at(queue.name, fit.alternative.charge, level)
        tag = self._turns.tag(-priority, node)
        return (tier, -queue.priority, share, priority, tag, came_ms, item_id, node, queue, fit)

    def _is_borrowing(self, queue: QueueHead, fit: Fit) -> bool:
        return self._is_scarce and self._headroom.ledger.borrows_after(queue.name, fit.alternative.charge)


def _judges(queue: QueueHead) -> tuple[int, ...]:
    """The nodes at which it competes, the nearest first; a queue without parent competes at itself."""
    return queue.path[1:] or queue.path
