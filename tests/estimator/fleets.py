"""Hypothesis strategies for small clusters and questions in which everything that matters happens often.

How many objects there are is up to hypothesis, which also tries to do with fewer; each object is drawn from a
seed of its own, since hypothesis by itself likes zeros and repetition, with which nothing ever fits.
"""

from collections.abc import Callable
from random import Random
from typing import TypeVar

from hypothesis import strategies as st

from estimator.pb import estimator_pb2 as pb
from tests.builders import (
    Expression,
    NodeBuilder,
    PodBuilder,
    Quantities,
    Quantity,
    node,
    pod,
    requirements,
    term,
)

NODE_NAMES = ("n0", "n1", "n2", "n3")
GHOST = "ghost"
"""A node that never appears."""

T = TypeVar("T")

_CPU: tuple[Quantity, ...] = ("4", "8", 16, "32", "64", "3.0001", "1500m", "-1")
_MEMORY: tuple[Quantity, ...] = ("4Ki", "16Ki", "1M", "2e3", 64.5, "2.5", "0")
_PODS: tuple[Quantity, ...] = (1, 2, 5, 0, "-3")


def seeded(build: Callable[[Random], T]) -> st.SearchStrategy[T]:
    """Whatever ``build`` makes of chance."""
    return st.uuids().map(lambda seed: build(Random(seed.int)))


def nodes(name: str) -> st.SearchStrategy[NodeBuilder]:
    return seeded(lambda rng: a_node(name, rng))


def pods(name: str) -> st.SearchStrategy[PodBuilder]:
    return seeded(lambda rng: a_pod(name, rng))


def asks() -> st.SearchStrategy[pb.ComponentReplicaRequirements]:
    """What a pod may ask for: room, and half the time certain nodes."""
    return seeded(_asked)


def a_node(name: str, rng: Random) -> NodeBuilder:
    built = node(name).cpu(rng.choice(_CPU)).memory(rng.choice(_MEMORY))
    if rng.random() < 0.7:
        built = built.gpus(rng.choice([16, 8, 4, 1]))
    if rng.random() < 0.2:
        built = built.pods(rng.choice(_PODS))
    if rng.random() < 0.8:
        built = built.label(zone=rng.choice(["a", "a", "b", ""]))
    if rng.random() < 0.8:
        built = built.label(generation=rng.choice(["1", "2", "9", "10", "x"]))
    for taint in _TAINTS:
        if rng.random() < 0.05:
            built = built.taint(taint)
    return built.cordoned() if rng.random() < 0.1 else built


_TAINTS = (
    "gpu:NoSchedule",
    "gpu=a100:NoSchedule",
    "spot:NoExecute",
    "spot=yes:NoExecute",
    "spot:PreferNoSchedule",
)


def a_pod(name: str, rng: Random) -> PodBuilder:
    built = pod(name)
    for _ in range(rng.randint(1, 3)):
        add = rng.choice([PodBuilder.requests, PodBuilder.requests, PodBuilder.init, PodBuilder.sidecar])
        built = add(
            built,
            _some(
                rng,
                cpu=("1", "250m", "0.1m", "2.0001", 0.5, "0"),
                memory=("1", "1Ki", "0.5"),
                gpu=("1", "2", 4),
            ),
        )
    places = (*NODE_NAMES, GHOST)
    match rng.choice(["bound", "bound", "bound", "nominated", "moving", "pending"]):
        case "bound":
            built = built.on(rng.choice(places))
        case "nominated":
            built = built.nominated(rng.choice(places))
        case "moving":
            built = built.nominated(rng.choice(places)).on(rng.choice(places))
        case _:
            built = built.phase("Pending")
    return built.phase(rng.choice(["Succeeded", "Failed", "Unknown"])) if rng.random() < 0.2 else built


def _asked(rng: Random) -> pb.ComponentReplicaRequirements:
    resources = _some(
        rng,
        cpu=("250m", "1", "0.1m", "3.0001", "0"),
        memory=("1", "0.5", "3", "1Ki"),
        gpu=("1", "0.5", "2"),
    )
    if rng.random() < 0.1:
        resources |= rng.choice([{"foo": 5}, {"amd.com/gpu": 1}, {"cpu": "100E"}])
    choosy = rng.random() < 0.5
    return requirements(
        resources,
        selector=rng.choice(_SELECTORS) if choosy else {},
        affinity=[_term(rng) for _ in range(rng.randint(1, 3))] if choosy and rng.random() < 0.8 else None,
        tolerations=[_toleration(rng) for _ in range(rng.randint(0, 2))],
    )


_SELECTORS: tuple[dict[str, str], ...] = ({}, {}, {"zone": "a"}, {"zone": "", "generation": "1"})
_EXPRESSIONS: tuple[Expression, ...] = (
    ("zone", "In", ("a",)),
    ("zone", "In", ("a", "b")),
    ("zone", "NotIn", ("a",)),
    ("zone", "NotIn", ("c", "b")),
    ("zone", "Exists", ()),
    ("zone", "DoesNotExist", ()),
    ("generation", "Gt", ("1",)),
    ("generation", "Lt", ("10",)),
)
_UNREADABLE: tuple[Expression, ...] = (
    ("zone", "In", ()),
    ("zone", "Exists", ("a",)),
    ("zone", "Like", ("a",)),
    ("generation", "Gt", ("x",)),
    ("generation", "Lt", ("-3",)),
)
_FIELDS: tuple[Expression, ...] = (
    ("metadata.name", "In", ("n1",)),
    ("metadata.name", "NotIn", ("n1",)),
    ("metadata.name", "In", ("n1", "n2")),
    ("metadata.namespace", "In", ("",)),
)


def _term(rng: Random) -> pb.NodeSelectorTerm:
    expressions = rng.choices(_EXPRESSIONS, k=rng.choice([0, 1, 1, 1, 2]))
    if rng.random() < 0.1:
        expressions.append(rng.choice(_UNREADABLE))
    return term(*expressions, fields=[rng.choice(_FIELDS)] if rng.random() < 0.3 else [])


def _toleration(rng: Random) -> pb.Toleration:
    return pb.Toleration(
        key=rng.choice(["", "gpu", "spot", "node.kubernetes.io/unschedulable"]),
        operator=rng.choice(["", "Equal", "Exists", "Exists", "Gt"]),
        value=rng.choice(["", "a100"]),
        effect=rng.choice(["", "", "NoSchedule", "NoExecute"]),
    )


def _some(rng: Random, **choices: tuple[str | int | float, ...]) -> Quantities:
    """A quantity of some of the resources."""
    names = {"gpu": "nvidia.com/gpu"}
    return {
        names.get(name, name): rng.choice(values) for name, values in choices.items() if rng.random() < 0.5
    }
