"""Shadow: when a workload that finds no room could start, and what others may take beside it until then.

The shadow time of backfilling. It is worked out cell by cell, as what runs gives back quota and room, and by
the estimators' word on when there is room for it in which cluster. Pure.
"""

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import accumulate
from operator import add
from typing import Final, NamedTuple

from queue_dispatcher.cycle.earliest import Earliest
from queue_dispatcher.cycle.endings import Ending, Endings, after
from queue_dispatcher.cycle.items import Alternative, Item
from queue_dispatcher.cycle.kept_room import Kept
from queue_dispatcher.cycle.reservation import Reservation, Unknown
from queue_dispatcher.cycle.waiter import Waiter, since_ms
from queue_dispatcher.ledger.cells import Cell
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.ledger.tree import UNLIMITED


class _Back(NamedTuple):
    """What is given back of a cell: by how much the balances on one path rise, and how much it is in all."""

    rises: tuple[int, ...]
    freed: int

    def plus(self, other: "_Back") -> "_Back":
        """Both together."""
        return _Back(tuple(map(add, self.rises, other.rises)), self.freed + other.freed)


_NOTHING: Final = _Back((), 0)
_LAST: Final = after(1 << 62)


class Shadow(NamedTuple):
    """When one way would come about, by the estimators in ``cluster`` if they say that; None where nobody
    knows, and ``unknown`` says why. ``is_possible``: whether it would once all has ended that ends.

    ``short``: by cell of which it lacks some, what has been given back once enough is left.
    """

    starts_ms: int | None
    is_possible: bool
    unknown: Unknown | None
    cluster: str
    short: Mapping[Cell, Callable[[], _Back]]


class Shadows:
    """Those of one cycle. ``capacity``: by cell, what there is in all, where that is known; ``endings``: what
    runs, and when it ends.
    """

    def __init__(self, capacity: Mapping[Cell, int], endings: Endings, now_ms: int) -> None:
        self._capacity = capacity
        self._endings = endings
        self._now_ms = now_ms
        # By cell, what was admitted in this cycle and is known to end.
        self._ending: dict[Cell, list[Ending]] = {}
        # By cell and queue, what was admitted in this cycle and ends nobody knows when.
        self._begun: dict[Cell, dict[str, int]] = {}

    def admitted(self, item: Item, runtime_ms: int | None, way: Alternative) -> None:
        """It runs from now on, and ends as well."""
        for cell, amount in way.charge:
            if runtime_ms is None:
                begun = self._begun.setdefault(cell, {})
                begun[item.queue] = begun.get(item.queue, 0) + amount
                continue
            ending = Ending(self._now_ms + runtime_ms, item.id, item.queue, amount)
            insort(self._ending.setdefault(cell, []), ending)

    def of(self, held: Ledger, item: Item, way: Alternative, earliest: Earliest | None) -> Shadow:
        """When a way would come about beside what is ``held`` for others. ``earliest``: what the estimators
        say, if they do.
        """
        path = held.tree.paths[item.queue]
        if earliest is not None and way.clusters is not None and earliest.cluster not in way.clusters:
            earliest = None
        cluster = earliest.cluster if earliest is not None else ""
        starts_ms: int | None = self._now_ms
        unknown: Unknown | None = None
        is_possible = True
        short: dict[Cell, Callable[[], _Back]] = {}
        for cell, amount in way.charge:
            if self._left(held, path, cell, _NOTHING, has_cluster=bool(cluster)) >= amount:
                continue
            at_ms, can, short[cell] = self._starts(held, path, cell, amount, has_cluster=bool(cluster))
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
        return Shadow(starts_ms, is_possible, unknown, cluster, short)

    def kept(
        self,
        held: Ledger,
        waiter: Waiter,
        way: Alternative,
        shadow: Shadow,
        made_ms: int,
        expires_ms: int,
        *,
        is_claimed: bool,
    ) -> Kept:
        """What is kept for a way that comes about so; ``is_claimed``: others are displaced for it."""
        item, (starts_ms, _, unknown, cluster, short) = waiter.item, shadow
        path = held.tree.paths[item.queue]
        # What others were displaced for is for nobody else.
        drains_ms = self._now_ms if is_claimed else since_ms(item) + waiter.policy.drain_after_ms
        is_hard = starts_ms is None or self._now_ms >= drains_ms
        # By cell, what has been given back by the time when it starts.
        later: dict[Cell, _Back] = {}
        for cell, _ in way.charge:
            if starts_ms is not None and (cell in short or not is_hard):
                later[cell] = self._back(held, path, cell, after(starts_ms), has_cluster=bool(cluster))
            else:
                later[cell] = short[cell]() if cell in short else _NOTHING
        quota, free = {}, {}
        for cell, amount in way.charge:
            # Whatever has been declared, once it drains nobody takes of what it lacks, and what it does not
            # lack it is not to lack either.
            back = _NOTHING if is_hard else later[cell]
            bounds = held.bounds_at(path, cell, back.rises)
            # What it lacks below comes back below, and so to all above.
            needs = accumulate(bounds[:-1], min, initial=amount)
            lefts = [max(0, bound - need) for bound, need in zip(bounds, needs, strict=True)]
            # What is felt at a node is felt by all above it, and may be no more than any of them leaves.
            quota[cell] = dict(zip(reversed(path), accumulate(reversed(lefts), min), strict=True))
            if not cluster and cell in self._capacity:
                free[cell] = max(0, self._free(held, cell) + back.freed - amount)
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
            is_claimed,
            any(amount > held.unborrowed(item.queue, cell, later[cell].rises) for cell, amount in way.charge),
        )
        return Kept(reservation, path[-1], quota, free)

    def _starts(
        self, ledger: Ledger, path: tuple[int, ...], cell: Cell, amount: int, *, has_cluster: bool
    ) -> tuple[int | None, bool, Callable[[], _Back]]:
        """When so much is left as running workloads end, None where nobody knows; whether it ever is; and
        what has been given back by then.
        """
        known = self._endings.known(cell)
        if own := self._ending.get(cell):
            known = sorted([*known, *own])

        def back(place: int) -> _Back:
            bound = known[place] if place < len(known) else _LAST
            return self._back(ledger, path, cell, bound, has_cluster=has_cluster)

        def is_enough(place: int) -> bool:
            return self._left(ledger, path, cell, back(place), has_cluster=has_cluster) >= amount

        if not own and ledger.tree.lends_all(path[-1], cell):
            lacks = ledger.lacks(path, cell, amount)
            waits = [(self._endings.below(ledger.tree, node, cell), lack) for node, lack in lacks]
            if not has_cluster and (lack := amount - self._free(ledger, cell)) > 0:
                waits.append((self._endings.timeline(cell), lack))
            ends = [one.until(lack) for one, lack in waits]
            place = max(
                (len(known) + 1 if end is None else bisect_right(known, end) for end in ends), default=0
            )
        else:
            place = bisect_left(range(len(known) + 1), True, key=is_enough)
        if place <= len(known):
            at_ms = max(self._now_ms, known[place - 1].at_ms) if place else self._now_ms
            return at_ms, True, partial(back, place)
        unknown = Counter(self._endings.unknown(cell)) + Counter(self._begun.get(cell, {}))
        ever = back(len(known)).plus(self._given_back(ledger, path, cell, unknown))
        return None, self._left(ledger, path, cell, ever, has_cluster=has_cluster) >= amount, lambda: ever

    def _back(
        self, ledger: Ledger, path: tuple[int, ...], cell: Cell, bound: Ending, *, has_cluster: bool
    ) -> _Back:
        """What is given back of a cell by all that end before a bound in the order of endings; of what is
        there, only where that is not for the estimators to say.
        """
        known = self._endings.timeline(cell)
        if ledger.tree.lends_all(path[-1], cell):
            below = [self._endings.below(ledger.tree, node, cell).before(bound) for node in path]
            back = _Back(tuple(below), 0 if has_cluster else known.before(bound))
        else:
            ended = known.endings[: bisect_left(known.endings, bound)]
            back = self._given_back(ledger, path, cell, _by_queue(ended))
        own = [ending for ending in self._ending.get(cell, ()) if ending < bound]
        return back.plus(self._given_back(ledger, path, cell, _by_queue(own))) if own else back

    def _given_back(
        self, ledger: Ledger, path: tuple[int, ...], cell: Cell, amounts: Mapping[str, int]
    ) -> _Back:
        """By queue, so much is given back of a cell."""
        paths, later = ledger.tree.paths, ledger.fork()
        for queue, amount in amounts.items():
            # What another tree has is no quota here.
            if path[-1] in paths.get(queue, ()):
                later.give_back(queue, ((cell, amount),))
        pairs = zip(later.balances(path, cell), ledger.balances(path, cell), strict=True)
        return _Back(tuple(then - now for then, now in pairs), sum(amounts.values()))

    def _left(
        self, ledger: Ledger, path: tuple[int, ...], cell: Cell, back: _Back, *, has_cluster: bool
    ) -> int:
        """What quota leaves, and what there is; where is for the estimators to say if they do."""
        if back is _NOTHING:
            left = ledger.available_at(path, cell)
        else:
            left = ledger.available_after(path, cell, back.rises)
        return left if has_cluster else min(left, self._free(ledger, cell) + back.freed)

    def _free(self, ledger: Ledger, cell: Cell) -> int:
        return self._capacity.get(cell, UNLIMITED) - ledger.totals.get(cell, 0)


def _by_queue(endings: Iterable[Ending]) -> Mapping[str, int]:
    amounts = Counter[str]()
    for ending in endings:
        amounts[ending.queue] += ending.amount
    return amounts
