"""Backlog: what all that waits could come to be charged, at every node of the quota tree.

It tells whether quota is scarce: as long as all that waits below a node fits there together, nobody takes it
from anybody, and the order in which workloads start is a matter of the release window alone.
"""

from collections.abc import Collection

from queue_dispatcher.cycle.pending import PendingQueue
from queue_dispatcher.ledger.cells import Cell, Charge
from queue_dispatcher.ledger.tree import QuotaTree


class Backlog:
    """Amounts by cell and node, and how many items wait; what a queue could never use does not count.

    It is kept from cycle to cycle; what a cycle admits is counted out for that cycle alone.
    """

    def __init__(self, tree: QuotaTree) -> None:
        self._tree = tree
        # The last stands for what is above all trees.
        self._items = [0] * (len(tree.nodes) + 1)
        self._amounts: dict[Cell, list[int]] = {}
        self._counted: dict[str, tuple[object, int, Charge]] = {}
        self._admitted: dict[tuple[int, Cell], int] = {}
        self._admitted_items: dict[int, int] = {}

    def count(self, queue: str, pending: PendingQueue) -> None:
        """What waits in a queue of the tree."""
        known = self._counted.get(queue)
        if known is not None and known[0] is pending.version:
            return
        self.forget(queue)
        most, items = self._tree.most, len(pending)
        amounts = tuple((cell, min(amount, most(queue, cell))) for cell, amount in pending.backlog.items())
        self._add(queue, items, amounts, 1)
        self._counted[queue] = (pending.version, items, amounts)

    def forget(self, queue: str) -> None:
        """The queue does not count."""
        known = self._counted.pop(queue, None)
        if known is not None:
            _, items, amounts = known
            self._add(queue, -items, amounts, -1)

    def begin(self) -> None:
        """A cycle begins: nothing has been admitted."""
        self._admitted = {}
        self._admitted_items = {}

    def admitted(self, path: tuple[int, ...], charge: Charge) -> None:
        """One item of the queue at the beginning of the path waits no more."""
        for node in (*path, -1):
            self._admitted_items[node] = self._admitted_items.get(node, 0) + 1
        for cell, amount in charge:
            for node in path:
                key = (node, cell)
                self._admitted[key] = self._admitted.get(key, 0) + amount

    @property
    def cells(self) -> Collection[Cell]:
        """The cells of which anything waits anywhere."""
        return self._amounts.keys()

    def amount(self, node: int, cell: Cell) -> int:
        """What waits below the node."""
        column = self._amounts.get(cell)
        return column[node] - self._admitted.get((node, cell), 0) if column else 0

    def has_rival(self, node: int) -> bool:
        """Whether anything waits in a sibling of the node; trees are siblings."""
        return self._waiting(self._tree.parents[node]) > self._waiting(node)

    def _waiting(self, node: int) -> int:
        return self._items[node] - self._admitted_items.get(node, 0)

    def _add(self, queue: str, items: int, amounts: Charge, sign: int) -> None:
        path = self._tree.paths[queue]
        self._items[-1] += items
        for node in path:
            self._items[node] += items
        for cell, amount in amounts:
            column = self._amounts.get(cell)
            if column is None:
                column = self._amounts[cell] = [0] * len(self._tree.nodes)
            for node in path:
                column[node] += sign * amount
