"""Flows: by cell, two sums that only grow, and that bound how much anybody's headroom can have changed.

``spent``: all that was ever charged, to any queue, and all capacity that ever went. ``returned``: all that
was ever given back, and all capacity that ever came.
"""

from collections.abc import Mapping

from queue_dispatcher.cycle.snapshot import Snapshot
from queue_dispatcher.ledger.cells import Cell
from queue_dispatcher.ledger.tree import UNLIMITED


class Flows:
    """The sums as of a snapshot; ``since`` those of an earlier one of the same ledger."""

    def __init__(self, snapshot: Snapshot, since: "Flows | None" = None) -> None:
        ledger, totals = snapshot.ledger, snapshot.ledger.totals
        self.capacity = {cell: free + totals.get(cell, 0) for cell, free in snapshot.envelope.items()}
        """By cell, what there is in all; those left out have no bound."""
        self._gone: dict[Cell, int] = dict(since._gone) if since is not None else {}
        self._come: dict[Cell, int] = dict(since._come) if since is not None else {}
        if since is not None:
            self._note_changes(since.capacity)
        self.spent = _sum(ledger.charged, self._gone)
        self.returned = _sum(ledger.returned, self._come)

    def _note_changes(self, before: Mapping[Cell, int]) -> None:
        if before == self.capacity:
            return
        for cell in before.keys() | self.capacity.keys():
            change = self.capacity.get(cell, UNLIMITED) - before.get(cell, UNLIMITED)
            if change > 0:
                self._come[cell] = self._come.get(cell, 0) + change
            elif change < 0:
                self._gone[cell] = self._gone.get(cell, 0) - change


def _sum(one: Mapping[Cell, int], other: Mapping[Cell, int]) -> dict[Cell, int]:
    total = dict(one)
    for cell, amount in other.items():
        total[cell] = total.get(cell, 0) + amount
    return total
