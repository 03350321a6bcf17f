"""What the doctor lists on karmada-apiserver to judge queues, policies and bindings.

The dispatcher's own types wherever it reads the same kind, so that both see the same. What is added here are
the policies, whole, and Karmada's own quotas (policy.karmada.io/v1alpha1, Karmada 1.19), and the workloads
with their status. Specs stay undecoded at the door, so that a malformed one costs itself alone.
"""

from typing import Final

import msgspec

from admin.doctor.kinds import Kind
from fairway.kube.lease import LEASES
from fairway.kube.objects import KubeStruct, ObjectMeta, RawResources
from fairway.kube.resource import ResourceKind
from queue_dispatcher.api.kinds import (
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    RESOURCE_FLAVORS,
    SERVICE_CLASSES,
    VOLCANO_QUEUES,
)
from queue_dispatcher.bindings.cluster import CLUSTERS
from queue_dispatcher.bindings.objects import (
    CLUSTER_RESOURCE_BINDINGS,
    NULL,
    RESOURCE_BINDINGS,
    ClusterAffinitySpec,
    ClusterAffinityTerm,
    ClusterToleration,
    PlacementSpec,
    ReplicaScheduling,
    SpreadConstraint,
    Suspension,
)
from queue_dispatcher.cache.objects import NAMESPACES, PRIORITY_CLASSES, TemplateObject
from queue_dispatcher.cache.overrides import CLUSTER_OVERRIDE_POLICIES, OVERRIDE_POLICIES

_POLICY: Final = "/apis/policy.karmada.io/v1alpha1"


class PolicyObject(KubeStruct, frozen=True):
    """A PropagationPolicy or ClusterPropagationPolicy, its spec undecoded."""

    metadata: ObjectMeta = ObjectMeta()
    spec: msgspec.Raw = NULL


class ResourceSelector(KubeStruct, frozen=True):
    """Which templates a policy is for; empty fields select all."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""


class SpreadBounds(SpreadConstraint, frozen=True):
    """A spread constraint with both its bounds; Karmada takes 0 of ``min_groups`` for 1."""

    min_groups: int = 0


class PolicyPlacement(KubeStruct, frozen=True):
    """The placement of a policy; the same fields as the dispatcher reads on bindings."""

    cluster_affinity: ClusterAffinitySpec | None = None
    cluster_affinities: list[ClusterAffinityTerm] | None = None
    cluster_tolerations: list[ClusterToleration] | None = None
    spread_constraints: list[SpreadBounds] | None = None
    replica_scheduling: ReplicaScheduling | None = None

    def as_on_bindings(self) -> PlacementSpec:
        """The same, as it is copied to bindings."""
        return PlacementSpec(
            self.cluster_affinity,
            self.cluster_affinities,
            self.cluster_tolerations,
            list(self.spread_constraints or ()),
            self.replica_scheduling,
        )


class PolicySpec(KubeStruct, frozen=True):
    """The spec of either kind of policy."""

    resource_selectors: list[ResourceSelector] | None = None
    placement: PolicyPlacement = PolicyPlacement()
    suspension: Suspension | None = None
    preserve_resources_on_deletion: bool | None = None


class FederatedResourceQuotaSpec(KubeStruct, frozen=True):
    """``overall``: the limits over all clusters. ``static_assignments``: their number is all that counts."""

    overall: RawResources | None = None
    static_assignments: list[msgspec.Raw] | None = None


class FederatedResourceQuotaObject(KubeStruct, frozen=True):
    """policy.karmada.io/v1alpha1 FederatedResourceQuota, its spec undecoded."""

    metadata: ObjectMeta = ObjectMeta()
    spec: msgspec.Raw = NULL


class WorkloadObject(TemplateObject, frozen=True):
    """A workload's own object on karmada-apiserver, with the status that Karmada has collected."""

    status: msgspec.Raw = NULL


PROPAGATION_POLICIES = ResourceKind(
    "propagationpolicies.policy.karmada.io", f"{_POLICY}/propagationpolicies", PolicyObject
)
CLUSTER_PROPAGATION_POLICIES = ResourceKind(
    "clusterpropagationpolicies.policy.karmada.io", f"{_POLICY}/clusterpropagationpolicies", PolicyObject
)
FEDERATED_RESOURCE_QUOTAS = ResourceKind(
    "federatedresourcequotas.policy.karmada.io",
    f"{_POLICY}/federatedresourcequotas",
    FederatedResourceQuotaObject,
)


def _workload(plural: str, group: str, version: str) -> ResourceKind[WorkloadObject]:
    name = f"{plural}.{group}"
    return ResourceKind(name, f"/apis/{group}/{version}/{plural}", WorkloadObject)


WORKLOADS: Final = {
    ("apps", "Deployment"): _workload("deployments", "apps", "v1"),
    ("apps", "StatefulSet"): _workload("statefulsets", "apps", "v1"),
    ("batch", "Job"): _workload("jobs", "batch", "v1"),
    ("batch.volcano.sh", "Job"): _workload("jobs", "batch.volcano.sh", "v1alpha1"),
    ("jobset.x-k8s.io", "JobSet"): _workload("jobsets", "jobset.x-k8s.io", "v1alpha2"),
    ("kubeflow.org", "JAXJob"): _workload("jaxjobs", "kubeflow.org", "v1"),
    ("kubeflow.org", "MPIJob"): _workload("mpijobs", "kubeflow.org", "v2beta1"),
    ("kubeflow.org", "PaddleJob"): _workload("paddlejobs", "kubeflow.org", "v1"),
    ("kubeflow.org", "PyTorchJob"): _workload("pytorchjobs", "kubeflow.org", "v1"),
    ("kubeflow.org", "TFJob"): _workload("tfjobs", "kubeflow.org", "v1"),
    ("kubeflow.org", "XGBoostJob"): _workload("xgboostjobs", "kubeflow.org", "v1"),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): _workload(
        "leaderworkersets", "leaderworkerset.x-k8s.io", "v1"
    ),
    ("ray.io", "RayCluster"): _workload("rayclusters", "ray.io", "v1"),
    ("ray.io", "RayJob"): _workload("rayjobs", "ray.io", "v1"),
    ("ray.io", "RayService"): _workload("rayservices", "ray.io", "v1"),
    ("trainer.kubeflow.org", "TrainJob"): _workload("trainjobs", "trainer.kubeflow.org", "v1alpha1"),
}
"""By API group and kind: the workloads whose own objects are read, to learn the queues that they name."""

CRON_JOBS = _workload("cronjobs", "batch", "v1")

KARMADA_KINDS: Final[tuple[Kind, ...]] = (
    RESOURCE_BINDINGS,
    CLUSTER_RESOURCE_BINDINGS,
    CLUSTERS,
    RESOURCE_FLAVORS,
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    SERVICE_CLASSES,
    VOLCANO_QUEUES,
    NAMESPACES,
    PRIORITY_CLASSES,
    PROPAGATION_POLICIES,
    CLUSTER_PROPAGATION_POLICIES,
    FEDERATED_RESOURCE_QUOTAS,
    OVERRIDE_POLICIES,
    CLUSTER_OVERRIDE_POLICIES,
    LEASES,
    *WORKLOADS.values(),
    CRON_JOBS,
)
"""Everything that the checks of `admin.doctor.objects` list there; what is not served is none of it."""
