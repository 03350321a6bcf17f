"""Targets: in which queue to look next for whom to displace. Pure.

Where the share is largest, from the root of the tree down to a queue; each victim changes the shares of one
path, so that what was found of all other nodes holds still.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Final

from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.ledger.tree import QuotaTree
from queue_dispatcher.preemption.candidates import Candidate, Preemptor, place_of
from queue_dispatcher.preemption.may_go import Lines

_Share = tuple[int, int]
"""Of a node: its share, and its number."""
_NOTHING: Final[_Share] = (-1, -1)


class Targets:
    """The candidates by queue, each queue's in their order, and in which queue to look next.

    ``gone``: by workload, how many of its pods are.
    """

    def __init__(
        self,
        ledger: Ledger,
        preemptor: Preemptor,
        lines: Lines,
        gone: Mapping[str, int],
    ) -> None:
        self._ledger, self._preemptor, self._lines, self._gone = ledger, preemptor, lines, gone
        self._path = ledger.tree.paths[preemptor.queue]
        # By node above others, where to look below it, in order; what is not there any more is passed over.
        self._below = _below(ledger.tree, lines.queues)
        # By node above others, the first of its queues and of its inner nodes, until any may be another.
        self._firsts: dict[int, tuple[_Share, _Share]] = {}
        # Of each queue that was looked at the first, where that is known, and the others.
        self._first: dict[int, Candidate] = {}
        self._others: dict[int, Iterator[Candidate]] = {}
        # As of `share_of`: each victim changes the shares of one path.
        self._shares: dict[int, int] = {}

    def queues(self) -> Iterator[int]:
        """Where to look next, as long as there is anywhere."""
        root = self._path[-1]
        if len(self._path) == 1:
            while self._has(root):
                yield root
            return
        while root in self._below:
            found = self._largest(root)
            if found is not None:
                yield found

    def next(self, queue: int) -> Candidate | None:
        """The next one of the queue, of a surplus one pod; None if there is none left."""
        if not self._has(queue):
            return None
        one = self._first[queue]
        return replace(one, pods=1) if one.pods else one

    def pop(self, queue: int) -> Candidate:
        """The same, which goes, and is not looked at again."""
        one = self._first.pop(queue)
        for node in self._ledger.tree.paths[one.queue]:
            self._shares.pop(node, None)
            self._firsts.pop(node, None)
        if one.pods > 1:
            self._first[queue] = replace(one, pods=one.pods - 1)
        return replace(one, pods=1) if one.pods else one

    def pass_over(self, queue: int) -> Candidate:
        """The same with all pods of a surplus."""
        self._look_again(queue)
        return self._first.pop(queue)

    def _has(self, queue: int) -> bool:
        """Whether one is left in the queue; what can give up no more pods in any cluster is not."""
        known = self._first.get(queue)
        if known is not None and not known.pods:
            return True
        others = self._others.get(queue)
        if others is None:
            others = self._others[queue] = self._lines.of(self._ledger.tree.nodes[queue].name)
        one = self._first.pop(queue, None) or next(others, None)
        while one is not None and one.pods and self._gone.get(one.members[0], 0) >= one.surplus:
            one = next(others, None)
        if one is not None:
            self._first[queue] = one
        return one is not None

    def drop(self, queue: int) -> None:
        """The queue is not looked at again."""
        self._look_again(queue)
        self._first.pop(queue, None)
        self._others[queue] = iter(())

    def _largest(self, above: int) -> int | None:
        """The queue below a node to look in: that of the largest share, step by step down the tree.

        None where there is none; what holds nobody to displace, or borrows nothing, is passed over from then
        on, but for what the preemptor is in.
        """
        firsts = self._firsts.get(above)
        if firsts is None:
            firsts = self._firsts_below(above)
        leaf, inner = firsts
        if inner is leaf:
            self._leave(above)
            return None
        if inner[0] < leaf[0]:
            return leaf[1]
        return self._largest(inner[1])

    def _firsts_below(self, above: int) -> tuple[_Share, _Share]:
        """Of the queues right below a node, and of the inner nodes there, the one of the largest share."""
        shares, leaf, inner = self._shares, _NOTHING, _NOTHING
        for node in [*self._below[above]]:
            share = shares.get(node)
            if share is None:
                share = shares[node] = self._ledger.share_of(node)
            if node in self._below:
                if not share and node not in self._path:
                    self._leave(node)
                elif share >= inner[0]:
                    inner = (share, node)
            elif (not share and node != self._path[0]) or not self._has(node):
                self._leave(node)
            elif share > leaf[0] or (share == leaf[0] and self._is_sooner(node, leaf[1])):
                leaf = (share, node)
        self._firsts[above] = leaf, inner
        return leaf, inner

    def _look_again(self, node: int) -> None:
        """Among those beside the node another one may be the first by now."""
        self._firsts.pop(self._ledger.tree.parents[node], None)

    def _leave(self, node: int) -> None:
        """Nothing at the node or below it is looked at again."""
        self._look_again(node)
        self._below.pop(node, None)
        self._below.get(self._ledger.tree.parents[node], {}).pop(node, None)

    def _is_sooner(self, queue: int, other: int) -> bool:
        own = self._preemptor.queue
        return place_of(self._first[queue], own) < place_of(self._first[other], own)


def _below(tree: QuotaTree, queues: Iterable[str]) -> dict[int, dict[int, None]]:
    """By node, in order, those right below it that lead to any of the queues; none that is below a queue."""
    found: dict[int, set[int]] = {}
    for queue in queues:
        path = tree.paths[queue]
        for node, above in () if tree.children(path[0]) else pairwise(path):
            beside = found.setdefault(above, set())
            if node in beside:
                break
            beside.add(node)
    return {above: dict.fromkeys(sorted(nodes)) for above, nodes in found.items()}
