"""Ledger: what is charged to each queue, and what more it may be charged.

The one idea is the balance of KEP-79 (Kueue): T(leaf) = quota - usage, and T(inner) = quota + the sum over
its children of min(lendingLimit, T(child)). A state is legal where T >= -borrowingLimit at every node, and
>= 0 at roots. Nobody has to know who borrows from whom, and a charge changes balances on one path only.

The balances are those of Kueue's pkg/cache/scheduler/resource_node.go (v0.20), where T is SubtreeQuota less
Usage. One difference, on purpose: once an administrator has lowered a quota below what is in use, an
ancestor's balance can be illegal. Kueue then takes its deficit off what every queue below it may use; here a
queue may still use all that it does not lend, because no queue outside can have been promised that.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, repeat
from typing import Final, NamedTuple

from queue_dispatcher.ledger.cells import Cell, Charge
from queue_dispatcher.ledger.tree import UNLIMITED, QuotaTree

SHARE_ONE = 1_000_000_000
"""The share of a queue of weight 1 that uses, beyond what it owns, as much as its siblings can share."""

INFINITE_SHARE = 1 << 192
"""More than any share; that of a queue of weight 0 that borrows is this plus its share at weight 1."""


class Shortage(NamedTuple):
    """Why a charge does not fit: ``missing`` of one cell, in the units of its resource.

    Without ``is_borrowing``, the quota of ``node`` (the queue, or one above it) is in use. With it, ``node``
    would go beyond what it owns, and its borrowing limit or its lenders have nothing left.
    """

    node: str
    cell: Cell
    missing: int
    is_borrowing: bool


class Availability(NamedTuple):
    """What more a queue may be charged of a cell, and the number of the node that sets the bound."""

    amount: int
    bound_by: int


class LedgerError(ValueError):
    """More was given back than is charged; the message names queue, cell and amounts."""


class _Column(NamedTuple):
    """One cell over all nodes: balances, what is charged to each node itself, and the tree's limits."""

    balances: list[int]
    charged: list[int]
    borrowing: list[int]
    lending: list[int]


class _Columns(dict[Cell, _Column]):
    """Columns by cell; what is asked for the first time is there, with nothing charged."""

    def __init__(self, tree: QuotaTree) -> None:
        super().__init__()
        self._tree = tree

    def __missing__(self, cell: Cell) -> _Column:
        limits = self._tree.limits(cell)
        column = _Column(limits.owned, [0] * len(self._tree.nodes), limits.borrowing, limits.lending)
        self[cell] = column
        return column


MOST_BESIDE: Final = 256
"""Queues that are looked at for who borrows."""


class Ledger:
    """Charges by queue; one writer. Operations walk one path of the tree for each cell.

    Charges to queues that are not in the tree count in `totals` alone: a deleted queue's workloads still run.
    """

    def __init__(self, tree: QuotaTree) -> None:
        self.tree = tree
        # Columns not in _own may be shared with forks, and are copied before they are changed.
        self._columns = _Columns(tree)
        self._own: set[Cell] = set()
        self._totals: dict[Cell, int] = {}
        self._charged: dict[Cell, int] = {}
        self._returned: dict[Cell, int] = {}
        # The same by the root of the tree of whoever gave it back; of this ledger alone, forks begin anew.
        self._returned_in: dict[tuple[int, Cell], int] = {}
        self._strays: dict[str, dict[Cell, int]] = {}
        self._versions = [0] * len(tree.nodes)

    def fork(self) -> "Ledger":
        """A ledger in the same state that changes on its own. Costs steps by cell, not by queue."""
        fork = Ledger(self.tree)
        fork._columns.update(self._columns)
        fork._totals = self._totals.copy()
        fork._charged = self._charged.copy()
        fork._returned = self._returned.copy()
        fork._strays = {queue: charged.copy() for queue, charged in self._strays.items()}
        fork._versions = self._versions.copy()
        self._own = set()
        return fork

    def moved_to(self, tree: QuotaTree) -> "Ledger":
        """The same charges under other quotas; a queue is known by its name."""
        moved = Ledger(tree)
        for cell, column in self._columns.items():
            for node, amount in zip(self.tree.nodes, column.charged, strict=True):
                if amount:
                    moved.charge(node.name, ((cell, amount),))
        for queue, charged in self._strays.items():
            moved.charge(queue, tuple(charged.items()))
        return moved

    def charges(self) -> dict[str, Charge]:
        """What is charged to each queue itself, those with nothing left out."""
        found: dict[str, list[tuple[Cell, int]]] = {}
        for cell in sorted(self._columns):
            for number, amount in enumerate(self._columns[cell].charged):
                if amount:
                    found.setdefault(self.tree.nodes[number].name, []).append((cell, amount))
        for queue, charged in self._strays.items():
            found[queue] = sorted(charged.items())
        return {queue: tuple(charge) for queue, charge in found.items()}

    @property
    def totals(self) -> Mapping[Cell, int]:
        """By cell, what is charged in all trees and to queues in none; cells never charged may be absent."""
        return self._totals

    @property
    def charged(self) -> Mapping[Cell, int]:
        """By cell, all that was ever charged; never falls, and all that charges changed is bounded by it."""
        return self._charged

    @property
    def returned(self) -> Mapping[Cell, int]:
        """By cell, all that was ever given back."""
        return self._returned

    @property
    def returned_in(self) -> Mapping[tuple[int, Cell], int]:
        """By the root of a tree and cell, all that was given back there to this ledger."""
        return self._returned_in

    def version(self, node: int) -> int:
        """Grows whenever a balance of the node changes."""
        return self._versions[node]

    def used(self, queue: str, cell: Cell) -> int:
        """What is charged to the queue and to all below it; to itself alone if it is in no tree."""
        path = self.tree.paths.get(queue)
        if path is None:
            return self._strays.get(queue, {}).get(cell, 0)
        charged, node = self._columns[cell].charged, path[0]
        if not self.tree.children(node):
            return charged[node]
        return sum(charged[number] for number in self.tree.subtree(node))

    def balance(self, queue: str, cell: Cell) -> int:
        """T of KEP-79: what the queue's subtree owns and has left; below 0, what it borrows."""
        path = self.tree.paths.get(queue)
        return self._columns[cell].balances[path[0]] if path else -self.used(queue, cell)

    def charge(self, queue: str, charge: Charge) -> None:
        """Count amounts as used, whether or not they fit."""
        self._change(queue, charge, 1)

    def give_back(self, queue: str, charge: Charge) -> None:
        """Take a charge back. Raises LedgerError, and changes nothing, if that much is not charged."""
        for cell, amount in charge:
            path = self.tree.paths.get(queue)
            charged = self._columns[cell].charged[path[0]] if path else self.used(queue, cell)
            if amount > charged:
                raise LedgerError(
                    f"queue {queue}: {amount} of {self.tree.table.name(cell)} cannot be given back, "
                    f"{charged} is charged"
                )
        self._change(queue, charge, -1)

    def available(self, queue: str, cell: Cell) -> int:
        """What one more workload may be charged, borrowing included; never below 0."""
        return self.available_at(self.tree.paths.get(queue, ()), cell)

    def available_at(self, path: tuple[int, ...], cell: Cell) -> int:
        """`available` of the queue at the beginning of a path of `QuotaTree.paths`."""
        balances, _, borrowing, lending = self._columns[cell]
        amount, kept = UNLIMITED if path else 0, 0
        for node in path:
            balance = balances[node]
            left = balance + borrowing[node]
            here = kept + left if left > 0 else kept
            if here < amount:
                amount = here
            if balance > lending[node]:
                kept += balance - lending[node]
        return amount

    def bounds_at(self, path: tuple[int, ...], cell: Cell, rises: Sequence[int] = ()) -> list[int]:
        """By node of a path, how much more its queue may take as far as the limits of that node go, once
        their balances have risen by so much; the least of them is what is `available_after`.
        """
        balances, _, borrowing, lending = self._columns[cell]
        bounds, kept = [], 0
        for node, rise in zip(path, rises or repeat(0), strict=False):
            balance = balances[node] + rise
            bounds.append(kept + max(0, balance + borrowing[node]))
            kept += max(0, balance - lending[node])
        return bounds

    def reaching(self, path: tuple[int, ...], cell: Cell, amount: int) -> int:
        """How much of what is charged to the first node of a path lowers the balance of the node above its
        last: not what those of the path have beyond what they lend.
        """
        balances, _, _, lending = self._columns[cell]
        for node in path:
            amount -= min(amount, max(0, balances[node] - lending[node]))
        return amount

    def is_barred(self, path: tuple[int, ...], cell: Cell, amount: int, bars: Mapping[int, int]) -> bool:
        """Whether of what is charged to the first node of a path more reaches any than its bar."""
        balances, _, _, lending = self._columns[cell]
        for node in path:
            if amount > bars.get(node, amount):
                return True
            kept = balances[node] - lending[node]
            if kept > 0:
                if kept >= amount:
                    return False
                amount -= kept
        return False

    def available_after(self, path: tuple[int, ...], cell: Cell, rises: Sequence[int]) -> int:
        """`available_at`, once the balances of the path's nodes have risen by so much."""
        balances, _, borrowing, lending = self._columns[cell]
        amount, kept = UNLIMITED if path else 0, 0
        for node, rise in zip(path, rises, strict=True):
            balance = balances[node] + rise
            amount = min(amount, kept + max(0, balance + borrowing[node]))
            if balance > lending[node]:
                kept += balance - lending[node]
        return amount

    def lacks(self, path: tuple[int, ...], cell: Cell, amount: int) -> list[tuple[int, int]]:
        """Which balances of a path's nodes would have to rise, and by how much, for an amount, more than
        nothing, to be available; in a tree that lends all of the cell.
        """
        balances, _, borrowing, _ = self._columns[cell]
        return [(node, lack) for node in path if (lack := amount - balances[node] - borrowing[node]) > 0]

    def balances(self, path: tuple[int, ...], cell: Cell) -> list[int]:
        """Of the nodes of a path, as of `balance`."""
        balances = self._columns[cell].balances
        return [balances[node] for node in path]

    def in_all(self, free: Mapping[Cell, int]) -> dict[Cell, int]:
        """By cell of which so much is free, what there is in all, with what is charged."""
        totals = self._totals
        return {cell: amount + totals.get(cell, 0) for cell, amount in free.items()}

    def availability(self, queue: str, cell: Cell) -> Availability:
        """`available`, and the lowest node that bounds it: -1 for an unknown queue."""
        path = self.tree.paths.get(queue)
        if path is None:
            return Availability(0, -1)
        balances, _, borrowing, lending = self._columns[cell]
        # Along the path, what a node may still be charged is what the nodes below it keep to themselves, plus
        # what it has and can be short of; the least of these is what a charge may be.
        amount, bound_by, kept = UNLIMITED, path[0], 0
        for node in path:
            balance = balances[node]
            left = balance + borrowing[node]
            here = kept + left if left > 0 else kept
            if here < amount:
                amount, bound_by = here, node
            if balance > lending[node]:
                kept += balance - lending[node]
        return Availability(amount, bound_by)

    def bounds(self, queue: str, cell: Cell) -> list[int]:
        """By node of the queue's path: what more the queue may be charged as far as that node goes."""
        balances, _, borrowing, lending = self._columns[cell]
        found, kept = [], 0
        for node in self.tree.paths.get(queue, ()):
            balance = balances[node]
            found.append(kept + max(0, balance + borrowing[node]))
            if balance > lending[node]:
                kept += balance - lending[node]
        return found

    def unborrowed(self, queue: str, cell: Cell, rises: Sequence[int] = ()) -> int:
        """What more the queue may be charged before it, or a queue above it, would borrow; 0 if one does.
        ``rises``: once the balances of its path's nodes have risen by so much.
        """
        balances, _, _, lending = self._columns[cell]
        amount, kept = UNLIMITED, 0
        for node, rise in zip(self.tree.paths.get(queue, ()), rises or repeat(0), strict=False):
            balance = balances[node] + rise
            amount = min(amount, kept + max(0, balance))
            if balance > lending[node]:
                kept += balance - lending[node]
        return amount

    def owned_left(self, queue: str, cell: Cell) -> int:
        """What of the queue's own nominal quota is not charged to it; never below 0."""
        path = self.tree.paths.get(queue)
        if path is None:
            return 0
        return max(0, self.tree.limits(cell).nominal[path[0]] - self._columns[cell].charged[path[0]])

    def fits(self, queue: str, charge: Charge) -> Shortage | None:
        """None if the charge may be made; otherwise what is short, of the first cell that is."""
        for cell, amount in charge:
            left = self.availability(queue, cell)
            if amount > left.amount:
                return self.shortage(queue, cell, amount, left)
        return None

    def shortage(self, queue: str, cell: Cell, amount: int, left: Availability) -> Shortage:
        """Whose quota or limit keeps an amount above what is available from being charged."""
        available, bound_by = left
        missing = amount - available
        if bound_by < 0:
            return Shortage(queue, cell, missing, is_borrowing=False)
        node = self.tree.nodes[bound_by].name
        balances, _, borrowing, _ = self._columns[cell]
        if self.tree.parents[bound_by] >= 0:
            return Shortage(node, cell, missing, is_borrowing=borrowing[bound_by] > 0)
        if node != queue and balances[self.tree.paths[queue][0]] < amount:
            return Shortage(queue, cell, missing, is_borrowing=True)
        return Shortage(node, cell, missing, is_borrowing=False)

    def borrowers(self, queue: str, cell: Cell) -> list[tuple[str, int]]:
        """Who uses more of the cell than it owns, and how much more, among those below the queue, or beside
        it where there are none; those with most first. Nobody among more than `MOST_BESIDE`: it takes a step
        each.
        """
        tree = self.tree
        path = tree.paths.get(queue, ())
        among: Sequence[int] = next((below for node in path[:2] if (below := tree.children(node))), ())
        if len(among) > MOST_BESIDE:
            return []
        balances = self._columns[cell].balances
        found = [(tree.nodes[n].name, -balances[n]) for n in among if balances[n] < 0 and n != path[0]]
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))

    def borrows_after(self, queue: str, charge: Charge) -> bool:
        """Whether, by this charge, the queue or one above it would use more than it owns."""
        path = self.tree.paths.get(queue, ())
        for cell, amount in charge:
            balances, _, _, lending = self._columns[cell]
            for node in path:
                balance = balances[node]
                if balance < amount:
                    return True
                # The parent does not see what the node has beyond what it lends.
                if balance > lending[node]:
                    amount -= balance - lending[node]
                    if amount <= 0:
                        break
        return False

    def borrowing_distance(self, queue: str, charge: Charge) -> int:
        """How many levels above the queue what it would borrow by this charge comes from; 0 for nothing.

        FindHeightOfLowestSubtreeThatFits of Kueue (pkg/scheduler/preemption/classical), counted from below.
        """
        path = self.tree.paths.get(queue, ())
        farthest = 0
        for cell, amount in charge:
            balances, _, _, lending = self._columns[cell]
            for level, node in enumerate(path):
                if balances[node] >= amount or level + 1 == len(path):
                    farthest = max(farthest, level)
                    break
                amount -= max(0, balances[node] - lending[node])
        return farthest

    def share(self, queue: str, charge: Charge) -> tuple[int, ...]:
        """The share, with this charge, of the queue, then of each node above it but the root."""
        levels = len(self.tree.paths.get(queue, ())) - 1
        return tuple(self.share_at(queue, charge, level) for level in range(levels))

    def share_at(self, queue: str, charge: Charge, level: int) -> int:
        """The dominant weighted share of the node ``level`` above the queue, with this charge; 0 of a root.

        The largest over resources of what the node uses beyond what it owns, summed over flavors, by what it
        and its siblings can share (`QuotaTree.lendable`), by its weight; in `SHARE_ONE`, rounded up, so that
        it is 0 only within quota, or where nothing of what is borrowed is there any more for anybody.
        """
        path = self.tree.paths.get(queue, ())
        if level + 1 >= len(path):
            return 0
        columns, after = self._columns, dict[Cell, int]()
        for cell, amount in charge:
            balances, _, _, lending = columns[cell]
            for below in path[:level]:
                kept = balances[below] - lending[below]
                if kept > 0:
                    amount = max(0, amount - kept)
            after[cell] = balances[path[level]] - amount
        return self._share_of(path[level], path[level + 1], after)

    def share_of(self, node: int) -> int:
        """The share of a node by its number, as of `share_at`, with nothing charged besides."""
        above = self.tree.parents[node]
        return self._share_of(node, above, {}) if above >= 0 else 0

    def over(self, queue: str, cell: Cell) -> int:
        """How much more than it may the queue uses, with those below it: beyond its own limit, or of what it
        borrows as much as a queue above it lacks and would have again; never below 0.
        """
        path = self.tree.paths.get(queue)
        if path is None:
            return 0
        balances, _, borrowing, lending = self._columns[cell]
        back = -balances[path[0]]
        over = max(0, back - borrowing[path[0]])
        for below, node in pairwise(path):
            # What a queue in between keeps to itself does not come back to those above it.
            back = min(back, lending[below] - balances[below])
            over = max(over, min(back, -(balances[node] + borrowing[node])))
        return over

    def beyond(self, queue: str) -> Charge:
        """By cell, where it is anything, `over`."""
        found = ((cell, self.over(queue, cell)) for cell in sorted(self._columns))
        return tuple((cell, amount) for cell, amount in found if amount)

    def borrows(self, node: int, cell: Cell) -> bool:
        """Whether the subtree of a node, by its number, uses more of the cell than it owns."""
        return self._columns[cell].balances[node] < 0

    def borrowing(self, nodes: Iterable[int], cells: Iterable[Cell]) -> list[int]:
        """Those of the nodes whose subtrees use more of any of the cells than they own."""
        of_cells = [self._columns[cell].balances for cell in cells]
        return list(dict.fromkeys(node for node in nodes for of in of_cells if of[node] < 0))

    def _share_of(self, node: int, above: int, after: Mapping[Cell, int]) -> int:
        """``after``: the node's balances by cell, where they are not to be what they are."""
        tree, columns = self.tree, self._columns
        dominant_used, dominant_of = 0, 1
        for cells, lendable in tree.lendable(above):
            used = 0
            for cell in cells:
                balance = after[cell] if cell in after else columns[cell].balances[node]
                if balance < 0:
                    used -= balance
            if used and lendable > 0 and used * dominant_of > dominant_used * lendable:
                dominant_used, dominant_of = used, lendable
        return _weighted(dominant_used, dominant_of, tree.nodes[node].weight_milli) if dominant_used else 0

    def _change(self, queue: str, charge: Charge, sign: int) -> None:
        path, versions = self.tree.paths.get(queue), self._versions
        for cell, amount in charge:
            change = sign * amount
            self._totals[cell] = self._totals.get(cell, 0) + change
            ever = self._charged if sign > 0 else self._returned
            ever[cell] = ever.get(cell, 0) + amount
            if path is None:
                self._change_stray(queue, cell, change)
                continue
            if sign < 0:
                here = (path[-1], cell)
                self._returned_in[here] = self._returned_in.get(here, 0) + amount
            self._own_column(cell)
            balances, charged, _, lending = self._columns[cell]
            charged[path[0]] += change
            for node in path:
                before = balances[node]
                after = balances[node] = before - change
                versions[node] += 1
                if before > lending[node] or after > lending[node]:
                    # The parent sees no more of the node than what that lends.
                    change = min(lending[node], before) - min(lending[node], after)
                    if not change:
                        break

    def _own_column(self, cell: Cell) -> None:
        if cell not in self._own:
            self._own.add(cell)
            shared = self._columns[cell]
            self._columns[cell] = shared._replace(
                balances=shared.balances.copy(), charged=shared.charged.copy()
            )

    def _change_stray(self, queue: str, cell: Cell, amount: int) -> None:
        charged = self._strays.setdefault(queue, {})
        charged[cell] = charged.get(cell, 0) + amount
        if not charged[cell]:
            del charged[cell]
        if not charged:
            del self._strays[queue]


def _weighted(used: int, of: int, weight_milli: int) -> int:
    if not weight_milli:
        return INFINITE_SHARE + -(-used * SHARE_ONE // of)
    return -(-used * SHARE_ONE * 1000 // (of * weight_milli))
