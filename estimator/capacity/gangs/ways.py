"""All the ways in which some of a workload's pods may go, where nobody knows which of them do. Pure.

From nodes that are alike it is all one which go: of these each number of pods on each number of nodes is one
way.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import islice
from typing import Final

import numpy as np

from estimator.capacity.departures import Loose
from estimator.cluster.columns import IntVector

MAX_WAYS: Final = 32
"""Of more nobody looks at each: then no more go than is certain."""


Nodes = Sequence[tuple[Hashable, Sequence[int]]]
"""The places of pods by node, with what it has in common with nodes that are like it."""


def ways(
    gone: IntVector, loose: Sequence[Loose], by_node: Callable[[IntVector, IntVector], Nodes]
) -> list[IntVector]:
    """Who may be gone, in each way, of which one comes about; only ``gone`` where there are too many.

    ``by_node``: of those of whom some go once others are gone, by their places. Nodes are alike that have as
    much room by then, and as many of any of ``loose``.
    """
    found = [gone]
    for one in loose:
        left = np.setdiff1d(one.places, gone)
        count = min(len(left), one.most - (len(one.places) - len(left)))
        if count <= 0:
            continue
        more: list[IntVector] = []
        for way in found:
            kinds: dict[Hashable, list[Sequence[int]]] = {}
            for kind, places in by_node(way, left):
                kinds.setdefault((kind, len(places)), []).append(places)
            if len(kinds) > MAX_WAYS and count < len(left):
                return [gone]
            picks = islice(_picks(list(kinds.values()), count), MAX_WAYS + 1)
            more += (np.concatenate([way, np.array(pick, dtype=np.int64)]) for pick in picks)
            if len(more) > MAX_WAYS:
                return [gone]
        found = more
    return found


def _picks(kinds: Sequence[Sequence[Sequence[int]]], count: int) -> Iterator[list[int]]:
    """So many of the pods on these nodes, which are alike where they are of one kind."""
    if not kinds:
        yield []
        return
    first, *rest = kinds
    left = sum(len(nodes) * len(nodes[0]) for nodes in rest)
    for here in range(min(count, len(first) * len(first[0])), max(0, count - left) - 1, -1):
        for pick in _from_alike(first, here, len(first[0])):
            for more in _picks(rest, count - here):
                yield [*pick, *more]


def _from_alike(nodes: Sequence[Sequence[int]], count: int, most: int) -> Iterator[list[int]]:
    """So many of the pods on nodes that are alike, and no more than ``most`` of one node."""
    if not count:
        yield []
        return
    if len(nodes) * most < count:
        return
    for full in range(min(len(nodes), count // most), -1, -1):
        taken = [place for node in nodes[:full] for place in node[:most]]
        for more in _from_alike(nodes[full:], count - full * most, most - 1):
            yield [*taken, *more]
