"""Kept room: while a cycle admits, what of quota and capacity its reservations leave to others."""

from collections.abc import Iterator
from dataclasses import dataclass

from queue_dispatcher.cycle.items import Alternative
from queue_dispatcher.cycle.order import Rank
from queue_dispatcher.cycle.reservation import Reservation
from queue_dispatcher.ledger.cells import Cell, Charge
from queue_dispatcher.ledger.ledger import Ledger


@dataclass(slots=True)
class Kept:
    """What others may take beside one reservation without delaying it: of ``quota`` in its tree, with the
    root ``root``, and of what is there (``free``), by cell. Cells left out are not touched by it.

    ``borrows``: it would use more than its queue, or one above, owns. ``is_passed``: by whoever ends before
    it can start; not once something has taken of that for which nobody knows an end.
    """

    reservation: Reservation
    root: int
    quota: dict[Cell, int]
    free: dict[Cell, int]
    borrows: bool
    is_passed: bool = True

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
        # The items of those for which others are displaced.
        self._claimed: set[str] = set()

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Kept]:
        return iter(self._kept)

    def add(self, kept: Kept) -> None:
        """One more, behind those before."""
        self._kept.append(kept)
        self._near.clear()
        if kept.reservation.is_claimed:
            self._claimed.add(kept.reservation.item.id)

    def refusing(
        self, item: str, queue: str, rank: Rank, runtime_ms: int | None, way: Alternative
    ) -> Reservation | None:
        """The first reservation that an item would delay if it started in that way; None if it delays none,
        as where it starts in the place of another one.
        """
        delayed = self._delayed(item, queue, rank, runtime_ms, way.charge)
        if delayed is None or self._place(item, queue, rank, way, delayed) is not None:
            return None
        return delayed.reservation

    def is_passed(self, item: str, queue: str, rank: Rank, charge: Charge) -> bool:
        """Whether an item that is about to be charged so goes before any that holds a reservation of the same
        cells and goes first by the order of queues.
        """
        has_claim = item in self._claimed
        return any(
            not self._is_entitled(kept, queue, charge)
            and kept.reservation.item.id != item
            and not kept.reservation.is_behind(queue, rank, has_claim=has_claim)
            and not {cell for cell, _ in charge}.isdisjoint(kept.quota)
            for kept in self._kept
        )

    def taken(self, item: str, queue: str, rank: Rank, runtime_ms: int | None, way: Alternative) -> None:
        """An item is admitted, and about to be charged so. Also of one that goes first anyway, what it takes
        is not left. In whose place it starts, that one comes after all others now.
        """
        charge = way.charge
        delayed = self._delayed(item, queue, rank, runtime_ms, charge)
        place = self._place(item, queue, rank, way, delayed) if delayed is not None else None
        if place is not None:
            self._kept.remove(place)
            self._kept.append(place)
        for kept in self._kept:
            if kept.reservation.item.id == item:
                # Those behind it leave it what it takes.
                break
            if kept.is_passed_by(runtime_ms, self._now_ms):
                continue
            for left in self._left(kept, queue):
                for cell, amount in charge:
                    if cell in left:
                        # When it can start then, nobody knows.
                        kept.is_passed = kept.is_passed and (runtime_ms is not None or amount <= left[cell])
                        left[cell] = max(0, left[cell] - amount)
        self._kept = [kept for kept in self._kept if kept.reservation.item.id != item]
        self._near.clear()
        self._claimed.discard(item)

    def asked(self, item: str, queue: str, rank: Rank, charge: Charge) -> None:
        """It is being asked whether an item may start, charged so: what it goes before is not to lack by then
        what others take meanwhile.
        """
        has_claim = item in self._claimed
        for kept in self._kept:
            if kept.reservation.item.id == item:
                return
            if not kept.reservation.is_behind(queue, rank, has_claim=has_claim):
                continue
            for left in self._left(kept, queue):
                left.update((cell, max(0, left[cell] - amount)) for cell, amount in charge if cell in left)

    def _left(self, kept: Kept, queue: str) -> tuple[dict[Cell, int], ...]:
        """Of what it leaves, that of which a queue takes."""
        is_in_tree = self._ledger.tree.paths[queue][-1] == kept.root
        return (kept.quota, kept.free) if is_in_tree else (kept.free,)

    def _delayed(
        self, item: str, queue: str, rank: Rank, runtime_ms: int | None, charge: Charge
    ) -> Kept | None:
        """The first that does not leave what the item would be charged."""
        root, borrows = self._ledger.tree.paths[queue][-1], None
        for kept in self._binding(item, queue, root, rank, runtime_ms):
            if borrows is None:
                borrows = self._ledger.borrows_after(queue, charge)
            is_entitled = not borrows and _may_be_entitled(kept, queue)
            is_in_tree = root == kept.root
            for cell, amount in charge:
                if is_in_tree and not is_entitled and amount > kept.quota.get(cell, amount):
                    return kept
                if not (is_entitled and kept.borrows) and amount > kept.free.get(cell, amount):
                    return kept
        return None

    def _place(self, item: str, queue: str, rank: Rank, way: Alternative, delayed: Kept) -> Kept | None:
        """The one in whose place an item may start that would delay ``delayed`` if it took as much besides:
        of its queue, behind it, and to start in the same room, so that others were reckoned with just that.
        Who has a claim has a place of its own.
        """
        if item in self._claimed:
            return None
        for kept in self._kept:
            one = kept.reservation
            if kept is delayed:
                return None
            is_same = one.alternative.charge == way.charge and (not one.cluster or one.item.id in way.through)
            if one.is_claimed and one.item.queue == queue and rank < one.rank and is_same:
                return kept
        return None

    def _binding(
        self, item: str, queue: str, root: int, rank: Rank, runtime_ms: int | None
    ) -> Iterator[Kept]:
        """Those that the item would not pass anyway; of one that has its own, those before that. Those of
        other trees that leave others all there is are left out.
        """
        has_claim = item in self._claimed
        near = self._near.get(root)
        if near is None:
            near = self._near[root] = [kept for kept in self._kept if kept.root == root or kept.free]
        for kept in near:
            one = kept.reservation
            if one.item.id == item:
                return
            if one.is_behind(queue, rank, has_claim=has_claim):
                continue
            if not kept.is_passed_by(runtime_ms, self._now_ms):
                yield kept

    def _is_entitled(self, kept: Kept, queue: str, charge: Charge) -> bool:
        """Who takes only what its own queue owns waits for no other queue's reservation, but for what others
        were displaced for: that is as good as used, and whoever owns it takes it back in its turn.
        """
        return _may_be_entitled(kept, queue) and not self._ledger.borrows_after(queue, charge)


def _may_be_entitled(kept: Kept, queue: str) -> bool:
    return not kept.reservation.is_claimed and kept.reservation.item.queue != queue
