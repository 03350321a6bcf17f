"""Bars: how much of a charge may reach each node of the tree and delay none of some reservations.

Thousands of queues are held back by the same few reservations, each of which is one path of the tree; so what
these leave is worked out once, node by node, and not for each queue.
"""

from collections.abc import Iterable

from queue_dispatcher.ledger.cells import Cell, Charge
from queue_dispatcher.ledger.ledger import Ledger


class Bars:
    """Of what these reservations leave, at each node and of what is there, the least."""

    def __init__(self) -> None:
        self._quota: dict[Cell, dict[int, int]] = {}
        self._free: dict[Cell, int] = {}

    def add_quota(self, path: tuple[int, ...], cell: Cell, left: Iterable[int]) -> None:
        """Of the quota of each node of a path, so much."""
        bars = self._quota.setdefault(cell, {})
        least: int | None = None
        for node, amount in zip(reversed(path), reversed([*left]), strict=True):
            # What is felt at a node is felt by all above it, and may be no more than any of them leaves.
            least = amount if least is None else min(least, amount)
            bars[node] = min(bars.get(node, least), least)

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
