"""Reserving: which of those that find no room get a reservation, and when each could start. Pure.

Of each tree of queues and each flavor so many get one as their queue's ``depth`` allows, those first that
take no more than their queue owns, then by priority and deadline; each gives way to those before it. When one
can start is worked out cell by cell, as what runs gives back quota and room, and over the clusters by the
estimators' word on when there is room for it.
"""

from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from queue_dispatcher.api.reservation import ReservationPolicy
from queue_dispatcher.cycle.deadlines import by_deadline
from queue_dispatcher.cycle.earliest import Earliest
from queue_dispatcher.cycle.endings import Ending, Endings
from queue_dispatcher.cycle.items import Alternative, Item
from queue_dispatcher.cycle.kept_room import Kept, KeptRoom
from queue_dispatcher.cycle.order import Rank
from queue_dispatcher.cycle.reservation import Reservation, Reservations, Unknown, own_probe
from queue_dispatcher.ledger.cells import Cell, Charge
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.ledger.tree import UNLIMITED

MAX_RESERVATIONS: Final = 256
"""How many reservations there are at once."""


class Waiter(NamedTuple):
    """An item that finds no room and has waited long enough. ``ways``: how it may be charged, the first
    preferred; ``policy``: that of its queue. ``starts_in``: how it starts all the same, one of the ways,
    unless others are displaced for it in another one, which goes before; None where it finds no room.
    """

    rank: Rank
    item: Item
    ways: Sequence[Alternative]
    policy: ReservationPolicy
    starts_in: Alternative | None = None


class _Plan(NamedTuple):
    """How one way would come about. ``is_possible``: whether it would once all has ended that ends."""

    starts_ms: int | None
    is_possible: bool
    kept: Kept


class Reserving:
    """Makes the reservations of one cycle: `reserve` before anything is admitted, then `reserve_late` for
    those that lose their room to what is. ``kept`` is what they leave to others.

    ``ledger``: that of the cycle, which it charges with what it admits. ``capacity``: by cell, what there is
    in all, where that is known. ``claims``: the items for which others are displaced, in the order in which
    that began, as each was reckoned with those before it, and until when they have a claim to what those
    leave, epoch milliseconds: so long they keep it, whatever their queue allows.
    """

    def __init__(
        self,
        ledger: Ledger,
        capacity: Mapping[Cell, int],
        endings: Endings,
        earliest: Mapping[str, Earliest],
        before: Reservations,
        claims: Mapping[str, int],
        now_ms: int,
    ) -> None:
        self.kept = KeptRoom(ledger, now_ms)
        self._ledger = ledger
        # With what is reserved so far; a fork once anything is.
        self._held = ledger
        self._capacity = capacity
        self._endings = endings
        self._earliest = earliest
        self._since = {one.item.id: one for one in before.made}
        self._claims = claims
        self._places = {item: place for place, item in enumerate(claims)}
        self._given_up = {
            item: until for item, until in before.given_up.items() if until > now_ms and item not in claims
        }
        self._now_ms = now_ms
        self._of_flavor: dict[tuple[int, str], int] = {}
        # By cell, what was admitted in this cycle and is known to end.
        self._ending: dict[Cell, list[Ending]] = {}
        # By cell and queue, what was admitted in this cycle and ends nobody knows when.
        self._begun: dict[Cell, dict[str, int]] = {}
        self._due: list[int] = list(self._given_up.values())

    def reserve(self, waiters: Iterable[Waiter]) -> None:
        """Make the reservations of those that wait."""
        for waiter in sorted(waiters, key=self._order):
            self._reserve(waiter)

    def reserve_late(self, waiter: Waiter) -> bool:
        """Make one for somebody who had room when the cycle began; whether it got one now."""
        if any(one.reservation.item.id == waiter.item.id for one in self.kept):
            return False
        self._held = self._ledger
        for one in self.kept:
            self._hold(one.reservation)
        return self._reserve(waiter)

    def admitted(self, item: Item, rank: Rank, runtime_ms: int | None, charge: Charge) -> None:
        """The item is admitted, charged so."""
        for one in self.kept:
            if one.reservation.item.id == item.id:
                for flavor in self._flavors(one.reservation.alternative):
                    self._of_flavor[one.root, flavor] -= 1
        self.kept.taken(item.id, item.queue, rank, runtime_ms, charge)
        for cell, amount in charge:
            if runtime_ms is None:
                begun = self._begun.setdefault(cell, {})
                begun[item.queue] = begun.get(item.queue, 0) + amount
                continue
            ending = Ending(self._now_ms + runtime_ms, item.id, item.queue, amount)
            insort(self._ending.setdefault(cell, []), ending)

    @property
    def reservations(self) -> Reservations:
        """As they stand now."""
        return Reservations(tuple(one.reservation for one in self.kept), self._given_up)

    @property
    def next_due_ms(self) -> int | None:
        """When time alone changes them, epoch milliseconds; None if it never does."""
        return min((at for at in self._due if at > self._now_ms), default=None)

    def _reserve(self, waiter: Waiter) -> bool:
        item, policy = waiter.item, waiter.policy
        if item.id in self._given_up or len(self.kept) == MAX_RESERVATIONS:
            return False
        before = self._since.get(item.id)
        made_ms = before.since_ms if before is not None else self._now_ms
        expires_ms = max(made_ms + policy.hold_timeout_ms, self._claims.get(item.id, 0))
        if expires_ms <= self._now_ms:
            self._given_up[item.id] = self._now_ms + policy.hold_timeout_ms
            self._due.append(self._now_ms + policy.hold_timeout_ms)
            return False
        plan = self._best(waiter, before, made_ms, expires_ms)
        if plan is None:
            return False
        self.kept.add(plan.kept)
        self._hold(plan.kept.reservation)
        self._due += [expires_ms, plan.kept.reservation.drains_ms]
        return True

    def _order(self, waiter: Waiter) -> tuple[int, bool, Rank]:
        return (
            self._places.get(waiter.item.id, len(self._places)),
            self._borrows(waiter.item.queue, waiter.ways[0].charge),
            by_deadline(waiter.rank, waiter.item, waiter.policy),
        )

    def _borrows(self, queue: str, charge: Charge) -> bool:
        """Whether it takes more than its queue owns and what never ends leaves.

        By what runs now, what is large would borrow in any busy queue, and what is small would go first.
        """
        tree = self._ledger.tree
        for cell, amount in charge:
            stays = self._ledger.used(queue, cell) - self._endings.of_queue(cell, queue)
            if stays + amount > tree.limits(cell).nominal[tree.paths[queue][0]]:
                return True
        return False

    def _hold(self, reservation: Reservation) -> None:
        if self._held is self._ledger:
            self._held = self._ledger.fork()
        self._held.charge(reservation.item.queue, reservation.alternative.charge)

    def _best(
        self, waiter: Waiter, before: Reservation | None, made_ms: int, expires_ms: int
    ) -> _Plan | None:
        """The way that comes about first; that of before where another is no sooner."""
        queue, depth = waiter.item.queue, waiter.policy.depth
        root = self._ledger.tree.paths[queue][-1]
        # For whom others go, their room is kept, however many there are.
        is_claimed = waiter.item.id in self._claims
        plans: list[tuple[bool, int, bool, int, _Plan]] = []
        for number, way in enumerate(waiter.ways):
            reserved = max((self._of_flavor.get((root, one), 0) for one in self._flavors(way)), default=0)
            if reserved >= depth and not is_claimed:
                continue
            plan = self._plan(waiter, way, made_ms, expires_ms)
            # What never ends by itself may be what is displaced for it.
            if plan.is_possible or is_claimed:
                is_other = before is None or before.alternative.charge != way.charge
                plans.append((plan.starts_ms is None, plan.starts_ms or 0, is_other, number, plan))
        if not plans:
            return None
        best = min(plans, key=lambda one: one[:4])[-1]
        for flavor in self._flavors(best.kept.reservation.alternative):
            self._of_flavor[root, flavor] = self._of_flavor.get((root, flavor), 0) + 1
        return best

    def _flavors(self, way: Alternative) -> set[str]:
        return {self._ledger.tree.table.name(cell).flavor for cell, _ in way.charge}

    def _plan(self, waiter: Waiter, way: Alternative, made_ms: int, expires_ms: int) -> _Plan:
        item = waiter.item
        path = self._ledger.tree.paths[item.queue]
        drains_ms = since_ms(item) + waiter.policy.drain_after_ms
        if item.id in self._claims:
            # What others were displaced for is for nobody else.
            drains_ms = self._now_ms
        earliest = self._earliest.get(own_probe(item, way))
        if earliest is not None and way.clusters is not None and earliest.cluster not in way.clusters:
            earliest = None
        cluster = earliest.cluster if earliest is not None else ""
        starts_ms: int | None = self._now_ms
        unknown: Unknown | None = None
        is_possible = True
        later = self._held
        # By cell of which it lacks some, how many endings have given back.
        short: dict[Cell, int] = {}
        for cell, amount in way.charge:
            if self._left(self._held, path, cell, has_cluster=bool(cluster)) >= amount:
                continue
            if later is self._held:
                later = self._held.fork()
            at_ms, can, short[cell] = self._starts(later, path, cell, amount, has_cluster=bool(cluster))
            is_possible = is_possible and can
            starts_ms = None if at_ms is None or starts_ms is None else max(starts_ms, at_ms)
        if starts_ms is None:
            unknown = Unknown.ENDINGS
        if earliest is not None:
            starts_ms = (
                None if earliest.at_ms is None or starts_ms is None else max(starts_ms, earliest.at_ms)
            )
            if earliest.at_ms is None:
                unknown = unknown or Unknown.CLUSTER
        elif not short:
            # Quota and amounts would do: the nodes are in the way, and nobody says when they are not.
            starts_ms, unknown = None, Unknown.NODES
        is_hard = starts_ms is None or self._now_ms >= drains_ms
        # Whatever has been declared, once it drains what it does not lack it is not to lack either.
        ending = short if is_hard else {cell: short.get(cell, 0) for cell, _ in way.charge}
        if starts_ms is not None and ending:
            if later is self._held:
                later = self._held.fork()
            for cell, place in ending.items():
                self._end(later, cell, place, starts_ms)
        quota, free = {}, {}
        for cell, amount in way.charge:
            nothing = is_hard and cell in short
            quota[cell] = 0 if nothing else max(0, later.available_at(path, cell) - amount)
            if not cluster and cell in self._capacity:
                free[cell] = 0 if nothing else max(0, self._free(later, cell) - amount)
        reservation = Reservation(
            item,
            waiter.rank,
            way,
            made_ms,
            drains_ms,
            starts_ms,
            expires_ms,
            unknown,
            frozenset(short),
            cluster,
            item.id in self._claims,
        )
        borrows = later.borrows_after(item.queue, way.charge)
        return _Plan(starts_ms, is_possible, Kept(reservation, path[-1], quota, free, borrows))

    def _starts(
        self, ledger: Ledger, path: tuple[int, ...], cell: Cell, amount: int, *, has_cluster: bool
    ) -> tuple[int | None, bool, int]:
        """When so much is left as running workloads end, None where nobody knows; whether it ever is; and how
        many of the known endings it takes, which have given back.
        """
        known, place = self._known(cell), 0
        while (lacking := amount - self._left(ledger, path, cell, has_cluster=has_cluster)) > 0:
            back: dict[str, int] = {}
            # Nothing less could do, whoever it is that gives it back.
            while lacking > 0 and place < len(known):
                ending = known[place]
                back[ending.queue] = back.get(ending.queue, 0) + ending.amount
                lacking -= ending.amount
                place += 1
            if not back:
                break
            _give_back(ledger, cell, back)
        else:
            return (max(self._now_ms, known[place - 1].at_ms) if place else self._now_ms), True, place
        for unknown in (self._endings.unknown(cell), self._begun.get(cell, {})):
            _give_back(ledger, cell, unknown)
        return None, self._left(ledger, path, cell, has_cluster=has_cluster) >= amount, place

    def _end(self, ledger: Ledger, cell: Cell, place: int, until_ms: int) -> None:
        """Give back what ends by then as well, from a place on."""
        known = self._known(cell)
        for ending in known[place : bisect_right(known, until_ms, key=lambda one: one.at_ms)]:
            ledger.give_back(ending.queue, ((cell, ending.amount),))

    def _known(self, cell: Cell) -> Sequence[Ending]:
        own = self._ending.get(cell)
        known = self._endings.known(cell)
        return sorted([*known, *own]) if own else known

    def _left(self, ledger: Ledger, path: tuple[int, ...], cell: Cell, *, has_cluster: bool) -> int:
        """What quota leaves, and what there is; where is for the estimators to say if they do."""
        left = ledger.available_at(path, cell)
        return left if has_cluster else min(left, self._free(ledger, cell))

    def _free(self, ledger: Ledger, cell: Cell) -> int:
        return self._capacity.get(cell, UNLIMITED) - ledger.totals.get(cell, 0)


def _give_back(ledger: Ledger, cell: Cell, amounts: Mapping[str, int]) -> None:
    for queue, amount in amounts.items():
        ledger.give_back(queue, ((cell, amount),))


def since_ms(item: Item) -> int:
    """Since when an item has been waiting for room, epoch milliseconds: what backs off does not."""
    return max(item.enqueued_ms, item.due_ms)
