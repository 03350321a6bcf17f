"""Refused: who found no room in a queue, and may get reservations or have others displaced.

A full fleet refuses the same classes in every cycle, and few of those in them get anything. So it is found
out only as far as somebody asks, and stays until other classes are refused, or could ever start.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from queue_dispatcher.cycle.deadlines import after_ms, by_deadline
from queue_dispatcher.cycle.headroom import Headroom
from queue_dispatcher.cycle.items import Alternative, Item
from queue_dispatcher.cycle.order import NOT_SHARED, Rank, next_point_ms, rank
from queue_dispatcher.cycle.pending import PendingClass
from queue_dispatcher.cycle.queue_headroom import QueueHeadroom
from queue_dispatcher.cycle.snapshot import QueueState
from queue_dispatcher.cycle.waiter import Line, Waiter, flavors_of, line_of, rank_of, since_ms
from queue_dispatcher.ledger.cells import CellTable

MAX_WAITING_CLASSES: Final = 16
"""Of how many classes that were refused the first may get a reservation."""
_SPARE: Final = 4
"""So many more of a queue are tried than may have one, as some of those before them get none."""
_FOREVER: Final = float("inf")


class Refused:
    """Those of a queue, before anything is taken. ``waits_ms``: when the first may get a reservation;
    ``may_displace``: whether any may have others displaced; ``state``: that of the queue in this cycle.

    ``classes``: those refused; ``holding``: the items that have reservations. Who has one keeps it until it
    starts, also while it is asked about, or others have their turns first: what is kept for it is what it
    starts in. ``is_aged``: whether time changes the order.
    """

    __slots__ = (
        "_all_due_ms",
        "_displacing",
        "_first",
        "_firsts_of",
        "_holding",
        "_is_aged",
        "_is_found",
        "_lacking",
        "_left",
        "_line",
        "_outline",
        "_picked_until_ms",
        "_preemptors",
        "_refused",
        "_waiters",
        "_waiting",
        "may_displace",
        "state",
        "waits_ms",
    )

    def __init__(
        self,
        state: QueueState,
        left: QueueHeadroom,
        classes: Sequence[PendingClass],
        holding: Sequence[Item],
        *,
        is_aged: bool,
    ) -> None:
        self.state = state
        self._left = left
        self._is_aged = is_aged
        self._waiters: Sequence[Waiter] = ()
        self._refused: Sequence[PendingClass] = ()
        self._holding: Sequence[Item] = ()
        # Those of which waiters are picked, each with how it may be charged, and until when the picked ones
        # stay the same.
        self._waiting: Sequence[tuple[Item, Sequence[Alternative]]] = ()
        self._picked_until_ms: float = _FOREVER
        # Of those that wait, who was refused.
        self._lacking: frozenset[str] = frozenset()
        # The first of each class of them, and those that may have others displaced.
        self._firsts_of: frozenset[str] = frozenset()
        self._displacing: Sequence[Waiter] = ()
        self._all_due_ms = 0
        self._line: Line | None = None
        self._outline: Line | None = None
        self._preemptors: Sequence[Waiter] | None = None
        self._first: Rank | None = None
        self.waits_ms: float = _FOREVER
        self.may_displace = state.may_displace
        if state.reserves or self.may_displace:
            self._refused, self._holding = _foremost_classes(classes, state), holding
        self._is_found = not (self._refused or self._holding)
        if state.reserves:
            few = (item for one in self._refused for item in self._soonest(one))
            able = (item for item in (*few, *holding) if left.ways_ever(item.shape))
            self.waits_ms = min((_reserved_ms(item, state) for item in able), default=_FOREVER)

    def due(
        self,
        headroom: Headroom,
        now_ms: int,
        claims: AbstractSet[str],
        pick: Callable[[], Sequence[Waiter]],
    ) -> Line | None:
        """Those that get reservations by now: who has waited long enough, and whoever has a claim, also while
        it is asked about. None where nobody does. ``pick`` answers as `picked` at the time when it is asked.
        """
        state = self.state
        reserves = state.reserves and self.waits_ms <= now_ms
        among = claims if state.pending.has_any(claims) else ()
        claimed = [item for one in among if (item := state.pending.get(one)) is not None]
        if reserves and not claimed:
            outline = self._outlined(headroom, now_ms, pick)
            if outline is not None:
                return outline
        line = self._found(headroom, now_ms) if reserves else None
        if not claimed and (line is None or self._all_due_ms <= now_ms):
            return line
        due = [one for one in self._due(now_ms) if one.item.id not in claims] if line is not None else []
        if claimed:
            self._left.begin(headroom)
        shares = state.shares
        due += [
            one for item in claimed if item.due_ms <= now_ms for one in self._waiter(item, now_ms, shares)
        ]
        return line_of(due, headroom.ledger.tree.table)

    def picked(self, headroom: Headroom, now_ms: int) -> Sequence[Waiter]:
        """Those that get reservations by now, where nobody has a claim."""
        self._found(headroom, now_ms)
        return self._due(now_ms)

    def first_preemptor(self, headroom: Headroom, now_ms: int) -> Rank | None:
        """No later than the rank of anybody that may have others displaced; None where nobody may."""
        if not self.may_displace or not self._refused:
            return None
        if self._is_aged:
            found = self.preemptors(headroom, now_ms)
            return found[0].rank if found else None
        if self._first is None:
            self._first = min(one.rank for one in self._refused)
        return self._with_least(self._first)

    def preemptors(self, headroom: Headroom, now_ms: int) -> Sequence[Waiter]:
        """Those that may have others displaced, the first first."""
        if self._preemptors is not None and now_ms < self._picked_until_ms and self.state.sharing is None:
            return self._preemptors
        if not self.may_displace or self._found(headroom, now_ms) is None:
            return ()
        if self._preemptors is None:
            self._preemptors = sorted(self._displacing, key=rank_of)
        return self._preemptors

    def _soonest(self, one: PendingClass) -> Sequence[Item]:
        """Those of a class of whom one may get a reservation first: its first, unless that has backed off."""
        first = one.items[0]
        return one.items[: 1 if first.due_ms <= first.enqueued_ms else self._most]

    @property
    def _most(self) -> int:
        """Of how many of a class, or of a flavor, the first are looked at."""
        return self.state.reservation.depth + _SPARE

    @property
    def _firsts(self) -> Sequence[Item]:
        return (*(one.items[0] for one in self._refused), *self._holding)

    def _outlined(self, headroom: Headroom, now_ms: int, pick: Callable[[], Sequence[Waiter]]) -> Line | None:
        """Those that get reservations by now, where it is plain that there are any, without picking them.
        Where time changes the order, it never is.
        """
        if self._is_aged:
            return None
        if self._outline is None:
            self._left.begin(headroom)
            known = [one for item in self._firsts for one in self._waiter(item, now_ms, NOT_SHARED)]
            line = line_of(known, headroom.ledger.tree.table)
            # What is charged nothing is of no flavor, and gets no reservation.
            if line is None or not all(way.charge for one in known for way in one.ways):
                return None
            self._outline = line._replace(pick=pick)
        if self.state.sharing is None:
            return self._outline
        return self._outline._replace(first=self._with_least(self._outline.first))

    def _with_least(self, first: Rank) -> Rank:
        """A rank as if nobody had used anything, as if all had used as little as whoever has used least."""
        sharing = self.state.sharing
        if sharing is None or not sharing.order:
            return first
        return first[0], sharing.shares[sharing.order[0][0]], first[2], first[3]

    def _due(self, now_ms: int) -> list[Waiter]:
        return [one for one in self._waiters if one.reserved_ms <= now_ms]

    def _waiter(self, item: Item, now_ms: int, shares: Mapping[str, int]) -> list[Waiter]:
        """The item as one, unless it could never start."""
        ways = self._left.ways_ever(item.shape)
        return [self._as_waiter(item, ways, now_ms, shares)] if ways else []

    def _as_waiter(
        self, item: Item, ways: Sequence[Alternative], now_ms: int, shares: Mapping[str, int]
    ) -> Waiter:
        state = self.state
        return Waiter(rank(item, state.ageing, now_ms, shares), item, ways, state.reservation)

    def _found(self, headroom: Headroom, now_ms: int) -> Line | None:
        if not self._is_found:
            # What they were refused by may be of an earlier cycle.
            self._left.begin(headroom)
            self._find()
            self._pick(headroom.ledger.tree.table, now_ms)
        elif self.state.sharing is not None or now_ms >= self._picked_until_ms:
            self._pick(headroom.ledger.tree.table, now_ms)
        return self._line

    def _find(self) -> None:
        """Who has one, and the first of each class that was refused, and how they may be charged."""
        firsts = {item.id: item for one in self._refused for item in one.items[: self._most]}
        self._lacking = frozenset(firsts)
        self._firsts_of = frozenset(one.items[0].id for one in self._refused)
        firsts |= {item.id: item for item in self._holding}
        self._waiting = [
            (item, ways) for item in firsts.values() if (ways := self._left.ways_ever(item.shape))
        ]
        self._is_found = True

    def _pick(self, table: CellTable, now_ms: int) -> None:
        """Of those that wait, of the same flavors few more than may get one, as some have given theirs up, or
        wait for what never comes back.
        """
        state, shares = self.state, self.state.shares
        found = [self._as_waiter(item, ways, now_ms, shares) for item, ways in self._waiting]
        found.sort(key=lambda one: one.deadline)
        # Who is to wait a little longer takes no place from who is not, whatever its deadline.
        due = [one for one in found if one.reserved_ms <= now_ms]
        kept = {one.item.id: one for of in (due, found) for one in _foremost(of, self._most, table)}
        self._waiters = list(kept.values())
        # Nobody goes for many of those before it, and others may for one of another class.
        among = self._lacking & (self._firsts_of | kept.keys())
        self._displacing = [one for one in found if one.item.id in among] if self.may_displace else ()
        points = (next_point_ms(one.item, state.ageing, now_ms) for one in found)
        changes = [at_ms for one in found if (at_ms := one.reserved_ms) > now_ms]
        changes += [at for at in points if at is not None]
        self._picked_until_ms = min(changes, default=_FOREVER)
        self._all_due_ms = max((one.reserved_ms for one in self._waiters), default=0)
        self._line, self._preemptors = line_of(self._waiters, table), None


def _foremost_classes(classes: Sequence[PendingClass], state: QueueState) -> Sequence[PendingClass]:
    """Those of them, the first by deadline, of which anybody may get anything."""
    if any(one.key.max_wait_ms is not None for one in classes):
        return heapq.nsmallest(
            MAX_WAITING_CLASSES, classes, lambda one: by_deadline(one.rank, one.items[0], state.reservation)
        )
    return classes[:MAX_WAITING_CLASSES]


def _foremost(waiters: Sequence[Waiter], most: int, table: CellTable) -> Iterator[Waiter]:
    """Those of them, in their order, that may be among the first of any of their flavors, so many of each."""
    ways = {one.item.shape: one.ways for one in waiters}
    flavors = {shape: flavors_of(of, table) for shape, of in ways.items()}
    left = dict.fromkeys(frozenset().union(*flavors.values()), most)
    for waiter in waiters:
        own = flavors[waiter.item.shape] & left.keys()
        if own:
            yield waiter
        for flavor in own:
            left[flavor] -= 1
            if not left[flavor]:
                del left[flavor]
        if not left:
            return


def _reserved_ms(item: Item, state: QueueState) -> int:
    """From when on it may get a reservation."""
    return since_ms(item) + after_ms(item, state.reservation)
