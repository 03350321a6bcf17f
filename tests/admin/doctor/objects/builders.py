"""A small karmada-apiserver as the doctor reads it: all is well there until a test changes something."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import msgspec

from admin.doctor.evidence import Evidence, Plane, Role
from admin.doctor.finding import Finding, Verdict
from admin.doctor.karmada_kinds import (
    CLUSTER_PROPAGATION_POLICIES,
    FEDERATED_RESOURCE_QUOTAS,
    KARMADA_KINDS,
    PROPAGATION_POLICIES,
    WORKLOADS,
)
from admin.doctor.kinds import CLUSTERS as MEMBER_CLUSTERS
from admin.doctor.kinds import Kind
from admin.doctor.objects import OBJECTS
from fairway.kube.lease import LEASES
from fairway.kube.resource import KubeObjectLike
from fairway.names import ADMISSION
from queue_dispatcher.api.kinds import (
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    RESOURCE_FLAVORS,
)
from queue_dispatcher.bindings.cluster import CLUSTERS
from queue_dispatcher.bindings.objects import CLUSTER_RESOURCE_BINDINGS, RESOURCE_BINDINGS
from queue_dispatcher.bindings.timestamp import format_ms
from queue_dispatcher.cache.objects import NAMESPACES

Obj = dict[str, Any]

GPU = "nvidia.com/gpu"
NOW_MS = 1_790_000_600_000
CREATED_MS = NOW_MS - 600_000
AGGREGATED = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
ONE_CLUSTER = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]
JOBS = WORKLOADS["batch", "Job"]
PYTORCH_JOBS = WORKLOADS["kubeflow.org", "PyTorchJob"]
DEPLOYMENTS = WORKLOADS["apps", "Deployment"]


class World:
    """Objects by the name of their kind; `evidence` reads them as the API server's answers are read."""

    def __init__(self) -> None:
        self.objects: dict[str, list[Obj]] = {kind.name: [] for kind in KARMADA_KINDS}
        self.unread: dict[str, str] = {}

    def add(self, kind: Kind, *made: Obj) -> Obj:
        self.objects[kind.name] += made
        return made[-1]

    def one(self, kind: Kind) -> Obj:
        """The first of a kind."""
        return self.objects[kind.name][0]

    def empty(self, *kinds: Kind) -> None:
        for kind in kinds:
            self.objects[kind.name].clear()

    def evidence(self) -> Evidence:
        read: dict[str, list[KubeObjectLike]] = {}
        # Clusters in both types, as two views of the same objects.
        for kind in (*KARMADA_KINDS, MEMBER_CLUSTERS):
            if kind.name in self.objects:
                made = [_decoded(one, kind) for one in self.objects[kind.name]]
                read.setdefault(kind.name, []).extend(made)
        plane = Plane(Role.KARMADA, "karmada", objects=read, unread=self.unread)
        return Evidence(NOW_MS, karmada=plane)

    def findings(self) -> dict[str, list[Finding]]:
        """What every check says, without those where all is well.

        Nor those of policies where there is none to look at, as a small world has few.
        """
        evidence = self.evidence()
        said = {check.name: list(check.findings(evidence)) for check in OBJECTS}
        return {
            name: findings
            for name, findings in said.items()
            if [finding.verdict for finding in findings] != [Verdict.OK]
            and not (name.startswith("policy-") and findings[0].message.startswith("does not apply: "))
        }


def _decoded(obj: Obj, kind: Kind) -> KubeObjectLike:
    return msgspec.json.decode(msgspec.json.encode(obj), type=kind.type)


Change = Callable[[World], object]


def metadata(name: str, namespace: str = "", **more: object) -> Obj:
    return {"name": name, **({"namespace": namespace} if namespace else {}), **more}


def cluster(name: str, gpus: int = 8, **more: object) -> Obj:
    return {
        "metadata": metadata(name, labels=more.pop("labels", {})),
        "spec": {"syncMode": "Push", "region": "eu", **more},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "resourceSummary": {"allocatable": {GPU: str(gpus), "cpu": "64"}},
        },
    }


def flavor(name: str = "h100", *clusters: str, **spec: object) -> Obj:
    return {"metadata": metadata(name), "spec": {**({"clusterNames": clusters} if clusters else {}), **spec}}


def cluster_queue(name: str = "main", nominal: object = 8, *, resource: str = GPU, **spec: object) -> Obj:
    quota = {"name": resource, "nominalQuota": nominal}
    group = {"coveredResources": [resource], "flavors": [{"name": "h100", "resources": [quota]}]}
    return {"metadata": metadata(name), "spec": {"resourceGroups": [group], **spec}}


def local_queue(name: str = "main", queue: str = "main", namespace: str = "team", **spec: object) -> Obj:
    return {"metadata": metadata(name, namespace), "spec": {"clusterQueue": queue, **spec}}


def service_class(name: str, **spec: object) -> Obj:
    return {"metadata": metadata(name), "spec": spec}


def namespace(name: str = "team", **labels: str) -> Obj:
    return {"metadata": metadata(name, labels=labels)}


def policy(name: str = "train", namespace: str = "team", *, kind: str = "Job", **spec: object) -> Obj:
    """Aggregated, for Jobs; ``queue`` as annotation; ``namespace`` empty for a ClusterPropagationPolicy."""
    said = {"fairway.dev/queue": queue} if (queue := spec.pop("queue", "")) else {}
    api_version = {"Job": "batch/v1", "PyTorchJob": "kubeflow.org/v1"}[kind]
    return {
        "metadata": metadata(name, namespace, annotations=said),
        "spec": {
            "resourceSelectors": [{"apiVersion": api_version, "kind": kind}],
            "placement": {"replicaScheduling": AGGREGATED},
            **spec,
        },
    }


def job(
    name: str = "train", namespace: str = "team", labels: Mapping[str, str] | None = None, **more: object
) -> Obj:
    stated = {"fairway.dev/queue": "main"} if labels is None else dict(labels)
    return {"metadata": metadata(name, namespace, labels=stated), "spec": {}, **more}


def binding(
    name: str = "train",
    namespace: str = "team",
    *,
    held: bool = True,
    replicas: int = 2,
    gpus: int = 1,
    placed: Mapping[str, int] | None = None,
    by: str = "train",
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    kind: str = "Job",
    api_version: str = "batch/v1",
    status: Obj | None = None,
    **spec: object,
) -> Obj:
    """The binding of a Job that policy ``by`` made, held and not placed."""
    return {
        "metadata": metadata(
            f"{name}-{kind.lower()}",
            namespace,
            uid=f"uid-{namespace}-{name}",
            generation=1,
            creationTimestamp=format_ms(CREATED_MS),
            labels={"propagationpolicy.karmada.io/permanent-id": "p", **(labels or {})},
            annotations={
                "propagationpolicy.karmada.io/namespace": namespace,
                "propagationpolicy.karmada.io/name": by,
                **(annotations or {}),
            },
        ),
        "spec": {
            "resource": {"apiVersion": api_version, "kind": kind, "namespace": namespace, "name": name},
            "replicas": replicas,
            "replicaRequirements": {"resourceRequest": {GPU: str(gpus)}},
            "placement": {"replicaScheduling": AGGREGATED},
            **({"suspension": {"scheduling": True}} if held else {}),
            **({"clusters": [{"name": c, "replicas": n} for c, n in placed.items()]} if placed else {}),
            **spec,
        },
        "status": status or {},
    }


def admitted(
    name: str = "train", *, namespace: str = "team", queue: str = "main", ago_s: int = 30
) -> Mapping[str, str]:
    """The record of two pods with a GPU each, admitted so long ago."""
    moment = format_ms(NOW_MS - 1000 * ago_s)
    record = {
        "id": f"uid-{namespace}-{name}",
        "queue": queue,
        "localQueue": queue,
        "class": "",
        "priority": 0,
        "enqueuedAt": format_ms(CREATED_MS),
        "admittedAt": moment,
        "replicas": 2,
        "copies": 1,
        "requests": {GPU: 2},
        "flavors": {GPU: ["h100"]},
    }
    return {ADMISSION: json.dumps(record)}


def unscheduled(reason: str, ago_s: int = 10) -> Obj:
    condition = {"type": "Scheduled", "status": "False", "reason": reason, "message": "why"}
    return {"conditions": [{**condition, "lastTransitionTime": format_ms(NOW_MS - 1000 * ago_s)}]}


def ended(*clusters: str, condition: str = "Complete") -> Obj:
    status = {"conditions": [{"type": condition, "status": "True"}]}
    return {"aggregatedStatus": [{"clusterName": name, "status": status} for name in clusters]}


def components(*kinds: str) -> Obj:
    """What replaces replicas in a binding of several kinds of pods."""
    return {
        "components": [
            {"name": kind, "replicas": 1, "replicaRequirements": {"resourceRequest": {GPU: "1"}}}
            for kind in kinds
        ],
        "replicaRequirements": None,
        "replicas": 0,
    }


def lease(holder: str = "dispatcher-1", renewed_ago_s: int = 5) -> Obj:
    return {
        "metadata": metadata("fairway-dispatcher", "fairway-system"),
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": 15,
            "renewTime": format_ms(NOW_MS - 1000 * renewed_ago_s),
        },
    }


def well() -> World:
    """A dispatcher that leads, a queue, and three Jobs: one waits, one runs, one has ended."""
    world = World()
    world.add(CLUSTERS, cluster("m1"), cluster("m2"))
    world.add(RESOURCE_FLAVORS, flavor("h100", "m1", "m2"))
    world.add(CLUSTER_QUEUES, cluster_queue())
    world.add(LOCAL_QUEUES, local_queue())
    world.add(NAMESPACES, namespace())
    world.add(PROPAGATION_POLICIES, policy())
    world.add(LEASES, lease())
    world.add(JOBS, job("waits"), job("runs"), job("ended"))
    world.add(
        RESOURCE_BINDINGS,
        binding("waits"),
        binding("runs", held=False, placed={"m1": 2}, annotations=admitted("runs")),
        binding("ended", held=False, placed={"m1": 2}, annotations=admitted("ended"), status=ended("m1")),
    )
    return world


def merged(obj: object, patch: object) -> object:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    made = dict(obj) if isinstance(obj, dict) else {}
    for name, value in patch.items():
        if value is None:
            made.pop(name, None)
        else:
            made[name] = merged(made.get(name), value)
    return made


def apply(world: World, findings: Iterable[Finding]) -> None:
    """Apply the merge patches of findings as kubectl would; whoever has none must not be among them."""
    of: dict[str, Kind] = {
        "propagationpolicy": PROPAGATION_POLICIES,
        "clusterpropagationpolicy": CLUSTER_PROPAGATION_POLICIES,
        "federatedresourcequota": FEDERATED_RESOURCE_QUOTAS,
        "resourcebinding": RESOURCE_BINDINGS,
        "clusterresourcebinding": CLUSTER_RESOURCE_BINDINGS,
    }
    for finding in findings:
        assert finding.patch is not None, finding
        assert finding.patch.plane == "karmada"
        kind, _, rest = finding.patch.target.partition("/")
        name, _, where = rest.partition(" -n ")
        objects = world.objects[of[kind].name]
        index = next(
            number
            for number, one in enumerate(objects)
            if (one["metadata"]["name"], one["metadata"].get("namespace", "")) == (name, where)
        )
        objects[index] = cast("Obj", merged(objects[index], json.loads(finding.patch.body)))
