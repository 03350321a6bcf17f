"""The API objects of a schedule, and the paths that they are created at."""

from collections.abc import Iterator

from sandbox.fakeapi.store import Obj
from tests.crash.quota import Limits, Queue
from tests.crash.schedule import CLUSTERS, LOOSE, STRICT, Schedule, Workload
from tests.crash.views import GPU

_FAIRWAY = "/apis/fairway.dev/v1alpha1"
_WORK = "/apis/work.karmada.io/v1alpha2"
_TEMPLATES = {"Job": ("batch/v1", "jobs"), "Deployment": ("apps/v1", "deployments")}

CLASSES: dict[str, Obj] = {
    "batch": {"priority": 0},
    "urgent": {"priority": 100},
    "firm": {"priority": 0, "preemptible": "Never"},
    "hasty": {
        "priority": 0,
        "startTimeout": "400ms",
        "requeue": {"backoffBase": "800ms", "backoffMax": "1s"},
    },
}


def fixed_objects(schedule: Schedule) -> Iterator[tuple[str, Obj]]:
    """All that is there before the first workload."""
    yield "/api/v1/namespaces", {"metadata": {"name": "karmada-system"}}
    for name in (STRICT, LOOSE):
        yield "/api/v1/namespaces", {"metadata": {"name": name}}
    for name in CLUSTERS:
        yield (
            "/apis/cluster.karmada.io/v1alpha1/clusters",
            {
                "metadata": {"name": name},
                "spec": {"syncMode": "Push"},
                "status": {
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "resourceSummary": {"allocatable": {GPU: str(schedule.capacity[name])}},
                },
            },
        )
        flavor = {"clusterNames": [name], "capacityPolicy": {"type": "FromClusters"}}
        yield f"{_FAIRWAY}/resourceflavors", {"metadata": {"name": name}, "spec": flavor}
    for name, spec in CLASSES.items():
        yield f"{_FAIRWAY}/serviceclasses", {"metadata": {"name": name}, "spec": spec}
    for queue in schedule.queues:
        yield f"{_FAIRWAY}/clusterqueues", {"metadata": {"name": queue.name}, "spec": _queue(queue)}
    for name in (STRICT, LOOSE):
        yield (
            f"{_FAIRWAY}/namespaces/{name}/localqueues",
            {"metadata": {"name": "main"}, "spec": {"clusterQueue": name}},
        )


def _queue(queue: Queue) -> Obj:
    flavors = [{"name": flavor, "resources": [_quota(limits)]} for flavor, limits in queue.quotas.items()]
    spec: Obj = {"resourceGroups": [{"coveredResources": [GPU], "flavors": flavors}]} if flavors else {}
    if queue.parent:
        spec["parent"] = queue.parent
        spec["queueingStrategy"] = "StrictFIFO" if queue.name == STRICT else "BestEffortFIFO"
    if queue.displaces:
        spec["preemption"] = {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}
    return spec


def _quota(limits: Limits) -> Obj:
    quota: Obj = {"name": GPU, "nominalQuota": str(limits.nominal)}
    if limits.borrowing is not None:
        quota["borrowingLimit"] = str(limits.borrowing)
    if limits.lending is not None:
        quota["lendingLimit"] = str(limits.lending)
    return quota


def template(workload: Workload) -> tuple[str, Obj]:
    """The workload's own object; the dispatcher reads its labels."""
    api_version, plural = _TEMPLATES[workload.kind]
    labels = {"fairway.dev/queue": "main", "fairway.dev/class": workload.service_class}
    if workload.group:
        labels["fairway.dev/group"] = workload.group
        labels["fairway.dev/group-size"] = str(workload.group_size)
    path = f"/apis/{api_version}/namespaces/{workload.namespace}/{plural}"
    return path, {"metadata": {"name": workload.name, "labels": labels}, "spec": {}}


def binding(workload: Workload) -> tuple[str, Obj]:
    """Its binding as Karmada's detector makes it and the webhook holds it."""
    api_version, _ = _TEMPLATES[workload.kind]
    spec: Obj = {
        "resource": {
            "apiVersion": api_version,
            "kind": workload.kind,
            "namespace": workload.namespace,
            "name": workload.name,
        },
        "replicas": workload.pods,
        "replicaRequirements": {"resourceRequest": {GPU: str(workload.gpus)}},
        "placement": {
            "clusterAffinity": {"clusterNames": list(workload.clusters)},
            "replicaScheduling": {
                "replicaSchedulingType": "Divided",
                "replicaDivisionPreference": "Aggregated",
            },
        },
        # What a policy suspends stands beside the dispatcher's flag, and is none of its business.
        "suspension": {
            "dispatchingOnClusters": {"clusterNames": ["elsewhere"]},
            "scheduling": True,
        },
    }
    metadata = {"name": workload.key.partition("/")[2], "labels": {"app": workload.name}}
    return f"{_WORK}/namespaces/{workload.namespace}/resourcebindings", {"metadata": metadata, "spec": spec}


def binding_path(key: str) -> str:
    """The path of the binding ``namespace/name``."""
    namespace, _, name = key.partition("/")
    return f"{_WORK}/namespaces/{namespace}/resourcebindings/{name}"
