"""Which kinds of objects an estimator mirrors of a member cluster: a table, a row is all that a kind takes.

Both sources of a mirror follow it: `estimator.live_source` by watches, each begun when there is need of it,
and `estimator.snapshot_source` by what a dump holds.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from estimator.cluster.mirror import ClusterMirror
from estimator.member import DEPLOYMENTS, NODES, PODS, QUOTAS, REPLICA_SETS
from fairway.kube import device_kinds, resource
from fairway.kube.dumps import Dump
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

    def __call__(self, kinds: Sequence[ResourceKind[_T]], sink: "Sink[_T]") -> _Followed_co:
        """Follow the first of ``kinds`` that is served, into ``sink``."""


class MemberKind(Protocol):
    """A row of the table, whatever the type of its objects.

    ``name``: what questions name when they need it. ``is_optional``: nobody waits for it where it is not
    served or may not be read (see `MemberCluster.left_out`).
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def need(self) -> Need: ...  # noqa: D102

    @property
    def is_optional(self) -> bool: ...  # noqa: D102

    def followed(self, mirror: ClusterMirror, follow: Follow[_Followed_co]) -> _Followed_co:
        """What ``follow`` makes of it for this mirror."""

    def fill(self, mirror: ClusterMirror, dump: Dump) -> Iterator[None]:
        """Put what the dump holds of it into the mirror, one object at each step."""


@dataclass(frozen=True, slots=True)
class _Row(Generic[_T]):
    """``kinds``: the same objects by version, the preferred one first."""

    name: str
    kinds: tuple[ResourceKind[_T], ...]
    sink: "Callable[[ClusterMirror], Sink[_T]]"
    dumped: Callable[[Dump], Sequence[_T]]
    need: Need = Need.ALWAYS
    is_optional: bool = False

    def followed(self, mirror: ClusterMirror, follow: Follow[_Followed_co]) -> _Followed_co:
        return follow(self.kinds, self.sink(mirror))

    def fill(self, mirror: ClusterMirror, dump: Dump) -> Iterator[None]:
        sink = self.sink(mirror)
        for obj in self.dumped(dump):
            sink.upsert(obj)
            yield


MEMBER_KINDS: Final[tuple[MemberKind, ...]] = (
    _Row(NODES, (resource.NODES,), lambda mirror: mirror.nodes, lambda dump: dump.nodes),
    _Row(PODS, (resource.PODS,), lambda mirror: mirror.pods, lambda dump: dump.pods),
    _Row(
        QUOTAS,
        (resource.RESOURCE_QUOTAS,),
        lambda mirror: mirror.quotas,
        lambda dump: dump.quotas,
        Need.ASKED,
    ),
    _Row(
        DEPLOYMENTS,
        (resource.DEPLOYMENTS,),
        lambda mirror: mirror.controllers.deployments,
        lambda dump: dump.deployments,
        Need.ASKED,
    ),
    _Row(
        REPLICA_SETS,
        (resource.REPLICA_SETS,),
        lambda mirror: mirror.controllers.replica_sets,
        lambda dump: dump.replica_sets,
        Need.ASKED,
    ),
    _Row(
        TOPOLOGIES,
        resource.KUEUE_TOPOLOGIES,
        lambda mirror: mirror.topologies,
        lambda dump: dump.topologies,
        is_optional=True,
    ),
    # No device can be claimed without a class, and most clusters have none.
    _Row(
        DEVICE_CLASSES,
        device_kinds.DEVICE_CLASSES,
        lambda mirror: mirror.dra.classes,
        lambda dump: dump.device_classes,
        is_optional=True,
    ),
    _Row(
        CLAIM_TEMPLATES,
        device_kinds.CLAIM_TEMPLATES,
        lambda mirror: mirror.dra.templates,
        lambda dump: dump.claim_templates,
        Need.DEVICE_CLASSES,
        is_optional=True,
    ),
    _Row(
        RESOURCE_SLICES,
        device_kinds.RESOURCE_SLICES,
        lambda mirror: mirror.dra.slices,
        lambda dump: dump.slices,
        Need.DEVICE_CLASSES,
        is_optional=True,
    ),
    _Row(
        RESOURCE_CLAIMS,
        device_kinds.RESOURCE_CLAIMS,
        lambda mirror: mirror.dra.claims,
        lambda dump: dump.claims,
        Need.DEVICE_CLASSES,
        is_optional=True,
    ),
)
