"""The cluster of `benchmarks.cluster` with devices that pods share, by HAMi and by KAI.

The nodes with GPUs (every second one) list eight devices each in HAMi's annotation, and each of their pods
that holds a device says which one and how much of it. General nodes get GPUs of which KAI's pods share some.
Nothing else is changed, so that numbers of pods without devices stay what they are.
"""

from collections.abc import Iterator

import msgspec

from benchmarks import cluster
from benchmarks.cluster import GPU, KIND, NodeKind, PodSize, Scale, is_cordoned, kind_of, node_name
from benchmarks.objects import Obj

MEMORY, CORES = "nvidia.com/gpumem", "nvidia.com/gpucores"
FRACTION = "gpu-fraction"
HALVES, HALF = "team-1/halves", PodSize(500, 1)
"""The Deployment whose pods ask for half a GPU, and what else they ask for."""

_DEVICES, _SLOTS, _MEMORY_MIB = 8, 10, 81_559
_HELD_MIB, _HELD_CORES = 20_000, 30
_KAI_GPUS, _KAI_SHARED = 4, 2
_HELD_FRACTION = "0.4"


def nodes(scale: Scale) -> Iterator[Obj]:
    """All nodes as an API server lists them."""
    for number, node in enumerate(cluster.nodes(scale)):
        kind, size = kind_of(number), node["status"]["allocatable"]
        if kind.device == GPU:
            size[GPU] = f"{_DEVICES * _SLOTS}"
            node["metadata"]["annotations"] = {
                "hami.io/node-nvidia-register": _register(number, kind),
                "hami.io/node-handshake": "Requesting_2026-01-05 08:00:00",
            }
        elif _is_kais(kind):
            size[GPU] = f"{_KAI_GPUS}"
            node["metadata"]["labels"]["nvidia.com/gpu.memory"] = f"{_MEMORY_MIB}"
        yield node


def pods(scale: Scale) -> Iterator[Obj]:
    """All pods, each bound to a node."""
    for number, pod in enumerate(cluster.pods(scale)):
        node, nth = number % scale.nodes, number // scale.nodes
        kind, meta = kind_of(node), pod["metadata"]
        amounts = pod["spec"]["containers"][0]["resources"]["requests"]
        if kind.device == GPU and GPU in amounts:
            given = f"{_device(node, nth)},NVIDIA,{_HELD_MIB},{_HELD_CORES}:;"
            meta["annotations"] = {"hami.io/vgpu-devices-allocated": given}
        elif _is_kais(kind) and nth < 2 * _KAI_SHARED:
            # First the pods that hold the GPUs, then one on each of them.
            meta["labels"] = {**meta["labels"], "runai-gpu-group": f"{node_name(node)}-{nth % _KAI_SHARED}"}
            if nth < _KAI_SHARED:
                amounts[GPU] = "1"
            else:
                meta["annotations"] = {FRACTION: _HELD_FRACTION}
        yield pod


def deployments(scale: Scale) -> Iterator[Obj]:
    """The Deployments of the pods, and `HALVES`, whose pods ask for half a GPU of KAI's by annotation."""
    yield from cluster.deployments(scale)
    requests = {"cpu": f"{HALF.cpu_milli}m", "memory": f"{HALF.memory_gib}Gi"}
    spec = {
        "nodeSelector": {KIND: "general"},
        "containers": [{"name": "main", "resources": {"requests": requests}}],
    }
    template = {"metadata": {"annotations": {FRACTION: "0.5"}}, "spec": spec}
    namespace, _, name = HALVES.partition("/")
    yield {"metadata": {"name": name, "namespace": namespace}, "spec": {"replicas": 1, "template": template}}


def hami_replicas(scale: Scale, size: PodSize, memory_mib: int | None) -> int:
    """How many such pods that tolerate no taint fit, counted node by node, the plain way.

    ``memory_mib``: of each of the pod's devices; None for all of untouched ones.
    """
    total = 0
    for node in range(scale.nodes):
        kind = kind_of(node)
        if kind.device == GPU and not kind.taint and not is_cordoned(node):
            held = cluster.held_devices(scale, node)
            shares = [_shares(nth < held, memory_mib) for nth in range(_DEVICES)]
            total += max(0, min(_dealt(shares, size.gpus), cluster.room_for(scale, node, size)))
    return total


def kai_replicas(scale: Scale) -> int:
    """How many pods of `HALVES` fit: one on each GPU that is shared, two on each other."""
    fits = _KAI_SHARED + 2 * (_KAI_GPUS - _KAI_SHARED)
    return sum(
        max(0, min(fits, cluster.room_for(scale, node, HALF)))
        for node in range(scale.nodes)
        if _is_kais(kind_of(node)) and not is_cordoned(node)
    )


def _is_kais(kind: NodeKind) -> bool:
    return not kind.device and not kind.taint


def _device(node: int, device: int) -> str:
    return f"GPU-{node:05d}-{device}"


def _register(node: int, kind: NodeKind) -> str:
    entries = [
        {
            "id": _device(node, device),
            "index": device,
            "count": _SLOTS,
            "devmem": _MEMORY_MIB,
            "devcore": 100,
            "type": f"NVIDIA-{kind.name.upper()}",
            "numa": device // 4,
            "mode": "hami-core",
            "health": True,
        }
        for device in range(_DEVICES)
    ]
    return msgspec.json.encode(entries).decode()


def _shares(is_held: bool, memory_mib: int | None) -> int:
    if memory_mib is None:
        return int(not is_held)
    free_mib = _MEMORY_MIB - _HELD_MIB * is_held
    return min(free_mib // memory_mib, _SLOTS - is_held)


def _dealt(shares: list[int], devices: int) -> int:
    pods = 0
    while True:
        fullest_last = sorted(range(len(shares)), key=lambda index: -shares[index])[:devices]
        if any(not shares[index] for index in fullest_last):
            return pods
        for index in fullest_last:
            shares[index] -= 1
        pods += 1
