"""Kubernetes objects as an API server returns them, as JSON-able dictionaries.

Only what a cluster's scheduler reads varies; the rest is there because real dumps have it too. Randomness
(uids) and time are arguments, so the same arguments give the same objects.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random
from uuid import UUID

Json = dict[str, object]

KUBELET = "v1.34.3"


@dataclass(frozen=True, slots=True)
class Context:
    """What all objects of one cluster share."""

    rng: Random
    now: datetime

    def uid(self) -> str:
        """A uid nobody else has."""
        return str(UUID(int=self.rng.getrandbits(128), version=4))

    def version(self) -> str:
        """A resourceVersion."""
        return str(self.rng.randrange(10**7, 10**8))

    def ago(self, minutes: float) -> str:
        """A timestamp so many minutes back."""
        return (self.now - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class NodeShape:
    """A machine type: what its nodes have, and what is said of them."""

    capacity: Mapping[str, str]
    allocatable: Mapping[str, str]
    labels: Mapping[str, str]
    taints: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True)
class PodShape:
    """A pod template. ``init`` runs before, ``sidecars`` run beside; ``pod_level`` is ``spec.resources``."""

    requests: Mapping[str, str]
    image: str = "registry.example.com/train:2.4"
    init: Mapping[str, str] | None = None
    sidecars: tuple[Mapping[str, str], ...] = ()
    pod_level: Mapping[str, str] | None = None
    priority_class: str = ""
    tolerations: tuple[Json, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    def labelled(self, **labels: str) -> "PodShape":
        """The same with more labels; ``_`` stands for ``-`` in their keys."""
        more = {key.replace("_", "-"): value for key, value in labels.items()}
        return replace(self, labels={**self.labels, **more})


def taint(key: str, value: str, effect: str = "NoSchedule") -> Json:
    """A taint of a node."""
    return {"key": key, "value": value, "effect": effect}


def toleration(key: str, effect: str = "NoSchedule") -> Json:
    """Tolerates the taint whatever its value."""
    return {"key": key, "operator": "Exists", "effect": effect}


def node(
    ctx: Context,
    name: str,
    shape: NodeShape,
    *,
    zone: str,
    cordoned: bool = False,
    taints: Iterable[Json] = (),
    labels: Mapping[str, str] | None = None,
) -> Json:
    """A node that is ready."""
    all_taints = [*shape.taints, *taints]
    if cordoned:
        all_taints.append(
            {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": ctx.ago(55)}
        )
    spec: Json = {"providerID": f"demo:///{zone}/{name}"}
    if all_taints:
        spec["taints"] = all_taints
    if cordoned:
        spec["unschedulable"] = True
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": ctx.uid(),
            "resourceVersion": ctx.version(),
            "creationTimestamp": ctx.ago(60 * 24 * 90),
            "labels": {
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "topology.kubernetes.io/region": zone[:-2],
                "topology.kubernetes.io/zone": zone,
                **shape.labels,
                **(labels or {}),
            },
            "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
        },
        "spec": spec,
        "status": {
            "capacity": dict(shape.capacity),
            "allocatable": dict(shape.allocatable),
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "KubeletReady",
                    "lastHeartbeatTime": ctx.ago(1),
                    "lastTransitionTime": ctx.ago(60 * 24 * 30),
                }
            ],
            "addresses": [{"type": "Hostname", "address": name}],
            "nodeInfo": {"kubeletVersion": KUBELET, "operatingSystem": "linux", "architecture": "amd64"},
        },
    }


def pod_template(shape: PodShape) -> Json:
    """The template of a workload's pods."""
    return {"metadata": {"labels": dict(shape.labels)}, "spec": _pod_spec(shape)}


def pod(
    ctx: Context,
    namespace: str,
    name: str,
    shape: PodShape,
    *,
    node_name: str = "",
    nominated: str = "",
    owner: Json | None = None,
    phase: str = "",
    unschedulable_for_min: float | None = None,
    terminating: bool = False,
    age_min: float = 60,
) -> Json:
    """A pod; on a node it is running unless ``phase`` says otherwise, on none it is pending.

    ``nominated`` is the node whose pods are being evicted for it; ``unschedulable_for_min`` says how long
    the scheduler has found no room.
    """
    metadata: Json = {
        "name": name,
        "namespace": namespace,
        "uid": ctx.uid(),
        "resourceVersion": ctx.version(),
        "creationTimestamp": ctx.ago(age_min if unschedulable_for_min is None else unschedulable_for_min),
        "labels": dict(shape.labels),
    }
    if owner is not None:
        metadata["ownerReferences"] = [controller_reference(owner)]
    if terminating:
        metadata["deletionTimestamp"] = ctx.ago(0.5)
        metadata["deletionGracePeriodSeconds"] = 300
    spec = _pod_spec(shape)
    if node_name:
        spec["nodeName"] = node_name
    status: Json = {"phase": phase or ("Running" if node_name else "Pending"), "qosClass": "Burstable"}
    if nominated:
        status["nominatedNodeName"] = nominated
    if unschedulable_for_min is not None:
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": "no node fits",
                "lastTransitionTime": ctx.ago(unschedulable_for_min),
            }
        ]
    elif node_name:
        status["conditions"] = [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": ctx.ago(age_min)},
        ]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def workload(
    ctx: Context,
    kind: str,
    api_version: str,
    namespace: str,
    name: str,
    spec: Json,
    *,
    owner: Json | None = None,
) -> Json:
    """A Deployment, ReplicaSet, Job or the like."""
    metadata: Json = {
        "name": name,
        "namespace": namespace,
        "uid": ctx.uid(),
        "resourceVersion": ctx.version(),
        "generation": 1,
        "creationTimestamp": ctx.ago(60 * 24),
    }
    if owner is not None:
        metadata["ownerReferences"] = [controller_reference(owner)]
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}


def quota(ctx: Context, namespace: str, name: str, hard: Mapping[str, str], used: Mapping[str, str]) -> Json:
    """A ResourceQuota whose controller has counted."""
    made = workload(ctx, "ResourceQuota", "v1", namespace, name, {"hard": dict(hard)})
    made["status"] = {"hard": dict(hard), "used": {name: used.get(name, "0") for name in hard}}
    return made


def controller_reference(owner: Json) -> Json:
    """How a dependent names its controller."""
    metadata = owner["metadata"]
    assert isinstance(metadata, dict)
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def as_list(objects: Iterable[Json]) -> Json:
    """The objects as ``kubectl get`` prints them."""
    return {"apiVersion": "v1", "items": list(objects), "kind": "List", "metadata": {"resourceVersion": ""}}


def _pod_spec(shape: PodShape) -> Json:
    spec: Json = {
        "containers": [_container("main", shape.image, shape.requests)],
        "schedulerName": "default-scheduler",
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
    }
    init: list[Json] = [
        {
            **_container(f"sidecar-{n}", "registry.example.com/log-shipper:1.9", requests),
            "restartPolicy": "Always",
        }
        for n, requests in enumerate(shape.sidecars)
    ]
    if shape.init is not None:
        init.append(_container("fetch-model", "registry.example.com/fetch:1.2", shape.init))
    if init:
        spec["initContainers"] = init
    if shape.pod_level is not None:
        spec["resources"] = {"requests": dict(shape.pod_level)}
    if shape.priority_class:
        spec["priorityClassName"] = shape.priority_class
    if shape.tolerations:
        spec["tolerations"] = list(shape.tolerations)
    return spec


def _container(name: str, image: str, requests: Mapping[str, str]) -> Json:
    devices = {resource: amount for resource, amount in requests.items() if "/" in resource}
    resources: Json = {"requests": dict(requests)}
    if devices:
        resources["limits"] = devices
    return {"name": name, "image": image, "resources": resources}
