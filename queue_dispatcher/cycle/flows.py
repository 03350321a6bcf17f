"""Flows: what has changed for anybody from one cycle to the next.

By cell, two sums that only grow, and that bound how much anybody's headroom can have changed: ``spent``, all
that was ever charged, to any queue, and all capacity that ever went; ``returned``, all that was ever given
back, and all capacity that ever came. What is given back in one tree alone is added up too: that bounds what
quota has more for whoever is in it, whatever comes back elsewhere. And what the estimators say of other
questions than before.
"""

from collections.abc import Collection, Mapping

from queue_dispatcher.cycle.snapshot import Snapshot, Verdict
from queue_dispatcher.ledger.cells import Cell
from queue_dispatcher.ledger.tree import UNLIMITED

Where = Cell | tuple[int, Cell]
"""A cell, or one in a tree alone, by the number of its root."""


class Flows:
    """As of a snapshot; ``since``: those of the one before, of the same ledger, None where there is none.

    ``resized``: the cells of which there is more or less in all than before. ``told``: the questions that are
    answered otherwise than before, or not any more; ``turned``: those that could ever fit by one of the
    answers alone.
    """

    def __init__(self, snapshot: Snapshot, since: "Flows | None" = None) -> None:
        ledger = snapshot.ledger
        self.capacity = ledger.in_all(snapshot.envelope)
        """By cell, what there is in all; those left out have no bound."""
        self._gone: dict[Cell, int] = dict(since._gone) if since is not None else {}
        self._come: dict[Cell, int] = dict(since._come) if since is not None else {}
        self.verdicts = dict(snapshot.verdicts)
        self.resized: Collection[Cell] = ()
        self.told: Collection[str] = ()
        self.turned: Collection[str] = ()
        if since is not None:
            self._note_changes(since.capacity)
            self._compare(since.verdicts)
        self.is_possible_same = not (self.resized or self.turned)
        """Whether what could ever be admitted is what could before."""
        self.spent = _sum(ledger.charged, self._gone)
        self.returned = dict[Where, int](ledger.returned_in.items())
        self.returned.update(_sum(ledger.returned, self._come).items())

    def _note_changes(self, before: Mapping[Cell, int]) -> None:
        if before == self.capacity:
            return
        self.resized = [cell for cell, _ in before.items() ^ self.capacity.items()]
        for cell in dict.fromkeys(self.resized):
            change = self.capacity.get(cell, UNLIMITED) - before.get(cell, UNLIMITED)
            if change > 0:
                self._come[cell] = self._come.get(cell, 0) + change
            elif change < 0:
                self._gone[cell] = self._gone.get(cell, 0) - change

    def _compare(self, before: Mapping[str, Verdict]) -> None:
        now = self.verdicts
        others = {probe for probe, verdict in now.items() if before.get(probe) is not verdict}
        others |= before.keys() - now.keys()
        self.told = {one for one in others if _said(before.get(one)) != _said(now.get(one))}
        self.turned = {one for one in others if is_never(before.get(one)) is not is_never(now.get(one))}


def is_never(verdict: Verdict | None) -> bool:
    """Whether it is known that it would not even fit if nothing else ran."""
    return verdict is not None and verdict.never


def _said(verdict: Verdict | None) -> tuple[bool, bool] | None:
    """What of it a head is found by before anything is taken: most changes are of how many more fit."""
    return (verdict.fits > 0, verdict.says_where) if verdict is not None else None


def _sum(one: Mapping[Cell, int], other: Mapping[Cell, int]) -> dict[Cell, int]:
    total = dict(one)
    for cell, amount in other.items():
        total[cell] = total.get(cell, 0) + amount
    return total
