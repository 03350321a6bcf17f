"""Bindings and reviews as the API server writes them, with only what a test says of them."""

from typing import Any

import msgspec

from webhook.review import ReviewRequest, read_review

Obj = dict[str, Any]

PLACEMENT: Obj = {"clusterAffinity": {"clusterNames": ["member1", "member2"]}}
GPU: Obj = {"nvidia.com/gpu": "1"}
AT = "2026-11-20T12:00:00.000+00:00"
"""When reviews are answered."""
CPU: Obj = {"cpu": "2", "memory": "4Gi"}


def requirements(requests: Obj) -> Obj:
    return {"resourceRequest": requests}


def component(name: str = "worker", replicas: int = 2, requests: Obj | None = None) -> Obj:
    built: Obj = {"name": name, "replicas": replicas}
    return built if requests is None else built | {"replicaRequirements": requirements(requests)}


def spec(requests: Obj | None = None, **fields: object) -> Obj:
    """A Deployment of two replicas with a placement; a field given as None is left out."""
    built: Obj = {
        "resource": {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "namespace": "team",
            "name": "w",
            "uid": "u",
        },
        "replicas": 2,
        "placement": PLACEMENT,
    }
    if requests is not None:
        built["replicaRequirements"] = requirements(requests)
    built |= fields
    return {name: value for name, value in built.items() if value is not None}


def sets(*components: Obj, **fields: object) -> Obj:
    """A workload of components, which has neither replicas nor requirements of its own."""
    merged: Obj = {"replicas": None, "components": list(components)} | fields
    return spec(**merged)


def binding(
    spec: Obj,
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    kind: str = "ResourceBinding",
    name: str = "w-deployment",
) -> Obj:
    metadata: Obj = {"name": name}
    if kind == "ResourceBinding":
        metadata["namespace"] = "team"
    if labels is not None:
        metadata["labels"] = labels
    if annotations is not None:
        metadata["annotations"] = annotations
    return {"apiVersion": "work.karmada.io/v1alpha2", "kind": kind, "metadata": metadata, "spec": spec}


def review(new: object, old: object = None, **request: object) -> Obj:
    """A review of a creation, or of an update where there is an old object."""
    kind = new.get("kind", "ResourceBinding") if isinstance(new, dict) else "ResourceBinding"
    asked: Obj = {
        "uid": "6f1c3ad0-0000-4000-8000-000000000001",
        "kind": {"group": "work.karmada.io", "version": "v1alpha2", "kind": kind},
        "resource": {"group": "work.karmada.io", "version": "v1alpha2", "resource": f"{kind.lower()}s"},
        "name": "w-deployment",
        "namespace": "team",
        "operation": "CREATE" if old is None else "UPDATE",
        "userInfo": {"username": "system:serviceaccount:karmada-system:karmada-controller-manager"},
        "object": new,
        "oldObject": old,
        "dryRun": False,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked | request}


def request(new: object, old: object = None, **fields: object) -> ReviewRequest:
    return read_review(msgspec.json.encode(review(new, old, **fields)))
