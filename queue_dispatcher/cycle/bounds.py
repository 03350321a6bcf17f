"""Bounds: how much may be charged and given back in a tree before any queue has to be looked at anew."""

from dataclasses import dataclass, field

from queue_dispatcher.cycle.flows import Where
from queue_dispatcher.cycle.headroom import Headroom
from queue_dispatcher.ledger.cells import Cell


@dataclass(slots=True)
class Bounds:
    """Up to which ``spent``, and below which ``returned``, nothing has changed for any queue of a tree.

    ``are_spent_kept`` and ``are_returned_kept``: whether the sums of this cycle are within; where they are
    not, they are drawn anew in it.
    """

    spent: dict[Cell, int] = field(default_factory=dict)
    returned: dict[Where, float] = field(default_factory=dict)
    are_spent_kept: bool = False
    are_returned_kept: bool = False

    def begin(self, headroom: Headroom) -> None:
        """There is another cycle."""
        spent, returned = headroom.spent, headroom.returned
        self.are_spent_kept = all(spent.get(cell, 0) <= most for cell, most in self.spent.items())
        self.are_returned_kept = all(returned.get(where, 0) < most for where, most in self.returned.items())
        if not self.are_spent_kept:
            self.spent = {}
        if not self.are_returned_kept:
            self.returned = {}
