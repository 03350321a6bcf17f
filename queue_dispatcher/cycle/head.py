"""QueueHead: the item with which a queue competes, and what is kept of having found it.

The head of a queue is the first item, in the queue's order, of those that have room: a workload that cannot
start neither speaks for its queue nor counts in its share.

Most queues have the same head in one cycle as in the one before, and most of a full fleet have none. So a
head is kept until something that it was found by has changed: what waits in the queue and how the queue is
set up (`PendingQueue.version`, `QueueState`), the time, or what `QueueHeadroom` has read.
"""

import heapq
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from queue_dispatcher.api.cluster_queue import QueueingStrategy
from queue_dispatcher.cycle.actions import ClassKey, class_key
from queue_dispatcher.cycle.bounds import Bounds
from queue_dispatcher.cycle.deadlines import after_ms
from queue_dispatcher.cycle.flows import Flows
from queue_dispatcher.cycle.headroom import Fit, Headroom
from queue_dispatcher.cycle.items import Item, Shape
from queue_dispatcher.cycle.order import Rank, next_point_ms, rank
from queue_dispatcher.cycle.pending import PendingClass
from queue_dispatcher.cycle.queue_headroom import QueueHeadroom
from queue_dispatcher.cycle.refused import Refused
from queue_dispatcher.cycle.reservation import NO_RESERVATIONS, Reservation, Reservations
from queue_dispatcher.cycle.reserving import Reserving
from queue_dispatcher.cycle.snapshot import Looks, QueueState
from queue_dispatcher.cycle.waiter import Line, Waiter, since_ms
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
        "_ahead",
        "_aside",
        "_at_ms",
        "_bounds",
        "_headroom",
        "_holding",
        "_is_begun",
        "_is_strict",
        "_is_touched",
        "_left",
        "_looked_into",
        "_moved",
        "_next",
        "_order",
        "_passes",
        "_place",
        "_ranks",
        "_refusals",
        "_reservations",
        "_share",
        "_short",
        "_taken",
        "_until_ms",
        "_version",
        "blocked",
        "changes_ms",
        "due_ms",
        "first",
        "fit",
        "found",
        "is_done",
        "item",
        "key",
        "looked",
        "name",
        "path",
        "priority",
        "rank",
        "refused",
        "state",
    )

    def __init__(self, state: QueueState, headroom: Headroom, bounds: Bounds) -> None:
        """``bounds``: those of its tree, lowered to within which it stays what it is."""
        self.name = state.name
        self.path = headroom.ledger.tree.paths[state.name]
        self.state = state
        self.priority = state.priority
        self.found: Fit | None = None
        self.fit: Fit | None = None
        self.blocked: tuple[ClassKey, Item] | None = None
        self.changes_ms: int | None = None
        self.due_ms: int | None = None
        self.looked = 0
        self._left = QueueHeadroom(headroom, state.name)
        self._headroom = headroom
        self._bounds = bounds
        # What the head was found by, beside what was read of the headroom, and how.
        self._version: object = None
        self._at_ms = 0
        self._until_ms: float = _FOREVER
        self.first: Charge = ()
        self._order: Sequence[PendingClass] = ()
        self._ranks: list[Rank] = []
        self._ahead = 0
        self._next = 0
        self._place = 0
        self._moved: list[tuple[Rank, int, PendingClass]] = []
        # The same as it was when the head was found.
        self._aside: list[tuple[Rank, int, PendingClass]] = []
        # The classes of which one was refused, and others are looked at.
        self._looked_into: set[ClassKey] = set()
        # By line, how much its share has risen in this cycle.
        self._taken: dict[str, int] = {}
        # Shapes that lack quota or capacity, of which there is only less until the cycle ends.
        self._short: set[Shape] = set()
        self._is_strict = False
        self._is_begun = False
        # The version of the queue's balances, and its share with what `found` is charged.
        self._share: tuple[int, int] | None = None
        self._reservations = NO_RESERVATIONS
        self._passes = Passes()
        # By how many classes were refused, who they are, as others find room and lose it again.
        self._refusals: dict[int, Refused] = {}
        self._holding: Sequence[Item] = ()
        self.refused = Refused(state, self._left, (), (), is_aged=False)
        self._restart()

    def is_kept(
        self, state: QueueState, headroom: Headroom, flows: Flows, reservations: Reservations, now_ms: int
    ) -> bool:
        """Whether the head plainly stays as it was found, as most do; see `keep_or_find`."""
        if (
            self.state is not state
            or self._version is not state.pending.version
            or not self._at_ms <= now_ms < self._until_ms
            or not self._left.reads.is_quiet(self.first, self._bounds, flows)
        ):
            return False
        before = self._reservations
        if before is not reservations:
            if self._passes.are_any or reservations.of(self.name) or before.of(self.name):
                return False
            self._reservations = reservations
        self._headroom = headroom
        self._at_ms = now_ms
        return True

    def keep_or_find(
        self, state: QueueState, headroom: Headroom, reservations: Reservations, now_ms: int
    ) -> bool:
        """Before anything is taken in a cycle: the head stays as it was found, or is looked for anew.

        Answers whether it was looked for, which it is whenever what waits, or its order, has changed.
        """
        pending, left, bounds = state.pending, self._left, self._bounds
        is_line_same = (
            self._version is pending.version
            and (self.state is state or self.state == state)
            and self._at_ms <= now_ms < self._until_ms
        )
        passes_same = self._reservations is reservations or self._passes_the_same(reservations, now_ms)
        self._reservations = reservations
        self._headroom = headroom
        # Equal states may differ in what LocalQueues have used.
        self.state = self.refused.state = state
        self._at_ms = now_ms
        is_possible_same = left.is_possible_the_same(headroom)
        is_same = is_line_same and passes_same and is_possible_same
        if is_same and left.reads.is_told_the_same(headroom.flows):
            if left.reads.is_within(self.first, bounds):
                return False
            if left.reads.is_unchanged(headroom, self.first):
                left.reads.slack(self.first, bounds)
                return False
        self._look_for(is_line_same=is_line_same)
        self._is_touched = False
        self._share = None
        left.reads.slack(self.first, bounds)
        return True

    def _look_for(self, *, is_line_same: bool) -> None:
        """Find the head anew."""
        now_ms, state = self._at_ms, self.state
        if not is_line_same:
            self._version = state.pending.version
            self._order_classes(now_ms)
        are_waiters_same = self._left.look_anew(self._headroom) and is_line_same
        self._restart()
        self._passes = Passes()
        self.found = self._find()
        self._ahead, self._aside = self._next, self._moved.copy()
        held = (state.pending.get(one.item.id) for one in self._reservations.of(self.name))
        holding = [item for item in held if item is not None and item.due_ms <= now_ms]
        if not are_waiters_same or self._holding != holding:
            self._holding = holding
            self._refusals.clear()
        self._note_refused()
        self.first = self.found.alternative.charge if self.found is not None else ()

    def _note_refused(self) -> None:
        refused = self._refusals.get(self._ahead)
        if refused is None:
            if len(self._refusals) == _MAX_REFUSALS:
                self._refusals.clear()
            refused = self._refusals[self._ahead] = Refused(
                self.state, self._left, self._order[: self._ahead], self._holding, is_aged=bool(self._ranks)
            )
        refused.state = self.state
        self.refused = refused

    def _passes_the_same(self, reservations: Reservations, now_ms: int) -> bool:
        """Whether others have reservations now than when it was found, and that changes nothing for it."""
        passes = self._passes
        if reservations.of(self.name) or self._reservations.of(self.name):
            return False
        if passes.lent is not None and reservations.lent(self.name) != passes.lent:
            return False
        return all(
            reservations.passed_by(priority, runtime_ms, now_ms) == passed
            for (priority, runtime_ms), passed in passes.passed.items()
        )

    def _return(self) -> None:
        """To where it was when it was found."""
        self._restart()
        self._next, self._moved = self._ahead, self._aside.copy()
        self._looked_into.update(one.key for *_, one in self._aside)
        self._peek()

    def due_waiters(self, headroom: Headroom, now_ms: int, claims: AbstractSet[str]) -> Line | None:
        """Those that get reservations by now, before anything is taken; see `Refused.due`."""
        return self.refused.due(headroom, now_ms, claims, self._pick_due)

    def _pick_due(self) -> Sequence[Waiter]:
        return self.refused.picked(self._headroom, self._at_ms)

    def preemptors(self, headroom: Headroom) -> Sequence[Waiter]:
        """Those that may have others displaced, before anything is taken, the first first."""
        return self.refused.preemptors(headroom, self._at_ms)

    def _reserve_late(self) -> None:
        """The head has lost its room in this cycle: it gets a reservation if it has waited long enough."""
        item, policy = self.item, self.state.reservation
        waited_ms = self._at_ms - since_ms(item)
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
            # The order is the same, and what each has used is not.
            self._ranks = [self._rank(one.items[0]) for one in self._order]
            self._peek()

    def end(self) -> None:
        """The cycle has ended, and the head is again as it was before."""
        if self._is_touched:
            self._return()
        self._is_begun = False

    def hold(self, headroom: Headroom) -> None:
        """What the blocked head of a StrictFIFO queue waits for of the queue's own quota, nobody may borrow.

        So Kueue does (pkg/scheduler, v0.20), unless the queue could take it back.
        """
        if self.blocked is None or self.state.preemption.reclaims or len(self.path) == 1:
            return
        charge = self._left.owned_and_short(self.blocked[0].shape, headroom)
        if charge:
            headroom.hold(self.name, charge)

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
        return self.state.pending.least(self._at_ms)

    def look(self) -> Fit | None:
        """The first item that still has room becomes the head; None once there is none."""
        changes = self._headroom.changes
        if self.looked != changes:
            self.looked = changes
            if self._is_still_found():
                self.fit = self.found
            else:
                self.fit = None if self.is_done or self._is_held_back() else self._find()
        return self.fit

    def _is_still_found(self) -> bool:
        """Whether the head is what was found, as nothing has been taken and no reservation refuses it."""
        headroom, found = self._headroom, self.found
        if found is None or self._is_touched or headroom.is_taken or self.state.sharing is not None:
            return False
        reserving = headroom.reserving
        return reserving is None or not reserving.kept or self._refusing(reserving, found) is None

    def _refusing(self, reserving: Reserving, fit: Fit) -> Reservation | None:
        """The reservation that the head would delay if it started so."""
        return reserving.kept.refusing(
            self.item.id, self.name, self.rank, self.key.runtime_ms, fit.alternative
        )

    def _is_held_back(self) -> bool:
        """Whether quota and reservations leave nobody even the least that any of them needs, nor are there
        more to get.

        This only saves asking each of them, as of many queues nobody passes for as long as they are full.
        """
        reserving, least = self._headroom.reserving, self.least
        if reserving is None or not least or self._is_strict or not self._peek():
            return False
        having = [charge for charge in least if not self._left.refuses((charge,))]
        if having and not reserving.kept.refuses_all(self.name, self.rank, having):
            return False
        return not self.state.reserves or self._is_closed(reserving)

    def _is_closed(self, reserving: Reserving) -> bool:
        """Whether there are no reservations left for any of them but those with a claim."""
        table = self._headroom.ledger.tree.table
        flavors = {table.name(cell).flavor for cell in self.state.pending.backlog}
        return reserving.is_closed(self.name, flavors, self.state.reservation.depth)

    @property
    def may_reserve(self) -> bool:
        """Whether any of them may get a reservation by losing its room; False is certain."""
        reserving = self._headroom.reserving
        if not self._is_begun or not self.state.reserves or reserving is None:
            return False
        return not self._is_closed(reserving) or self.state.pending.has_any(reserving.claims)

    def move_up(self) -> bool:
        """The head was admitted, and the next of its class takes its place; whether all of it have been.

        Where LocalQueues share the queue, its own goes back by what it has got.
        """
        moved = self._pop()
        if self.state.sharing is not None and self.fit is not None:
            line, charge = self.item.line, self.fit.alternative.charge
            self._taken[line] = self._taken.get(line, 0) + self.state.sharing.after(line, charge)
        place = self._place + 1
        self.looked = -1
        if moved.key in self._looked_into:
            self._look_into(moved, place)
            return False
        if place == len(moved.items):
            return True
        heapq.heappush(self._moved, (self._rank(moved.items[place]), place, moved))
        return False

    def _look_into(self, refused: PendingClass, place: int) -> None:
        """The first of a class was refused, and so would be those like it, but for whom others are displaced:
        what they leave is kept for one of them and is not for all.
        """
        if not (own := self._reservations.of(self.name)):
            return
        made = (one.item for one in own if one.is_claimed)
        claimed = {item.id for item in made if class_key(item) == refused.key}
        if not claimed:
            return
        for at in range(place, len(refused.items)):
            if refused.items[at].id in claimed:
                self._looked_into.add(refused.key)
                heapq.heappush(self._moved, (self._rank(refused.items[at]), at, refused))
                return

    def _rank(self, item: Item) -> Rank:
        sharing = self.state.sharing
        if sharing is None:
            return rank(item, self.state.ageing, self._at_ms)
        shares = sharing.shares
        if item.line in self._taken:
            shares = {item.line: shares.get(item.line, 0) + self._taken[item.line]}
        return rank(item, self.state.ageing, self._at_ms, shares)

    def pass_over(self, keeps: Charge) -> None:
        """The head is passed over, and the next takes its place; in a StrictFIFO queue nobody may.

        What it ``keeps`` those behind it have to leave.
        """
        self._left.keep(keeps)
        self._refuse(blocks=True)
        self.looked = -1

    def stop(self) -> None:
        """It does not compete any more in this cycle."""
        self.is_done = self._is_touched = True
        self.looked = -1

    def _order_classes(self, now_ms: int) -> None:
        pending, ageing = self.state.pending, self.state.ageing
        self.priority = self.state.priority
        self._is_strict = self.state.strategy is QueueingStrategy.STRICT_FIFO
        self.due_ms = pending.next_due_ms(now_ms)
        self._order = pending.classes(now_ms)
        self._ranks = []
        points_ms = [self.due_ms]
        is_aged = bool(ageing.cap or any(one.key.ageing for one in self._order))
        if is_aged or self.state.sharing is not None:
            ranked = sorted((self._rank(one.items[0]), one) for one in self._order)
            self._ranks, self._order = [first for first, _ in ranked], [one for _, one in ranked]
        if is_aged:
            points_ms += (next_point_ms(one.items[0], ageing, now_ms) for one in self._order)
        self._until_ms = min((at for at in points_ms if at is not None), default=_FOREVER)

    def _restart(self) -> None:
        self._is_touched = False
        self._next = 0
        self._place = 0
        self._looked_into.clear()
        # Classes whose first items were admitted in this cycle, by how the next of them stands: a heap.
        self._moved = []
        self._taken = {}
        self._short.clear()
        self.is_done = False
        self.blocked = None
        self.changes_ms = None

    def _find(self) -> Fit | None:
        may_reserve: bool | None = None
        while self.blocked is None and self._peek():
            fit = self._fit()
            if fit is not None:
                return fit
            if may_reserve is None:
                may_reserve = self.may_reserve
                if not (self._is_strict or may_reserve) and self._left.refuses(self.least):
                    # Not even the least that any of them needs has room.
                    self._next, self._moved = len(self._order), []
                    self._is_touched = True
                    return None
            if may_reserve:
                self._reserve_late()
            is_first = self._is_strict and self._left.can_ever_admit(self.key.shape)
            refused, place = self._refuse(blocks=is_first), self._place
            if not is_first:
                self._look_into(refused, place + 1)
            if is_first and self._is_begun:
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
        reserving = self._headroom.reserving if self._is_begun else None
        if fit is None or reserving is None or not reserving.kept:
            return fit
        return fit if self._refusing(reserving, fit) is None else None

    def _fit_through(self) -> Fit | None:
        """How it may start in the room that estimators keep for others, as far as it may use that."""
        item, runtime_ms, reservations = self.item, self.key.runtime_ms, self._reservations
        lent = reservations.lent(self.name)
        if not self._is_begun:
            passed = reservations.passed_by(self.rank[0], runtime_ms, self._at_ms)
            self._passes.passed[self.rank[0], runtime_ms] = passed
            self._passes.lent = lent
        through = reservations.through(item.id, self.name, self.rank, runtime_ms, self._at_ms)
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

    def second(self) -> Waiter:
        """The head, which starts as it was found to fit unless others are displaced for it."""
        assert self.fit is not None
        ways, own = self._left.ways_beside(self.key.shape, self.fit)
        return Waiter(self.rank, self.item, ways, self.state.reservation, ways[own])

    def _peek(self) -> bool:
        """Make the first item that was not refused the head; False if there is none."""
        while self._peek_at():
            now = self._rank(self.item) if self.key.line in self._taken else self.rank
            if now == self.rank:
                return True
            # Others of its LocalQueue have started since it was ranked.
            heapq.heappush(self._moved, (now, self._place, self._pop()))
        return False

    def _peek_at(self) -> bool:
        """The first as it was ranked last."""
        at, order = self._next, self._order
        if at < len(order):
            one = order[at]
            first = self._ranks[at] if self._ranks else one.rank
            if not self._moved or first < self._moved[0][0]:
                self.rank, self._place, self.item, self.key = first, 0, one.items[0], one.key
                return True
        elif not self._moved:
            return False
        self.rank, self._place, one = self._moved[0]
        self.item, self.key = one.items[self._place], one.key
        return True

    def _pop(self) -> PendingClass:
        """Take out the class that `_peek` found."""
        self._is_touched = True
        if self._moved and self._moved[0][0] == self.rank:
            return heapq.heappop(self._moved)[2]
        self._next += 1
        return self._order[self._next - 1]

    def _refuse(self, *, blocks: bool) -> PendingClass:
        """Take the head out with its class, which is answered."""
        refused = self._pop()
        if not blocks or not self._is_strict:
            return refused
        self.blocked = (self.key, self.item)
        if self._ranks:
            behind = [one.items[0] for one in self._order[self._next :]]
            behind += [one.items[place] for _, place, one in self._moved]
            points = (next_point_ms(item, self.state.ageing, self._at_ms) for item in behind)
            self.changes_ms = min((at for at in points if at is not None), default=None)
        return refused


_MAX_REFUSALS: Final = 4
_FOREVER = float("inf")
