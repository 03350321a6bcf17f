"""Who uses what of a whole cluster: what an estimator keeps for it, and how long a question takes.

Every node has eight GPUs, each held by a pod of its own and measured by an agent, and two pods without
devices. Ids are random, as real ones are, since what an agent wrote is kept packed. Memory, and what the
event loop bears, are measured in this process: the copy that is taken on it, and how late it is while a
thread works the answer out. The rest is a real estimator and the real command.
"""

import asyncio
import gc
import json
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from statistics import median
from uuid import UUID

import grpc
import msgspec

from benchmarks import cluster, node_devices
from benchmarks.cluster import Scale
from benchmarks.lateness import lateness, tuned
from benchmarks.objects import Obj
from benchmarks.processes import CLUSTER, Estimator, StartFailed, await_listening, starting
from benchmarks.report import Case, Figure, Result, Target
from benchmarks.sides import TARGET_NODES, Setting
from estimator.cluster.mirror import ClusterMirror
from estimator.cluster.packed import packed
from estimator.cluster.users import Users
from estimator.usage_wire import answers_of, encode_pages
from fairway.accelerators.builtin import builtin_catalogue
from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.kube.node_devices import NodeDevices
from fairway.kube.objects import Node, Pod
from fairway.usage.bound_pod import tenancy

_GPUS = 8
_KEPT_MIB, _LOOP_MS, _TOP_S, _PAGE_KIB = Target(22.0), Target(2.0), Target(3.0), Target(4096.0)
_LATE_MS = Target(20.0)
_TURNS, _ANSWERS = 20, 6
_READ_WITHIN_S = 120.0
_STALLS = "fairway_estimator_loop_stalls_total"


def measure(setting: Setting) -> Result:
    """Figures for each size, with ten pods a node."""
    cases = [_case(scale) for scale in setting.scales]
    return Result("usage", "Who uses what of one cluster, 8 GPUs a node, each held and measured", cases)


def _case(scale: Scale) -> Case:
    nodes, pods, agents = list(_nodes(scale)), list(_pods(scale)), list(_agents(scale))
    kept = _kept_mib(pods, agents)
    loop_ms, late_s, work_s = _in_process(nodes, pods, agents)
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        file = Path(directory, f"{CLUSTER}.json")
        kinds = (("v1", "Node", nodes), ("v1", "Pod", pods), ("fairway.dev/v1alpha1", "NodeDevices", agents))
        items = [{"apiVersion": version, "kind": kind, **one} for version, kind, of in kinds for one in of]
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        del items, nodes, pods, agents
        gc.collect()
        with starting("--snapshot", str(file)) as own:
            _await_read(own)
            before = own.metrics()[_STALLS, ""]
            answers, pages = _asked(own)
            times = [_top_s(f"grpc://{own.address}") for _ in range(3)]
            stalls = own.metrics()[_STALLS, ""] - before
        from_dump_s = _top_s(str(file))
    is_target = scale.nodes == TARGET_NODES
    figures = [
        Figure("memory kept for it", kept, "MiB", _KEPT_MIB if is_target else None),
        Figure("copied on the loop p50", loop_ms, "ms", _LOOP_MS if is_target else None),
        Figure("worked out on a thread", work_s, "s"),
        Figure("loop late meanwhile, worst", 1e3 * late_s, "ms", _LATE_MS if is_target else None),
        Figure("whole answer", answers, "s"),
        Figure("pages", len(pages), ""),
        Figure("largest page", max(map(len, pages)) / 1024, "KiB", _PAGE_KIB),
        Figure("all pages", sum(map(len, pages)) / 2**20, "MiB"),
        Figure("estimator's loop over 20 ms late, of any cause", stalls, "times"),
        Figure("top of the estimator", min(times), "s", _TOP_S if is_target else None),
        Figure("top of a dump", from_dump_s, "s"),
    ]
    return Case(str(scale), figures, _faults(pages, scale))


def _faults(pages: list[bytes], scale: Scale) -> list[str]:
    (answer,) = answers_of(map(pb.UsagePage.FromString, pages))
    measured = sum(use.pieces for use in answer.usage.uses if use.is_measured)
    expected = scale.nodes * _GPUS
    return [] if measured == expected else [f"{measured} devices held and measured, expected {expected}"]


def _kept_mib(pods: list[Obj], agents: list[Obj]) -> float:
    gc.collect()
    tracemalloc.start()
    stays = [tenancy(msgspec.convert(one, Pod), {}) for one in pods if _holds(one)]
    written = [packed(_decoded(one)) for one in agents]
    gc.collect()
    kept = tracemalloc.get_traced_memory()[0] / 2**20
    tracemalloc.stop()
    assert stays
    assert written
    return kept


def _in_process(nodes: list[Obj], pods: list[Obj], agents: list[Obj]) -> tuple[float, float, float]:
    """The median time to copy on the event loop, in milliseconds; in seconds, how late a loop is at worst
    while answers are worked out, and the best time for one."""
    mirror = ClusterMirror(_refuse)
    for node in nodes:
        mirror.nodes.upsert(msgspec.convert(node, Node))
    for pod in pods:
        mirror.pods.upsert(msgspec.convert(pod, Pod))
    for agent in agents:
        mirror.node_devices.upsert(_decoded(agent))
    mirror.node_devices.synced = True
    catalogue, now_s = builtin_catalogue(), node_devices.AT_S

    def work(users: Users) -> list[bytes]:
        return encode_pages("m", users.usage_parts("m", catalogue, now_s, 0.0), 0.0, "")

    async def answers() -> None:
        for _ in range(_ANSWERS):
            await asyncio.to_thread(work, Users.of(mirror))

    with tuned():
        copied = median(_timed(lambda: Users.of(mirror)) for _ in range(_TURNS))
        late_s = asyncio.run(lateness(answers))
    worked = min(_timed(lambda: work(Users.of(mirror))) for _ in range(3))
    return copied * 1e3, late_s[-1], worked


def _decoded(agent: Obj) -> NodeDevices:
    return msgspec.json.decode(json.dumps(agent), type=NodeDevices)


def _timed(work: Callable[[], object]) -> float:
    started_s = time.perf_counter()
    work()
    return time.perf_counter() - started_s


def _asked(own: Estimator) -> tuple[float, list[bytes]]:
    """The best time for a whole answer, and its pages."""
    with grpc.insecure_channel(str(own.address)) as channel:
        ask = channel.unary_stream("/fairway.capacity.v1.Capacity/Usage")
        times: list[float] = []
        for _ in range(3):
            started_s = time.perf_counter()
            pages = list(ask(b"", timeout=60))
            times.append(time.perf_counter() - started_s)
    return min(times), pages


def _await_read(own: Estimator) -> None:
    await_listening(own)
    with grpc.insecure_channel(str(own.address)) as channel:
        ask = channel.unary_stream("/fairway.capacity.v1.Capacity/Usage")
        while time.perf_counter() - own.started_s < _READ_WITHIN_S:
            (answer,) = answers_of(map(pb.UsagePage.FromString, ask(b"", timeout=60)))
            if not answer.doubt:
                return
    raise StartFailed(f"the dump was not read within {_READ_WITHIN_S:.0f} s:\n{own.last_words()}")


def _top_s(source: str) -> float:
    command = [sys.executable, "-m", "admin", "top", source, "--by", "owner"]
    started_s = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - started_s


def _nodes(scale: Scale) -> Iterator[Obj]:
    return (node_devices.node(number) for number in range(scale.nodes))


def _holds(pod: Obj) -> bool:
    return bool(pod["metadata"]["labels"].get("holds"))


def _pods(scale: Scale) -> Iterator[Obj]:
    rng = Random(scale.nodes)
    for number, pod in enumerate(cluster.pods(scale)):
        nth = number // scale.nodes
        amounts = {"cpu": "4", "memory": "16Gi", **({cluster.GPU: "1"} if nth < _GPUS else {})}
        container = {"name": "main", "resources": {"requests": amounts}}
        labels = {**pod["metadata"]["labels"], **({"holds": "gpu"} if nth < _GPUS else {})}
        metadata = {**pod["metadata"], "uid": _uuid(rng), "labels": labels}
        yield {**pod, "metadata": metadata, "spec": {**pod["spec"], "containers": [container]}}


def _agents(scale: Scale) -> Iterator[Obj]:
    rng = Random(scale.nodes)
    holders: dict[int, list[Obj]] = {}
    for number, pod in enumerate(_pods(scale)):
        if _holds(pod):
            holders.setdefault(number % scale.nodes, []).append(pod["metadata"])
    for written in node_devices.written(scale):
        agent = json.loads(written)
        pods = holders[int(agent["metadata"]["name"].rpartition("-")[2])]
        for device, held in zip(agent["devices"], pods, strict=True):
            device["id"] = f"GPU-{_uuid(rng)}"
            known = {
                name: held[of] for name, of in (("namespace", "namespace"), ("pod", "name"), ("uid", "uid"))
            }
            device["holders"] = [{**known, "container": "main", "source": "PodResources"}]
            p50 = rng.randint(0, 95)
            used = {"utilizationP50": p50, "utilizationP95": rng.randint(p50, 100)}
            device["window"] = {
                **used,
                "samples": 60,
                "memoryPeakBytes": rng.randint(0, device["memoryBytes"]),
            }
        yield agent


def _uuid(rng: Random) -> str:
    return str(UUID(int=rng.getrandbits(128)))


def _refuse(resource: str, key: str, message: str) -> None:
    raise ValueError(f"the fleet is made wrong: {resource} {key}: {message}")
