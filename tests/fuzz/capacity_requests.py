"""Random requests of fairway.capacity.v1: pod sets and workloads of every kind, some of them broken."""

import json
import random
from collections.abc import Callable, Sequence
from typing import TypeVar

import yaml

from fairway.capacity.v1 import capacity_pb2 as pb
from tests.fuzz.requests import spoiled
from tests.workloads.objects import EXAMPLES

CAPACITY_RPCS = ("Place", "Explain", "Summary")

T = TypeVar("T")
Value = str | int | float | bool | None | list["Value"] | dict[str, "Value"]

_COUNTS = (0, 1, 1, 2, 3, 8, 100, 100_000, 2**31 - 1)
_MODES = (pb.Topology.REQUIRED, pb.Topology.PREFERRED, pb.Topology.EXCLUSIVE, pb.Topology.SLICED)
_CLUSTERS = ("fuzzed", "fuzzed", "control", "", "elsewhere", "c" * 5000)
_LEVELS = ("zone", "rack", "kubernetes.io/hostname", "host", "example.com/rack", "Bad Key", "l" * 300)
_AMOUNTS: tuple[Value, ...] = (
    "1",
    "500m",
    "0",
    "-1",
    "1.5Gi",
    "8E",
    "100Ei",
    "1n",
    "",
    "one",
    1,
    2.5,
    True,
    None,
    [],
    "9" * 40,
)
_RESOURCES = (
    "cpu",
    "memory",
    "nvidia.com/gpu",
    "nvidia.com/gpumem",
    "nvidia.com/gpucores",
    "volcano.sh/vgpu-number",
    "aliyun.com/gpu-mem",
    "google.com/tpu",
    "nvidia.com/mig-1g.10gb",
    "pods",
    "a/b",
    "x" * 400,
)
_ANNOTATIONS = (
    ("gpu-fraction", "0.5"),
    ("gpu-fraction", "many"),
    ("gpu-memory", "4096"),
    ("gpu-fraction-num-devices", "2"),
    ("nvidia.com/use-gputype", "A10"),
    ("nvidia.com/vgpu-mode", "mig"),
    ("hami.io/gpu-scheduler-policy", "spread"),
    ("k" * 300, "\u00fc" * 3000),
)
_SELECTORS: tuple[Value, ...] = (
    None,
    {},
    {"matchLabels": {"app": "x"}},
    {"matchLabels": {"app": "y"}},
    {"matchExpressions": [{"key": "app", "operator": "In", "values": ["x"]}]},
)
_TIMES_MS = (0, 1, 1_700_000_000_000, 1_900_000_000_000, 2**63 - 1)
_OWNERS = (
    ("Job", "batch"),
    ("Deployment", "apps"),
    ("ReplicaSet", "apps"),
    ("JobSet", "jobset.x-k8s.io"),
    ("RayJob", "ray.io"),
)
_ODD_SELECTORS: tuple[Value, ...] = (
    {"matchExpressions": [{"key": "app", "operator": "Near", "values": []}]},
    "app=x",
)
_ODD: tuple[Value, ...] = (
    None,
    "",
    "x",
    -1,
    0,
    2**31,
    10**30,
    1.5,
    True,
    [],
    {},
    [None],
    {"": None},
    "\u0000",
)


def capacity_request(rng: random.Random, rpc: str) -> bytes:
    """A request for the RPC, readable about half of the time."""
    data = _WELL_FORMED[rpc](rng).SerializeToString()
    return spoiled(rng, data) if rng.random() < 0.2 else data


def _place(rng: random.Random) -> pb.PlaceRequest:
    request = pb.PlaceRequest(
        clusters=_clusters(rng),
        gang=_gang(rng),
        assumed=[_gang(rng) for _ in range(rng.choice((0, 0, 0, 1, 3)))],
        search_ms=_mostly(rng, (1, 5, 20), (-1,)),
        want_placement=rng.random() < 0.7,
        placements=_mostly(rng, (0, 1, 2, 5, 1_000_000), (-1,)),
    )
    if rng.random() < 0.2:
        request.without.extend(_named(rng) for _ in range(rng.choice((1, 2, 8))))
    if rng.random() < 0.5:
        request.endings.of_choice = rng.random() < 0.5
        request.endings.SetInParent()
        for _ in range(rng.choice((0, 1, 2, 8))):
            ending = request.endings.endings.add(at_ms=_mostly(rng, _TIMES_MS, (-1, -(2**63))))
            ending.workload.CopyFrom(_named(rng))
    return request


def _named(rng: random.Random) -> pb.WorkloadName:
    kind, group = _mostly(rng, _OWNERS, (("", ""),))
    name = _mostly(rng, ("a", "b", "fuzzed"), ("", "n" * 300))
    return pb.WorkloadName(namespace=rng.choice(("", "default")), group=group, kind=kind, name=name)


def _explain(rng: random.Random) -> pb.ExplainRequest:
    return pb.ExplainRequest(
        clusters=_clusters(rng),
        gang=_gang(rng),
        assumed=[_gang(rng) for _ in range(rng.choice((0, 0, 0, 1, 3)))],
        search_ms=_mostly(rng, (1, 5, 20), (-1,)),
    )


def _summary(rng: random.Random) -> pb.SummaryRequest:
    return pb.SummaryRequest(clusters=_clusters(rng))


_WELL_FORMED: dict[
    str, Callable[[random.Random], pb.PlaceRequest | pb.ExplainRequest | pb.SummaryRequest]
] = {"Place": _place, "Explain": _explain, "Summary": _summary}


def _clusters(rng: random.Random) -> list[str]:
    return [rng.choice(_CLUSTERS) for _ in range(rng.choice((0, 1, 1, 2, 4)))]


def _gang(rng: random.Random) -> pb.Gang:
    gang = pb.Gang(namespace=rng.choice(("", "default", "n" * 300)), copies=_mostly(rng, (0, 0, 1, 5), (-1,)))
    if rng.random() < 0.3:
        gang.waits = rng.random() < 0.7
        for _ in range(rng.choice((1, 3))):
            where = gang.where.add(pod_set=f"set-{rng.randint(0, 2)}", node=rng.choice(("n0", "n1", "gone")))
            where.pods = _mostly(rng, (0, 1, 8, 2**31 - 1), (-1,))
    if rng.random() < 0.4:
        gang.workload_json = _workload(rng)
        return gang
    for index in range(_mostly(rng, (1, 1, 2, 3, 8), (0, 40))):
        pods = gang.pod_sets.add(count=_mostly(rng, _COUNTS, (-1, -(2**31))), template_json=_template(rng))
        pods.name = _mostly(rng, (f"set-{index}",), ("", "twice"))
        if rng.random() < 0.3:
            _topology(rng, pods.topology)
    if rng.random() < 0.3:
        _topology(rng, gang.topology)
    return gang


def _topology(rng: random.Random, topology: pb.Topology) -> None:
    topology.level = rng.choice(_LEVELS)
    topology.mode = _mostly(rng, _MODES, (pb.Topology.MODE_UNSPECIFIED,))
    if topology.mode in (pb.Topology.EXCLUSIVE, pb.Topology.SLICED):
        topology.slice_size = _mostly(rng, (1, 2, 4), (0, -1, 2**31 - 1))


def _workload(rng: random.Random) -> bytes:
    """An example of some kind, with a few values in it changed."""
    obj: Value = yaml.safe_load(rng.choice(_EXAMPLES))
    for _ in range(rng.choice((0, 0, 1, 2))):
        obj = _change(rng, obj)
    return spoiled(rng, _dumped(obj)) if rng.random() < 0.1 else _dumped(obj)


_EXAMPLES = tuple(file.read_text() for file in sorted(EXAMPLES.glob("*.yaml")))


def _change(rng: random.Random, obj: Value) -> Value:
    """The object with one value somewhere in it changed."""
    if rng.random() < 0.05:
        return rng.choice(_ODD)
    match obj:
        case dict() if obj:
            nested = sorted(key for key in obj if isinstance(obj[key], dict | list))
            key = rng.choice(nested if nested and rng.random() < 0.8 else sorted(obj))
            return {**obj, key: _change(rng, obj[key])}
        case list() if obj:
            at = rng.randrange(len(obj))
            return [*obj[:at], _change(rng, obj[at]), *obj[at + 1 :]]
        case _:
            return rng.choice(_ODD)


def _template(rng: random.Random) -> bytes:
    spec: dict[str, Value] = {
        "containers": [_container(rng) for _ in range(_mostly(rng, (1, 1, 2, 5), (0,)))],
        "initContainers": [_container(rng) for _ in range(rng.choice((0, 0, 1, 2)))],
    }
    if rng.random() < 0.3:
        spec["nodeSelector"] = {rng.choice(("zone", "app", "")): rng.choice(("z1", "z2", ""))}
    if rng.random() < 0.3:
        spec["tolerations"] = [
            {"key": rng.choice(("dedicated", "", "x")), "operator": rng.choice(("Exists", "Equal", "?"))}
        ]
    if rng.random() < 0.3:
        term: Value = {
            "labelSelector": _mostly(rng, _SELECTORS, _ODD_SELECTORS),
            "topologyKey": rng.choice(_LEVELS),
        }
        kind = rng.choice(("podAffinity", "podAntiAffinity"))
        spec["affinity"] = {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    if rng.random() < 0.3:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": _mostly(rng, (1, 2), (0, -1, 2**70)),
                "topologyKey": rng.choice(_LEVELS),
                "whenUnsatisfiable": _mostly(rng, ("DoNotSchedule", "ScheduleAnyway"), ("Never",)),
                "labelSelector": _mostly(rng, _SELECTORS, _ODD_SELECTORS),
                "minDomains": _mostly(rng, (None, 1, 5), (-1,)),
            }
            for _ in range(rng.choice((1, 1, 2)))
        ]
    metadata: Value = {
        "labels": {"app": rng.choice(("x", "y"))},
        "annotations": dict(rng.sample(_ANNOTATIONS, rng.randrange(3))),
    }
    obj: Value = {"metadata": metadata, "spec": spec}
    if rng.random() < 0.05:
        obj = _change(rng, obj)
    return spoiled(rng, _dumped(obj)) if rng.random() < 0.03 else _dumped(obj)


def _container(rng: random.Random) -> Value:
    amounts: list[Value] = [
        {rng.choice(_RESOURCES): _amount(rng) for _ in range(rng.randrange(4))} for _ in range(2)
    ]
    container: dict[str, Value] = {
        "name": "c",
        "resources": dict(zip(("requests", "limits"), amounts, strict=True)),
    }
    if rng.random() < 0.2:
        container["restartPolicy"] = rng.choice(("Always", "OnFailure"))
    if rng.random() < 0.1:
        container["ports"] = [{"containerPort": 80, "hostPort": rng.choice((0, 80, -1, 10**6))}]
    return container


def _amount(rng: random.Random) -> Value:
    return _mostly(rng, ("1", "2", "500m", "4"), _AMOUNTS)


def _mostly(rng: random.Random, usual: Sequence[T], odd: Sequence[T]) -> T:
    return rng.choice(odd if rng.random() < 0.03 else usual)


def _dumped(obj: Value) -> bytes:
    return json.dumps(obj, default=str).encode()
