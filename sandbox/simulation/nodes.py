"""Nodes of a member cluster, and which of them its kube-scheduler gives a pod.

A pod gets whole devices of one node or waits. Of the nodes that it fits, the emptiest is taken, as the
default profile spreads (LeastAllocated), or the fullest (MostAllocated), and one of equals by chance.
"""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from fairway.names import GANG_CLASSES
from sandbox.simulation.objects import Obj, at
from sandbox.simulation.templates import GPU, Request


class Scoring(Enum):
    """How kube-scheduler's NodeResourcesFit rates nodes."""

    LEAST_ALLOCATED = "LeastAllocated"
    MOST_ALLOCATED = "MostAllocated"


@dataclass(slots=True)
class Node:
    """``free``: what its pods leave of ``allocatable``. ``taints``: as v1.Taint."""

    name: str
    allocatable: Mapping[str, int]
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Obj, ...] = ()
    is_ready: bool = True
    is_cordoned: bool = False
    free: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.free = dict(self.allocatable)

    def renewed(self) -> "Node":
        """Such a node without pods, as it is when its machine was set up anew."""
        return Node(self.name, self.allocatable, self.labels, self.taints)

    def copied(self) -> "Node":
        """The same, to try something on."""
        twin = Node(self.name, self.allocatable, self.labels, self.taints, self.is_ready, self.is_cordoned)
        twin.free = dict(self.free)
        return twin

    def fits(self, request: Request) -> int:
        """How many pods more that ask for this, by what is free."""
        return min((self.free.get(name, 0) // amount for name, amount in request), default=1_000)

    def takes(self, spec: Obj) -> bool:
        """Whether pods of this spec may go there at all."""
        if not self.is_ready or self.is_cordoned:
            return False
        selector: Mapping[str, str] = spec.get("nodeSelector") or {}
        if any(self.labels.get(key) != value for key, value in selector.items()):
            return False
        tolerations: Iterable[Obj] = spec.get("tolerations") or ()
        return all(any(tolerates(one, taint) for one in tolerations) for taint in self.taints)

    def hold(self, request: Request) -> None:
        """A pod takes what it asks for."""
        for name, amount in request:
            self.free[name] = self.free.get(name, 0) - amount

    def release(self, request: Request) -> None:
        """A pod is gone."""
        for name, amount in request:
            self.free[name] = self.free.get(name, 0) + amount


def gpu_nodes(cluster: str, *gpus: int) -> list[Node]:
    """Nodes with so many GPUs each, and plenty of all else."""
    return [
        Node(
            f"{cluster}-{number}",
            {GPU: count, "cpu": 128_000, "memory": 1 << 40},
            {"kubernetes.io/hostname": f"{cluster}-{number}"},
        )
        for number, count in enumerate(gpus)
    ]


def chosen(
    nodes: Iterable[Node], spec: Obj, request: Request, scoring: Scoring, rng: random.Random
) -> Node | None:
    """The node that a pod gets; None where it has to wait."""
    fitting = [node for node in nodes if node.fits(request) > 0 and node.takes(spec)]
    if not fitting:
        return None
    preferred = preferred_nodes(spec)
    fitting = [node for node in fitting if node.name in preferred] or fitting
    rated = [(_free_share(node, request), node) for node in fitting]
    best = (max if scoring is Scoring.LEAST_ALLOCATED else min)(share for share, _ in rated)
    equals = [node for share, node in rated if share == best]
    return equals[0] if len(equals) == 1 else rng.choice(equals)


def preferred_nodes(spec: Obj) -> frozenset[str]:
    """The nodes that it prefers by name; that weighs more than how full they are."""
    field = "preferredDuringSchedulingIgnoredDuringExecution"
    terms: Iterable[Obj] = at(spec, "affinity", "nodeAffinity", field, default=())
    fields = (one for term in terms for one in at(term, "preference", "matchFields", default=()))
    return frozenset(name for one in fields for name in one["values"])


def priority_of(spec: Obj) -> int:
    """How urgent its pods are: by the classes that member clusters have, as the admission there notes it."""
    named = spec.get("priorityClassName")
    return GANG_CLASSES.index(named) + 1 if named in GANG_CLASSES else int(spec.get("priority", 0))


def available(nodes: Iterable[Node], spec: Obj, request: Request) -> int:
    """How many pods fit on all nodes together, one kind of pod alone."""
    return sum(node.fits(request) for node in nodes if node.takes(spec))


def _free_share(node: Node, request: Request) -> int:
    """In parts of a million of what the pod asks for."""
    shares = [node.free[name] * 1_000_000 // node.allocatable[name] for name, _ in request]
    return sum(shares) // len(shares) if shares else 0


def tolerates(toleration: Obj, taint: Obj) -> bool:
    """Whether a toleration is about the taint, of a node or of a cluster."""
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint.get("key"))
    return (toleration.get("key"), toleration.get("value")) == (taint.get("key"), taint.get("value"))
