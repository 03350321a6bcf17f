"""Gangs, told from the objects alone: is a placement what it claims to be, and what is the best there is?

Shares no code with the solver that it judges: nodes, pods and requests are read by `tests.oracle`, and the
best is found by enumerating what each node can hold.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from estimator.pb import estimator_pb2 as pb
from fairway.kube.objects import Node, Pod
from tests import oracle


@dataclass(frozen=True)
class Part:
    """So many pods of each copy that ask for this."""

    replicas: int
    asked: pb.ComponentReplicaRequirements


@dataclass(frozen=True)
class Stock:
    """Nodes, and what each has left, by name."""

    nodes: tuple[Node, ...]
    free: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True)
class Gang:
    """A gang's copies on these nodes, as plain numbers.

    ``free`` is what each node has left, ``takes`` what a pod of each part takes of it, ``may`` the nodes that
    each part's pods may use.
    """

    replicas: tuple[int, ...]
    free: Mapping[str, Mapping[str, int]]
    takes: tuple[Mapping[str, int], ...]
    may: tuple[frozenset[str], ...]


def stock(nodes: Iterable[Node], pods: Iterable[Pod]) -> Stock:
    """What the objects say is left."""
    on: dict[str, list[Pod]] = {}
    for pod in pods:
        on.setdefault(pod.spec.node_name or pod.status.nominated_node_name or "", []).append(pod)
    nodes = tuple(nodes)
    free = {node.metadata.name: oracle.free_of(node, on.get(node.metadata.name, ())) for node in nodes}
    return Stock(nodes, free)


def gang(stock: Stock, parts: Sequence[Part]) -> Gang:
    """The parts on what is left."""
    takes = [{name: n for name, n in oracle.request_of(part.asked).items() if n > 0} for part in parts]
    return Gang(
        tuple(part.replicas for part in parts),
        stock.free,
        tuple({**amounts, "pods": 1} for amounts in takes),
        tuple(
            frozenset(
                node.metadata.name for node in stock.nodes if oracle.eligible(node, part.asked.node_claim)
            )
            for part in parts
        ),
    )


def flaws(gang: Gang, copies: int, placement: Mapping[tuple[int, str], int]) -> list[str]:
    """What is wrong with a placement, pods by part and node, that claims to be so many copies."""
    found = []
    used: dict[str, dict[str, int]] = {name: {} for name in gang.free}
    placed = [0] * len(gang.replicas)
    for (part, node), count in placement.items():
        if count < 1 or node not in gang.may[part]:
            found.append(f"{count} pods of part {part} on {node}, where they may not be")
            continue
        placed[part] += count
        for name, amount in gang.takes[part].items():
            used[node][name] = used[node].get(name, 0) + amount * count
    for node, amounts in used.items():
        for name, amount in amounts.items():
            if amount > gang.free[node].get(name, 0):
                found.append(f"{node} has {gang.free[node].get(name, 0)} {name} and {amount} are used")
    for part, count in enumerate(placed):
        if count != copies * gang.replicas[part]:
            found.append(f"part {part}: {count} pods for {copies} copies of {gang.replicas[part]}")
    return found


def best(gang: Gang) -> int:
    """The most copies there can be. Time grows fast with pods on a node: for small clusters only."""
    copies = 0
    while _possible(gang, copies + 1):
        copies += 1
    return copies


def _possible(gang: Gang, copies: int) -> bool:
    """Whether so many copies fit, by all that nodes can hold together.

    After each node: which numbers of pods, up to those wanted, the nodes so far can hold.
    """
    wanted = [count * copies for count in gang.replicas]
    held = np.zeros([count + 1 for count in wanted], dtype=np.bool_)
    held[(0,) * len(wanted)] = True
    for node in gang.free:
        after = np.zeros_like(held)
        for load in _fullest(_loads(gang, node, wanted)):
            # Numbers up to n + load can be held where n can.
            source = [np.maximum(np.arange(n + 1) - more, 0) for n, more in zip(wanted, load, strict=True)]
            after |= held[np.ix_(*source)]
        held = after
    return bool(held[tuple(wanted)])


def _loads(gang: Gang, node: str, wanted: Sequence[int]) -> list[tuple[int, ...]]:
    free = gang.free[node]
    limits = [
        min(most, *(free.get(name, 0) // amount for name, amount in takes.items())) if node in may else 0
        for most, takes, may in zip(wanted, gang.takes, gang.may, strict=True)
    ]
    names = {name for takes in gang.takes for name in takes}
    return [
        load
        for load in product(*(range(limit + 1) for limit in limits))
        if all(
            sum(count * takes.get(name, 0) for count, takes in zip(load, gang.takes, strict=True))
            <= free.get(name, 0)
            for name in names
        )
    ]


def _fullest(loads: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Those to which no pod can be added: they can hold all that the others can."""
    known = set(loads)
    return [
        load
        for load in loads
        if not any((*load[:at], load[at] + 1, *load[at + 1 :]) in known for at in range(len(load)))
    ]
