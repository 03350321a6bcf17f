"""What a member's API server adds to a pod, and where its volumes are: the objects that say so.

RuntimeClass, LimitRange and Namespace decide what a pod is stored as; PersistentVolume,
PersistentVolumeClaim, StorageClass and CSINode where it can go; PriorityClass when it has its turn. Same
rules as in `fairway.kube.objects`: every field optional, wrong types are located errors, unknown fields are
skipped.
"""

from fairway.kube.objects import ApiObject, KubeStruct, RawResources, SelectorRequirement, VolumeClaimSpec
from fairway.kube.resource import ResourceKind
from fairway.kube.templates import NodeSelector
from fairway.taints import Toleration


class Overhead(KubeStruct, frozen=True):
    pod_fixed: RawResources | None = None


class RuntimeScheduling(KubeStruct, frozen=True):
    node_selector: dict[str, str] | None = None
    tolerations: list[Toleration] | None = None


class RuntimeClass(ApiObject, frozen=True):
    """node.k8s.io/v1 RuntimeClass."""

    overhead: Overhead | None = None
    scheduling: RuntimeScheduling | None = None


class LimitRangeItem(KubeStruct, frozen=True):
    type: str = ""
    max: RawResources | None = None
    min: RawResources | None = None
    default: RawResources | None = None
    default_request: RawResources | None = None
    max_limit_request_ratio: RawResources | None = None


class LimitRangeSpec(KubeStruct, frozen=True):
    limits: list[LimitRangeItem] | None = None


class LimitRange(ApiObject, frozen=True):
    """core/v1 LimitRange."""

    spec: LimitRangeSpec = LimitRangeSpec()


class Namespace(ApiObject, frozen=True):
    """core/v1 Namespace, of which only the labels count."""


class VolumePhase(KubeStruct, frozen=True):
    phase: str = ""


class PersistentVolumeClaim(ApiObject, frozen=True):
    """core/v1 PersistentVolumeClaim."""

    spec: VolumeClaimSpec = VolumeClaimSpec()
    status: VolumePhase = VolumePhase()


class CsiSource(KubeStruct, frozen=True):
    driver: str = ""
    volume_handle: str = ""


class ClaimReference(KubeStruct, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""


class VolumeNodeAffinity(KubeStruct, frozen=True):
    required: NodeSelector | None = None


class PersistentVolumeSpec(KubeStruct, frozen=True):
    capacity: RawResources | None = None
    access_modes: list[str] | None = None
    claim_ref: ClaimReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    csi: CsiSource | None = None
    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolume(ApiObject, frozen=True):
    """core/v1 PersistentVolume."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: VolumePhase = VolumePhase()


class TopologySelectorTerm(KubeStruct, frozen=True):
    match_label_expressions: list[SelectorRequirement] | None = None


class StorageClass(ApiObject, frozen=True):
    """storage.k8s.io/v1 StorageClass."""

    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologySelectorTerm] | None = None


class DriverAllocatable(KubeStruct, frozen=True):
    count: int | None = None


class NodeDriver(KubeStruct, frozen=True):
    name: str = ""
    allocatable: DriverAllocatable | None = None


class CsiNodeSpec(KubeStruct, frozen=True):
    drivers: list[NodeDriver] | None = None


class CsiNode(ApiObject, frozen=True):
    """storage.k8s.io/v1 CSINode, which has the name of its node."""

    spec: CsiNodeSpec = CsiNodeSpec()


class PriorityClass(ApiObject, frozen=True):
    """scheduling.k8s.io/v1 PriorityClass."""

    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None


_STORAGE = "/apis/storage.k8s.io/v1"

RUNTIME_CLASSES = ResourceKind(
    "runtimeclasses.node.k8s.io", "/apis/node.k8s.io/v1/runtimeclasses", RuntimeClass
)
LIMIT_RANGES = ResourceKind("limitranges", "/api/v1/limitranges", LimitRange)
NAMESPACES = ResourceKind("namespaces", "/api/v1/namespaces", Namespace)
PERSISTENT_VOLUMES = ResourceKind("persistentvolumes", "/api/v1/persistentvolumes", PersistentVolume)
PERSISTENT_VOLUME_CLAIMS = ResourceKind(
    "persistentvolumeclaims", "/api/v1/persistentvolumeclaims", PersistentVolumeClaim
)
STORAGE_CLASSES = ResourceKind("storageclasses.storage.k8s.io", f"{_STORAGE}/storageclasses", StorageClass)
CSI_NODES = ResourceKind("csinodes.storage.k8s.io", f"{_STORAGE}/csinodes", CsiNode)
PRIORITY_CLASSES = ResourceKind(
    "priorityclasses.scheduling.k8s.io", "/apis/scheduling.k8s.io/v1/priorityclasses", PriorityClass
)
