"""What do node agents cost an estimator: memory, an event, a question, a pod event?

Every node has an agent that tells of eight GPUs, each held by a pod and used; on one node of a hundred a GPU
does not work. Questions and pod events are timed without agents and with them, in turns. Measured in this
process, without a server.
"""

import gc
import json
import time
import tracemalloc
from collections.abc import Callable, Iterator
from statistics import median

import msgspec

from benchmarks import cluster
from benchmarks.cluster import PodSize, Scale
from benchmarks.objects import Obj
from benchmarks.report import Case, Figure, Result, Target
from benchmarks.shapes import replicas_request
from benchmarks.sides import TARGET_NODES, Setting
from estimator.capacity.replicas import max_replicas
from estimator.capacity.room import Room
from estimator.cluster.mirror import ClusterMirror
from estimator.demo import machines
from estimator.fit.eligibility import EligibilityCache
from estimator.fit.pod_shape import PodShape
from estimator.wire import decode_replicas
from fairway.kube.node_devices import NodeDevices
from fairway.kube.objects import Node, Pod, object_key

_GPUS, _ONE_BROKEN_IN = 8, 100
_DAYS, _TEAMS = 31, 2
_GIB = 2**30
_MEMORY_MIB, _RATIO = Target(25.0), Target(1.05)
_TURNS = 20
_PODS_IN_A_TURN = 500


def measure(setting: Setting) -> Result:
    """Figures for each size, with ten pods a node."""
    cases = [_case(scale, setting.seconds) for scale in setting.scales]
    return Result("node_devices", "Node agents of 8 GPUs each, 1 node of 100 with a broken one", cases)


def _case(scale: Scale, seconds: float) -> Case:
    plain, told = _mirror(scale), _mirror(scale)
    objects = list(_objects(scale))
    decoder = msgspec.json.Decoder(NodeDevices)
    gc.collect()
    tracemalloc.start()
    for raw in objects:
        told.node_devices.upsert(decoder.decode(raw))
    gc.collect()
    added_mib = tracemalloc.get_traced_memory()[0] / 2**20
    tracemalloc.stop()
    event_us = _event_us(told, [decoder.decode(_later(raw)) for raw in objects])
    shape = decode_replicas(replicas_request("member1", PodSize(1000, 2, gpus=1)), None).shape
    question_us = _in_turns(_question(plain, shape, seconds), _question(told, shape, seconds))
    pods = [
        msgspec.convert(pod, Pod) for _, pod in zip(range(_PODS_IN_A_TURN), cluster.pods(scale), strict=False)
    ]
    pod_us = _in_turns(_pod_events(plain, pods), _pod_events(told, pods))
    is_target = scale.nodes == TARGET_NODES
    figures = [
        Figure("memory added", added_mib, "MiB", _MEMORY_MIB if is_target else None),
        Figure("event p50", event_us, "µs"),
    ]
    for what, (without, with_) in (("question", question_us), ("pod event", pod_us)):
        figures += [
            Figure(f"{what} without", without, "µs"),
            Figure(f"{what} with", with_, "µs"),
            Figure(f"{what}, with by without", with_ / without, "", _RATIO if is_target else None),
        ]
    return Case(f"{scale.nodes:,} nodes, {scale.pods:,} pods", figures, _faults(told, scale))


def _faults(told: ClusterMirror, scale: Scale) -> list[str]:
    found, expected = len(list(told.columns.broken)), -(-scale.nodes // _ONE_BROKEN_IN)
    return [] if found == expected else [f"{found} nodes with a broken GPU, expected {expected}"]


def _in_turns(without: Callable[[], float], with_: Callable[[], float]) -> tuple[float, float]:
    """Medians of both, in microseconds; what the machine does besides falls on both alike."""
    pairs = [(without(), with_()) for _ in range(_TURNS)]
    first, second = zip(*pairs, strict=True)
    return median(first), median(second)


def _question(mirror: ClusterMirror, shape: PodShape, seconds: float) -> Callable[[], float]:
    eligible = EligibilityCache()

    def turn() -> float:
        times: list[float] = []
        until_s = time.perf_counter() + seconds / (2 * _TURNS)
        while len(times) < 3 or time.perf_counter() < until_s:
            started_s = time.perf_counter()
            max_replicas(Room(mirror.columns, eligible), shape)
            times.append((time.perf_counter() - started_s) * 1e6)
        return median(times)

    return turn


def _pod_events(mirror: ClusterMirror, pods: list[Pod]) -> Callable[[], float]:
    def turn() -> float:
        started_s = time.perf_counter()
        for pod in pods:
            mirror.pods.delete(object_key(pod.metadata))
        for pod in pods:
            mirror.pods.upsert(pod)
        return (time.perf_counter() - started_s) * 1e6 / (2 * len(pods))

    return turn


def _event_us(mirror: ClusterMirror, written: list[NodeDevices]) -> float:
    times: list[float] = []
    for one in written:
        started_s = time.perf_counter()
        mirror.node_devices.upsert(one)
        times.append((time.perf_counter() - started_s) * 1e6)
    return median(times)


def _mirror(scale: Scale) -> ClusterMirror:
    mirror = ClusterMirror(_refuse)
    for number in range(scale.nodes):
        mirror.nodes.upsert(msgspec.convert(_node(number), Node))
    for made in cluster.pods(scale):
        mirror.pods.upsert(msgspec.convert(made, Pod))
    return mirror


def _refuse(resource: str, key: str, message: str) -> None:
    raise ValueError(f"the fleet is made wrong: {resource} {key}: {message}")


def _node(number: int) -> Obj:
    name = cluster.node_name(number)
    has = {"cpu": "192", "memory": "2048Gi", "pods": "110", cluster.GPU: str(_GPUS)}
    labels = {**machines.H100.labels, "kubernetes.io/hostname": name}
    return {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": has, "capacity": has}}


def _day(number: int) -> Obj:
    sums = {
        "allocatedSeconds": 345_600,
        "measuredSeconds": 345_600,
        "usedSeconds": 234_567,
        "idleSeconds": 4321,
    }
    teams = [{"namespace": f"team-{team}", **sums} for team in range(_TEAMS)]
    return {"date": f"2026-01-{number:02}", "observedSeconds": 86_395, "teams": teams}


_AT, _LATER = b'"2026-01-05T08:00:00Z"', b'"2026-01-05T08:05:00Z"'


def _later(raw: bytes) -> bytes:
    return raw.replace(b'"observedAt":' + _AT, b'"observedAt":' + _LATER)


def _objects(scale: Scale) -> Iterator[bytes]:
    for number in range(scale.nodes):
        devices = [
            {
                "id": f"GPU-{number:08x}-0000-0000-0000-{index:012x}",
                "index": index,
                "product": "NVIDIA H100 80GB HBM3",
                "memoryBytes": 80 * _GIB,
                "island": 0,
                "health": "Healthy" if index or number % _ONE_BROKEN_IN else "Unhealthy",
                "problems": [] if index or number % _ONE_BROKEN_IN else [{"code": "Xid79"}],
                "holders": [{"namespace": "default", "pod": f"train-{number}-{index}", "container": "main"}],
                "window": {"utilizationP50": 60, "utilizationP95": 98, "utilizationMax": 100, "samples": 60},
            }
            for index in range(_GPUS)
        ]
        written = {
            "metadata": {"name": cluster.node_name(number)},
            "observedAt": _AT.decode().strip('"'),
            "devices": devices,
            "days": [_day(number) for number in range(1, _DAYS + 1)],
        }
        yield json.dumps(written, separators=(",", ":")).encode()
