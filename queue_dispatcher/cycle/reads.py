"""Reads: what a queue has read of what it shares with others, and whether it would read the same again.

What is left of a cell for a queue falls by at most what is charged to anybody, and rises by at most what
anybody gives back; so two sums over all queues (`flows`) tell, without asking the quota tree, that what was
found in an earlier cycle would be found again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from queue_dispatcher.cycle.bounds import Bounds
from queue_dispatcher.cycle.flows import Flows, Where
from queue_dispatcher.cycle.headroom import Headroom
from queue_dispatcher.ledger.cells import Cell, Charge
from queue_dispatcher.ledger.tree import UNLIMITED


@dataclass(slots=True)
class Left:
    """What was left of a cell for a queue when somebody looked.

    ``quota``: of the amount, what that leaves, whatever there is. ``ceiling``: up to which sum of all that is
    spent charges to the queue are known to fit. ``lacked``: the least that was refused for want of this cell;
    ``rises``: the sum of all that is given back from which on it may fit, ``where`` that matters.
    """

    amount: int
    quota: int
    ceiling: int
    where: Where
    lacked: float = inf
    rises: float = inf

    def lack(self, cell: Cell, root: int, returned: Mapping[Where, int]) -> None:
        """Note from when on what was refused may fit."""
        is_of_quota = self.lacked > self.quota
        self.where = (root, cell) if is_of_quota else cell
        left = self.quota if is_of_quota else self.amount
        self.rises = returned.get(self.where, 0) + self.lacked - left


class Reads:
    """Those by which something was found before anything was taken in a cycle, of the queue at the beginning
    of a path.

    ``cells``: what was left of each that it looked at.
    """

    __slots__ = ("_distances", "_path", "_probes", "cells")

    def __init__(self, path: tuple[int, ...]) -> None:
        self._path = path
        self.cells: dict[Cell, Left] = {}
        # The questions of which it looked at what is said.
        self._probes: set[str] = set()
        # By cell of which it was asked how far away it would be borrowed, all that was spent and returned.
        self._distances: dict[Cell, tuple[int, int]] = {}

    def clear(self) -> None:
        """Nothing was read yet."""
        self.cells.clear()
        self._probes.clear()
        self._distances.clear()

    def have(self, charge: Charge, headroom: Headroom) -> bool:
        """Whether so much of each cell is left. Each is read once, up to one of which it is not, for want of
        which that is refused.
        """
        cells = self.cells
        for cell, amount in charge:
            left = cells.get(cell)
            if left is None:
                left = cells[cell] = self._read(headroom, cell)
            if amount > left.amount:
                if amount < left.lacked:
                    left.lacked = amount
                    left.lack(cell, self._path[-1], headroom.returned)
                return False
        return True

    def told(self, probe: str) -> None:
        """It looked at what the estimators say of a question."""
        self._probes.add(probe)

    def distance(self, cell: Cell, headroom: Headroom) -> None:
        """It asked how far away a cell would be borrowed."""
        self._distances[cell] = _flow(headroom, cell)

    def is_quiet(self, charge: Charge, bounds: Bounds, flows: Flows) -> bool:
        """Whether it is plain that nothing was read since the cycle before that has changed."""
        # As `is_within` and `is_told_the_same` say, of all queues in each cycle.
        if not (bounds.are_returned_kept and flows.is_possible_same):
            return False
        if not bounds.are_spent_kept and (charge or self._distances):
            return False
        return not flows.told or self._probes.isdisjoint(flows.told)

    def is_within(self, charge: Charge, bounds: Bounds) -> bool:
        """Whether the bounds alone tell that `is_unchanged` holds: who has no room does not lose it by what
        others are charged.
        """
        return bounds.are_returned_kept and (bounds.are_spent_kept or not (charge or self._distances))

    def is_unchanged(self, headroom: Headroom, charge: Charge) -> bool:
        """Whether before anything is taken, what lacked something lacks it, and the charge fits if it did."""
        spent, returned, cells = headroom.spent, headroom.returned, self.cells
        for cell, left in cells.items():
            if returned.get(left.where, 0) >= left.rises:
                # What was given back was mostly given to others, or is not for this queue.
                left = cells[cell] = self._read(headroom, cell, left.lacked)
                if left.amount >= left.lacked:
                    return False
        for cell, amount in charge:
            left = cells[cell]
            if amount + spent.get(cell, 0) > left.ceiling:
                # More may be left than that: what was given back since, or was taken from others alone.
                left = cells[cell] = self._read(headroom, cell, left.lacked)
                if amount > left.amount:
                    return False
        return all(_flow(headroom, cell) == flow for cell, flow in self._distances.items())

    def is_told_the_same(self, flows: Flows) -> bool:
        """Whether the estimators say what they said in the cycle before, as far as it was looked at."""
        return not flows.told or self._probes.isdisjoint(flows.told)

    def slack(self, charge: Charge, bounds: Bounds) -> None:
        """Lower the bounds within which `is_unchanged` is known to hold."""
        for cell, amount in charge:
            ceiling = self.cells[cell].ceiling - amount
            if ceiling < bounds.spent.get(cell, inf):
                bounds.spent[cell] = ceiling
        for left in self.cells.values():
            if left.rises < bounds.returned.get(left.where, inf):
                bounds.returned[left.where] = left.rises
        # How far away something would be borrowed may change with anything that is charged or given back.
        for cell, (spent, returned) in self._distances.items():
            bounds.spent[cell] = min(bounds.spent.get(cell, UNLIMITED), spent)
            bounds.returned[cell] = min(bounds.returned.get(cell, UNLIMITED), returned + 1)

    def _read(self, headroom: Headroom, cell: Cell, lacked: float = inf) -> Left:
        """What is left now, before anything is taken; ``lacked``: the least that was refused before."""
        quota = headroom.ledger.available_at(self._path, cell)
        amount = min(quota, headroom.free(cell))
        left = Left(amount, quota, headroom.spent.get(cell, 0) + amount, (self._path[-1], cell), lacked)
        if lacked < inf:
            left.lack(cell, self._path[-1], headroom.returned)
        return left


def _flow(headroom: Headroom, cell: Cell) -> tuple[int, int]:
    return headroom.spent.get(cell, 0), headroom.returned.get(cell, 0)
