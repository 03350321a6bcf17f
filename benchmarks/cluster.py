"""The cluster that is asked about: any number of nodes and pods, the same ones each time.

Five kinds of nodes in three zones, some of them tainted, some cordoned; pods of Deployments that leave a
different rest on each node. Pods have the weight of real ones (about 6 kB of JSON, most of it fields that an
estimator has no use for), since reading past all that is most of the work of keeping up with a cluster.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benchmarks.objects import (
    CONTAINER,
    IMAGES,
    MANAGED_FIELDS,
    POD_SPEC,
    POD_STATUS,
    READY,
    TEMPLATE_HASH,
    Obj,
)
from estimator.demo import machines

GPU, TPU, SPOT = "nvidia.com/gpu", "google.com/tpu", "example.com/spot"
KIND, GENERATION = "example.com/kind", "example.com/generation"
ZONES = ("europe-west4-a", "europe-west4-b", "europe-west4-c")

_PODS_PER_DEPLOYMENT = 25
_CPU_MILLI = (250, 500, 1000, 2000, 4000)


@dataclass(frozen=True, slots=True)
class NodeKind:
    """What nodes of one kind have. ``taint`` is a key whose effect is NoSchedule."""

    name: str
    labels: Mapping[str, str]
    cpus: int
    memory_gib: int
    device: str = ""
    devices: int = 0
    taint: str = ""


_GENERAL = NodeKind("general", machines.CPU.labels, 64, 256)
_SPOT = NodeKind("spot", machines.CPU.labels, 64, 256, taint=SPOT)
_A100 = NodeKind("a100", machines.A100_LABELS, 96, 1024, GPU, 8)
_H100 = NodeKind("h100", machines.H100.labels, 192, 2048, GPU, 8, taint=GPU)
_TPU = NodeKind("tpu-v5e", machines.TPU_V5E.labels, 112, 192, TPU, 4, taint=TPU)
_KINDS = (_GENERAL, _A100, _GENERAL, _H100, _A100, _SPOT, _GENERAL, _A100, _H100, _TPU)


@dataclass(frozen=True, slots=True)
class PodSize:
    """What one pod of a question asks for."""

    cpu_milli: int
    memory_gib: int
    gpus: int = 0


@dataclass(frozen=True, slots=True)
class Scale:
    """How large the cluster is: ``pods`` in all, on the nodes in turn."""

    nodes: int
    pods: int

    def __str__(self) -> str:
        return f"{self.nodes:,} nodes, {self.pods:,} pods"


def node_name(number: int) -> str:
    """The name of the node with this number, from 0."""
    return f"node-{number:05d}"


def kind_of(number: int) -> NodeKind:
    """The kind of the node with this number."""
    return _KINDS[number % len(_KINDS)]


def is_cordoned(number: int) -> bool:
    """Whether the node with this number takes no more pods."""
    return number % 97 == 96


def nodes(scale: Scale) -> Iterator[Obj]:
    """All nodes as an API server lists them."""
    for number in range(scale.nodes):
        kind, name = kind_of(number), node_name(number)
        zone = ZONES[number % 3]
        labels = {
            "beta.kubernetes.io/arch": "amd64",
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "topology.kubernetes.io/region": zone[:-2],
            "topology.kubernetes.io/zone": zone,
            KIND: kind.name,
            GENERATION: f"{number % 7}",
            **kind.labels,
        }
        size = {"cpu": f"{kind.cpus}", "memory": f"{kind.memory_gib}Gi", "pods": "110"}
        if kind.device:
            size[kind.device] = f"{kind.devices}"
        spec: Obj = {"providerID": f"example://{zone}/{name}"}
        if kind.taint:
            spec["taints"] = [{"key": kind.taint, "value": "present", "effect": "NoSchedule"}]
        if is_cordoned(number):
            spec["unschedulable"] = True
        yield {
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
            "status": {"capacity": size, "allocatable": size, "conditions": [READY], "images": IMAGES},
        }


def pods(scale: Scale) -> Iterator[Obj]:
    """All pods, each bound to a node; those of one Deployment have the same name but for their number."""
    for number in range(scale.pods):
        node, nth = number % scale.nodes, number // scale.nodes
        deployment = number // _PODS_PER_DEPLOYMENT
        amounts = {"cpu": f"{_cpu_milli(node, nth)}m", "memory": f"{_memory_gib(node, nth)}Gi"}
        if nth < _held_devices(node):
            amounts[kind_of(node).device] = "1"
        resources = {"requests": amounts, "limits": {k: v for k, v in amounts.items() if "/" in k}}
        yield {
            "metadata": {
                "name": f"app-{deployment}-{TEMPLATE_HASH}-{number:06d}",
                "generateName": f"app-{deployment}-{TEMPLATE_HASH}-",
                "namespace": _namespace(deployment),
                "labels": {"app": f"app-{deployment}", "pod-template-hash": TEMPLATE_HASH},
                "ownerReferences": [_owner("ReplicaSet", f"app-{deployment}-{TEMPLATE_HASH}")],
                "managedFields": MANAGED_FIELDS,
            },
            "spec": {
                **POD_SPEC,
                "nodeName": node_name(node),
                "containers": [CONTAINER | {"resources": resources}],
            },
            "status": POD_STATUS,
        }


def deployments(scale: Scale) -> Iterator[Obj]:
    """The Deployments of the pods."""
    for number in range(-(-scale.pods // _PODS_PER_DEPLOYMENT)):
        yield {
            "metadata": {"name": f"app-{number}", "namespace": _namespace(number)},
            "spec": {
                "replicas": _PODS_PER_DEPLOYMENT,
                "selector": _selector(number),
                "template": _template(number),
            },
        }


def replica_sets(scale: Scale) -> Iterator[Obj]:
    """The one ReplicaSet of each Deployment."""
    for number in range(-(-scale.pods // _PODS_PER_DEPLOYMENT)):
        yield {
            "metadata": {
                "name": f"app-{number}-{TEMPLATE_HASH}",
                "namespace": _namespace(number),
                "ownerReferences": [_owner("Deployment", f"app-{number}")],
            },
            "spec": {
                "replicas": _PODS_PER_DEPLOYMENT,
                "selector": _selector(number),
                "template": _template(number),
            },
        }


def replicas_of(scale: Scale, size: PodSize) -> int:
    """How many pods of this size that tolerate no taint fit: counted node by node, the plain way."""
    total = 0
    for node in range(scale.nodes):
        if kind_of(node).taint or is_cordoned(node):
            continue
        fits = room_for(scale, node, size)
        if size.gpus:
            fits = min(fits, free_gpus(scale, node) // size.gpus)
        total += max(0, fits)
    return total


def room_for(scale: Scale, node: int, size: PodSize) -> int:
    """How many pods of this size the node with this number takes, whatever GPUs they need."""
    kind, pods_here = kind_of(node), _pods_on(scale, node)
    return min(
        110 - pods_here,
        (kind.cpus * 1000 - sum(_cpu_milli(node, nth) for nth in range(pods_here))) // size.cpu_milli,
        (kind.memory_gib - sum(_memory_gib(node, nth) for nth in range(pods_here))) // size.memory_gib,
    )


def free_gpus(scale: Scale, node: int) -> int:
    """How many GPUs of the node with this number no pod holds."""
    kind = kind_of(node)
    return kind.devices - held_devices(scale, node) if kind.device == GPU else 0


def held_devices(scale: Scale, node: int) -> int:
    """How many of the node's pods, from the first, hold a device each."""
    return min(_held_devices(node), _pods_on(scale, node))


def _pods_on(scale: Scale, node: int) -> int:
    return scale.pods // scale.nodes + (node < scale.pods % scale.nodes)


def _cpu_milli(node: int, nth: int) -> int:
    return _CPU_MILLI[(7 * node + 3 * nth) % len(_CPU_MILLI)]


def _memory_gib(node: int, nth: int) -> int:
    return 1 + (node + nth) % 5


def _held_devices(node: int) -> int:
    """As many, if the node has so many pods."""
    return node * 7 // len(_KINDS) % (kind_of(node).devices + 1)


def _namespace(deployment: int) -> str:
    return f"team-{deployment % 50}"


def _owner(kind: str, name: str) -> Obj:
    uid = "7f1d5c1e-3c1f-4a53-9d0e-0b8f4b6f8a11"
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": True}


def _template(deployment: int) -> Obj:
    return {
        "metadata": {"labels": {"app": f"app-{deployment}"}},
        "spec": {**POD_SPEC, "containers": [CONTAINER]},
    }


def _selector(deployment: int) -> Obj:
    return {"matchLabels": {"app": f"app-{deployment}"}}
