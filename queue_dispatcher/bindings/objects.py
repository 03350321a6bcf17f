"""Karmada's ResourceBinding and ClusterResourceBinding on the wire: work.karmada.io/v1alpha2, Karmada 1.19.

Only what decides something, and in two steps: an object is decoded with its spec and status left alone, so
that whatever stands in them costs this one object and no other. `queue_dispatcher.bindings.reading` decodes
those, field by field where they are not of these types.
"""

from typing import Final

import msgspec

from fairway.kube.objects import (
    KubeStruct,
    LabelSelector,
    ObjectMeta,
    RawResources,
    SelectorRequirement,
)
from fairway.kube.resource import ResourceKind
from fairway.kube.templates import NodeSelector
from fairway.taints import Toleration

NULL: Final = msgspec.Raw(b"null")


class BindingMeta(ObjectMeta, frozen=True):
    """With who wrote which field, which is read of few."""

    managed_fields: msgspec.Raw = NULL


class ResourceBinding(KubeStruct, frozen=True):
    """A ResourceBinding or ClusterResourceBinding, taken apart no further than this."""

    metadata: BindingMeta = BindingMeta()
    spec: msgspec.Raw = NULL
    status: msgspec.Raw = NULL


class ObjectReference(KubeStruct, frozen=True):
    """The template; `uid` and all else may be missing."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class NodeClaimSpec(KubeStruct, frozen=True):
    """What pods demand of their node."""

    hard_node_affinity: NodeSelector | None = None
    node_selector: dict[str, str] | None = None
    tolerations: list[Toleration] | None = None


class ReplicaRequirements(KubeStruct, frozen=True):
    """What one replica asks for, of a plain workload or of a component."""

    node_claim: NodeClaimSpec | None = None
    resource_request: RawResources | None = None
    priority_class_name: str = ""


class ComponentSpec(KubeStruct, frozen=True):
    """One of several kinds of pods."""

    name: str = ""
    replicas: int = 0
    replica_requirements: ReplicaRequirements | None = None


class TargetCluster(KubeStruct, frozen=True):
    """A cluster that got a part of the workload, or all of it.

    Not its ``components``: Karmada writes down what it counted with, and holds members to nothing by it.
    """

    name: str = ""
    replicas: int = 0


class FieldSelector(KubeStruct, frozen=True):
    """Requirements on provider, region and zone of a cluster."""

    match_expressions: list[SelectorRequirement] | None = None


class ClusterAffinitySpec(KubeStruct, frozen=True):
    """Which clusters are meant."""

    label_selector: LabelSelector | None = None
    field_selector: FieldSelector | None = None
    cluster_names: list[str] | None = None
    exclude: list[str] | None = None


class ClusterAffinityTerm(ClusterAffinitySpec, frozen=True):
    """One of several groups of clusters, of which the first that works is used."""

    overflow_affinities: list[ClusterAffinitySpec] | None = None


class SpreadConstraint(KubeStruct, frozen=True):
    """How many groups of clusters are chosen; without either field it is about clusters."""

    spread_by_field: str = ""
    spread_by_label: str = ""
    min_groups: int = 0
    max_groups: int = 0


class WeightPreference(KubeStruct, frozen=True):
    """How replicas are divided by weight; only whether by fixed weights is of interest here."""

    static_weight_list: list[msgspec.Raw] | None = None
    dynamic_weight: str = ""


class ReplicaScheduling(KubeStruct, frozen=True):
    """Whether each cluster gets all replicas or a part; the API server fills in ``Divided``."""

    replica_scheduling_type: str = "Divided"
    replica_division_preference: str = ""
    weight_preference: WeightPreference | None = None


class ClusterToleration(Toleration, frozen=True, gc=False):
    """A toleration of clusters' taints; ``toleration_seconds``: of NoExecute, None for ever."""

    toleration_seconds: int | None = msgspec.field(default=None, name="tolerationSeconds")


class PlacementSpec(KubeStruct, frozen=True):
    """The policy's placement, copied to the binding."""

    cluster_affinity: ClusterAffinitySpec | None = None
    cluster_affinities: list[ClusterAffinityTerm] | None = None
    cluster_tolerations: list[ClusterToleration] | None = None
    spread_constraints: list[SpreadConstraint] | None = None
    replica_scheduling: ReplicaScheduling | None = None


class GracefulEvictionTask(KubeStruct, frozen=True):
    """A cluster that Karmada takes the workload off, until it is well elsewhere or ten minutes passed."""

    from_cluster: str = ""


class SuspendedClusters(KubeStruct, frozen=True):
    """Clusters to which nothing is sent."""

    cluster_names: list[str] | None = None


class Suspension(KubeStruct, frozen=True):
    """Our own leaf, and beside it what a policy keeps from being sent to members."""

    scheduling: bool | None = None
    dispatching: bool | None = None
    dispatching_on_clusters: SuspendedClusters | None = None


class SchedulePriority(KubeStruct, frozen=True):
    """The priority that Karmada itself schedules by."""

    priority: int = 0


class BindingSpec(KubeStruct, frozen=True):
    """The spec of a binding."""

    resource: ObjectReference = ObjectReference()
    replicas: int = 0
    replica_requirements: ReplicaRequirements | None = None
    components: list[ComponentSpec] | None = None
    clusters: list[TargetCluster] | None = None
    placement: PlacementSpec | None = None
    graceful_eviction_tasks: list[GracefulEvictionTask] | None = None
    suspension: Suspension | None = None
    preserve_resources_on_deletion: bool | None = None
    schedule_priority: SchedulePriority | None = None
    scheduler_name: str = ""


class BindingCondition(KubeStruct, frozen=True):
    """A condition of a binding."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


class AggregatedStatusItem(KubeStruct, frozen=True):
    """The status of the workload in one cluster, undecoded; ``applied``: whether Karmada could write it.

    Mirrors AggregatedStatusItem of work.karmada.io/v1alpha2, where ``applied`` that is false is left out.
    """

    cluster_name: str = ""
    status: msgspec.Raw = NULL
    applied: bool = False
    applied_message: str = ""


class BindingStatus(KubeStruct, frozen=True):
    """The status of a binding."""

    scheduler_observed_generation: int = 0
    conditions: list[BindingCondition] | None = None
    aggregated_status: list[AggregatedStatusItem] | None = None


RESOURCE_BINDINGS = ResourceKind(
    "resourcebindings.work.karmada.io", "/apis/work.karmada.io/v1alpha2/resourcebindings", ResourceBinding
)
CLUSTER_RESOURCE_BINDINGS = ResourceKind(
    "clusterresourcebindings.work.karmada.io",
    "/apis/work.karmada.io/v1alpha2/clusterresourcebindings",
    ResourceBinding,
)
