"""How long does it take to sum up a cluster: the snapshot on the event loop, the rest on a thread, the wire?

Every node has eight GPUs of one of four products; on half of the nodes HAMi shares them, device by device.
Racks of sixteen stand in blocks of eight, blocks in halls; some nodes are cordoned, tainted, without a label,
without CPUs to spare or with a device that is not well. Measured in this process, without a server.
"""

import gc
import json
import time
from collections.abc import Callable, Iterator
from statistics import median

import msgspec

from benchmarks.objects import Obj
from benchmarks.report import Case, Figure, Result, Target
from benchmarks.sides import TARGET_NODES, Setting
from estimator.capacity.summary import Summary
from estimator.capacity.survey.stock import overdrawn
from estimator.capacity.survey.survey import survey
from estimator.capacity.topology.levels import levels_of
from estimator.capacity_wire import encode_summary
from estimator.cluster.mirror import ClusterMirror
from fairway.accelerators.builtin import builtin_catalogue
from fairway.kube.objects import Node, Pod

GPU = "nvidia.com/gpu"
_PRODUCTS = (
    "NVIDIA-A100-SXM4-80GB",
    "NVIDIA-H100-80GB-HBM3",
    "NVIDIA-H200",
    "NVIDIA-L40S",
)
_GPUS, _MEMORY_MIB = 8, 81920
_LEVELS = ("example.com/hall", "example.com/block", "example.com/rack")
_SURVEY_MS, _LOOP_MS = Target(100.0), Target(20.0)


def measure(setting: Setting) -> Result:
    """Figures for each size, with ten pods a node."""
    cases = [_case(scale.nodes, scale.pods, setting.seconds) for scale in setting.scales]
    return Result("summary", "Summary of one cluster, GPUs of half the nodes shared by HAMi, 1 caller", cases)


def _case(nodes: int, pods: int, seconds: float) -> Case:
    mirror = _mirror(nodes, pods)
    levels, catalogue = levels_of(_LEVELS), builtin_catalogue()
    columns = mirror.columns

    def summed_up() -> Summary:
        return survey(
            columns.copy(),
            catalogue,
            levels,
            cluster="alpha",
            pods=pods,
            overdrawn=overdrawn(columns),
        )

    found = summed_up()
    snapshot_ms = _median_ms(lambda: (columns.copy(), overdrawn(columns)), seconds / 4)
    whole_ms = _median_ms(summed_up, seconds)
    wire_ms = _median_ms(lambda: encode_summary(found).SerializeToString(), seconds / 4)
    is_target = nodes == TARGET_NODES
    figures = [
        Figure("snapshot p50", snapshot_ms, "ms", _LOOP_MS if is_target else None),
        Figure("snapshot and survey p50", whole_ms, "ms", _SURVEY_MS if is_target else None),
        Figure("encoding p50", wire_ms, "ms"),
        Figure("message", len(encode_summary(found).SerializeToString()) / 1024, "KiB"),
    ]
    domains = sum(len(level.domains) for level in found.levels)
    note = f"{len(found.products)} products, {domains} domains, {len(found.stranded)} stranded nodes"
    return Case(f"{nodes:,} nodes, {pods:,} pods", figures, _faults(found, nodes), (note,))


def _faults(found: Summary, nodes: int) -> list[str]:
    """What the summary says otherwise than the fleet was made."""
    total = sum(product.total for product in found.products)
    faults = [] if total == nodes * _GPUS else [f"{total} GPUs, expected {nodes * _GPUS}"]
    for product in found.products:
        parts = product.unhealthy + product.allocated + product.cordoned + product.free
        if parts != product.total:
            faults.append(f"{product.product}: {parts} GPUs by state, {product.total} in all")
    held = sum(map(_held_on, range(nodes)))
    allocated = sum(product.allocated for product in found.products)
    if allocated != held:
        faults.append(f"{allocated} GPUs allocated, expected {held}")
    return faults


def _median_ms(work: Callable[[], object], seconds: float) -> float:
    times: list[float] = []
    gc.collect()
    until_s = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < until_s:
        started_s = time.perf_counter()
        work()
        times.append((time.perf_counter() - started_s) * 1000)
    return median(times)


def _mirror(nodes: int, pods: int) -> ClusterMirror:
    mirror = ClusterMirror(_refuse)
    for made in _nodes(nodes):
        mirror.nodes.upsert(msgspec.convert(made, Node))
    for made in _pods(nodes, pods):
        mirror.pods.upsert(msgspec.convert(made, Pod))
    return mirror


def _refuse(resource: str, key: str, message: str) -> None:
    raise ValueError(f"the fleet is made wrong: {resource} {key}: {message}")


def _name(number: int) -> str:
    return f"node-{number:05d}"


def _is_shared(number: int) -> bool:
    return number % 2 == 1


def _nodes(count: int) -> Iterator[Obj]:
    register = json.dumps(
        [
            {
                "id": f"GPU-{index}",
                "index": index,
                "count": 10,
                "devmem": _MEMORY_MIB,
                "devcore": 100,
                "type": "NVIDIA-A100",
                "mode": "hami-core",
                "health": True,
            }
            for index in range(_GPUS)
        ]
    )
    for number in range(count):
        labels = {"kubernetes.io/hostname": _name(number), "nvidia.com/gpu.count": f"{_GPUS}"}
        if number % 211 != 210:
            labels["nvidia.com/gpu.product"] = _PRODUCTS[number // 64 % len(_PRODUCTS)]
        if number % 101 != 100:
            places = (f"h{number // 1024}", f"b{number // 128}", f"r{number // 16}")
            labels |= dict(zip(_LEVELS, places, strict=True))
        shared = _is_shared(number)
        size = {"cpu": "128", "memory": "1Ti", "pods": "110", GPU: f"{_GPUS * (10 if shared else 1)}"}
        has = {**size, GPU: f"{_GPUS - 1}"} if not shared and number % 50 == 0 else size
        taints = [{"key": GPU, "effect": "NoSchedule"}]
        if number % 89 == 88:
            taints.append({"key": "example.com/maintenance", "effect": "NoSchedule"})
        yield {
            "metadata": {
                "name": _name(number),
                "labels": labels,
                "annotations": {"hami.io/node-nvidia-register": register} if shared else {},
            },
            "spec": {"taints": taints, "unschedulable": number % 97 == 96},
            "status": {"capacity": size, "allocatable": has},
        }


def _held_on(number: int) -> int:
    """GPUs that the first pods of a node hold, one each; of shared devices, those that a pod is on."""
    return number % (_GPUS - 1)


def _pods(nodes: int, count: int) -> Iterator[Obj]:
    for number in range(count):
        node, nth = number % nodes, number // nodes
        requests = {"cpu": "12" if node % 13 == 12 else "1", "memory": "4Gi"}
        annotations = {}
        if nth < _held_on(node):
            requests[GPU] = "1"
            if _is_shared(node):
                annotations["hami.io/vgpu-devices-allocated"] = (
                    f"GPU-{nth},NVIDIA,{8192 * (1 + nth % 4)},20:;"
                )
        yield {
            "metadata": {"name": f"pod-{number}", "namespace": "team", "annotations": annotations},
            "spec": {"nodeName": _name(node), "containers": [{"resources": {"requests": requests}}]},
            "status": {"phase": "Running"},
        }
