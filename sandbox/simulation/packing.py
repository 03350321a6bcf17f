"""How the modelled estimators put pods on nodes: counted, or packed big pods first with a little search."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from fairway.capacity.v1 import capacity_pb2 as pb
from queue_dispatcher.cycle.witness import LEFT_ALONE, Witness
from sandbox.simulation.nodes import Node
from sandbox.simulation.objects import Obj
from sandbox.simulation.templates import Request

MOST_WITNESSES = 3
SEARCHED = 200
"""How many steps back a search for a packing takes at most."""


@dataclass(frozen=True, slots=True)
class Pods:
    """So many pods of one shape; ``spec`` for what they demand of their node beside resources."""

    count: int
    request: Request
    spec: Obj = field(hash=False)
    name: str = "main"


def copies_that_fit(pods: Sequence[Pods], nodes: list[Node], most: int) -> int:
    """How many whole copies of the gang the nodes take, at most ``most``. The nodes are filled with them."""
    wanted = [one for one in pods if one.count > 0]
    if not wanted:
        return most
    if len(wanted) == 1:
        room = sum(node.fits(wanted[0].request) for node in nodes if node.takes(wanted[0].spec))
        return min(most, room // wanted[0].count)
    copies = 0
    while copies < most and pack(wanted, nodes) is not None:
        copies += 1
    return copies


def pack(pods: Sequence[Pods], nodes: list[Node]) -> list[tuple[Pods, Node]] | None:
    """One copy: largest pods first, each on the fullest node that takes it; steps back where that fails.

    Which pod went where, None where they do not fit.
    """
    flat = [one for one in sorted(pods, key=_size, reverse=True) for _ in range(one.count)]
    steps = SEARCHED
    went: list[tuple[Pods, Node]] = []

    def search(number: int) -> bool:
        nonlocal steps
        if number == len(flat):
            return True
        pod = flat[number]
        tried: set[tuple[tuple[str, int], ...]] = set()
        fitting = [node for node in nodes if node.fits(pod.request) > 0 and node.takes(pod.spec)]
        for node in sorted(fitting, key=lambda node: [node.free.get(name, 0) for name, _ in pod.request]):
            state = tuple(sorted(node.free.items()))
            if state in tried:
                continue
            tried.add(state)
            node.hold(pod.request)
            went.append((pod, node))
            if search(number + 1):
                return True
            went.pop()
            node.release(pod.request)
            steps -= 1
            if steps <= 0:
                return False
        return False

    return went if search(0) else None


def witnesses_of(
    pods: Sequence[Pods], nodes: Sequence[Node], copies: int, *, is_held: bool = False
) -> tuple[Witness, ...]:
    """Where pods of one copy would go; or so many of a single kind, and as many again beside them. Nowhere
    where a scheduler that spreads does no harm: of one kind, where all nodes that take it have as much free.
    Pods of one kind become whole all the same, so theirs only pack; but where room is held, which a scheduler
    does not see, all are told.
    """
    mirrored = [node.copied() for node in nodes]
    if len(pods) > 1:
        went = pack([one for one in pods if one.count > 0], mirrored)
        return (_witness(went),) if went else ()
    request = pods[0].request
    taking = [node for node in mirrored if node.fits(request) and node.takes(pods[0].spec)]
    if not is_held and len({tuple(node.free.get(name, 0) for name, _ in request) for node in taking}) == 1:
        return (LEFT_ALONE,)
    found: list[Witness] = []
    together = replace(pods[0], count=pods[0].count * copies)
    while len(found) < MOST_WITNESSES:
        filled = fill(together, mirrored)
        if not filled or (found and len(filled) < together.count):
            break
        found.append(replace(_witness(filled), only_packs=not is_held))
    return tuple(found)


def where_of(went: Sequence[tuple[Pods, Node]]) -> tuple[tuple[str, str, int], ...]:
    """Pod set, node, and how many pods went there."""
    counts = Counter((pod.name, node.name) for pod, node in went)
    return tuple((name, node, count) for (name, node), count in counts.items())


def _witness(went: Sequence[tuple[Pods, Node]]) -> Witness:
    told: dict[str, dict[str, int]] = {}
    for name, node, count in where_of(went):
        told.setdefault(name, {})[node] = count
    return Witness(tuple((name, tuple(where.items())) for name, where in told.items()), ranks=True)


def told_nodes(gang: pb.Gang, pods: Pods) -> Mapping[str, int]:
    """By node, how many of the pods are said to go there."""
    return {one.node: one.pods for one in gang.where if one.pod_set == pods.name}


def fill(
    pods: Pods, nodes: list[Node], told: Mapping[str, int] = MappingProxyType({})
) -> list[tuple[Pods, Node]]:
    """Put as many of the pods as fit where they are ``told``, then on the fullest nodes; which went where."""
    left = pods.count
    went = []
    for node in nodes:
        for _ in range(min(left, told.get(node.name, 0))):
            if node.fits(pods.request) > 0 and node.takes(pods.spec):
                node.hold(pods.request)
                went.append((pods, node))
                left -= 1
    for node in sorted(nodes, key=lambda node: [node.free.get(name, 0) for name, _ in pods.request]):
        while left and node.fits(pods.request) > 0 and node.takes(pods.spec):
            node.hold(pods.request)
            went.append((pods, node))
            left -= 1
    return went


def hold_free(pods: Pods, nodes: list[Node], told: Mapping[str, int]) -> None:
    """Of the nodes that are ``told`` take as much as is free, up to what the pods ask for that go there."""
    left = pods.count
    for node in nodes:
        count = min(left, told.get(node.name, 0))
        left -= count
        for name, amount in pods.request if count > 0 else ():
            free = node.free.get(name, 0)
            node.free[name] = free - min(max(0, free), amount * count)


def _size(pods: Pods) -> int:
    return max((amount for name, amount in pods.request if "/" in name), default=0)


def why_none(pods: Sequence[Pods], nodes: list[Node]) -> str:
    """Why not even one copy fits, as people are told."""
    for one in pods:
        room = sum(node.fits(one.request) for node in nodes if node.takes(one.spec))
        if room < one.count:
            return f"needs {one.count} pods a set, {room} fit at all"
    return "all its pods together fit nowhere"
