"""Builders of API objects as they stand on Karmada's API server."""

from collections.abc import Mapping
from typing import Any, TypedDict

from fairway.names import HELD_AT

Obj = dict[str, Any]
Quotas = Mapping[str, int | str | Mapping[str, Any]]
"""By flavor: the nominal quota, or all that is said of the resource."""

GPU = "nvidia.com/gpu"
FAIRWAY = "/apis/fairway.dev/v1alpha1"
WORK = "/apis/work.karmada.io/v1alpha2"


def cluster(
    name: str, gpus: int | None, *, ready: bool = True, labels: Mapping[str, str] | None = None
) -> Obj:
    """``gpus`` None: a cluster that Karmada does not sum up."""
    status: Obj = {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}
    if gpus is not None:
        status["resourceSummary"] = {"allocatable": {GPU: str(gpus), "cpu": "1000"}}
    return {
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {"syncMode": "Push"},
        "status": status,
    }


def flavor(name: str, *clusters: str, **spec: object) -> Obj:
    return {"metadata": {"name": name}, "spec": {"clusterNames": list(clusters), **spec}}


def cluster_queue(
    name: str,
    quotas: Quotas,
    *,
    strategy: str = "BestEffortFIFO",
    resource: str = GPU,
    **spec: object,
) -> Obj:
    """``quotas``: by flavor, the nominal quota or all of it."""
    flavors = [
        {
            "name": name,
            "resources": [
                {"name": resource, **(quota if isinstance(quota, Mapping) else {"nominalQuota": str(quota)})}
            ],
        }
        for name, quota in quotas.items()
    ]
    group = [{"coveredResources": [resource], "flavors": flavors}] if flavors else []
    return {
        "metadata": {"name": name},
        "spec": {"queueingStrategy": strategy, "resourceGroups": group, **spec},
    }


def local_queue(name: str, queue: str, **spec: object) -> Obj:
    return {"metadata": {"name": name}, "spec": {"clusterQueue": queue, **spec}}


def service_class(name: str, priority: int = 0, **spec: object) -> Obj:
    return {"metadata": {"name": name}, "spec": {"priority": priority, **spec}}


def job(
    name: str, labels: Mapping[str, str] | None = None, *, gpus: int = 1, pods: int = 1, **pod: object
) -> Obj:
    container = {"name": "main", "resources": {"limits": {GPU: gpus}}}
    template = {"spec": {"containers": [container], **pod}}
    return {
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {"parallelism": pods, "completions": pods, "template": template},
    }


class Options(TypedDict, total=False):
    """What a binding is made with, beside its name and namespace."""

    gpus: int
    replicas: int
    held: bool
    kind: str
    api_version: str
    clusters: tuple[str, ...]
    duplicated: bool
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    more: Obj


def binding(
    name: str,
    namespace: str = "team",
    *,
    gpus: int = 1,
    replicas: int = 1,
    held: bool = True,
    kind: str = "Job",
    api_version: str = "batch/v1",
    clusters: tuple[str, ...] = (),
    duplicated: bool = False,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    more: Obj | None = None,
) -> Obj:
    """As the detector makes it and a policy holds it; ``clusters``: of its placement, none for all."""
    placement: Obj = {
        "replicaScheduling": {
            "replicaSchedulingType": "Duplicated" if duplicated else "Divided",
            **({} if duplicated else {"replicaDivisionPreference": "Aggregated"}),
        }
    }
    if clusters:
        placement["clusterAffinity"] = {"clusterNames": list(clusters)}
    body: Obj = {
        "resource": {"apiVersion": api_version, "kind": kind, "namespace": namespace, "name": name},
        "replicas": replicas,
        "placement": placement,
    }
    if gpus:
        body["replicaRequirements"] = {"resourceRequest": {GPU: str(gpus)}}
    if held:
        body["suspension"] = {"scheduling": True}
    return {
        "metadata": {
            "name": f"{name}-{kind.lower()}",
            "labels": dict(labels or {}),
            "annotations": ({HELD_AT: ""} if held else {}) | dict(annotations or {}),
        },
        "spec": body | (more or {}),
    }
