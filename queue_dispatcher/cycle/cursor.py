"""Cursor: who is the first of a queue, as those before it are refused or admitted in a cycle."""

import heapq
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from queue_dispatcher.cycle.actions import ClassKey
from queue_dispatcher.cycle.items import Item
from queue_dispatcher.cycle.order import Rank, next_point_ms, rank, standing
from queue_dispatcher.cycle.pending import PendingClass
from queue_dispatcher.cycle.snapshot import QueueState
from queue_dispatcher.ledger.cells import Charge


class Cursor:
    """Goes through the classes of a queue in their order, `line_up` once for as long as `is_lined_up`.

    As of the last `peek`: ``item``, its ``rank`` and ``key``, its class. ``ahead``: how many classes were
    gone through when it was where `mark` was called; ``is_moved``: whether it has gone on since, see
    `go_back`. ``state``: that of the queue in this cycle; ``due_ms``: when time alone adds to the line;
    ``claimed``: as it was lined up; ``is_aged``: whether time changes the order.
    """

    __slots__ = (
        "_aside",
        "_looked_into",
        "_moved",
        "_next",
        "_order",
        "_place",
        "_ranks",
        "_taken",
        "_until_ms",
        "_version",
        "ahead",
        "claimed",
        "due_ms",
        "is_aged",
        "is_moved",
        "item",
        "key",
        "now_ms",
        "rank",
        "state",
    )

    def __init__(self, state: QueueState) -> None:
        self.state = state
        self.now_ms = 0
        self.due_ms: int | None = None
        self.ahead = 0
        self.claimed: AbstractSet[str] = frozenset()
        self.is_moved = self.is_aged = False
        self._version: object = None
        self._until_ms: float = _FOREVER
        self._order: Sequence[PendingClass] = ()
        # By place in the order, where that is not by the ranks of the classes.
        self._ranks: list[Rank] = []
        self._next = 0
        self._place = 0
        # Classes whose first items are gone, by how the next of each stands: a heap.
        self._moved: list[tuple[Rank, int, PendingClass]] = []
        # The same as it was when `mark` was called.
        self._aside: list[tuple[Rank, int, PendingClass]] = []
        # The classes of which one was refused, and others are looked at.
        self._looked_into: set[ClassKey] = set()
        # By line, how much its share has risen in this cycle.
        self._taken: dict[str, int] = {}

    def is_lined_up(self, state: QueueState, now_ms: int) -> bool:
        """Whether those that wait stand in line as they did when it was made."""
        return (
            self._version is state.pending.version
            and (self.state is state or self.state == state)
            and self.now_ms <= now_ms < self._until_ms
        )

    def line_up(self, claimed: AbstractSet[str]) -> None:
        """Put them in order as of ``now_ms``; for whom others are displaced (``claimed``) before those that
        could be displaced for it next, whatever ageing or shares say.
        """
        pending, ageing, now_ms = self.state.pending, self.state.ageing, self.now_ms
        self._version, self.claimed = pending.version, claimed
        self.due_ms = pending.next_due_ms(now_ms)
        self._order = pending.classes(now_ms)
        self._ranks = []
        points_ms = [self.due_ms]
        self.is_aged = bool(ageing.cap or any(one.key.ageing for one in self._order))
        if self.is_aged or self.state.sharing is not None:
            ranked = sorted((self._rank(one.items[0]), one) for one in self._order)
            _put_behind(ranked, claimed)
            self._ranks, self._order = [first for first, _ in ranked], [one for _, one in ranked]
        if self.is_aged:
            points_ms += (next_point_ms(one.items[0], ageing, now_ms) for one in self._order)
        self._until_ms = min((at for at in points_ms if at is not None), default=_FOREVER)

    @property
    def before(self) -> Sequence[PendingClass]:
        """The classes gone through when `mark` was called."""
        return self._order[: self.ahead]

    @property
    def behind(self) -> list[Item]:
        """The first of each class that has not been gone through."""
        items = [one.items[0] for one in self._order[self._next :]]
        return items + [one.items[place] for _, place, one in self._moved]

    def restart(self) -> None:
        """Before the first."""
        self.is_moved = False
        self._next = self._place = 0
        self._looked_into.clear()
        self._moved = []
        self._taken = {}

    def mark(self) -> None:
        """It is where the head was found."""
        self.ahead, self._aside = self._next, self._moved.copy()
        self.is_moved = False

    def go_back(self) -> None:
        """To there."""
        self.restart()
        self._next, self._moved = self.ahead, self._aside.copy()
        self._looked_into.update(one.key for *_, one in self._aside)
        self.peek()

    def share_anew(self) -> None:
        """The order is the same, and what each LocalQueue has used is not."""
        self._ranks = [self._rank(one.items[0]) for one in self._order]
        self.peek()

    def peek(self) -> bool:
        """Find the first of those that are left; False if there is none."""
        while self._peek_at():
            now = self._rank(self.item) if self.key.line in self._taken else self.rank
            if now == self.rank:
                return True
            # Others of its LocalQueue have started since it was ranked.
            heapq.heappush(self._moved, (now, self._place, self.pop()))
        return False

    def pop(self) -> PendingClass:
        """Take out the class that `peek` found."""
        self.is_moved = True
        if self._moved and self._moved[0][0] == self.rank:
            return heapq.heappop(self._moved)[2]
        self._next += 1
        return self._order[self._next - 1]

    def skip_all(self) -> None:
        """Nobody is left."""
        self._next, self._moved = len(self._order), []
        self.is_moved = True

    def move_up(self, claimed: set[str], charge: Charge | None) -> bool:
        """The first was admitted, charged so, and the next of its class takes its place; whether all of it
        have been. Where LocalQueues share the queue, its own goes back by what it has got.

        Where one of its class was refused before, only those take its place that have a claim.
        """
        moved, sharing = self.pop(), self.state.sharing
        if sharing is not None and charge is not None:
            line = self.item.line
            self._taken[line] = self._taken.get(line, 0) + sharing.after(line, charge)
        place = self._place + 1
        if moved.key in self._looked_into:
            self._look_into(moved, place, claimed)
            return False
        if place == len(moved.items):
            return True
        heapq.heappush(self._moved, (self._rank(moved.items[place]), place, moved))
        return False

    def refuse(self, claimed: set[str]) -> None:
        """The first has no room, nor have those like it, but for whom others are displaced (``claimed``):
        what they leave is kept for one of them and is not for all.
        """
        refused, place = self.pop(), self._place
        if claimed:
            self._look_into(refused, place + 1, claimed)

    def _look_into(self, refused: PendingClass, place: int, claimed: set[str]) -> None:
        for at in range(place, len(refused.items)):
            if refused.items[at].id in claimed:
                self._looked_into.add(refused.key)
                heapq.heappush(self._moved, (self._rank(refused.items[at]), at, refused))
                return

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

    def _rank(self, item: Item) -> Rank:
        sharing = self.state.sharing
        if sharing is None:
            return rank(item, self.state.ageing, self.now_ms)
        shares = sharing.shares
        if item.line in self._taken:
            shares = {item.line: shares.get(item.line, 0) + self._taken[item.line]}
        return rank(item, self.state.ageing, self.now_ms, shares)


def _put_behind(ranked: list[tuple[Rank, PendingClass]], claimed: AbstractSet[str]) -> None:
    """Whoever could be displaced for one of the ``claimed`` stands behind the class of that one."""
    for at, (_, one) in enumerate(ranked) if claimed else ():
        first = next((item for item in one.items if item.id in claimed), None)
        if first is None:
            continue
        before = ranked[:at]
        later = [entry for entry in before if standing(first) < standing(entry[1].items[0])]
        ranked[: at + 1] = [*(entry for entry in before if entry not in later), ranked[at], *later]


_FOREVER: Final = float("inf")
