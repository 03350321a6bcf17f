"""The objects of group fairway.dev as the API server sends them: only the fields that decide something.

Enumerations and quantities stay as written: what one field says wrongly is found when it is read, and costs
no more than that field (`queue_dispatcher.api.reading`).
"""

from fairway.kube.objects import (
    KubeStruct,
    LabelSelector,
    ObjectMeta,
    RawQuantity,
    RawResources,
)
from fairway.taints import Taint, Toleration
from queue_dispatcher.api.status import ClusterQueueStatus, ConditionsStatus, LocalQueueStatus


class CapacityPolicySpec(KubeStruct, frozen=True):
    """Where a flavor's capacity comes from; ``resources`` belong to ``type`` Static."""

    type: str = ""
    resources: RawResources | None = None


class ResourceFlavorSpec(KubeStruct, frozen=True):
    """What a ResourceFlavor is made of."""

    cluster_names: list[str] | None = None
    cluster_selector: LabelSelector | None = None
    node_labels: dict[str, str] | None = None
    node_taints: list[Taint] | None = None
    tolerations: list[Toleration] | None = None
    capacity_policy: CapacityPolicySpec | None = None
    headroom_percent: int | None = None
    price: RawQuantity = None


class ResourceFlavorObject(KubeStruct, frozen=True):
    """fairway.dev/v1alpha1 ResourceFlavor."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceFlavorSpec = ResourceFlavorSpec()
    status: ConditionsStatus | None = None


class ResourceQuotaSpec(KubeStruct, frozen=True):
    """Quota of one resource of one flavor: quantities, or percentages of the flavor's capacity."""

    name: str = ""
    nominal_quota: RawQuantity = None
    borrowing_limit: RawQuantity = None
    lending_limit: RawQuantity = None


class FlavorQuotasSpec(KubeStruct, frozen=True):
    """Quotas of one flavor."""

    name: str = ""
    resources: list[ResourceQuotaSpec] | None = None


class ResourceGroupSpec(KubeStruct, frozen=True):
    """Resources and the flavors that they come from."""

    covered_resources: list[str] | None = None
    flavors: list[FlavorQuotasSpec] | None = None


class AgeingSpec(KubeStruct, frozen=True):
    """How waiting raises priority."""

    step: str | None = None
    cap: int | None = None


class PreemptionBudgetSpec(KubeStruct, frozen=True):
    """How much work may be lost in a period as others are displaced."""

    device_hours: RawQuantity = None
    period: str | None = None


class PreemptionSpec(KubeStruct, frozen=True):
    """What workloads of a queue may displace."""

    within_cluster_queue: str | None = None
    reclaim_within_cohort: str | None = None
    budget: PreemptionBudgetSpec | None = None


class FlavorFungibilitySpec(KubeStruct, frozen=True):
    """When the next flavor is tried though one could be had."""

    when_can_borrow: str | None = None
    when_can_preempt: str | None = None
    preference: str | None = None


class ScoringStrategySpec(KubeStruct, frozen=True):
    """Which clusters and nodes are filled first."""

    type: str | None = None


class ReservationSpec(KubeStruct, frozen=True):
    """When a workload that waits has room kept for it."""

    after: str | None = None
    drain_after: str | None = None
    hold_timeout: str | None = None
    depth: int | None = None


class AdmissionCheckSpec(KubeStruct, frozen=True):
    """What somebody else has to say before a workload is admitted."""

    name: str = ""
    timeout: str | None = None


class FairSharingSpec(KubeStruct, frozen=True):
    """How LocalQueues share a queue."""

    half_life: str | None = None


class BudgetSpec(KubeStruct, frozen=True):
    """What a queue may use in a period."""

    name: str = ""
    device_hours: RawQuantity = None
    period: str | None = None
    policy: str | None = None


class QuotaReductionSpec(KubeStruct, frozen=True):
    """What becomes of what a queue uses beyond its quota."""

    policy: str | None = None
    delay: str | None = None


class ClusterQueueSpec(KubeStruct, frozen=True):
    """What a ClusterQueue is told."""

    parent: str | None = None
    resource_groups: list[ResourceGroupSpec] | None = None
    weight: RawQuantity = None
    queueing_strategy: str | None = None
    reservation: ReservationSpec | None = None
    stop_policy: str | None = None
    namespace_selector: LabelSelector | None = None
    ageing: AgeingSpec | None = None
    flavor_fungibility: FlavorFungibilitySpec | None = None
    scoring_strategy: ScoringStrategySpec | None = None
    preemption: PreemptionSpec | None = None
    admission_checks: list[AdmissionCheckSpec] | None = None
    fair_sharing: FairSharingSpec | None = None
    budgets: list[BudgetSpec] | None = None
    quota_reduction: QuotaReductionSpec | None = None


class ClusterQueueObject(KubeStruct, frozen=True):
    """fairway.dev/v1alpha1 ClusterQueue."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ClusterQueueSpec = ClusterQueueSpec()
    status: ClusterQueueStatus | None = None


class LocalQueueSpec(KubeStruct, frozen=True):
    """What a LocalQueue leads to."""

    cluster_queue: str | None = None
    default_service_class: str | None = None
    stop_policy: str | None = None
    weight: RawQuantity = None


class LocalQueueObject(KubeStruct, frozen=True):
    """fairway.dev/v1alpha1 LocalQueue."""

    metadata: ObjectMeta = ObjectMeta()
    spec: LocalQueueSpec = LocalQueueSpec()
    status: LocalQueueStatus | None = None


class RequeueSpec(KubeStruct, frozen=True):
    """How a workload that did not start is tried again."""

    backoff_base: str | None = None
    backoff_max: str | None = None
    backoff_limit: int | None = None


class ServiceClassSpec(KubeStruct, frozen=True):
    """What a class of service promises."""

    priority: int | None = None
    global_default: bool | None = None
    start_timeout: str | None = None
    ready_timeout: str | None = None
    cluster_lost_timeout: str | None = None
    requeue: RequeueSpec | None = None
    max_wait: str | None = None
    max_runtime: str | None = None
    min_runtime: str | None = None
    preemptible: str | None = None
    ageing: AgeingSpec | None = None


class ServiceClassObject(KubeStruct, frozen=True):
    """fairway.dev/v1alpha1 ServiceClass."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ServiceClassSpec = ServiceClassSpec()
    status: ConditionsStatus | None = None
