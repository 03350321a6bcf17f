"""Builders and fixtures for the adapters: what a node, a pod and an ask say, as the adapters see it."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from fairway.accelerators.devices import Device, DeviceClaim, NodeFacts, PodAsk, PodFacts, Read, Scheme
from fairway.accelerators.schemes import SCHEMES

FIXTURES = Path(__file__).parent / "fixtures"

SCHEME: dict[str, Scheme] = {scheme.name: scheme for scheme in SCHEMES}

T = TypeVar("T")

MEGABYTE = 1_000_000

GARBAGE = {
    "empty": "",
    "one letter": "x",
    "spaces": "   ",
    "not text": "\x00\ud800\x07",
    "commas": "," * MEGABYTE,
    "colons": ":" * MEGABYTE,
    "letters": "x" * MEGABYTE,
    "digits": "9" * MEGABYTE,
    "many entries": "a,b:" * (MEGABYTE // 4),
    "brackets": "[" * MEGABYTE,
    "open JSON": '[{"id":"' + "x" * MEGABYTE,
    "JSON of something else": '{"a":[1,2,{"b":null}]}',
    "JSON of numbers": "[1,2,3]",
    "JSON of nothing": "null",
    "huge numbers": "GPU-1,999999999999999999999,1e99,-5,NVIDIA,0,true:",
}
"""Texts that no device plugin writes."""


def text(name: str) -> str:
    """A fixture as the value of an annotation."""
    return (FIXTURES / name).read_text().removesuffix("\n")


class _Metadata(msgspec.Struct):
    name: str
    namespace: str = "default"
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class _Resources(msgspec.Struct):
    requests: dict[str, int] = {}


class _Container(msgspec.Struct):
    resources: _Resources


class _Spec(msgspec.Struct):
    containers: list[_Container]


class _Status(msgspec.Struct):
    allocatable: dict[str, int]


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec


class _Node(msgspec.Struct):
    metadata: _Metadata
    status: _Status


def node_of(name: str) -> NodeFacts:
    """A fixture that is a node."""
    node = msgspec.yaml.decode(text(name), type=_Node)
    meta = node.metadata
    return NodeFacts(meta.name, meta.labels, meta.annotations, node.status.allocatable)


def pod_of(name: str) -> PodFacts:
    """A fixture that is a pod."""
    pod = msgspec.yaml.decode(text(name), type=_Pod)
    meta, containers = pod.metadata, pod.spec.containers
    return PodFacts(
        meta.namespace, meta.labels, meta.annotations, tuple(c.resources.requests for c in containers)
    )


def node(
    allocatable: Mapping[str, int],
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> NodeFacts:
    """A node that has this allocatable."""
    return NodeFacts("n", labels or {}, annotations or {}, allocatable)


def devices_of(scheme: Scheme, facts: NodeFacts) -> Read[tuple[Device, ...]]:
    """What a node that takes part in the scheme has."""
    read = scheme.devices(facts)
    assert read is not None
    return read


def the_problem(read: Read[T]) -> str:
    """The one problem that there is."""
    (problem,) = read.problems
    return problem


def check_garbage(read: Read[T]) -> T:
    """What was found in garbage, whose problems are few and short."""
    assert len(read.problems) <= 7
    assert all(0 < len(problem) < 500 and problem.isprintable() for problem in read.problems)
    return read.found


def pod(
    annotations: Mapping[str, str] | None = None,
    *requests: Mapping[str, int],
    labels: Mapping[str, str] | None = None,
) -> PodFacts:
    """A bound pod with these containers."""
    return PodFacts("default", labels or {}, annotations or {}, requests)


def ask(*containers: Mapping[str, int], **annotations: str) -> PodAsk:
    """A pod that is to be placed."""
    return PodAsk(tuple(tuple(c.items()) for c in containers), tuple(annotations.items()))


def claimed(read: Read[tuple[DeviceClaim, ...]] | None) -> tuple[DeviceClaim, ...]:
    """The claims of an ask that nothing is wrong with."""
    assert read is not None
    assert not read.problems
    return read.found


def refused(read: Read[tuple[DeviceClaim, ...]] | None) -> str:
    """Why an ask is refused."""
    assert read is not None
    assert read.found == ()
    return "; ".join(read.problems)
