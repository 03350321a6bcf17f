"""What tenants submit, and the placements that they ask Karmada for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from fairway.names import QUEUE, SERVICE_CLASS
from tests.e2e.objects import GPU, Obj

LOCAL_QUEUE: Final = "main"


@dataclass(frozen=True, slots=True)
class Workload:
    """A template, and the collection on Karmada's API server that it goes to, below ``/apis``."""

    kind: str
    name: str
    group_version: str
    plural: str
    body: Obj

    @property
    def binding(self) -> str:
        """The name that Karmada gives its binding."""
        return f"{self.name}-{self.kind.lower()}"

    def path(self, namespace: str) -> str:
        """Its collection."""
        return f"/apis/{self.group_version}/namespaces/{namespace}/{self.plural}"


def job(
    name: str,
    pods: int = 1,
    gpus: int = 1,
    *,
    gang: bool = False,
    service_class: str = "",
    queue: str = LOCAL_QUEUE,
) -> Workload:
    """So many pods, which a gang needs all at once; each asks for so many GPUs."""
    spec = {
        "parallelism": pods,
        "completions": pods,
        "backoffLimit": 0,
        "template": _pods(name, gpus, restartPolicy="Never"),
    }
    annotations = {"fairway.dev/gang": "true"} if gang else {}
    named = {QUEUE: queue, SERVICE_CLASS: service_class}
    labels = {label: value for label, value in named.items() if value}
    return _workload("Job", name, "batch/v1", spec, annotations, labels)


def deployment(name: str, replicas: int = 1, gpus: int = 1) -> Workload:
    """Pods that run until they are deleted."""
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": name}},
        "template": _pods(name, gpus),
    }
    return _workload("Deployment", name, "apps/v1", spec)


def labelled(workload: Workload, labels: Mapping[str, str]) -> Workload:
    """The same with more labels."""
    metadata = workload.body["metadata"]
    more = {**metadata, "labels": {**metadata["labels"], **labels}}
    return replace(workload, body={**workload.body, "metadata": more})


def job_set(name: str, workers: int, gpus: int = 1) -> Workload:
    """A driver without GPUs and some workers: two components."""
    replicated = [
        _replicated("driver", 1, 0, name),
        _replicated("workers", workers, gpus, name),
    ]
    return _workload("JobSet", name, "jobset.x-k8s.io/v1alpha2", {"replicatedJobs": replicated})


def mixed_job_set(name: str, sizes: Mapping[int, int]) -> Workload:
    """So many pods by the GPUs that each asks for: a component for each size."""
    replicated = [_replicated(f"of-{gpus}", pods, gpus, name) for gpus, pods in sizes.items()]
    return _workload("JobSet", name, "jobset.x-k8s.io/v1alpha2", {"replicatedJobs": replicated})


def volcano_job(name: str, workers: int, gpus: int = 1) -> Workload:
    """A master without GPUs and some workers: two components."""
    tasks = [
        {"name": "master", "replicas": 1, "template": _pods(name, 0, restartPolicy="Never")},
        {"name": "worker", "replicas": workers, "template": _pods(name, gpus, restartPolicy="Never")},
    ]
    return _workload("Job", name, "batch.volcano.sh/v1alpha1", {"minAvailable": workers + 1, "tasks": tasks})


def _workload(
    kind: str,
    name: str,
    group_version: str,
    spec: Obj,
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> Workload:
    named = {QUEUE: LOCAL_QUEUE} if labels is None else dict(labels)
    metadata = {"name": name, "labels": named, "annotations": dict(annotations or {})}
    body = {"apiVersion": group_version, "kind": kind, "metadata": metadata, "spec": spec}
    return Workload(kind, name, group_version, f"{kind.lower()}s", body)


def _replicated(name: str, pods: int, gpus: int, app: str) -> Obj:
    spec = {"parallelism": pods, "completions": pods, "template": _pods(app, gpus, restartPolicy="Never")}
    return {"name": name, "replicas": 1, "template": {"spec": spec}}


def _pods(app: str, gpus: int, **spec: str) -> Obj:
    amounts = {GPU: str(gpus)} if gpus else {"cpu": "1"}
    container = {"name": "main", "image": "registry.example/train:1", "resources": {"limits": amounts}}
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": [container], **spec}}


def aggregated(*clusters: str) -> Obj:
    """Divided, over as few clusters as hold it."""
    return _placement(clusters, {"replicaDivisionPreference": "Aggregated"})


def divided(*clusters: str) -> Obj:
    """Divided, in proportion to how much fits in each."""
    weights = {"dynamicWeight": "AvailableReplicas"}
    return _placement(clusters, {"replicaDivisionPreference": "Weighted", "weightPreference": weights})


def whole(*clusters: str) -> Obj:
    """All of it in one of the clusters: what gangs want."""
    return in_one(aggregated(*clusters))


def duplicated(*clusters: str) -> Obj:
    """All of it in each of the clusters."""
    return {
        "clusterAffinity": {"clusterNames": list(clusters)},
        "replicaScheduling": {"replicaSchedulingType": "Duplicated"},
    }


def weighted(*clusters: str) -> Obj:
    """Divided, in equal shares."""
    weights = [{"targetCluster": {"clusterNames": [name]}, "weight": 1} for name in clusters]
    return _placement(
        clusters,
        {"replicaDivisionPreference": "Weighted", "weightPreference": {"staticWeightList": weights}},
    )


def in_one(placement: Obj) -> Obj:
    """The same, in one cluster."""
    spread = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]
    return {**placement, "spreadConstraints": spread}


def in_turn(*clusters: str) -> Obj:
    """Aggregated, in the first of the clusters that has room."""
    terms = [{"affinityName": name, "clusterNames": [name]} for name in clusters]
    placement = {key: value for key, value in aggregated().items() if key != "clusterAffinity"}
    return {**placement, "clusterAffinities": terms}


def _placement(clusters: tuple[str, ...], division: Obj) -> Obj:
    return {
        "clusterAffinity": {"clusterNames": list(clusters)},
        "replicaScheduling": {"replicaSchedulingType": "Divided", **division},
    }


def policy(namespace: str, workload: Workload, placement: Obj, scheduler: str = "") -> Obj:
    """A PropagationPolicy for one workload; ``scheduler``: who is to place it, if not Karmada's own."""
    selector = {"apiVersion": workload.group_version, "kind": workload.kind, "name": workload.name}
    # A Job of Kubernetes and one of Volcano may share a name.
    made = _policy(f"{workload.plural}-{workload.name}", namespace, selector, placement)
    if scheduler:
        made["spec"]["schedulerName"] = scheduler
    return made


def policy_of_all(namespace: str, workload: Workload, placement: Obj) -> Obj:
    """A PropagationPolicy for all of the namespace that are of this one's kind."""
    selector = {"apiVersion": workload.group_version, "kind": workload.kind}
    return _policy(f"all-{workload.plural}", namespace, selector, placement)


def _policy(name: str, namespace: str, selector: Obj, placement: Obj) -> Obj:
    return {
        "apiVersion": "policy.karmada.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"resourceSelectors": [selector], "placement": placement},
    }


def service_class(name: str, **spec: object) -> Obj:
    """What workloads of the class are promised."""
    metadata = {"name": name}
    return {
        "apiVersion": "fairway.dev/v1alpha1",
        "kind": "ServiceClass",
        "metadata": metadata,
        "spec": {"priority": 0, **spec},
    }
