"""Backlog: what all that waits could come to be charged, at every node of the quota tree.

It tells whether quota is scarce: as long as all that waits below a node fits there together, nobody takes it
from anybody, and the order in which workloads start is a matter of the release window alone.
"""

from collections.abc import Iterable

from queue_dispatcher.cycle.snapshot import QueueState
from queue_dispatcher.ledger.cells import Cell, Charge
from queue_dispatcher.ledger.ledger import Ledger


class Backlog:
    """Amounts by cell and node, and how many items wait; what a queue could never use does not count."""

    def __init__(self, states: Iterable[QueueState], ledger: Ledger) -> None:
        tree = ledger.tree
        self._parents = tree.parents
        self._items = [0] * (len(tree.nodes) + 1)
        self._amounts: dict[Cell, list[int]] = {}
        for state in states:
            path = tree.paths.get(state.name, ())
            count = len(state.pending)
            if not path or not count or state.stopped is not None:
                continue
            # The last stands for what is above all trees.
            self._items[-1] += count
            for node in path:
                self._items[node] += count
            for cell, amount in state.pending.backlog.items():
                column = self._amounts.get(cell)
                if column is None:
                    column = self._amounts[cell] = [0] * len(tree.nodes)
                could = min(amount, ledger.headroom(state.name, cell))
                for node in path:
                    column[node] += could

    def admitted(self, path: tuple[int, ...], charge: Charge) -> None:
        """One item of the queue at the beginning of the path waits no more."""
        self._items[-1] -= 1
        for node in path:
            self._items[node] -= 1
        for cell, amount in charge:
            column = self._amounts[cell]
            for node in path:
                column[node] -= amount

    def amount(self, node: int, cell: Cell) -> int:
        """What waits below the node."""
        column = self._amounts.get(cell)
        return column[node] if column else 0

    def has_rival(self, node: int) -> bool:
        """Whether anything waits in a sibling of the node; trees are siblings."""
        return self._items[self._parents[node]] > self._items[node]
