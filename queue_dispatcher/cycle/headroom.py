"""Headroom: what is left of quota, physical capacity and estimates while a cycle admits.

`QueueHeadroom.can_admit` is the only place where it is decided whether something may start: a limit that is
checked on one path and forgotten on another does not exist. Headroom only shrinks within a cycle, so what was
refused once need not be asked again before the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fairway.resources import format_amount
from queue_dispatcher.cycle.displacement import displaced
from queue_dispatcher.cycle.items import Alternative, Shape
from queue_dispatcher.cycle.reasons import (
    Reason,
    never_fits,
    waiting_for_borrowing,
    waiting_for_capacity,
    waiting_for_estimate,
    waiting_for_quota,
)
from queue_dispatcher.cycle.snapshot import Snapshot, Verdict
from queue_dispatcher.ledger.cells import Cell, Charge
from queue_dispatcher.ledger.ledger import Availability
from queue_dispatcher.ledger.tree import UNLIMITED


class Fit(NamedTuple):
    """It may start, charged so; unless ``is_known``, the estimators have to be asked first."""

    alternative: Alternative
    is_known: bool


class Headroom:
    """What the queues of a cycle share; starts as the snapshot says, which stays as it is."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.ledger = snapshot.ledger.fork()
        self.changes = 0
        """Grows with all that is taken, which tells whoever looked whether anything has changed since."""
        totals = self.ledger.totals
        self.capacity = {cell: free + totals.get(cell, 0) for cell, free in snapshot.envelope.items()}
        """By cell, what may be charged in all, wherever that is bounded by what is there."""
        self._verdicts = dict(snapshot.verdicts)
        # What was admitted on the word of the estimators, and how much of it each answer has been told.
        self._taken: list[tuple[str, Verdict]] = []
        self._told: dict[str, tuple[int, int]] = {}

    def free(self, cell: Cell) -> int:
        """What is physically left of a cell, whoever is to be charged."""
        return self.capacity.get(cell, UNLIMITED) - self.ledger.totals.get(cell, 0)

    def estimated(self, shape: Shape, alternative: Alternative) -> Fit | None:
        """The fit of a shape with a probe, quota and capacity; None if the estimators find no room."""
        verdict = self._verdicts.get(shape.probe)
        if verdict is None:
            return Fit(alternative, is_known=False)
        if verdict.fits <= 0:
            return None
        # Room that is used up, by alike workloads or by others, is a question to ask again, not a refusal.
        return Fit(alternative, is_known=self._left(shape.probe, verdict) > 0)

    def unestimated(self, shape: Shape) -> Reason:
        """Why the estimators find no room for it, or cannot tell."""
        verdict = self._verdicts[shape.probe]
        told = "; ".join(verdict.reasons)
        if verdict.unanswered:
            return waiting_for_estimate(told, verdict.unanswered)
        return waiting_for_capacity(told or "the estimators find no room for it on any cluster")

    def take(self, queue: str, shape: Shape, fit: Fit) -> None:
        """Charge what `can_admit` has found to fit; if that is not known for sure, it is only kept free."""
        self.changes += 1
        self.ledger.charge(queue, fit.alternative.charge)
        if shape.probe and fit.is_known:
            self._taken.append((shape.probe, self._verdicts[shape.probe]))

    def _left(self, probe: str, verdict: Verdict) -> int:
        told, lost = self._told.get(probe, (0, 0))
        if told < len(self._taken):
            for by, taken in self._taken[told:]:
                if by == probe:
                    lost += verdict.per
                elif not taken.clusters.isdisjoint(verdict.clusters):
                    lost += displaced(taken.pods, verdict.pods)
            self._told[probe] = (len(self._taken), lost)
        return verdict.left(lost)


_UNSEEN = Availability(UNLIMITED, -1)


@dataclass(slots=True)
class _Left:
    """What is left of a cell for a queue, as far as anybody has looked.

    ``most``: what it could be charged if nothing else ran. ``quota``: what its quota had left at the last
    look; ``amount``: that, or what was physically free, if less. There is never more again in the cycle.
    ``ceiling``: the total, over all queues, up to which charges to this one are known to fit, since whatever
    is charged to anybody takes at most as much from this queue. Only between the two is there a need to look
    again.
    """

    most: int
    amount: int = UNLIMITED
    quota: Availability = _UNSEEN
    ceiling: int = -1


class QueueHeadroom:
    """What is left for one queue of the ledger's tree."""

    def __init__(self, headroom: Headroom, queue: str) -> None:
        self._headroom = headroom
        self._queue = queue
        self._node = headroom.ledger.tree.paths[queue][0]
        self._totals = headroom.ledger.totals
        self._cells: dict[Cell, _Left] = {}

    def can_admit(self, shape: Shape) -> Fit | None:
        """How one more workload of the shape may start now; None if it may not, for which see `why`.

        The first alternative that has quota and capacity; an open question does not make it try others.
        """
        if shape.never is not None:
            return None
        cells, totals = self._cells, self._totals
        for alternative in shape.alternatives:
            for cell, amount in alternative.charge:
                left = cells.get(cell) or self._first_look(cell)
                if amount + totals.get(cell, 0) > left.ceiling and (
                    amount > left.amount or amount > self._look(cell, left).amount
                ):
                    break
            else:
                return self._headroom.estimated(shape, alternative) if shape.probe else Fit(alternative, True)
        return None

    def refuses(self, least: Sequence[Charge]) -> bool:
        """Whether nothing has room because not even the least does, by `PendingQueue.least`."""
        cells, totals = self._cells, self._totals
        for charge in least:
            for cell, amount in charge:
                left = cells.get(cell) or self._first_look(cell)
                if amount + totals.get(cell, 0) > left.ceiling and amount > self._look(cell, left).amount:
                    break
            else:
                return False
        return bool(least)

    def can_ever_admit(self, shape: Shape) -> bool:
        """Whether a workload of the shape could start if nothing else ran."""
        return shape.never is None and any(map(self._is_possible, shape.alternatives))

    def why(self, shape: Shape) -> Reason:
        """Why the shape was refused: what the first alternative lacks that is possible at all."""
        if shape.never is not None:
            return shape.never
        short: tuple[Cell, int] | None = None
        for alternative in filter(self._is_possible, shape.alternatives):
            lacks = (pair for pair in alternative.charge if pair[1] > self._left(pair[0]))
            first = next(lacks, None)
            if first is None:
                return self._headroom.unestimated(shape)
            short = short or first
        if short is not None:
            return self._short(*short)
        return self._never(shape.alternatives[0]) if shape.alternatives else _NO_ALTERNATIVE

    def _is_possible(self, alternative: Alternative) -> bool:
        cells = self._cells
        for cell, amount in alternative.charge:
            if amount > (cells.get(cell) or self._first_look(cell)).most:
                return False
        return True

    def _left(self, cell: Cell) -> int:
        """What may be charged of a cell just now."""
        return self._look(cell, self._cells.get(cell) or self._first_look(cell)).amount

    def _first_look(self, cell: Cell) -> _Left:
        headroom = self._headroom
        most = min(headroom.ledger.tree.limits(cell).most[self._node], headroom.capacity.get(cell, UNLIMITED))
        left = self._cells[cell] = _Left(most)
        return left

    def _look(self, cell: Cell, left: _Left) -> _Left:
        headroom, total = self._headroom, self._totals.get(cell, 0)
        left.quota = headroom.ledger.availability(self._queue, cell)
        left.ceiling = min(total + left.quota.amount, headroom.capacity.get(cell, UNLIMITED))
        left.amount = left.ceiling - total
        return left

    def _short(self, cell: Cell, amount: int) -> Reason:
        ledger, quota = self._headroom.ledger, self._cells[cell].quota
        flavor, resource = ledger.tree.table.name(cell)
        if amount <= quota.amount:
            missing = amount + self._totals.get(cell, 0) - self._headroom.capacity[cell]
            return waiting_for_capacity(
                f"{format_amount(resource, missing)} {resource} too few are free in flavor {flavor}"
            )
        shortage = ledger.shortage(self._queue, cell, amount, quota)
        waits = waiting_for_borrowing if shortage.is_borrowing else waiting_for_quota
        return waits(shortage.node, flavor, resource, format_amount(resource, shortage.missing))

    def _never(self, alternative: Alternative) -> Reason:
        cell, amount = next((c, a) for c, a in alternative.charge if a > self._cells[c].most)
        flavor, resource = self._headroom.ledger.tree.table.name(cell)
        asked = f"it asks for {format_amount(resource, amount)} {resource} of flavor {flavor}"
        most = self._headroom.ledger.tree.most(self._queue, cell)
        if amount > most:
            return never_fits(
                f"{asked}; queue {self._queue} can never use more than {format_amount(resource, most)}, even "
                "if it borrows all that others lend"
            )
        capacity = max(0, self._headroom.capacity[cell])
        return never_fits(f"{asked}, which has {format_amount(resource, capacity)} in all")


_NO_ALTERNATIVE = never_fits("no flavor of its queue can be charged for it")
