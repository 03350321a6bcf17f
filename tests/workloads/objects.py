"""Workload objects for tests: the examples beside this file, and small ones made to measure."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import yaml

from fairway.workloads.gang import Gang, TopologyRequest
from fairway.workloads.registry import NotRead, read_workload

EXAMPLES = Path(__file__).parent / "examples"

Object = dict[str, object]
Annotations = Mapping[str, str]


def example(name: str) -> bytes:
    """An example as the API server would send it."""
    return msgspec.json.encode(yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text()))


def read(raw: bytes | Object) -> Gang:
    """The gang that the object is; fails the test where there is none."""
    gang = read_workload(raw if isinstance(raw, bytes) else msgspec.json.encode(raw))
    assert isinstance(gang, Gang), gang
    return gang


def refusal(raw: bytes | Object) -> str:
    """Why the object cannot be read."""
    found = read_workload(raw if isinstance(raw, bytes) else msgspec.json.encode(raw))
    assert isinstance(found, NotRead), found
    return "\n".join(found.problems)


def template(
    annotations: Annotations | None = None, labels: Mapping[str, str] | None = None, **spec: object
) -> Object:
    """A pod template of one container that asks for a GPU."""
    container = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    return {
        "metadata": {"annotations": dict(annotations or {}), "labels": dict(labels or {})},
        "spec": {"containers": [container], **spec},
    }


def workload(
    kind: str, api_version: str, spec: object, annotations: Annotations | None = None, name: str = "w"
) -> Object:
    metadata = {"name": name, "namespace": "n", "annotations": dict(annotations or {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def deployment(
    replicas: object = 8,
    *,
    notes: Annotations | None = None,
    pod_notes: Annotations | None = None,
    labels: Annotations | None = None,
    kind: str = "Deployment",
) -> Object:
    """A Deployment or one of its like: annotations of its own, annotations and labels of its pods."""
    return workload(kind, "apps/v1", {"replicas": replicas, "template": template(pod_notes, labels)}, notes)


def job(
    parallelism: object = 8,
    *,
    notes: Annotations | None = None,
    pod_notes: Annotations | None = None,
    labels: Annotations | None = None,
    **spec: object,
) -> Object:
    fields = {"parallelism": parallelism, "template": template(pod_notes, labels), **spec}
    return workload("Job", "batch/v1", fields, notes)


def volcano_job(
    *tasks: Mapping[str, object], notes: Annotations | None = None, spec: Object | None = None
) -> Object:
    listed = [{"template": template(), **task} for task in tasks]
    return workload("Job", "batch.volcano.sh/v1alpha1", {"tasks": listed, **(spec or {})}, notes)


def lws(
    size: object = 4, *, notes: Annotations | None = None, leader: bool = False, **group: object
) -> Object:
    fields: Object = {"size": size, "workerTemplate": template(), **group}
    if leader:
        fields["leaderTemplate"] = template()
    return workload(
        "LeaderWorkerSet",
        "leaderworkerset.x-k8s.io/v1",
        {"replicas": 2, "leaderWorkerTemplate": fields},
        notes,
    )


def sizes(gang: Gang) -> list[tuple[str, int, int]]:
    """Name, count and minimum of each pod set."""
    return [(pod_set.name, pod_set.count, pod_set.minimum) for pod_set in gang.pod_sets]


def told(request: TopologyRequest | None) -> str:
    """A topology request in a few words: ``sliced rack/4``; empty for none."""
    if request is None:
        return ""
    return f"{request.mode} {request.level}" + (f"/{request.slice_size}" if request.slice_size else "")


def topologies(gang: Gang) -> list[str]:
    """The topology of the gang, then that of each pod set."""
    return [told(gang.topology), *(told(pod_set.topology) for pod_set in gang.pod_sets)]
