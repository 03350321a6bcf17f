"""Kubernetes objects as Fairway reads them: only the fields that decide something.

Every field is optional, because dumps and hand-written objects leave things out; a wrong *type* is an
error that msgspec locates (``$.spec.containers[2].resources``). Unknown fields are skipped without
being built, which is what makes decoding about a hundred times cheaper than with the official models.
"""

import msgspec

from fairway.taints import Taint, Toleration

# A quantity arrives as a JSON string or, from hand-written manifests, as a bare number.
RawQuantity = str | int | float | None
RawResources = dict[str, RawQuantity]


class KubeStruct(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Base of all object types: camelCase on the wire, immutable, not tracked by the garbage collector."""


class OwnerReference(KubeStruct, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(KubeStruct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class ApiObject(KubeStruct, frozen=True):
    """Anything that an API server stores."""

    metadata: ObjectMeta = ObjectMeta()


class NodeSpec(KubeStruct, frozen=True):
    unschedulable: bool = False
    taints: list[Taint] | None = None


class NodeSystemInfo(KubeStruct, frozen=True):
    boot_id: str = msgspec.field(default="", name="bootID")


class NodeStatus(KubeStruct, frozen=True):
    capacity: RawResources | None = None
    allocatable: RawResources | None = None
    node_info: NodeSystemInfo = NodeSystemInfo()


class Node(ApiObject, frozen=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class ResourceRequirements(KubeStruct, frozen=True):
    requests: RawResources | None = None
    limits: RawResources | None = None


class SelectorRequirement(KubeStruct, frozen=True):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class LabelSelector(KubeStruct, frozen=True):
    match_labels: dict[str, str] | None = None
    match_expressions: list[SelectorRequirement] | None = None


class PodAffinityTerm(KubeStruct, frozen=True):
    label_selector: LabelSelector | None = None
    topology_key: str = ""
    namespaces: list[str] | None = None
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] | None = None
    mismatch_label_keys: list[str] | None = None


class PodAffinity(KubeStruct, frozen=True):
    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] | None = None


class RepellingAffinity(KubeStruct, frozen=True):
    """Of a running pod's affinity only what keeps others away: the rest was for its own placement."""

    pod_anti_affinity: PodAffinity | None = None


class ContainerPort(KubeStruct, frozen=True):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class ClaimVolume(KubeStruct, frozen=True):
    claim_name: str = ""


class VolumeClaimSpec(KubeStruct, frozen=True):
    access_modes: list[str] | None = None
    selector: LabelSelector | None = None
    resources: ResourceRequirements | None = None
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None


class VolumeClaimTemplate(KubeStruct, frozen=True):
    spec: VolumeClaimSpec = VolumeClaimSpec()


class EphemeralVolume(KubeStruct, frozen=True):
    """A volume with a claim of the pod's own, made of a template."""

    volume_claim_template: VolumeClaimTemplate | None = None


class Volume(KubeStruct, frozen=True):
    """A pod's volume, as far as a PersistentVolumeClaim stands behind it."""

    name: str = ""
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None


class Container(KubeStruct, frozen=True):
    name: str = ""
    resources: ResourceRequirements | None = None
    restart_policy: str | None = None
    ports: list[ContainerPort] | None = None


class PodClaim(KubeStruct, frozen=True):
    """A claim of devices (Dynamic Resource Allocation) that a pod names."""

    name: str = ""


class PodSpec(KubeStruct, frozen=True):
    node_name: str = ""
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    resources: ResourceRequirements | None = None
    overhead: RawResources | None = None
    priority_class_name: str = ""
    affinity: RepellingAffinity | None = None
    volumes: list[Volume] | None = None
    tolerations: list[Toleration] | None = None
    resource_claims: list[PodClaim] | None = None


class ContainerStatus(KubeStruct, frozen=True):
    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: RawResources | None = None


class Condition(KubeStruct, frozen=True):
    type: str = ""
    status: str = ""
    reason: str | None = ""
    last_transition_time: str | None = None


class PodStatus(KubeStruct, frozen=True):
    phase: str = ""
    nominated_node_name: str = ""
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    resources: ResourceRequirements | None = None
    allocated_resources: RawResources | None = None


class Pod(ApiObject, frozen=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class ScopeRequirement(KubeStruct, frozen=True):
    scope_name: str = ""
    operator: str = ""
    values: list[str] | None = None


class ScopeSelector(KubeStruct, frozen=True):
    match_expressions: list[ScopeRequirement] | None = None


class ResourceQuotaSpec(KubeStruct, frozen=True):
    scopes: list[str] | None = None
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(KubeStruct, frozen=True):
    hard: RawResources | None = None
    used: RawResources | None = None


class ResourceQuota(ApiObject, frozen=True):
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


class PodTemplateOwnerSpec(KubeStruct, frozen=True):
    template: msgspec.Raw = msgspec.Raw(b"{}")


class Deployment(ApiObject, frozen=True):
    """An apps/v1 Deployment; the pod template stays undecoded, because only its identity is ever compared."""

    spec: PodTemplateOwnerSpec = PodTemplateOwnerSpec()


class ReplicaSet(ApiObject, frozen=True):
    """An apps/v1 ReplicaSet; see `Deployment`."""

    spec: PodTemplateOwnerSpec = PodTemplateOwnerSpec()


def object_key(metadata: ObjectMeta) -> str:
    """``namespace/name``, or just ``name`` for a cluster-scoped object; unique within one resource."""
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
