"""Waiter: who finds no room, and may get a reservation or have others displaced. Queue by queue, put in order
only as far as anybody reads: of thousands few get anything.
"""

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from queue_dispatcher.api.reservation import ReservationPolicy
from queue_dispatcher.cycle.deadlines import after_ms, by_deadline
from queue_dispatcher.cycle.items import Alternative, Item
from queue_dispatcher.cycle.order import Rank
from queue_dispatcher.ledger.cells import Cell, CellTable, Charge


class Waiter(NamedTuple):
    """An item that finds no room and has waited long enough. ``ways``: how it may be charged, the first
    preferred; ``policy``: that of its queue. ``starts_in``: how it starts all the same, one of the ways,
    unless others are displaced for it in another one, which goes before; None where it finds no room.
    """

    rank: Rank
    item: Item
    ways: Sequence[Alternative]
    policy: ReservationPolicy
    starts_in: Alternative | None = None

    @property
    def deadline(self) -> Rank:
        """Where it stands among those that want a reservation."""
        return by_deadline(self.rank, self.item, self.policy)

    @property
    def reserved_ms(self) -> int:
        """From when on it may get one, epoch milliseconds."""
        return since_ms(self.item) + after_ms(self.item, self.policy)


class Line(NamedTuple):
    """Those of one queue that wait, one at least. ``flavors``: of all their ways; ``least``: the cells that
    the first ways of all have, with the least amount of each; ``first``: the first of their deadlines.

    ``pick``: of a line of which only some are ``known``, finds all. What is said of it holds for others too,
    that may not be in it, and nobody in it has a claim.
    """

    known: Sequence[Waiter]
    flavors: frozenset[str]
    least: Charge
    first: Rank
    pick: Callable[[], Sequence[Waiter]] | None = None

    @property
    def waiters(self) -> Sequence[Waiter]:
        """All of them."""
        return self.known if self.pick is None else self.pick()


class RankedLine(NamedTuple):
    """Those of one queue by rank, which are found when they are read. ``first``: none of them ranks before
    it.
    """

    queue: str
    first: Rank
    read: Callable[[], Sequence[Waiter]]


@dataclass(frozen=True, slots=True)
class InOrder:
    """Those of several queues by rank, put in order as they are read. ``seconds``: those that start all the
    same (`Waiter.starts_in`), by rank.
    """

    lines: Sequence[RankedLine] = ()
    seconds: Sequence[Waiter] = ()

    def __iter__(self) -> Iterator[Waiter]:
        # By number the line as far as it has been read; the seconds come after all of them.
        read: dict[int, Sequence[Waiter]] = {len(self.lines): self.seconds}
        nexts = [(line.first, number, -1) for number, line in enumerate(self.lines)]
        if self.seconds:
            nexts.append((self.seconds[0].rank, len(self.lines), 0))
        heapq.heapify(nexts)
        while nexts:
            _, number, place = nexts[0]
            if place < 0:
                read[number] = self.lines[number].read()
            else:
                yield read[number][place]
            place += 1
            if place < len(read[number]):
                heapq.heapreplace(nexts, (read[number][place].rank, number, place))
            else:
                heapq.heappop(nexts)

    def among(self, item_ids: Collection[str], queues: Collection[str]) -> list[Waiter]:
        """Those of these items, which are of these queues; nobody else is put in order."""
        lines = (self.seconds, *(line.read() for line in self.lines if line.queue in queues))
        found = [one for line in lines for one in line if one.item.id in item_ids]
        return sorted(found, key=rank_of)


NOBODY: Final = InOrder()


def line_of(waiters: Sequence[Waiter], table: CellTable) -> Line | None:
    """Those of one queue; None of nobody."""
    if not waiters:
        return None
    of_shapes = {one.item.shape: one.ways for one in waiters}.values()
    flavors = flavors_of((way for ways in of_shapes for way in ways), table)
    least = _least_of(ways[0].charge for ways in of_shapes)
    return Line(waiters, flavors, least, min(one.deadline for one in waiters))


def flavors_of(ways: Iterable[Alternative], table: CellTable) -> frozenset[str]:
    """The flavors that any of the ways is charged to."""
    return frozenset(table.name(cell).flavor for way in ways for cell, _ in way.charge)


def rank_of(waiter: Waiter) -> Rank:
    """Where it stands in the line of its queue."""
    return waiter.rank


def since_ms(item: Item) -> int:
    """Since when an item has been waiting for room, epoch milliseconds: what backs off does not."""
    return max(item.enqueued_ms, item.due_ms)


def _least_of(charges: Iterable[Charge]) -> Charge:
    least: dict[Cell, int] | None = None
    for charge in charges:
        known, wanted = least, dict(charge)
        least = wanted if known is None else {c: min(known[c], wanted[c]) for c in known if c in wanted}
    return tuple((least or {}).items())
