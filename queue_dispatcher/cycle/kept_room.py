"""Kept room: while a cycle admits, what of quota and capacity its reservations leave to others."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from queue_dispatcher.cycle.bars import Bars
from queue_dispatcher.cycle.items import Alternative, Item
from queue_dispatcher.cycle.order import Rank
from queue_dispatcher.cycle.reservation import Reservation
from queue_dispatcher.ledger.cells import Cell, Charge
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.ledger.tree import UNLIMITED

_SHORTEST_MS: Final = 1


@dataclass(slots=True)
class Kept:
    """What others may take beside one reservation without delaying it: of the ``quota`` of each node from the
    ``root`` of its tree down to its queue, no more than of any above it, and of what is there (``free``), by
    cell. Cells left out are not touched by it.

    ``is_passed``: by whoever ends before it can start; not once something has taken of that for which nobody
    knows an end.
    """

    reservation: Reservation
    root: int
    quota: dict[Cell, dict[int, int]]
    free: dict[Cell, int]
    is_passed: bool = True

    def is_near(self, root: int) -> bool:
        """Whether it may keep anything from queues of the tree with this root."""
        return self.root == root or bool(self.free)

    def is_passed_by(self, runtime_ms: int | None, now_ms: int) -> bool:
        """Whether what would run for so long at the most may use what is kept."""
        return self.is_passed and self.reservation.is_passed_by(runtime_ms, now_ms)


class KeptRoom:
    """What is kept for all reservations of a cycle."""

    def __init__(self, ledger: Ledger, now_ms: int) -> None:
        self._ledger = ledger
        self._now_ms = now_ms
        self._kept: list[Kept] = []
        # The same that are of a tree or bound what others may take besides; until one comes or goes.
        self._near: dict[int, list[Kept]] = {}
        # By tree, the queues that those near it are of; as long.
        self._queues: dict[int, set[str]] = {}
        # By tree, priority, time to run and whether more is used than is owned, what they leave to other
        # queues; as long.
        self._bars: dict[tuple[int, int, int | None, bool], Bars] = {}
        # The items of those for which others are displaced.
        self._claimed: set[str] = set()

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Kept]:
        return iter(self._kept)

    def add(self, kept: Kept) -> None:
        """One more, behind those before."""
        self._kept.append(kept)
        self._changed()
        if kept.reservation.is_claimed:
            self._claimed.add(kept.reservation.item.id)

    def refusing(
        self, item: Item, rank: Rank, runtime_ms: int | None, way: Alternative
    ) -> Reservation | None:
        """The first reservation that an item would delay if it started in that way; None if it delays none,
        as where it starts in the place of another one.
        """
        delayed = self._delayed(item, rank, runtime_ms, way.charge)
        if delayed is None or self._place(item, rank, way, delayed) is not None:
            return None
        return delayed.reservation

    def refuses(self, item: Item, rank: Rank, runtime_ms: int | None, way: Alternative) -> bool:
        """Whether `refusing` finds any, whichever it is."""
        queue, path = item.queue, self._ledger.tree.paths[item.queue]
        if queue in self._queues_near(path[-1]):
            return self.refusing(item, rank, runtime_ms, way) is not None
        bars = self._bars_for(queue, path, rank[0], runtime_ms, way.charge)
        return bars.refuse(self._ledger, path, way.charge)

    def refuses_all(self, queue: str, first: Rank, least: Sequence[Charge]) -> bool:
        """Whether `refusing` refuses all of a queue that rank no better than the first and are charged at
        least so, each in one of these ways; False where any of them has a reservation itself.
        """
        path = self._ledger.tree.paths[queue]
        if queue in self._queues_near(path[-1]):
            return False
        # Who ends at once passes whatever anything passes.
        return all(
            self._bars_for(queue, path, first[0], _SHORTEST_MS, charge).refuse(self._ledger, path, charge)
            for charge in least
        )

    def _queues_near(self, root: int) -> set[str]:
        queues = self._queues.get(root)
        if queues is None:
            queues = self._queues[root] = {kept.reservation.item.queue for kept in self._near_to(root)}
        return queues

    def _bars_for(
        self, queue: str, path: tuple[int, ...], priority: int, runtime_ms: int | None, charge: Charge
    ) -> Bars:
        """What `_delayed` finds delayed of other queues by who runs for so long."""
        root, borrows = path[-1], self._ledger.borrows_after(queue, charge)
        bars = self._bars.get((root, priority, runtime_ms, borrows))
        if bars is not None:
            return bars
        bars = self._bars[root, priority, runtime_ms, borrows] = Bars()
        for kept in self._near_to(root):
            one = kept.reservation
            is_behind = not one.is_claimed and priority < one.rank[0]
            if is_behind or kept.is_passed_by(runtime_ms, self._now_ms):
                continue
            # None of those near is of a queue that asks.
            is_entitled = not borrows and not one.is_claimed
            if not is_entitled:
                for cell, left in kept.quota.items():
                    bars.add_quota(cell, left)
            if not (is_entitled and one.borrows):
                for cell, free in kept.free.items():
                    bars.add_free(cell, free)
        return bars

    def is_passed(self, item: Item, rank: Rank, charge: Charge) -> bool:
        """Whether an item that is about to be charged so goes before any that holds a reservation of the same
        cells and goes first by the order of queues.
        """
        has_claim, is_owner = item.id in self._claimed, not self._ledger.borrows_after(item.queue, charge)
        return any(
            not (is_owner and kept.reservation.yields_to_owner(item.queue))
            and kept.reservation.item.id != item.id
            and not kept.reservation.is_behind(item, rank, has_claim=has_claim)
            and not {cell for cell, _ in charge}.isdisjoint(kept.quota)
            for kept in self._kept
        )

    def taken(self, item: Item, rank: Rank, runtime_ms: int | None, way: Alternative) -> None:
        """An item is admitted, and about to be charged so. What one takes that goes first anyway is not left
        either. In whose place it starts, that one comes after all others now.
        """
        path, charge = self._ledger.tree.paths[item.queue], way.charge
        delayed = self._delayed(item, rank, runtime_ms, charge)
        place = self._place(item, rank, way, delayed) if delayed is not None else None
        if place is not None:
            self._kept.remove(place)
            self._kept.append(place)
        for kept in self._kept:
            if kept.reservation.item.id == item.id:
                # Those behind it leave it what it takes.
                break
            if kept.is_passed_by(runtime_ms, self._now_ms):
                continue
            if runtime_ms is None and any(
                amount > kept.free.get(cell, amount) or self._exceeds(kept, path, cell, amount)
                for cell, amount in charge
            ):
                # When it can start then, nobody knows.
                kept.is_passed = False
            self._take(kept, path, charge)
        self._kept = [kept for kept in self._kept if kept.reservation.item.id != item.id]
        self._changed()
        self._claimed.discard(item.id)

    def asked(self, item: Item, rank: Rank, charge: Charge) -> None:
        """It is being asked whether an item may start, charged so: what it goes before is not to lack by then
        what others take meanwhile.
        """
        path, has_claim = self._ledger.tree.paths[item.queue], item.id in self._claimed
        for kept in self._kept:
            if kept.reservation.item.id == item.id:
                return
            if not kept.reservation.is_behind(item, rank, has_claim=has_claim):
                continue
            self._take(kept, path, charge)
            self._bars.clear()

    def sooner(self, kept: Kept, now: Kept) -> None:
        """It starts as is known by now, if that is sooner, and leaves no more than it did."""
        starts_ms, before_ms = now.reservation.starts_ms, kept.reservation.starts_ms
        if starts_ms is None or (before_ms is not None and before_ms <= starts_ms):
            return
        kept.reservation = now.reservation
        for cell, left in now.free.items():
            kept.free[cell] = min(left, kept.free[cell])
        for cell, quota in now.quota.items():
            for node, left in quota.items():
                kept.quota[cell][node] = min(left, kept.quota[cell][node])
        self._changed()

    def _changed(self) -> None:
        self._near.clear()
        self._queues.clear()
        self._bars.clear()

    def _take(self, kept: Kept, path: tuple[int, ...], charge: Charge) -> None:
        """What the queue at the beginning of a path is charged is not left beside it."""
        for cell, amount in charge:
            if cell in kept.free:
                kept.free[cell] = max(0, kept.free[cell] - amount)
            quota = kept.quota.get(cell, {})
            # What the branch of the other one has for itself alone is nobody else's.
            meets = next((at for at, node in enumerate(path) if node in quota), None)
            if meets is None:
                continue
            reaches, least = self._ledger.reaching(path[:meets], cell, amount), UNLIMITED
            for node, left in quota.items():
                least = quota[node] = min(least, max(0, left - reaches) if node in path else left)

    def _delayed(self, item: Item, rank: Rank, runtime_ms: int | None, charge: Charge) -> Kept | None:
        """The first that does not leave what the item would be charged."""
        path, borrows = self._ledger.tree.paths[item.queue], None
        for kept in self._binding(item, path[-1], rank, runtime_ms):
            if borrows is None:
                borrows = self._ledger.borrows_after(item.queue, charge)
            is_entitled = not borrows and kept.reservation.yields_to_owner(item.queue)
            for cell, amount in charge:
                if not is_entitled and self._exceeds(kept, path, cell, amount):
                    return kept
                if not (is_entitled and kept.reservation.borrows) and amount > kept.free.get(cell, amount):
                    return kept
        return None

    def _place(self, item: Item, rank: Rank, way: Alternative, delayed: Kept) -> Kept | None:
        """The one in whose place an item may start that would delay ``delayed`` if it took as much besides:
        of its queue, behind it, and to start in the same room, so that others were reckoned with just that.
        Who has a claim has a place of its own.
        """
        if item.id in self._claimed:
            return None
        for kept in self._kept:
            one = kept.reservation
            if kept is delayed:
                return None
            is_same = one.alternative.charge == way.charge and (not one.cluster or one.item.id in way.through)
            is_own = one.is_claimed and one.item.queue == item.queue
            if is_own and is_same and one.is_behind(item, rank, has_claim=False):
                return kept
        return None

    def _binding(self, item: Item, root: int, rank: Rank, runtime_ms: int | None) -> Iterator[Kept]:
        """Those that the item would not pass anyway; of one that has its own, those before that. Those of
        other trees that leave others all there is are left out.
        """
        has_claim = item.id in self._claimed
        for kept in self._near_to(root):
            one = kept.reservation
            if one.item.id == item.id:
                return
            if one.is_behind(item, rank, has_claim=has_claim):
                continue
            if not kept.is_passed_by(runtime_ms, self._now_ms):
                yield kept

    def _near_to(self, root: int) -> Sequence[Kept]:
        near = self._near.get(root)
        if near is None:
            near = self._near[root] = [kept for kept in self._kept if kept.is_near(root)]
        return near

    def _exceeds(self, kept: Kept, path: tuple[int, ...], cell: Cell, amount: int) -> bool:
        """Whether the queue at the beginning of a path would take more quota than is left beside it."""
        quota = kept.quota.get(cell)
        return quota is not None and self._ledger.is_barred(path, cell, amount, quota)
