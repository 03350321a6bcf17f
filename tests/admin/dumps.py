"""Dump files of small clusters."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

Labelled = tuple[str, dict[str, object]]


def gpu_node(name: str, gpus: int, **labels: str) -> Labelled:
    """A node with so many GPUs and plenty of everything else."""
    size = {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": str(gpus)}
    status = {"capacity": size, "allocatable": size}
    return "Node", {"metadata": {"name": name, "labels": labels}, "status": status}


def gpu_pod(name: str, node: str, gpus: int, namespace: str = "default") -> Labelled:
    """A running pod that holds so many GPUs."""
    container = {"name": "main", "resources": {"requests": {"nvidia.com/gpu": str(gpus)}}}
    return "Pod", {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"nodeName": node, "containers": [container]},
        "status": {"phase": "Running"},
    }


def write_dump(file: Path, objects: Iterable[tuple[str, Mapping[str, object]]]) -> Path:
    """A ``kubectl get -o json`` file of (kind, object) pairs."""
    items = [{"apiVersion": "v1", "kind": kind, **obj} for kind, obj in objects]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return file
