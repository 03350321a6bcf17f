"""Contest: which queue of a tree has the next turn.

A tournament, as in Kueue's fair sharing (pkg/scheduler/fair_sharing_iterator.go, v0.20): every node of the
tree sends up the best of its children, each of which is weighed by its own share with the item it sends.
Comparing all queues at once by their shares at every level would let a queue with small items starve its
neighbour with large ones, because the small ones add less to the shares of the nodes above them both.

Here each node keeps its children in a heap. A turn changes the shares on one path only, and all else that an
entry says can only get worse while room shrinks, so an entry is looked at again when it comes to the top.
"""

import heapq
from collections.abc import Iterable

from queue_dispatcher.cycle.line import Line
from queue_dispatcher.cycle.order import Rank
from queue_dispatcher.cycle.room import Fit, Room

# The least of them has the next turn. Tier: 0 if the item makes nobody borrow, else 1; urgency: the priority
# of its queue, negated; the share of the child with the item; the item's rank; the child's number, which no
# other child has; the queue that the item is in; how it may be charged.
_Contender = tuple[int, int, int, Rank, int, Line, Fit]


class Contest:
    """The queues of one tree that have an item with room."""

    def __init__(self, room: Room, root: int, lines: Iterable[Line]) -> None:
        self._room = room
        self._root = root
        self._heaps: dict[int, list[_Contender]] = {root: []}
        for line in lines:
            fit = line.look()
            if fit is not None:
                entry = self._own_entry(line, fit)
                self._heaps.setdefault(self._judges(line)[0], []).append(entry)
        self._seed()

    @property
    def winner(self) -> tuple[Line, Fit] | None:
        """The queue whose turn it is, and how its item may be charged; None once no item has room."""
        heap = self._heaps[self._root]
        while heap:
            tier, _, _, _, _, line, fit = heap[0]
            if line.looked == self._room.changes:
                return line, fit
            head, now = line.head, line.look()
            if now == fit and line.head is head and (tier or not self._borrows(line, fit)):
                return line, fit
            self._settle(line, now)
        return None

    def played(self) -> None:
        """The winner has had its turn: its next item takes the place of the one before."""
        line = self._heaps[self._root][0][5]
        self._settle(line, line.look())

    def _seed(self) -> None:
        """Send up the best of every node, the deepest first."""
        waiting = [-node for node in self._heaps]
        heapq.heapify(waiting)
        while waiting:
            node = -heapq.heappop(waiting)
            heap = self._heaps[node]
            heapq.heapify(heap)
            if node == self._root or not heap:
                continue
            parent = self._room.ledger.tree.parents[node]
            if parent not in self._heaps:
                self._heaps[parent] = []
                heapq.heappush(waiting, -parent)
            self._heaps[parent].append(self._sent_up(node, heap[0]))

    def _settle(self, line: Line, fit: Fit | None) -> None:
        """The winner of all nodes above it changes, or drops out: each of them sends up its best anew."""
        entry = self._own_entry(line, fit) if fit is not None else None
        for node in self._judges(line):
            heap = self._heaps[node]
            if entry is not None:
                heapq.heapreplace(heap, entry)
            else:
                heapq.heappop(heap)
            entry = self._sent_up(node, heap[0]) if heap and node != self._root else None

    def _judges(self, line: Line) -> tuple[int, ...]:
        """The nodes at which it competes, the nearest first; a queue without parent competes at itself."""
        return line.path[1:] or line.path

    def _own_entry(self, line: Line, fit: Fit) -> _Contender:
        tier = 1 if self._borrows(line, fit) else 0
        share = self._room.ledger.share_at(line.name, fit.alternative.charge, 0)
        return (tier, -line.priority, share, line.rank, line.path[0], line, fit)

    def _sent_up(self, node: int, best: _Contender) -> _Contender:
        """The node's entry at its parent, with the best of its children.

        The tier is the child's as of when it was looked at. It may have become worse since, which is found
        out if it wins; to send up the worse one now would hide other children that are better by then.
        """
        tier, urgency, _, rank, _, line, fit = best
        level = line.path.index(node)
        share = self._room.ledger.share_at(line.name, fit.alternative.charge, level)
        return (tier, urgency, share, rank, node, line, fit)

    def _borrows(self, line: Line, fit: Fit) -> bool:
        return self._room.ledger.borrows_after(line.name, fit.alternative.charge)
