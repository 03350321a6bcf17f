"""Which kinds of objects an estimator mirrors of a member cluster: a table, a row is all that a kind takes.

`estimator.live_source` follows them by watches, each begun when there is need of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from estimator.cluster.mirror import ClusterMirror
from estimator.member import (
    CSI_NODES,
    DEPLOYMENTS,
    LIMIT_RANGES,
    NAMESPACES,
    NODE_DEVICES,
    NODES,
    PERSISTENT_VOLUMES,
    PODS,
    PRIORITY_CLASSES,
    QUOTAS,
    REPLICA_SETS,
    RUNTIME_CLASSES,
    STORAGE_CLASSES,
    VOLUME_CLAIMS,
)
from fairway.kube import device_kinds, member_kinds, node_devices, resource
from fairway.kube.resource import KubeObjectLike, ResourceKind

if TYPE_CHECKING:
    from fairway.kube.reflector import Sink

TOPOLOGIES = "topologies"
DEVICE_CLASSES, RESOURCE_SLICES = "deviceclasses", "resourceslices"
RESOURCE_CLAIMS, CLAIM_TEMPLATES = "resourceclaims", "resourceclaimtemplates"

_T = TypeVar("_T", bound=KubeObjectLike)
_Followed_co = TypeVar("_Followed_co", covariant=True)


class Need(Enum):
    """From when on a live cluster is asked for a kind."""

    ALWAYS = "from the start"
    ASKED = "from the first question that needs it"
    DEVICE_CLASSES = "once there is a device class"


class Follow(Protocol[_Followed_co]):
    """What a source makes of a row."""

    def __call__(
        self, row: "MemberKind", kinds: Sequence[ResourceKind[_T]], sink: "Sink[_T]", /
    ) -> _Followed_co:
        """Follow the first of ``kinds``, which are those of the row, that is served, into ``sink``."""


class MemberKind(Protocol):
    """A row of the table, whatever the type of its objects.

    ``name``: what questions name when they need it. ``is_optional``: nobody waits for it where it is not
    served or may not be read (see `MemberCluster.left_out`).
    """

    @property
    def name(self) -> str: ...  # noqa: D102 - said above

    @property
    def need(self) -> Need: ...  # noqa: D102 - said above

    @property
    def is_optional(self) -> bool: ...  # noqa: D102 - said above

    def followed(self, mirror: ClusterMirror, follow: Follow[_Followed_co]) -> _Followed_co:
        """What ``follow`` makes of it for this mirror."""


@dataclass(frozen=True, slots=True)
class _Row(Generic[_T]):
    """``kinds``: the same objects by version, the preferred one first."""

    name: str
    kinds: tuple[ResourceKind[_T], ...]
    sink: "Callable[[ClusterMirror], Sink[_T]]"
    need: Need = Need.ALWAYS
    is_optional: bool = False

    def followed(self, mirror: ClusterMirror, follow: Follow[_Followed_co]) -> _Followed_co:
        return follow(self, self.kinds, self.sink(mirror))


def _asked(name: str, kind: ResourceKind[_T], sink: "Callable[[ClusterMirror], Sink[_T]]") -> _Row[_T]:
    return _Row(name, (kind,), sink, Need.ASKED, is_optional=True)


def _device(
    name: str, kinds: tuple[ResourceKind[_T], ...], sink: "Callable[[ClusterMirror], Sink[_T]]"
) -> _Row[_T]:
    return _Row(name, kinds, sink, Need.DEVICE_CLASSES, is_optional=True)


MEMBER_KINDS: Final[tuple[MemberKind, ...]] = (
    _Row(NODES, (resource.NODES,), lambda mirror: mirror.nodes),
    _Row(PODS, (resource.PODS,), lambda mirror: mirror.pods),
    _Row(QUOTAS, (resource.RESOURCE_QUOTAS,), lambda mirror: mirror.quotas, Need.ASKED),
    _Row(DEPLOYMENTS, (resource.DEPLOYMENTS,), lambda mirror: mirror.controllers.deployments, Need.ASKED),
    _Row(REPLICA_SETS, (resource.REPLICA_SETS,), lambda mirror: mirror.controllers.replica_sets, Need.ASKED),
    _Row(TOPOLOGIES, resource.KUEUE_TOPOLOGIES, lambda mirror: mirror.topologies, is_optional=True),
    _Row(NODE_DEVICES, (node_devices.NODE_DEVICES,), lambda mirror: mirror.node_devices, is_optional=True),
    # No device can be claimed without a class, and most clusters have none.
    _Row(DEVICE_CLASSES, device_kinds.DEVICE_CLASSES, lambda mirror: mirror.dra.classes, is_optional=True),
    _device(CLAIM_TEMPLATES, device_kinds.CLAIM_TEMPLATES, lambda mirror: mirror.dra.templates),
    _device(RESOURCE_SLICES, device_kinds.RESOURCE_SLICES, lambda mirror: mirror.dra.slices),
    _device(RESOURCE_CLAIMS, device_kinds.RESOURCE_CLAIMS, lambda mirror: mirror.dra.claims),
    _asked(LIMIT_RANGES, member_kinds.LIMIT_RANGES, lambda mirror: mirror.admission.limit_ranges),
    _asked(RUNTIME_CLASSES, member_kinds.RUNTIME_CLASSES, lambda mirror: mirror.admission.runtime_classes),
    _asked(NAMESPACES, member_kinds.NAMESPACES, lambda mirror: mirror.admission.namespaces),
    _asked(PERSISTENT_VOLUMES, member_kinds.PERSISTENT_VOLUMES, lambda mirror: mirror.volumes.volumes),
    _asked(VOLUME_CLAIMS, member_kinds.PERSISTENT_VOLUME_CLAIMS, lambda mirror: mirror.volumes.claims),
    _asked(STORAGE_CLASSES, member_kinds.STORAGE_CLASSES, lambda mirror: mirror.volumes.classes),
    _asked(CSI_NODES, member_kinds.CSI_NODES, lambda mirror: mirror.volumes.csi_nodes),
    _asked(PRIORITY_CLASSES, member_kinds.PRIORITY_CLASSES, lambda mirror: mirror.priority_classes),
)
