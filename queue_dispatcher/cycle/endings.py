"""Endings: by cell, what running workloads give back, and when at the latest. One writer.

What a reservation waits for is worked out from it. Of workloads that end by themselves, and nobody says when,
the amounts are known; those that run until somebody deletes them give nothing back.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from operator import attrgetter
from types import MappingProxyType
from typing import Final, NamedTuple

from queue_dispatcher.ledger.cells import Cell, Charge
from queue_dispatcher.ledger.tree import QuotaTree


class Ending(NamedTuple):
    """At a time, epoch milliseconds, a workload gives back an amount that is charged to a queue."""

    at_ms: int
    id: str
    queue: str
    amount: int


def after(until_ms: int) -> Ending:
    """A bound: all that have ended by then come before it, and no others."""
    return Ending(until_ms + 1, "", "", 0)


class _Known(NamedTuple):
    queue: str
    charge: Charge
    at_ms: int | None


_amount: Final = attrgetter("amount")
_NOBODY: Final[Mapping[str, int]] = MappingProxyType({})


class Timeline:
    """Endings of one cell in their order, and what they have given back by a time."""

    def __init__(self, endings: Sequence[Ending] = ()) -> None:
        self.endings = list(endings)
        self._sums: list[int] | None = None

    def before(self, bound: Ending) -> int:
        """What those give back that come before one in the order."""
        return self._given_back()[bisect_left(self.endings, bound)]

    def until(self, amount: int) -> Ending | None:
        """The one with which so much has been given back, more than nothing; None where that is never."""
        sums = self._given_back()
        place = bisect_left(sums, amount)
        return self.endings[place - 1] if place < len(sums) else None

    def put(self, ending: Ending) -> None:
        """One more ends."""
        insort(self.endings, ending)
        self._sums = None

    def drop(self, ending: Ending) -> None:
        """It does not end any more, or not then."""
        del self.endings[bisect_left(self.endings, ending)]
        self._sums = None

    def _given_back(self) -> list[int]:
        """By how many have ended."""
        if self._sums is None:
            self._sums = list(accumulate(map(_amount, self.endings), initial=0))
        return self._sums


class Endings:
    """Of all that is charged and ends. Putting and dropping cost O(log n) and a move for each cell, and for
    each node of the tree that was asked about.
    """

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._by_cell: dict[Cell, Timeline] = {}
        self._unknown: dict[Cell, dict[str, int]] = {}
        # By cell and queue, what ends of both kinds.
        self._ending: dict[tuple[Cell, str], int] = {}
        # By cell and the number of a node in the tree, what ends there and below; once it was asked about.
        self._tree: QuotaTree | None = None
        self._below: dict[tuple[Cell, int], Timeline] = {}

    def put(self, uid: str, queue: str, charge: Charge, at_ms: int | None) -> None:
        """The workload is charged so and ends then at the latest; None where nobody knows when."""
        stated = _Known(queue, charge, at_ms)
        if self._known.get(uid) == stated:
            return
        self.drop(uid)
        self._known[uid] = stated
        for cell, amount in charge:
            self._ending[cell, queue] = self._ending.get((cell, queue), 0) + amount
            if at_ms is not None:
                ending = Ending(at_ms, uid, queue, amount)
                self._by_cell.setdefault(cell, Timeline()).put(ending)
                for timeline in self._timelines(cell, queue):
                    timeline.put(ending)
            else:
                queues = self._unknown.setdefault(cell, {})
                queues[queue] = queues.get(queue, 0) + amount

    def drop(self, uid: str) -> None:
        """It is charged nothing any more, or does not end."""
        stated = self._known.pop(uid, None)
        if stated is None:
            return
        queue, charge, at_ms = stated
        for cell, amount in charge:
            self._ending[cell, queue] -= amount
            if not self._ending[cell, queue]:
                del self._ending[cell, queue]
            if at_ms is not None:
                ending = Ending(at_ms, uid, queue, amount)
                self._by_cell[cell].drop(ending)
                for timeline in self._timelines(cell, queue):
                    timeline.drop(ending)
                continue
            queues = self._unknown[cell]
            queues[queue] -= amount
            if not queues[queue]:
                del queues[queue]

    def ends(self, uid: str) -> bool:
        """Whether the workload ends at some time, known or not."""
        return uid in self._known

    def at_ms(self, uid: str) -> int | None:
        """When the workload ends at the latest; None where nobody knows."""
        stated = self._known.get(uid)
        return stated.at_ms if stated is not None else None

    def known(self, cell: Cell) -> Sequence[Ending]:
        """Those of which it is known when, the first first."""
        return self.timeline(cell).endings

    def timeline(self, cell: Cell) -> Timeline:
        """The same, with what they give back."""
        return self._by_cell.get(cell) or Timeline()

    def below(self, tree: QuotaTree, node: int, cell: Cell) -> Timeline:
        """Those of them that are charged to a node of the tree, by its number, or below it."""
        if tree is not self._tree:
            self._tree = tree
            self._below.clear()
        found = self._below.get((cell, node))
        if found is None:
            queues = {tree.nodes[number].name for number in tree.subtree(node)}
            among = [one for one in self.known(cell) if one.queue in queues]
            found = self._below[cell, node] = Timeline(among)
        return found

    def unknown(self, cell: Cell) -> Mapping[str, int]:
        """By queue, what all those give back that end at some time."""
        return self._unknown.get(cell, _NOBODY)

    def of_queue(self, cell: Cell, queue: str) -> int:
        """What all of one queue give back that end at some time, known or not."""
        return self._ending.get((cell, queue), 0)

    def _timelines(self, cell: Cell, queue: str) -> Iterator[Timeline]:
        path = self._tree.paths.get(queue, ()) if self._tree is not None else ()
        return (found for node in path if (found := self._below.get((cell, node))) is not None)
