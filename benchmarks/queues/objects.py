"""The objects of a suite as Fairway has them: queues, and bindings instead of Kueue's Workloads.

A binding is as Karmada's detector creates it for a Job, held at birth as the webhook holds it. Its queue and
class are labels of its own, and all bindings of a queue are about one Job, so that creating a workload is one
write, as it is in Kueue's suites.
"""

from collections.abc import Iterator
from typing import Any

from benchmarks.queues.suite import Suite, WorkloadSet
from fairway.names import API_VERSION, QUEUE, SERVICE_CLASS

Json = dict[str, object]

FLAVOR, MEMBER, TEMPLATE = "rf", "member", "workload"
ROOT = f"/apis/{API_VERSION}"
BINDINGS = "/apis/work.karmada.io/v1alpha2"
FINISHED: Json = {
    "aggregatedStatus": [
        {
            "clusterName": MEMBER,
            "applied": True,
            "status": {"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]},
        }
    ]
}


def namespace(name: str) -> Json:
    """A namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def flavor() -> Json:
    """The only flavor; Kueue's suites have no notion of real capacity, so it has plenty."""
    capacity: Json = {"type": "Static", "resources": {"cpu": "1000000"}}
    return _named("ResourceFlavor", FLAVOR, {"clusterNames": [MEMBER], "capacityPolicy": capacity})


def cohort(name: str) -> Json:
    """A cohort: a node of the tree without quota of its own."""
    return _named("ClusterQueue", name, {})


def cluster_queue(suite: Suite, name: str, parent: str) -> Json:
    """A queue with its quota of cpu."""
    quota = {
        "name": "cpu",
        "nominalQuota": str(suite.nominal_cpu_per_queue),
        "borrowingLimit": str(suite.borrowing_limit_cpu_per_queue),
    }
    group = {"coveredResources": ["cpu"], "flavors": [{"name": FLAVOR, "resources": [quota]}]}
    spec: Json = {"parent": parent, "queueingStrategy": "BestEffortFIFO", "resourceGroups": [group]}
    return _named("ClusterQueue", name, spec)


def local_queue(name: str) -> Json:
    """The queue's LocalQueue, in the namespace of the same name."""
    return _named("LocalQueue", name, {"clusterQueue": name}, namespace=name)


def template() -> Json:
    """The Job that all bindings of a namespace are about."""
    containers = [{"name": "main", "image": "registry.example.com/none:1"}]
    spec: Json = {"template": {"spec": {"containers": containers, "restartPolicy": "Never"}}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": TEMPLATE}, "spec": spec}


def member() -> tuple[Json, Json]:
    """The Cluster that everything is placed on, and its status."""
    cluster: Json = {"metadata": {"name": MEMBER}, "spec": {"syncMode": "Push"}}
    status: Json = {"conditions": [{"type": "Ready", "status": "True"}]}
    return {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", **cluster}, status


def cluster_definition() -> dict[str, Any]:
    """Karmada's aggregated API server serves Clusters; where there is none, a definition does."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1alpha1", "served": True, "storage": True, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "clusters.cluster.karmada.io"},
        "spec": {
            "group": "cluster.karmada.io",
            "scope": "Cluster",
            "names": {"plural": "clusters", "singular": "cluster", "kind": "Cluster"},
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def service_classes(suite: Suite) -> Iterator[Json]:
    """A class for each kind of workload, for its priority."""
    for each in suite.workload_sets:
        yield _named("ServiceClass", each.class_name, {"priority": each.priority})


def binding(queue: str, workloads: WorkloadSet, number: int) -> Json:
    """One workload, held."""
    name = f"{workloads.class_name}-{workloads.set}-{number}-0"
    return {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": {
            "namespace": queue,
            "name": name,
            "labels": {
                QUEUE: queue,
                SERVICE_CLASS: workloads.class_name,
                "propagationpolicy.karmada.io/permanent-id": "00000000-0000-0000-0000-000000000000",
            },
        },
        "spec": {
            "resource": {"apiVersion": "batch/v1", "kind": "Job", "namespace": queue, "name": TEMPLATE},
            "replicas": 1,
            "replicaRequirements": {"resourceRequest": {"cpu": str(workloads.cpu_per_workload)}},
            "placement": {
                "clusterAffinity": {"clusterNames": [MEMBER]},
                "replicaScheduling": {
                    "replicaSchedulingType": "Divided",
                    "replicaDivisionPreference": "Aggregated",
                },
            },
            "suspension": {"scheduling": True},
        },
    }


def _named(kind: str, name: str, spec: Json, namespace: str = "") -> Json:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}
