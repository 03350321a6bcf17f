"""Nodes and pods as an API server shows them, for a machine and for what was placed on it.

Labels as node and GPU feature discovery set them. Racks and blocks are made up, since the trace says nothing
of the network: machines of one cluster in the order of the list, sixteen to a rack, eight racks to a block.
"""

from collections.abc import Mapping

from benchmarks.openb.models import MODELS
from benchmarks.openb.placement import MAX_PODS, Bound
from benchmarks.openb.schemes import GPU, NodeMarks, PodMarks, Reservation, model_of, stable_id
from benchmarks.openb.times import timestamp
from benchmarks.openb.trace import Machine
from fairway.quantity import format_bytes, format_milli

Obj = dict[str, object]

BLOCK, RACK = "fabric.topograph.run/tier-1", "fabric.topograph.run/tier-0"
"""Spine and leaf switches as Topograph labels nodes with them: tier 0 is the closest."""

NODES_A_RACK, RACKS_A_BLOCK = 16, 8
NAMESPACE = "openb"
"""The namespace of pods that the trace gives no class of service; the others go by that."""

_PRODUCT = "nvidia.com/gpu.product"
_MIB = 1 << 20
_IMAGE = "example/openb-task"


def node_object(machine: Machine, marks: NodeMarks, cluster: str, number: int) -> Obj:
    """A node; ``number`` counts the nodes of its cluster and says in which rack it stands."""
    amounts = {
        "cpu": format_milli(machine.cpu_milli),
        "memory": format_bytes(machine.memory_mib * _MIB),
        "pods": str(MAX_PODS),
        **({GPU: str(marks.gpus)} if marks.gpus else {}),
    }
    rack = number // NODES_A_RACK
    labels = {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": machine.name,
        "kubernetes.io/os": "linux",
        BLOCK: f"{cluster}-block-{rack // RACKS_A_BLOCK}",
        RACK: f"{cluster}-rack-{rack:02d}",
        **(_gpu_labels(machine) if machine.gpus else {}),
    }
    ready = {"reason": "KubeletReady", "status": "True", "type": "Ready", "lastTransitionTime": timestamp(0)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": _metadata(machine.name, "", 0, labels, marks.annotations),
        "spec": {},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": [ready]},
    }


def pod_object(bound: Bound, machine: Machine, marks: PodMarks) -> Obj:
    """The pod of a task."""
    task = bound.task
    spec: Obj = {}
    if task.models:
        values = [MODELS[model].product for model in task.models]
        terms = [{"matchExpressions": [{"key": _PRODUCT, "operator": "In", "values": values}]}]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        spec["affinity"] = {"nodeAffinity": required}
    native = {"cpu": format_milli(task.cpu_milli), "memory": format_bytes(task.memory_mib * _MIB)}
    return _pod(
        bound.name, task.qos.lower() or NAMESPACE, task.created_s, machine, marks, native, "task", spec
    )


def reservation_object(reservation: Reservation, machine: Machine) -> Obj:
    """A pod that a scheme runs itself."""
    name = "resource-reservation"
    return _pod(reservation.name, reservation.namespace, 0, machine, reservation.marks, {}, name, {})


def _pod(
    name: str,
    namespace: str,
    created_s: int,
    machine: Machine,
    marks: PodMarks,
    native: Mapping[str, str],
    container: str,
    spec: Obj,
) -> Obj:
    extended = {name: str(amount) for name, amount in marks.resources.items()}
    resources: Obj = {"limits": extended} if extended else {}
    if native or extended:
        resources["requests"] = {**native, **extended}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(name, namespace, created_s, marks.labels, marks.annotations),
        "spec": {
            "containers": [{"image": _IMAGE, "name": container, "resources": resources}],
            "nodeName": machine.name,
            "schedulerName": marks.scheduler,
            **spec,
        },
        "status": {"phase": "Running"},
    }


def _metadata(
    name: str, namespace: str, created_s: int, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> Obj:
    metadata: Obj = {
        "creationTimestamp": timestamp(created_s),
        "name": name,
        "uid": stable_id("object", namespace, name),
    }
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = dict(labels)
    if annotations:
        metadata["annotations"] = dict(annotations)
    return metadata


def _gpu_labels(machine: Machine) -> dict[str, str]:
    model = model_of(machine)
    labels = {
        "nvidia.com/gpu.count": str(machine.gpus),
        "nvidia.com/gpu.memory": str(model.memory_mib),
        "nvidia.com/gpu.present": "true",
        _PRODUCT: model.product,
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/mig.capable": "false",
    }
    if model.family:
        major, minor = model.compute.split(".")
        labels["nvidia.com/gpu.compute.major"] = major
        labels["nvidia.com/gpu.compute.minor"] = minor
        labels["nvidia.com/gpu.family"] = model.family
    return labels
