"""Reserving: which of those that find no room get a reservation, and when each could start. Pure.

Of each tree of queues and each flavor so many get one as their queue's ``depth`` allows, those first that
take no more than their queue owns, then by priority and deadline; each gives way to those before it. When one
can start is told in `shadow`.
"""

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import count
from typing import Final

from queue_dispatcher.cycle.earliest import Earliest
from queue_dispatcher.cycle.endings import Endings
from queue_dispatcher.cycle.items import Alternative, Item, Shape
from queue_dispatcher.cycle.kept_room import Kept, KeptRoom
from queue_dispatcher.cycle.lines import Lines
from queue_dispatcher.cycle.order import Rank
from queue_dispatcher.cycle.reservation import Reservation, Reservations, own_probe
from queue_dispatcher.cycle.shadow import Shadow, Shadows
from queue_dispatcher.cycle.waiter import Line, Waiter, flavors_of
from queue_dispatcher.ledger.cells import Cell, Charge
from queue_dispatcher.ledger.ledger import Ledger

MAX_RESERVATIONS: Final = 256
"""How many reservations there are at once."""


_ALIKE, _WHOLE = -2, -1
# When a line has its turn, by `Reserving._order`; which of the waiters, who are put in order, it is: `_WHOLE`
# while they are not, and `_ALIKE` while it is not known when it is at the soonest, but that it is before the
# rest of those alike; a number that no other has.
_Order = tuple[int, bool, Rank]
_Turn = tuple[int, bool, Rank, int, int, Sequence[tuple[_Order, Waiter]], Line, Iterator[Line]]


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
        # The ledger with what is reserved so far; None until somebody asks.
        self._held: Ledger | None = ledger
        self._shadows = Shadows(capacity, endings, now_ms)
        self._endings = endings
        self._earliest = earliest
        self._since = {one.item.id: one for one in before.made}
        self._queues_before = {one.item.queue for one in before.made}
        self._claims = claims
        self._places = {item: place for place, item in enumerate(claims)}
        self._given_up = {
            item: until for item, until in before.given_up.items() if until > now_ms and item not in claims
        }
        self._now_ms = now_ms
        self._of_flavor: dict[tuple[int, str], int] = {}
        # By tree, depth and shape, what `is_open` has found; until one of the former changes.
        self._open: dict[tuple[int, int, Shape], bool] = {}
        self._due: list[int] = list(self._given_up.values())
        # By item, who has got one in this cycle.
        self._waiters: dict[str, Waiter] = {}
        # By charge, the flavors that it is of.
        self._flavors_of: dict[Charge, frozenset[str]] = {}

    def reserve(self, lines: Iterable[Line], standing: Lines) -> Iterator[None]:
        """Make the reservations of those that wait, in steps. ``standing``: lines of other queues, in which
        nobody has a claim.

        A line is put in order when one of it may be the next, and left once none of it may get any: most are
        never looked into, nor are most of those that stand.
        """
        numbers = count()
        before = (line for queue in self._queues_before if (line := standing.get(queue)) is not None)
        turns = [self._whole(line, next(numbers)) for line in (*lines, *before)]
        for among in standing.alike():
            others = (line for _, line in among if line.known[0].item.queue not in self._queues_before)
            turns += self._next_of(others, next(numbers))
        heapq.heapify(turns)
        while turns:
            *_, place, number, waiters, line, rest = turns[0]
            first = line.known[0]
            if not self._has_claim(line) and self.is_closed(
                first.item.queue, line.flavors, first.policy.depth
            ):
                heapq.heappop(turns)
                continue
            yield
            if place == _ALIKE:
                heapq.heapreplace(turns, self._whole(line, next(numbers)))
                for turn in self._next_of(rest, number):
                    heapq.heappush(turns, turn)
                continue
            if place == _WHOLE:
                # No two have the same order, so waiters are never compared.
                waiters = sorted((self._order(one), one) for one in line.waiters)
            else:
                self._reserve(waiters[place][1])
            place += 1
            if place == len(waiters):
                heapq.heappop(turns)
            else:
                heapq.heapreplace(turns, (*waiters[place][0], place, number, waiters, line, rest))

    def _whole(self, line: Line, number: int) -> _Turn:
        return (*self._soonest(line), _WHOLE, number, (), line, iter(()))

    def _next_of(self, alike: Iterator[Line], number: int) -> list[_Turn]:
        """The turn of the next of them, if there is one."""
        line = next(alike, None)
        if line is None:
            return []
        return [(len(self._places), False, line.first, _ALIKE, number, (), line, alike)]

    def is_open(self, item: Item, depth: int) -> bool:
        """Whether it may get a reservation, or give one up, as far as depth goes; False is certain.

        Any of the flavors of its alternatives would do, whatever it takes besides.
        """
        if item.id in self._since or item.id in self._claims:
            return True
        root = self._ledger.tree.paths[item.queue][-1]
        asked = (root, depth, item.shape)
        found = self._open.get(asked)
        if found is None:
            found = self._open[asked] = any(
                all(self._of_flavor.get((root, flavor), 0) < depth for flavor in self._flavors(way))
                for part in item.shape.parts
                for one in part
                for way in (one, *one.places)
            )
        return found

    def reserve_late(self, waiter: Waiter) -> bool:
        """Make one for somebody who had room when the cycle began; whether it got one now."""
        if any(one.reservation.item.id == waiter.item.id for one in self.kept):
            return False
        self._held = None
        return self._reserve(waiter)

    def admitted(self, item: Item, rank: Rank, runtime_ms: int | None, way: Alternative) -> None:
        """The item is admitted, and about to be charged so."""
        kept = list(self.kept)
        place = next((at for at, one in enumerate(kept) if one.reservation.item.id == item.id), None)
        if place is not None:
            self._count(kept[place].root, kept[place].reservation.alternative, -1)
        self.kept.taken(item, rank, runtime_ms, way)
        self._shadows.admitted(item, runtime_ms, way)
        if place is not None and runtime_ms is not None and place + 1 < len(kept):
            self._plan_anew(item, way, kept[:place], kept[place + 1 :])

    def _plan_anew(self, item: Item, way: Alternative, ahead: Iterable[Kept], behind: Iterable[Kept]) -> None:
        """Those behind an item that starts gave way to it as if it never ended: they may start sooner."""
        held = self._ledger.fork()
        held.charge(item.queue, way.charge)
        for one in ahead:
            held.charge(one.reservation.item.queue, one.reservation.alternative.charge)
        cells = {cell for cell, _ in way.charge}
        for one in behind:
            before = one.reservation
            if not cells.isdisjoint(one.quota):
                now = self._shadows.kept(
                    held,
                    self._waiters[before.item.id],
                    before.alternative,
                    self._shadow(held, before.item, before.alternative),
                    before.since_ms,
                    before.expires_ms,
                    is_claimed=before.is_claimed,
                )
                self.kept.sooner(one, now)
            held.charge(before.item.queue, before.alternative.charge)

    @property
    def claims(self) -> AbstractSet[str]:
        """The items for which others are displaced."""
        return self._claims.keys()

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
        # For whom others go, their room is kept, however many there are.
        is_claimed = item.id in self._claims
        best = self._best(waiter, before, is_claimed=is_claimed)
        if best is None:
            return False
        way, shadow = best
        held = self._with_held()
        kept = self._shadows.kept(held, waiter, way, shadow, made_ms, expires_ms, is_claimed=is_claimed)
        self._count(kept.root, way, 1)
        self.kept.add(kept)
        self._waiters[item.id] = waiter
        self._hold(kept.reservation)
        self._due += [expires_ms, kept.reservation.drains_ms]
        return True

    def is_closed(self, queue: str, flavors: Collection[str], depth: int) -> bool:
        """Whether depth leaves nothing for anybody of a queue who may be charged to these flavors and has no
        claim, nor any of them may give one up.
        """
        if queue in self._queues_before:
            return False
        root = self._ledger.tree.paths[queue][-1]
        return all(self._of_flavor.get((root, flavor), 0) >= depth for flavor in flavors)

    def _soonest(self, line: Line) -> _Order:
        """No later than `_order` of anybody in the line."""
        if self._has_claim(line):
            return 0, False, line.first
        return len(self._places), self._borrows(line.known[0].item.queue, line.least), line.first

    def _has_claim(self, line: Line) -> bool:
        claims = self._claims
        return bool(claims) and line.pick is None and any(one.item.id in claims for one in line.known)

    def _order(self, waiter: Waiter) -> _Order:
        place = self._places.get(waiter.item.id, len(self._places))
        return place, self._borrows(waiter.item.queue, waiter.ways[0].charge), waiter.deadline

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

    def _with_held(self) -> Ledger:
        if self._held is None:
            self._held = self._ledger
            for one in self.kept:
                self._hold(one.reservation)
        return self._held

    def _hold(self, reservation: Reservation) -> None:
        if self._held is None:
            return
        if self._held is self._ledger:
            self._held = self._ledger.fork()
        self._held.charge(reservation.item.queue, reservation.alternative.charge)

    def _best(
        self, waiter: Waiter, before: Reservation | None, *, is_claimed: bool
    ) -> tuple[Alternative, Shadow] | None:
        """The way that comes about first; that of before where another is no sooner."""
        queue, depth = waiter.item.queue, waiter.policy.depth
        root = self._ledger.tree.paths[queue][-1]
        found: list[tuple[bool, int, bool, int, Alternative, Shadow]] = []
        for number, way in enumerate(waiter.ways):
            reserved = max((self._of_flavor.get((root, one), 0) for one in self._flavors(way)), default=0)
            if reserved >= depth and not is_claimed:
                continue
            shadow = self._shadow(self._with_held(), waiter.item, way)
            # What never ends by itself may be what is displaced for it.
            if shadow.is_possible or is_claimed:
                is_other = before is None or before.alternative.charge != way.charge
                starts_ms = shadow.starts_ms
                found.append((starts_ms is None, starts_ms or 0, is_other, number, way, shadow))
        # No two have the same number.
        return min(found)[4:] if found else None

    def _shadow(self, held: Ledger, item: Item, way: Alternative) -> Shadow:
        return self._shadows.of(held, item, way, self._earliest.get(own_probe(item, way)))

    def _count(self, root: int, way: Alternative, change: int) -> None:
        """There are so many more of a tree and the flavors of a way."""
        self._open.clear()
        for flavor in self._flavors(way):
            self._of_flavor[root, flavor] = self._of_flavor.get((root, flavor), 0) + change

    def _flavors(self, way: Alternative) -> frozenset[str]:
        found = self._flavors_of.get(way.charge)
        if found is None:
            found = self._flavors_of[way.charge] = flavors_of([way], self._ledger.tree.table)
        return found
