"""QuotaTree: who owns how much, who lends and borrows how much, and who is whose parent.

Mirrors KEP-79 of Kueue (pkg/cache/scheduler/resource_node.go, v0.20). All that depends on quotas alone, and
not on what is in use, is worked out here, a column of all nodes for each cell, when the cell is first asked
about; a ledger then only keeps balances.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from queue_dispatcher.ledger.cells import Cell, CellTable

UNLIMITED = 1 << 128
"""A limit that no sum of amounts reaches."""


class TreeError(ValueError):
    """The nodes form no trees: a name twice, a parent that is not there, or a cycle; the message names it."""


@dataclass(frozen=True, slots=True)
class CellQuota:
    """What a node owns of a cell; None for limits that are not set.

    ``borrowing_limit``: how much more its subtree may use than it owns. ``lending_limit``: how much of what
    its subtree owns and does not use others may use.
    """

    nominal: int = 0
    borrowing_limit: int | None = None
    lending_limit: int | None = None


@dataclass(frozen=True, slots=True)
class QuotaNode:
    """One queue. ``parent`` is empty for a root; cells it does not name are owned 0 and passed on freely."""

    name: str
    parent: str = ""
    weight_milli: int = 1000
    quotas: Mapping[Cell, CellQuota] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Limits:
    """One cell over all nodes; the lists are indexed by node and never changed.

    ``nominal``: owned by the node itself. ``owned``: by its subtree, as far as that lends it up to the node.
    ``borrowing``: what the node may be short of, 0 at roots. ``lending``: the most it passes up. ``most``:
    what a workload there could use if nothing else ran.
    """

    nominal: list[int]
    owned: list[int]
    borrowing: list[int]
    lending: list[int]
    most: list[int]


class QuotaTree:
    """Quota nodes of one or several trees; immutable. Nodes are numbered, parents before children."""

    def __init__(self, nodes: Iterable[QuotaNode], table: CellTable) -> None:
        """Raises TreeError; `resolve` makes trees of whatever administrators wrote."""
        self.nodes = _parents_first(nodes)
        """In the order of their numbers: parents before children, siblings by name."""
        self.table = table
        index = {node.name: number for number, node in enumerate(self.nodes)}
        self.parents: list[int] = [index[node.parent] if node.parent else -1 for node in self.nodes]
        """The number of each node's parent; -1 for roots."""
        self.paths: dict[str, tuple[int, ...]] = {}
        """By name: the node's number, its parent's, and so on up to the root's."""
        for node in self.nodes:
            above = self.paths[node.parent] if node.parent else ()
            self.paths[node.name] = (index[node.name], *above)
        self._children: dict[int, list[int]] = {}
        for number, parent in enumerate(self.parents):
            if parent >= 0:
                self._children.setdefault(parent, []).append(number)
        self._limits: dict[Cell, Limits] = {}
        self._lends_all: dict[tuple[int, Cell], bool] = {}
        self._resources: dict[int, tuple[tuple[Cell, ...], ...]] = {}
        self._lendable: dict[int, tuple[tuple[tuple[Cell, ...], int], ...]] = {}

    def root_of(self, queue: str) -> str:
        """The name of the root of the tree that the queue is in."""
        return self.nodes[self.paths[queue][-1]].name

    def children(self, node: int) -> Sequence[int]:
        """The numbers of those right below a node."""
        return self._children.get(node, ())

    def subtree(self, node: int) -> Iterator[int]:
        """The numbers of a node and of all below it."""
        waiting = [node]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += self.children(node)

    def limits(self, cell: Cell) -> Limits:
        """The column of a cell; cells that no node names are there, with nothing owned."""
        limits = self._limits.get(cell)
        if limits is None:
            limits = self._limits[cell] = self._column(cell)
        return limits

    def most(self, queue: str, cell: Cell) -> int:
        """What one workload of the queue could be charged if nothing else ran; 0 for an unknown queue."""
        path = self.paths.get(queue)
        return self.limits(cell).most[path[0]] if path else 0

    def lendable(self, node: int) -> tuple[tuple[tuple[Cell, ...], int], ...]:
        """For each resource of the node's tree: its cells, and how much of them the node's children can use.

        What Kueue's fair sharing (pkg/cache/scheduler/fair_sharing.go) measures a child's share against.
        """
        found = self._lendable.get(node)
        if found is None:
            root = self.paths[self.nodes[node].name][-1]
            found = self._lendable[node] = tuple(
                (cells, sum(self.limits(cell).most[node] for cell in cells))
                for cells in self._cells_by_resource(root)
            )
        return found

    def lends_all(self, root: int, cell: Cell) -> bool:
        """Whether no node of a tree keeps anything of a cell from the others."""
        found = self._lends_all.get((root, cell))
        if found is None:
            lending = self.limits(cell).lending
            found = all(lending[node] == UNLIMITED for node in self.subtree(root))
            self._lends_all[root, cell] = found
        return found

    def _column(self, cell: Cell) -> Limits:
        quotas = [node.quotas.get(cell, _NONE) for node in self.nodes]
        nominal = [quota.nominal for quota in quotas]
        borrowing = [UNLIMITED if q.borrowing_limit is None else q.borrowing_limit for q in quotas]
        lending = [UNLIMITED if q.lending_limit is None else q.lending_limit for q in quotas]
        owned = list(nominal)
        for number in range(len(owned) - 1, -1, -1):
            parent = self.parents[number]
            if parent >= 0:
                owned[parent] += min(owned[number], lending[number])
            else:
                borrowing[number] = 0
        most = list(owned)
        for number, parent in enumerate(self.parents):
            if parent >= 0:
                kept = max(0, owned[number] - lending[number])
                most[number] = min(owned[number] + borrowing[number], kept + most[parent])
        return Limits(nominal, owned, borrowing, lending, most)

    def _cells_by_resource(self, root: int) -> tuple[tuple[Cell, ...], ...]:
        """The cells that a tree has quotas of, those of one resource together."""
        found = self._resources.get(root)
        if found is None:
            by_resource: dict[str, list[Cell]] = {}
            for cell in sorted({cell for node in self.subtree(root) for cell in self.nodes[node].quotas}):
                by_resource.setdefault(self.table.name(cell).resource, []).append(cell)
            found = self._resources[root] = tuple(tuple(cells) for cells in by_resource.values())
        return found


_NONE = CellQuota()


def _parents_first(nodes: Iterable[QuotaNode]) -> tuple[QuotaNode, ...]:
    by_name: dict[str, QuotaNode] = {}
    children: dict[str, list[str]] = {}
    for node in nodes:
        if by_name.setdefault(node.name, node) is not node:
            raise TreeError(f"{node.name}: expected once, found twice")
        children.setdefault(node.parent, []).append(node.name)
    for parent in children:
        if parent and parent not in by_name:
            raise TreeError(f"{children[parent][0]}: its parent {parent} is not among the nodes")
    ordered: list[QuotaNode] = []
    level = sorted(children.get("", ()))
    while level:
        ordered += (by_name[name] for name in level)
        level = [child for name in level for child in sorted(children.get(name, ()))]
    if len(ordered) < len(by_name):
        unreached = min(by_name.keys() - {node.name for node in ordered})
        raise TreeError(f"{unreached}: on or below a cycle of parents")
    return tuple(ordered)
