"""QueueHead: the item with which a queue competes, and what is kept of having found it.

The head of a queue is the first item, in the queue's order, of those that have room: a workload that cannot
start neither speaks for its queue nor counts in its share.

Most queues have the same head in one cycle as in the one before, and most of a full fleet have none. So a
head is kept until something that it was found by has changed: what waits in the queue and how the queue is
set up (`PendingQueue.version`, `QueueState`), the time, or what `QueueHeadroom` has read.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from queue_dispatcher.api.cluster_queue import QueueingStrategy
from queue_dispatcher.cycle.actions import ClassKey, class_key
from queue_dispatcher.cycle.bounds import Bounds
from queue_dispatcher.cycle.cursor import Cursor
from queue_dispatcher.cycle.deadlines import after_ms
from queue_dispatcher.cycle.flows import Flows
from queue_dispatcher.cycle.headroom import Fit, Headroom
from queue_dispatcher.cycle.items import Alternative, Item, Shape
from queue_dispatcher.cycle.order import Rank, next_point_ms
from queue_dispatcher.cycle.queue_headroom import QueueHeadroom
from queue_dispatcher.cycle.refused import Refused
from queue_dispatcher.cycle.reservation import NO_RESERVATIONS, Reservations
from queue_dispatcher.cycle.reserving import Reserving
from queue_dispatcher.cycle.snapshot import Looks, QueueState
from queue_dispatcher.cycle.waiter import Line, RankedLine, Waiter, since_ms
from queue_dispatcher.ledger.cells import Charge


@dataclass(slots=True)
class Passes:
    """What of others' reservations something was found through. ``passed``: by rank and time to run of what
    the estimators have no room for, whose reservations it may use; ``lent``: whose it may use if it takes
    only what is owned; None if that was not asked.
    """

    passed: dict[tuple[int, int | None], frozenset[str]] = field(default_factory=dict)
    lent: frozenset[str] | None = None

    @property
    def are_any(self) -> bool:
        """Whether any were asked about."""
        return bool(self.passed) or self.lent is not None


class QueueHead:
    """A queue that is not stopped and has a place in the tree.

    In each cycle: `keep_or_find`; if ``found`` is not None, `begin`, `look` until it says None, and `end`.
    ``path``: its number in the tree and those above, up to the root. Of the head, as of the last look:
    ``fit``, how it may start, ``rank``, ``item`` and ``key``, its class.
    ``blocked``: the item that holds up all behind it in a StrictFIFO queue, if one does, and its class;
    ``refused``: those that found no room;
    ``first``: what ``found`` is charged; ``changes_ms``: when time alone may put another in its place.
    """

    __slots__ = (
        "_bounds",
        "_cursor",
        "_headroom",
        "_holding",
        "_is_begun",
        "_is_by_reservations",
        "_is_strict",
        "_left",
        "_passes",
        "_refusals",
        "_reservations",
        "_share",
        "_short",
        "blocked",
        "changes_ms",
        "first",
        "fit",
        "found",
        "is_done",
        "looked",
        "name",
        "path",
        "refused",
    )

    def __init__(self, state: QueueState, headroom: Headroom, bounds: Bounds) -> None:
        """``bounds``: those of its tree, lowered to within which it stays what it is."""
        self.name = state.name
        self.path = headroom.ledger.tree.paths[state.name]
        self.found: Fit | None = None
        self.fit: Fit | None = None
        self.blocked: tuple[ClassKey, Item] | None = None
        self.changes_ms: int | None = None
        self.looked = 0
        self._left = QueueHeadroom(headroom, state.name)
        self._headroom = headroom
        self._bounds = bounds
        self._cursor = Cursor(state)
        self.first: Charge = ()
        # Shapes that lack quota or capacity, of which there is only less until the cycle ends.
        self._short: set[Shape] = set()
        self._is_strict = False
        self._is_begun = False
        # The version of the queue's balances, and its share with what `found` is charged.
        self._share: tuple[int, int] | None = None
        self._reservations = NO_RESERVATIONS
        self._passes = Passes()
        # Whether any reservations count for what was found, its own or those that it was found through.
        self._is_by_reservations = False
        # By how many classes were refused, who they are, as others find room and lose it again.
        self._refusals: dict[int, Refused] = {}
        self._holding: Sequence[Item] = []
        self.refused = Refused(state, self._left, (), (), is_aged=False)
        self.is_done = False

    def is_kept(
        self, state: QueueState, headroom: Headroom, flows: Flows, reservations: Reservations, now_ms: int
    ) -> bool:
        """Whether the head plainly stays as it was found, as most do; see `keep_or_find`."""
        cursor = self._cursor
        if cursor.state is not state or not cursor.is_lined_up(state, now_ms):
            return False
        if not self._left.reads.is_quiet(self.first, self._bounds, flows):
            return False
        if self._reservations is not reservations:
            if self._is_by_reservations or reservations.of(self.name):
                return False
            self._reservations = reservations
        self._headroom = headroom
        cursor.now_ms = now_ms
        return True

    def keep_or_find(
        self, state: QueueState, headroom: Headroom, reservations: Reservations, now_ms: int
    ) -> bool:
        """Before anything is taken in a cycle: the head stays as it was found, or is looked for anew.

        Answers whether it was looked for, which it is whenever what waits, or its order, has changed, or
        others of its queue hold reservations by now.
        """
        left, bounds, cursor = self._left, self._bounds, self._cursor
        passes_same = self._reservations is reservations or self._passes_the_same(reservations, now_ms)
        self._reservations = reservations
        is_line_same = cursor.is_lined_up(state, now_ms) and cursor.claimed == self._claimed
        self._headroom = headroom
        # Equal states may differ in what LocalQueues have used.
        cursor.state = self.refused.state = state
        cursor.now_ms = now_ms
        is_possible_same = left.is_possible_the_same(headroom)
        is_same = is_line_same and passes_same and is_possible_same
        if is_same and left.reads.is_told_the_same(headroom.flows):
            if left.reads.is_within(self.first, bounds):
                return self._note_holding()
            if left.reads.is_unchanged(headroom, self.first):
                left.reads.slack(self.first, bounds)
                return self._note_holding()
        self._look_for(is_line_same=is_line_same)
        self._share = None
        left.reads.slack(self.first, bounds)
        return True

    def _look_for(self, *, is_line_same: bool) -> None:
        """Find the head anew."""
        cursor = self._cursor
        if not is_line_same:
            self._line_up()
        are_waiters_same = self._left.look_anew(self._headroom) and is_line_same
        cursor.restart()
        self._clear()
        if self._passes.are_any:
            self._passes = Passes()
        self.found = self._find()
        cursor.mark()
        self.first = self.found.alternative.charge if self.found is not None else ()
        if not are_waiters_same:
            self._refusals.clear()
        if not self._note_holding():
            self._note_refused()

    def _note_holding(self) -> bool:
        """Whether others of the queue hold reservations than before; who was refused is then noted anew."""
        own = self._reservations.of(self.name)
        self._is_by_reservations = bool(own) or self._passes.are_any
        held = (self.state.pending.get(one.item.id) for one in own)
        holding = [item for item in held if item is not None and item.due_ms <= self._cursor.now_ms]
        if self._holding == holding:
            return False
        self._holding = holding
        self._refusals.clear()
        self._note_refused()
        return True

    def _note_refused(self) -> None:
        cursor = self._cursor
        refused = self._refusals.get(cursor.ahead)
        if refused is None:
            if len(self._refusals) == _MAX_REFUSALS:
                self._refusals.clear()
            refused = self._refusals[cursor.ahead] = Refused(
                self.state, self._left, cursor.before, self._holding, is_aged=cursor.is_aged
            )
        refused.state = self.state
        self.refused = refused

    def _passes_the_same(self, reservations: Reservations, now_ms: int) -> bool:
        """Whether others have reservations now than when it was found, and that changes nothing for it."""
        passes = self._passes
        if passes.are_any and (reservations.of(self.name) or self._reservations.of(self.name)):
            return False
        if passes.lent is not None and reservations.lent(self.name) != passes.lent:
            return False
        return all(
            reservations.passed_by(priority, runtime_ms, now_ms) == passed
            for (priority, runtime_ms), passed in passes.passed.items()
        )

    def due_waiters(self, headroom: Headroom, now_ms: int, claims: AbstractSet[str]) -> Line | None:
        """Those that get reservations by now, before anything is taken; see `Refused.due`."""
        return self.refused.due(headroom, now_ms, claims, self._pick_due)

    def _pick_due(self) -> Sequence[Waiter]:
        return self.refused.picked(self._headroom, self._cursor.now_ms)

    def preemptors(self, headroom: Headroom) -> RankedLine | None:
        """Those that may have others displaced, before anything is taken; None where nobody may. To be read
        before the next cycle.
        """
        first = self.refused.first_preemptor(headroom, self._cursor.now_ms)
        return RankedLine(self.name, first, self._read_preemptors) if first is not None else None

    def _read_preemptors(self) -> Sequence[Waiter]:
        return self.refused.preemptors(self._headroom, self._cursor.now_ms)

    def _reserve_late(self) -> None:
        """The head has lost its room in this cycle: it gets a reservation if it has waited long enough."""
        item, policy = self.item, self.state.reservation
        waited_ms = self._cursor.now_ms - since_ms(item)
        if waited_ms < after_ms(item, policy) or not self._headroom.may_reserve(item, policy.depth):
            return
        if ways := self._left.ways_ever(item.shape):
            self._headroom.reserve_late(Waiter(self.rank, item, ways, policy))

    def share(self, headroom: Headroom, fit: Fit) -> int:
        """The queue's own share with an item charged so; ``found`` keeps it while its balances stay."""
        ledger = headroom.ledger
        if headroom.changes or fit is not self.found:
            return ledger.share_at(self.name, fit.alternative.charge, 0)
        version = ledger.version(self.path[0])
        if self._share is None or self._share[0] != version:
            self._share = (version, ledger.share_at(self.name, self.first, 0))
        return self._share[1]

    def begin(self, headroom: Headroom) -> None:
        """Compete in a cycle, with the head that was kept or found."""
        self._headroom = headroom
        self._left.begin(headroom)
        self._short.clear()
        self.looked = 0
        self.fit = self.found
        self._is_begun = True
        if self.state.sharing is not None:
            self._cursor.share_anew()

    def end(self) -> None:
        """The cycle has ended, and the head is again as it was before."""
        if self._cursor.is_moved or self.is_done:
            self._return()
        self._is_begun = False

    def hold(self, headroom: Headroom) -> None:
        """What the blocked head of a StrictFIFO queue waits for of the queue's own quota, nobody may borrow.

        So Kueue does (pkg/scheduler, v0.20), unless the queue could take it back. What has used up a soft
        budget goes behind those who would.
        """
        state = self.state
        if self.blocked is None or state.is_over_budget or state.preemption.reclaims or len(self.path) == 1:
            return
        charge = self._left.owned_and_short(self.blocked[0].shape, headroom)
        if charge:
            headroom.hold(self.name, charge)

    @property
    def state(self) -> QueueState:
        """That of the queue in this cycle."""
        return self._cursor.state

    @property
    def item(self) -> Item:
        """The head, as of the last look."""
        return self._cursor.item

    @property
    def rank(self) -> Rank:
        """That of the head."""
        return self._cursor.rank

    @property
    def key(self) -> ClassKey:
        """The class of the head."""
        return self._cursor.key

    def times(self, now_ms: int) -> list[int]:
        """When time alone adds to those that wait, or to those that get reservations, epoch milliseconds."""
        due_ms, waits_ms = self._cursor.due_ms, self.refused.waits_ms
        times = [due_ms] if due_ms is not None else []
        return [*times, int(waits_ms)] if now_ms < waits_ms < _FOREVER else times

    @property
    def is_begun(self) -> bool:
        """Whether it is between `begin` and `end`."""
        return self._is_begun

    @property
    def is_strict(self) -> bool:
        """Whether nobody may pass its head."""
        return self._is_strict

    @property
    def least(self) -> tuple[Charge, ...]:
        """What anything in the queue needs at least, by `PendingQueue.least`."""
        return self.state.pending.least(self._cursor.now_ms)

    def look(self) -> Fit | None:
        """The first item that still has room becomes the head; None once there is none."""
        changes = self._headroom.changes
        if self.looked != changes:
            self.looked = changes
            if self.is_done:
                self.fit = None
            elif self._is_still_found():
                self.fit = self.found
            else:
                self.fit = None if self._is_held_back() else self._find()
        return self.fit

    def _is_still_found(self) -> bool:
        """Whether the head is what was found, as nothing has been taken and no reservation refuses it."""
        found = self.found
        if (
            found is None
            or self._cursor.is_moved
            or self._headroom.is_taken
            or self.state.sharing is not None
        ):
            return False
        return not self._would_delay(found)

    def _would_delay(self, fit: Fit) -> bool:
        """Whether the head would delay any reservation of this cycle if it started so."""
        reserving = self._headroom.reserving if self._is_begun else None
        if reserving is None or not reserving.kept:
            return False
        cursor = self._cursor
        return reserving.kept.refuses(cursor.item, cursor.rank, cursor.key.runtime_ms, fit.alternative)

    def _is_held_back(self) -> bool:
        """Whether quota and reservations leave nobody even the least that any of them needs, nor are there
        more to get.

        This only saves asking each of them, as of many queues nobody passes for as long as they are full.
        """
        reserving, least = self._headroom.reserving, self.least
        if reserving is None or not least or self._is_strict or not self._cursor.peek():
            return False
        having = [charge for charge in least if not self._left.refuses((charge,))]
        if having and not reserving.kept.refuses_all(self.name, self.rank, having):
            return False
        return not self._may_reserve()

    def _is_closed(self, reserving: Reserving) -> bool:
        """Whether there are no reservations left for any of them but those with a claim."""
        table = self._headroom.ledger.tree.table
        flavors = {table.name(cell).flavor for cell in self.state.pending.backlog}
        return reserving.is_closed(self.name, flavors, self.state.reservation.depth)

    def _may_reserve(self) -> bool:
        """Whether any of them may get a reservation by losing its room; False is certain."""
        reserving = self._headroom.reserving
        if not self._is_begun or not self.state.reserves or reserving is None:
            return False
        return not self._is_closed(reserving) or self.state.pending.has_any(reserving.claims)

    def move_up(self) -> bool:
        """The head was admitted, and the next of its class takes its place; whether all of it have been."""
        charge = self.fit.alternative.charge if self.fit is not None else None
        self.looked = -1
        return self._cursor.move_up(self._claimed, charge)

    @property
    def _claimed(self) -> set[str]:
        """Those of the queue that have reservations as others are displaced for them."""
        return {one.item.id for one in self._reservations.of(self.name) if one.is_claimed}

    def pass_over(self, keeps: Charge) -> None:
        """The head is passed over, and the next takes its place; in a StrictFIFO queue nobody may.

        What it ``keeps`` those behind it have to leave.
        """
        self._left.keep(keeps)
        if self._is_strict:
            self._block()
        else:
            self._cursor.pop()
        self.looked = -1

    def stop(self) -> None:
        """It does not compete any more in this cycle."""
        self.is_done = True
        self.looked = -1

    def _line_up(self) -> None:
        self._cursor.line_up(self._claimed)
        self._is_strict = self.state.strategy is QueueingStrategy.STRICT_FIFO

    def _return(self) -> None:
        """To where it was when it was found."""
        self._cursor.go_back()
        self._clear()

    def _clear(self) -> None:
        """Nothing of a cycle is known any more."""
        self._short.clear()
        self.is_done = False
        self.blocked = None
        self.changes_ms = None

    def _find(self) -> Fit | None:
        may_reserve: bool | None = None
        cursor, claimed = self._cursor, self._claimed
        while self.blocked is None and cursor.peek():
            fit = self._fit()
            if fit is not None:
                return fit
            if may_reserve is None:
                may_reserve = self._may_reserve()
                if not (self._is_strict or may_reserve) and self._left.refuses(self.least):
                    # Not even the least that any of them needs has room.
                    cursor.skip_all()
                    return None
            if may_reserve:
                self._reserve_late()
            if not self._is_strict or not self._left.can_ever_admit(cursor.key.shape):
                cursor.refuse(claimed)
                continue
            self._block()
            if self._is_begun:
                self.hold(self._headroom)
        return None

    def _fit(self) -> Fit | None:
        """How the head may start; None if it has no room, or it is kept for others."""
        item = self.item
        if self.key.shape in self._short:
            return None
        self._left.has_asked = False
        fit = self._left.can_admit(self.key.shape)
        if fit is None and not self._left.has_asked:
            self._short.add(self.key.shape)
            return None
        if fit is None:
            fit = self._fit_through()
        looks = self.state.looks
        if fit is not None and looks is not None and self._is_second(fit, looks):
            if item.id in looks.claims:
                return None
            fit = fit._replace(is_second=True)
        return None if fit is not None and self._would_delay(fit) else fit

    def _fit_through(self) -> Fit | None:
        """How it may start in the room that estimators keep for others, as far as it may use that."""
        item, runtime_ms, reservations = self.item, self.key.runtime_ms, self._reservations
        lent = reservations.lent(self.name)
        if not self._is_begun:
            passed = reservations.passed_by(self.rank[0], runtime_ms, self._cursor.now_ms)
            self._passes.passed[self.rank[0], runtime_ms] = passed
            self._passes.lent = lent
        through = reservations.through(item, self.rank, runtime_ms, self._cursor.now_ms)
        fit = self._left.can_admit_through(self.key.shape, through) if through else None
        if fit is None and not lent <= through:
            fit = self._left.can_admit_through(self.key.shape, through | lent, is_owner=True)
        return fit

    def _is_second(self, fit: Fit, looks: Looks) -> bool:
        """Whether displacing others in another flavor may go before it. Groups and growth displace nobody."""
        item = self.item
        if len(item.members) > 1 or item.is_growth or class_key(item) in looks.in_vain:
            return False
        return self._left.is_second(self.key.shape, fit, looks.fungibility)

    def ways_ever(self, shape: Shape) -> Sequence[Alternative]:
        """As `QueueHeadroom.ways_ever`."""
        return self._left.ways_ever(shape)

    def second(self) -> Waiter:
        """The head, which starts as it was found to fit unless others are displaced for it."""
        assert self.fit is not None
        ways, own = self._left.ways_beside(self.key.shape, self.fit)
        return Waiter(self.rank, self.item, ways, self.state.reservation, ways[own])

    def _block(self) -> None:
        """The head of a StrictFIFO queue is refused, and nobody may pass it."""
        cursor = self._cursor
        self.blocked = (cursor.key, cursor.item)
        cursor.pop()
        if cursor.is_aged:
            points = (next_point_ms(item, self.state.ageing, cursor.now_ms) for item in cursor.behind)
            self.changes_ms = min((at for at in points if at is not None), default=None)


_MAX_REFUSALS: Final = 4
_FOREVER: Final = float("inf")
