"""Turns: who goes next where only the release window is scarce.

The window belongs to nobody. Of those that would start if it were open, the higher priority goes first,
whatever its queue and tree; equals take turns. That is weighted fair queueing by start tags (Goyal, Vin and
Cheng, "Start-time Fair Queueing", 1996), the smooth form of deficit round robin, at every node of the quota
tree and among the trees: who has had the least beyond the others, by its weight, goes next. A release costs
as many turns as it releases bindings.

What somebody has had more than the others is its debt. Debts outlive the cycle, or with one release a cycle
nobody would ever have had more than another, and the oldest workload would always win. They are kept by
priority, so that who waits behind urgent work neither owes nor saves for it. Nobody has credit: a queue that
comes, or comes back, starts beside the one that has had the least. No debt is more than what one release
cost, so they are bounded; where no sibling waits, there is nobody to owe, and they are forgotten.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from queue_dispatcher.ledger.tree import QuotaTree

TURN = 1 << 40
"""What one binding costs a node of weight 1."""

MAX_PRIORITIES = 16
"""Of how many priorities debts are kept: those that had the last releases."""


@dataclass(frozen=True, slots=True)
class Turns:
    """By priority, the last served first: the debts of nodes by name, in `TURN`."""

    debts: tuple[tuple[int, Mapping[str, int]], ...] = ()


NO_TURNS = Turns()
"""Nobody has had any."""


class TakenTurns:
    """Turns while they are taken. Nodes are known by their numbers in the tree."""

    def __init__(self, turns: Turns, tree: QuotaTree) -> None:
        self._before = turns
        self._tree = tree
        self._tags: dict[int, dict[int, int]] = {}
        # Where a node's children last began to be served, by priority: whoever is not past it owes nothing.
        self._begun: dict[int, dict[int, int]] = {}
        for priority, debts in reversed(turns.debts):
            found = ((tree.paths.get(name), debt) for name, debt in debts.items())
            self._tags[priority] = {path[0]: debt for path, debt in found if path}

    def tag(self, priority: int, node: int) -> int:
        """Among siblings with work of the priority the least is the next."""
        tags = self._tags.get(priority)
        return tags.get(node, 0) if tags else 0

    def taken(self, priority: int, path: tuple[int, ...], bindings: int) -> None:
        """So many bindings of the queue at the beginning of the path are released."""
        tags = self._tags.pop(priority, {})
        self._tags[priority] = tags
        begun = self._begun.setdefault(priority, {})
        for node in path:
            parent, weight = self._tree.parents[node], self._tree.nodes[node].weight_milli
            tag = tags.get(node, 0)
            begun[parent] = max(begun.get(parent, 0), tag)
            tags[node] = tag + bindings * TURN * 1000 // max(1, weight)

    def after(self, has_rival: Callable[[int], bool]) -> Turns:
        """What is kept for the next cycle; ``has_rival``: whether work waits in a sibling of the node."""
        nodes, parents = self._tree.nodes, self._tree.parents
        kept = []
        for priority in list(reversed(self._tags))[:MAX_PRIORITIES]:
            begun = self._begun.get(priority, {})
            debts = {
                nodes[node].name: tag - begun.get(parents[node], 0)
                for node, tag in self._tags[priority].items()
                if tag > begun.get(parents[node], 0) and has_rival(node)
            }
            if debts:
                kept.append((priority, debts))
        turns = Turns(tuple(kept))
        return self._before if turns == self._before else turns
