"""QueueHeadroom: what one queue may take of a cycle's headroom, and why not.

`QueueHeadroom.can_admit` is the only place where it is decided whether something may start: a limit that is
checked on one path and forgotten on another does not exist.

It is also the only place where a queue reads what it shares with others, and it notes what it read (`reads`).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from fairway.resources import format_amount
from queue_dispatcher.api.cluster_queue import FlavorFungibility
from queue_dispatcher.cycle.assignment import Stuck, assign
from queue_dispatcher.cycle.flows import is_never
from queue_dispatcher.cycle.headroom import Fit, Headroom
from queue_dispatcher.cycle.items import Alternative, Shape, joined, probe_of
from queue_dispatcher.cycle.reads import Reads
from queue_dispatcher.cycle.reasons import (
    Reason,
    never_fits,
    waiting_for_borrowing,
    waiting_for_capacity,
    waiting_for_estimate,
    waiting_for_quota,
)
from queue_dispatcher.cycle.snapshot import Verdict
from queue_dispatcher.ledger.cells import Cell, Charge
from queue_dispatcher.preemption.fungibility import CHEAPEST, Mode, Outcome, chosen

MAX_SHAPES: Final = 256
"""Of more shapes of one queue it is found out anew how they can be charged."""


class QueueHeadroom:
    """What is left for one queue of the ledger's tree.

    It may be kept from cycle to cycle: `begin` tells it of the next, `look_anew` that nothing holds any more.
    """

    def __init__(self, headroom: Headroom, queue: str) -> None:
        self._headroom = headroom
        self._queue = queue
        self._path = headroom.ledger.tree.paths[queue]
        self.reads = Reads(self._path)
        """What was read before anything was taken in the cycle, which is what may hold in others too."""
        # What is possible at all follows from what there is of these cells, and from who never fits.
        self._capacities: set[Cell] = set()
        self._nevers: set[str] = set()
        # By shape, its alternatives without the flavors that can never take it.
        self._narrow: dict[Shape, Sequence[Alternative]] = {}
        self._ever: dict[Shape, Sequence[Alternative]] = {}
        self._kept: dict[Cell, int] = {}
        self._is_first = False
        self.has_asked = False
        """Whether anything was looked at that the estimators have said, since this was set to False."""
        # The items whose reservations do not hold back what is asked about.
        self._through: frozenset[str] = frozenset()
        # Whether only what the queue owns is looked at.
        self._is_owner = False

    def begin(self, headroom: Headroom) -> None:
        """Something may be taken from now on; what was left before may differ as `is_unchanged` allows."""
        self._headroom = headroom
        if self._kept:
            self._kept = {}
        self._is_first = False

    def look_anew(self, headroom: Headroom) -> bool:
        """Everything may have changed; until `begin`, what is read is noted. Answers whether what is possible
        at all is not among it.
        """
        self.begin(headroom)
        self._is_first = True
        self.reads.clear()
        if len(self._narrow) > MAX_SHAPES:
            self._narrow.clear()
        if len(self._ever) <= MAX_SHAPES and self.is_possible_the_same(headroom):
            return True
        self._capacities.clear()
        self._nevers.clear()
        self._narrow.clear()
        self._ever.clear()
        return False

    def is_possible_the_same(self, headroom: Headroom) -> bool:
        """Whether `ways_ever` answers as in the cycle before."""
        flows = headroom.flows
        return flows.is_possible_same or (
            self._nevers.isdisjoint(flows.turned) and self._capacities.isdisjoint(flows.resized)
        )

    def can_admit(self, shape: Shape) -> Fit | None:
        """How one more workload of the shape may start now; None if it may not, for which see `why`.

        The first alternative that has quota and capacity, and room where it has to go; an open question does
        not make it try others.
        """
        if shape.never is not None:
            return None
        if shape.further or shape.avoids_borrowing:
            found = self._assign(shape)
            return None if isinstance(found, Stuck) else self._estimated(shape, found)
        for alternative in self._ways(shape):
            if not self._fits(alternative.charge):
                continue
            if not shape.probe:
                return Fit(alternative, True)
            fit = self._estimated(shape, alternative)
            if fit is not None or alternative.is_anywhere:
                return fit
        return None

    def can_admit_through(
        self, shape: Shape, through: frozenset[str], *, is_owner: bool = False
    ) -> Fit | None:
        """As `can_admit`, using also what estimators keep for these items. ``is_owner``: where nothing would
        be borrowed.
        """
        self._through, self._is_owner = through, is_owner
        try:
            return self.can_admit(shape)
        finally:
            self._through, self._is_owner = frozenset(), False

    def ways_ever(self, shape: Shape) -> Sequence[Alternative]:
        """How a workload of the shape could be charged if nothing else ran, the first preferred; none where
        it never could, or that is undecided.
        """
        found = self._ever.get(shape)
        if found is None:
            found = self._ever[shape] = self._find_ever(shape)
        return found

    def _find_ever(self, shape: Shape) -> Sequence[Alternative]:
        if shape.never is not None:
            return ()
        if shape.further:
            found = self._assign_ever(shape)
            return () if isinstance(found, Stuck) else (found,)
        return [one for one in self._ways(shape) if self._is_possible(one) and not self._is_never(shape, one)]

    def ways_beside(self, shape: Shape, fit: Fit) -> tuple[list[Alternative], int]:
        """As `ways_ever` with that of a fit, and which one that is: the last, where parts have it from other
        flavors.
        """
        own = replace(fit.alternative, through=frozenset())
        ways = list(self.ways_ever(shape))
        ways += () if own in ways else (own,)
        return ways, ways.index(own)

    def is_second(self, shape: Shape, fit: Fit, fungibility: FlavorFungibility) -> bool:
        """Whether the search for a flavor may end at displacing others rather than at the fit."""
        ways, own = self.ways_beside(shape, fit)
        outcomes = [
            Outcome(Mode.FIT, self._distance(way.charge))
            if number == own or self._has_room(shape, way)
            else CHEAPEST
            for number, way in enumerate(ways)
        ]
        return chosen(outcomes, fungibility) != own

    def _has_room(self, shape: Shape, way: Alternative) -> bool:
        return self._fits(way.charge) and self._may_fit(shape, way)

    def refuses(self, least: Sequence[Charge]) -> bool:
        """Whether nothing has room because not even the least does, by `PendingQueue.least`."""
        return bool(least) and not any(map(self._fits, least))

    def can_ever_admit(self, shape: Shape) -> bool:
        """Whether a workload of the shape could start if nothing else ran; True where that is undecided."""
        if shape.never is not None:
            return False
        if shape.further:
            found = self._assign_ever(shape)
            return not isinstance(found, Stuck) or found.is_undecided
        return any(self._is_possible(one) and not self._is_never(shape, one) for one in self._ways(shape))

    def keep(self, charge: Charge) -> None:
        """For the rest of the cycle, leave so much to somebody ahead in this queue."""
        for cell, amount in charge:
            self._kept[cell] = self._kept.get(cell, 0) + amount

    def owned_and_short(self, shape: Shape, headroom: Headroom) -> Charge:
        """What can be held for a refused shape: what is left of the queue's own quota, where it lacks quota.

        Nothing where it would have to borrow, or where quota is not what it lacks.
        """
        ledger, queue = headroom.ledger, self._queue
        ways = self._ways(shape)
        if shape.further:
            ways = [joined([options[0] for options in self._parts(shape)])]
        for alternative in ways:
            charge = alternative.charge
            if self._is_never(shape, alternative):
                continue
            if any(amount > ledger.tree.limits(cell).nominal[self._path[0]] for cell, amount in charge):
                continue
            owned = [(cell, min(amount, ledger.owned_left(queue, cell))) for cell, amount in charge]
            held = tuple(pair for pair in owned if pair[1])
            if held and any(amount > ledger.availability(queue, cell).amount for cell, amount in charge):
                return held
        return ()

    def why(self, shape: Shape) -> Reason:
        """Why the shape was refused: what the first alternative lacks that is possible at all."""
        if shape.never is not None:
            return shape.never
        ways = self._ways(shape)
        if shape.further:
            ever, now = self._assign_ever(shape), self._assign(shape)
            possible = ever.refused if isinstance(ever, Stuck) else [ever]
            if isinstance(ever, Stuck) and not ever.is_undecided:
                if not possible:
                    nowhere = f"no cluster has flavors of queue {self._queue} that could ever take all of it"
                    return self._never(ever.options[0]) if ever.options else never_fits(nowhere)
                ways = possible
            else:
                # The last are of the part that fits nowhere now, with what the parts before it take.
                ways = [*now.refused, *possible, *now.options] if isinstance(now, Stuck) else [now]
        elif not ways:
            return _NO_ALTERNATIVE
        elif not any(map(self._is_possible, ways)):
            return self._never(ways[0])
        ways = [one for one in ways if self._is_possible(one)] or ways
        short: tuple[Cell, int] | None = None
        for alternative in [one for one in ways if not self._is_never(shape, one)] or ways:
            lacks = (pair for pair in alternative.charge if not self._has(*pair))
            first = next(lacks, None)
            verdict = self._verdict(shape, alternative)
            # Where nobody can tell, and they say nothing of it, they have not said no.
            is_told = verdict is not None and (verdict.fits <= 0 or verdict.reasons)
            if verdict is not None and is_told and (first is None or verdict.never):
                return _unestimated(verdict)
            short = short or first
        return self._short(*short) if short is not None else _CANNOT_TELL

    def _estimated(self, shape: Shape, alternative: Alternative) -> Fit | None:
        if not shape.probe:
            return Fit(alternative, True)
        if self._is_owner and self._distance(alternative.charge):
            return None
        if not self._may_fit(shape, alternative):
            return None
        if self._through:
            alternative = replace(alternative, through=self._through)
        return self._headroom.estimated(shape, alternative, self._verdict(shape, alternative))

    def _assign(self, shape: Shape) -> Alternative | Stuck:
        distance = self._distance if shape.avoids_borrowing or self._is_owner else None
        return assign(self._parts(shape), self._has, distance, lambda one: self._may_fit(shape, one))

    def _assign_ever(self, shape: Shape) -> Alternative | Stuck:
        """If nothing else ran."""
        return assign(
            self._parts(shape), self._could_have, accepts=lambda one: not self._is_never(shape, one)
        )

    def _may_fit(self, shape: Shape, alternative: Alternative) -> bool:
        """Whether the estimators find room where it would have to go, or have yet to say.

        Where nobody can tell, Karmada has to choose, which it does among all flavors.
        """
        if alternative.is_anywhere:
            return True
        verdict = self._verdict(shape, alternative)
        may_choose = alternative.clusters is None or alternative.is_any
        return verdict is None or (verdict.fits > 0 and (verdict.says_where or may_choose))

    def _is_never(self, shape: Shape, alternative: Alternative) -> bool:
        """Whether it would not fit there if nothing else ran."""
        if not shape.probe:
            return False
        probe = self._probe(shape, alternative)
        self._nevers.add(probe)
        return is_never(self._headroom.verdicts.get(probe))

    def _distance(self, charge: Charge) -> int:
        """How far away the queue would borrow it."""
        headroom = self._headroom
        if not headroom.changes:
            for cell, _ in charge:
                self.reads.distance(cell, headroom)
        return headroom.ledger.borrowing_distance(self._queue, charge)

    def _ways(self, shape: Shape) -> Sequence[Alternative]:
        ways = self._narrow.get(shape)
        if ways is None:
            ways = self._narrow[shape] = [self._narrowed(one) for one in shape.alternatives]
        return ways

    def _parts(self, shape: Shape) -> list[list[Alternative]]:
        return [[self._narrowed(one) for one in options] for options in shape.parts]

    def _narrowed(self, alternative: Alternative) -> Alternative:
        """The alternative without the flavors that can never take it, unless none can.

        Karmada may put it on one of those all the same, while nobody tells it where to: then it is charged
        there, and the queue waits until it is back within its quota. The other way, the smallest flavor of a
        queue would set the largest workload of all.
        """
        left = [place for place in alternative.places if self._is_possible(place)]
        return alternative.among(left) if 0 < len(left) < len(alternative.places) else alternative

    def _verdict(self, shape: Shape, alternative: Alternative) -> Verdict | None:
        if not shape.probe:
            return None
        probe = self._probe(shape, alternative)
        self.reads.told(probe)
        found = self._headroom.verdicts.get(probe)
        self.has_asked = self.has_asked or found is not None
        return found

    def _probe(self, shape: Shape, alternative: Alternative) -> str:
        if self._through and not alternative.through:
            alternative = replace(alternative, through=self._through)
        return probe_of(shape, alternative)

    def _fits(self, charge: Charge) -> bool:
        """Whether so much more may be charged just now."""
        if self._is_first:
            return self.reads.have(charge, self._headroom)
        cells, spent, has_kept = self.reads.cells, self._headroom.spent, bool(self._kept)
        for cell, amount in charge:
            left = cells.get(cell)
            # More may be left than is known.
            if (left is None or has_kept or amount + spent.get(cell, 0) > left.ceiling) and not self._has(
                cell, amount
            ):
                return False
        return True

    def _has(self, cell: Cell, amount: int) -> bool:
        headroom = self._headroom
        if self._is_first:
            return self.reads.have(((cell, amount),), headroom)
        kept = self._kept.get(cell, 0) if self._kept else 0
        return amount + kept <= headroom.available(self._queue, self._path, cell)

    def _is_possible(self, alternative: Alternative) -> bool:
        return all(amount <= self._most(cell) for cell, amount in alternative.charge)

    def _could_have(self, cell: Cell, amount: int) -> bool:
        return amount <= self._most(cell)

    def _most(self, cell: Cell) -> int:
        """What could be charged if nothing else ran."""
        self._capacities.add(cell)
        capacity = self._headroom.capacity.get(cell)
        most = self._headroom.ledger.tree.limits(cell).most[self._path[0]]
        return most if capacity is None else min(most, capacity)

    def _short(self, cell: Cell, asked: int) -> Reason:
        headroom = self._headroom
        amount = asked + self._kept.get(cell, 0)
        quota = headroom.availability(self._queue, cell)
        flavor, resource = headroom.ledger.tree.table.name(cell)
        if amount <= quota.amount:
            missing = amount - headroom.free(cell)
            return waiting_for_capacity(
                f"{format_amount(resource, missing)} {resource} more are needed than are free in flavor "
                f"{flavor}"
            )
        if headroom.is_held(self._queue, cell):
            lacks = format_amount(resource, amount - quota.amount)
            return waiting_for_borrowing(self._queue, flavor, resource, lacks, is_held=True)
        shortage = headroom.ledger.shortage(self._queue, cell, amount, quota)
        lacks = format_amount(resource, shortage.missing)
        waits = waiting_for_borrowing if shortage.is_borrowing else waiting_for_quota
        # What queues below it use is many numbers to add up, and no answer to who could give something back.
        is_leaf = not headroom.ledger.tree.children(headroom.ledger.tree.paths[shortage.node][0])
        used = headroom.ledger.used(shortage.node, cell) if is_leaf else 0
        borrowers = [
            (name, format_amount(resource, more))
            for name, more in headroom.ledger.borrowers(shortage.node, cell)
        ]
        return waits(
            shortage.node,
            flavor,
            resource,
            lacks,
            format_amount(resource, used) if used else "",
            borrowers,
        )

    def _never(self, alternative: Alternative) -> Reason:
        ledger = self._headroom.ledger
        cell, amount = next((c, a) for c, a in alternative.charge if a > self._most(c))
        flavor, resource = ledger.tree.table.name(cell)
        asked = f"it asks for {format_amount(resource, amount)} {resource} of flavor {flavor}"
        most = ledger.tree.most(self._queue, cell)
        if amount > most:
            return never_fits(
                f"{asked}; queue {self._queue} can never use more than {format_amount(resource, most)}, even "
                "if it borrows all that others lend"
            )
        capacity = max(0, self._headroom.capacity[cell])
        return never_fits(f"{asked}, which has {format_amount(resource, capacity)} in all")


def _unestimated(verdict: Verdict) -> Reason:
    """Why the estimators find no room, or cannot tell."""
    told = "; ".join(verdict.reasons)
    if verdict.unanswered:
        return waiting_for_estimate(told, verdict.unanswered)
    if verdict.never:
        return never_fits(
            told or "the estimators find no cluster that could take it, were it empty",
            "the workload asks for less or for other nodes, or such nodes are added",
        )
    return waiting_for_capacity(told or "the estimators find no room for it on any cluster")


_CANNOT_TELL = waiting_for_estimate(
    "the estimators cannot tell in which clusters it has room", "they can tell, or Karmada may choose"
)
_NO_ALTERNATIVE = never_fits("no flavor of its queue can be charged for it")
