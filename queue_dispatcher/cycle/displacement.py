"""How much of an answer a release uses up: whose room pods may take that go to the same clusters. Pure.

An answer says how many more workloads of one kind fit. Something else that is released has its pods on nodes,
and on a node a pod takes the place of no more others than have to go until there is as much as it asks for.
That is a bound for all nodes and clusters, whoever puts the pods there; amounts alone count in it.
"""

from collections.abc import Iterable
from typing import Final

Amounts = tuple[tuple[str, int], ...]
"""What one pod asks for, by resource."""
Pods = tuple[tuple[Amounts, int], ...]
"""So many pods that ask for the same, of each kind; empty where they are not known."""

UNKNOWN: Final = 1 << 62
"""Of pods that are not known all may have lost their place."""


def displaced(by: Pods, of: Pods) -> int:
    """The most pods of ``of`` for which there is no room any more when all pods of ``by`` are placed."""
    if not by or not of:
        return UNKNOWN
    least: dict[str, int] = {}
    for amounts, _ in of:
        for resource, amount in amounts:
            if amount > 0:
                least[resource] = min(amount, least.get(resource, amount))
    # Where all are alike, those that go free every resource at once.
    total = max if len(of) == 1 else sum
    return sum(count * max(1, total(_places(amounts, least))) for amounts, count in by)


def _places(amounts: Amounts, least: dict[str, int]) -> Iterable[int]:
    """By resource, how many pods have to go until there is as much."""
    return [0, *(-(-amount // least[resource]) for resource, amount in amounts if resource in least)]
