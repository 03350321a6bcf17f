"""What each binding is charged: one entry for each that is charged at all, and the ledger of them all.

A binding's charge is only ever replaced, never added to, so that no path through the dispatcher can charge
one twice or forget to give it back.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from queue_dispatcher.ledger.cells import Cell, Charge
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.ledger.tree import QuotaTree


class BindingCharge(NamedTuple):
    """One binding's charge; ``queue`` is empty where it takes up capacity but nobody's quota.

    ``there``: by cluster, what of it is for what is placed there.
    """

    queue: str
    charge: Charge
    there: tuple[tuple[str, Charge], ...] = ()


class Charges:
    """The charges of all bindings, by uid."""

    def __init__(self, tree: QuotaTree) -> None:
        self.ledger = Ledger(tree)
        self._entries: dict[str, BindingCharge] = {}
        self._there: dict[str, dict[Cell, int]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[tuple[str, BindingCharge]]:
        """Uids and their entries."""
        return iter(self._entries.items())

    def get(self, uid: str) -> BindingCharge | None:
        """What the binding is charged; None for nothing."""
        return self._entries.get(uid)

    def on(self, cluster: str) -> Mapping[Cell, int]:
        """What is charged, in all, for what is placed on a cluster."""
        return self._there.get(cluster, {})

    def put(self, uid: str, queue: str, charge: Charge, there: tuple[tuple[str, Charge], ...] = ()) -> bool:
        """Charge the binding so, instead of how it was; whether queue or charge are new."""
        before = self._entries.get(uid)
        if not charge:
            return self.drop(uid)
        if before is not None and before.there != there:
            self._place(before.there, -1)
        if before is None or before.there != there:
            self._place(there, 1)
        self._entries[uid] = BindingCharge(queue, charge, there)
        if before is not None:
            if before.charge == charge and before.queue == queue:
                return False
            self.ledger.give_back(before.queue, before.charge)
        self.ledger.charge(queue, charge)
        return True

    def drop(self, uid: str) -> bool:
        """The binding is charged nothing any more; whether it was charged anything."""
        before = self._entries.pop(uid, None)
        if before is None:
            return False
        self._place(before.there, -1)
        self.ledger.give_back(before.queue, before.charge)
        return True

    def move_to(self, tree: QuotaTree) -> None:
        """Count the same charges under other quotas."""
        self.ledger = self.ledger.moved_to(tree)

    def recomputed(self) -> Ledger:
        """The ledger that the entries alone make; always equal to `ledger`."""
        ledger = Ledger(self.ledger.tree)
        for entry in self._entries.values():
            ledger.charge(entry.queue, entry.charge)
        return ledger

    def _place(self, there: tuple[tuple[str, Charge], ...], sign: int) -> None:
        for cluster, charge in there:
            cells = self._there.setdefault(cluster, {})
            for cell, amount in charge:
                left = cells.get(cell, 0) + sign * amount
                if left:
                    cells[cell] = left
                else:
                    del cells[cell]
            if not cells:
                del self._there[cluster]
