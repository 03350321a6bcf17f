"""Endings: by cell, what running workloads give back, and when at the latest. One writer.

What a reservation waits for is worked out from it. Of workloads that end by themselves, and nobody says when,
the amounts are known; those that run until somebody deletes them give nothing back.
"""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from queue_dispatcher.ledger.cells import Cell, Charge


class Ending(NamedTuple):
    """At a time, epoch milliseconds, a workload gives back an amount that is charged to a queue."""

    at_ms: int
    id: str
    queue: str
    amount: int


class _Known(NamedTuple):
    queue: str
    charge: Charge
    at_ms: int | None


_NOBODY: Final[Mapping[str, int]] = MappingProxyType({})


class Endings:
    """Of all that is charged and ends. Putting and dropping cost O(log n) and a move for each cell."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._by_cell: dict[Cell, list[Ending]] = {}
        self._unknown: dict[Cell, dict[str, int]] = {}
        # By cell and queue, what ends of both kinds.
        self._ending: dict[tuple[Cell, str], int] = {}

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
                insort(self._by_cell.setdefault(cell, []), Ending(at_ms, uid, queue, amount))
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
                endings = self._by_cell[cell]
                del endings[bisect_left(endings, Ending(at_ms, uid, queue, amount))]
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
        return self._by_cell.get(cell, ())

    def unknown(self, cell: Cell) -> Mapping[str, int]:
        """By queue, what all those give back that end at some time."""
        return self._unknown.get(cell, _NOBODY)

    def of_queue(self, cell: Cell, queue: str) -> int:
        """What all of one queue give back that end at some time, known or not."""
        return self._ending.get((cell, queue), 0)
