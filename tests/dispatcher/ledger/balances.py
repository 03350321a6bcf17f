"""Two formulations of who may use what, independent of the ledger's and of each other.

`balances` is KEP-79's recursion, from the charges alone. `is_served` asks for a flow: every node has its
nominal quota to give; it can pass at most its lending limit up, and take at most its borrowing limit from
above; what is used must be served. A state is legal where a flow serves everything.
"""

from collections import deque
from collections.abc import Mapping

from queue_dispatcher.ledger.cells import Cell
from queue_dispatcher.ledger.tree import UNLIMITED, CellQuota, QuotaTree

_NONE = CellQuota()


def balances(tree: QuotaTree, used: Mapping[str, int], cell: Cell) -> dict[str, int]:
    """T by node."""
    quotas = {node.name: node.quotas.get(cell, _NONE) for node in tree.nodes}

    def balance(name: str) -> int:
        total = quotas[name].nominal - used.get(name, 0)
        for child in tree.nodes:
            if child.parent == name:
                limit = quotas[child.name].lending_limit
                below = balance(child.name)
                total += below if limit is None else min(limit, below)
        return total

    return {node.name: balance(node.name) for node in tree.nodes}


def overdrawn(tree: QuotaTree, used: Mapping[str, int], cell: Cell) -> list[str]:
    """The nodes whose balance is below what it may be."""
    found = []
    for name, balance in balances(tree, used, cell).items():
        node = tree.nodes[tree.paths[name][0]]
        limit = node.quotas.get(cell, _NONE).borrowing_limit if node.parent else 0
        if limit is not None and balance < -limit:
            found.append(name)
    return found


def is_served(tree: QuotaTree, used: Mapping[str, int], cell: Cell) -> bool:
    """Whether a flow serves all that is used."""
    source, sink = "<source>", "<sink>"
    capacity: dict[str, dict[str, int]] = {source: {}, sink: {}}
    for node in tree.nodes:
        quota = node.quotas.get(cell, _NONE)
        own = capacity.setdefault(node.name, {})
        capacity[source][node.name] = quota.nominal
        own[sink] = used.get(node.name, 0)
        if node.parent:
            own[node.parent] = UNLIMITED if quota.lending_limit is None else quota.lending_limit
            below = capacity.setdefault(node.parent, {})
            below[node.name] = UNLIMITED if quota.borrowing_limit is None else quota.borrowing_limit
    return _max_flow(capacity, source, sink) == sum(used.values())


def _max_flow(capacity: dict[str, dict[str, int]], source: str, sink: str) -> int:
    """Edmonds and Karp: shortest augmenting paths; uses ``capacity`` up."""
    flow = 0
    while True:
        came_from: dict[str, str] = {source: source}
        reached = deque([source])
        while reached and sink not in came_from:
            at = reached.popleft()
            for to, left in capacity[at].items():
                if left > 0 and to not in came_from:
                    came_from[to] = at
                    reached.append(to)
        if sink not in came_from:
            return flow
        path, at = [], sink
        while at != source:
            path.append((came_from[at], at))
            at = came_from[at]
        pushed = min(capacity[a][b] for a, b in path)
        for a, b in path:
            capacity[a][b] -= pushed
            capacity[b][a] = capacity[b].get(a, 0) + pushed
        flow += pushed
