"""The objects that are watched, as these tests look at them."""

import json
from typing import Any

from fairway.kube.objects import Condition, KubeStruct, ObjectMeta
from fairway.kube.resource import ResourceKind
from fairway.names import ADMISSION

WORK = "/apis/work.karmada.io/v1alpha2"
CLUSTERS = "/apis/cluster.karmada.io/v1alpha1/clusters"
FAIRWAY = "/apis/fairway.dev/v1alpha1"
POLICIES = "/apis/policy.karmada.io/v1alpha1"
REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
GPU = "nvidia.com/gpu"
PROBED = "probed"
"""A namespace in which bindings are tried, and none is ever made."""
MERGE = "application/merge-patch+json"
STRICT = {"fieldValidation": "Strict"}

Obj = dict[str, Any]
_HEALTHS = ("Healthy", "Unhealthy")


class Suspension(KubeStruct, frozen=True):
    scheduling: bool = False


class Share(KubeStruct, frozen=True):
    name: str = ""
    replicas: int = 0


class Component(KubeStruct, frozen=True):
    name: str = ""
    replicas: int = 0


class BindingSpec(KubeStruct, frozen=True):
    replicas: int = 0
    components: list[Component] | None = None
    suspension: Suspension | None = None
    clusters: list[Share] | None = None


class MemberConditions(KubeStruct, frozen=True):
    conditions: list[Condition] | None = None


class Item(KubeStruct, frozen=True):
    cluster_name: str = ""
    health: str = ""
    status: MemberConditions | None = None


class BindingStatus(KubeStruct, frozen=True):
    aggregated_status: list[Item] | None = None
    conditions: list[Condition] | None = None


class Binding(KubeStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: BindingSpec = BindingSpec()
    status: BindingStatus = BindingStatus()

    @property
    def is_held(self) -> bool:
        return self.spec.suspension is not None and self.spec.suspension.scheduling

    @property
    def record(self) -> Obj | None:
        """Our admission record."""
        text = (self.metadata.annotations or {}).get(ADMISSION)
        return None if text is None else json.loads(text)

    @property
    def is_released(self) -> bool:
        return self.record is not None and not self.is_held

    @property
    def shares(self) -> dict[str, int]:
        """Replicas by cluster; a workload of components has 0 or 1 in each."""
        return {share.name: share.replicas for share in self.spec.clusters or ()}

    @property
    def is_placed(self) -> bool:
        return bool(self.spec.clusters)

    @property
    def has_arrived(self) -> bool:
        """Whether Karmada has seen it itself in every cluster that it was placed on."""
        # It tells no health of what it has only sent.
        seen = {item.cluster_name for item in self.status.aggregated_status or () if item.health in _HEALTHS}
        return self.shares.keys() <= seen

    @property
    def has_ended(self) -> bool:
        """Complete or Failed in every cluster that it was placed on."""
        ended = {
            item.cluster_name
            for item in self.status.aggregated_status or ()
            if item.status is not None and _is_true(item.status.conditions, "Complete", "Failed")
        }
        return self.is_placed and self.shares.keys() <= ended

    def says(self, cluster: str, condition: str, status: str) -> bool:
        """Whether the cluster says this of it."""
        return any(
            one.type == condition and one.status == status
            for item in self.status.aggregated_status or ()
            if item.cluster_name == cluster and item.status is not None
            for one in item.status.conditions or ()
        )

    @property
    def scheduled(self) -> str:
        """The reason in Karmada's condition Scheduled, or nothing."""
        found = [each for each in self.status.conditions or () if each.type == "Scheduled"]
        return (found[0].reason or "") if found else ""

    @property
    def is_refused(self) -> bool:
        """Whether Karmada says that it could not place it."""
        found = [each for each in self.status.conditions or () if each.type == "Scheduled"]
        return any(each.status == "False" for each in found)

    @property
    def charge(self) -> int:
        """GPUs that are charged for it."""
        record = self.record
        return 0 if record is None or self.has_ended else int(record["requests"].get(GPU, 0))


class PodResources(KubeStruct, frozen=True):
    limits: dict[str, str] | None = None


class PodContainer(KubeStruct, frozen=True):
    name: str = ""
    resources: PodResources = PodResources()


class PodSpec(KubeStruct, frozen=True):
    node_name: str = ""
    containers: list[PodContainer] | None = None


class PodStatus(KubeStruct, frozen=True):
    phase: str = ""


class Pod(KubeStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def is_bound(self) -> bool:
        """Whether it has a node and does not run yet."""
        return bool(self.spec.node_name) and self.status.phase == "Pending"

    @property
    def holds_node(self) -> bool:
        """Whether it has a node and has not ended, so that nobody else has its devices."""
        return bool(self.spec.node_name) and self.status.phase in ("Pending", "Running")

    @property
    def runs(self) -> bool:
        return self.status.phase == "Running" and self.metadata.deletion_timestamp is None

    @property
    def gpus(self) -> int:
        """What it asks for."""
        limits = (container.resources.limits or {} for container in self.spec.containers or ())
        return sum(int(each.get(GPU, "0")) for each in limits)

    @property
    def workload(self) -> str:
        """The Job or the Deployment that it belongs to."""
        labels = self.metadata.labels or {}
        return labels.get("job-name") or labels.get("app", "")


class AllocatedSummary(KubeStruct, frozen=True):
    allocatable: dict[str, str] | None = None
    allocated: dict[str, str] | None = None


class ClusterStatus(KubeStruct, frozen=True):
    conditions: list[Condition] | None = None
    resource_summary: AllocatedSummary | None = None


class Cluster(KubeStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    status: ClusterStatus = ClusterStatus()

    @property
    def is_ready(self) -> bool:
        return _is_true(self.status.conditions, "Ready")

    @property
    def gpus(self) -> int:
        """What Karmada's general estimate believes to be there."""
        summary = self.status.resource_summary
        return int(((summary and summary.allocatable) or {}).get(GPU, "0"))

    @property
    def used_gpus(self) -> int:
        """What Karmada's general estimate believes to be used."""
        summary = self.status.resource_summary
        return int(((summary and summary.allocated) or {}).get(GPU, "0"))


def _is_true(conditions: list[Condition] | None, *types: str) -> bool:
    return any(each.type in types and each.status == "True" for each in conditions or ())


BINDINGS = ResourceKind("resourcebindings", f"{WORK}/resourcebindings", Binding)
PODS = ResourceKind("pods", "/api/v1/pods", Pod)
CLUSTER_KIND = ResourceKind("clusters", CLUSTERS, Cluster)
