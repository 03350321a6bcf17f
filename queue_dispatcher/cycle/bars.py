"""Bars: how much of a charge may reach each node of the tree and delay none of some reservations.

Thousands of queues are held back by the same few reservations, each of which is one path of the tree; so what
these leave is worked out once, node by node, and not for each queue.
"""

from collections.abc import Mapping

from queue_dispatcher.ledger.cells import Cell, Charge
from queue_dispatcher.ledger.ledger import Ledger


class Bars:
    """Of what these reservations leave, at each node and of what is there, the least."""

    def __init__(self) -> None:
        self._quota: dict[Cell, dict[int, int]] = {}
        self._free: dict[Cell, int] = {}

    def add_quota(self, cell: Cell, left: Mapping[int, int]) -> None:
        """Of the quota of each of these nodes, so much."""
        bars = self._quota.setdefault(cell, {})
        for node, amount in left.items():
            bars[node] = min(bars.get(node, amount), amount)

    def add_free(self, cell: Cell, left: int) -> None:
        """Of what is there, so much."""
        self._free[cell] = min(self._free.get(cell, left), left)

    def refuse(self, ledger: Ledger, path: tuple[int, ...], charge: Charge) -> bool:
        """Whether a charge to the queue at the beginning of a path would delay any of the reservations, none
        of which is its own.
        """
        for cell, amount in charge:
            if amount > self._free.get(cell, amount):
                return True
            bars = self._quota.get(cell)
            if bars is not None and ledger.is_barred(path, cell, amount, bars):
                return True
        return False
