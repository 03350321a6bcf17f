"""Which sink of a mirror takes the objects of which type, and a mirror filled from what a dump holds."""

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from estimator.cluster.kind_mirror import KindMirror
from estimator.cluster.mirror import ClusterMirror
from fairway.kube.dumps import Dump
from fairway.kube.member_kinds import (
    CsiNode,
    LimitRange,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    PriorityClass,
    RuntimeClass,
    StorageClass,
)
from fairway.kube.node_devices import NodeDevices
from fairway.kube.objects import Deployment, ReplicaSet, ResourceQuota
from fairway.kube.resource import KubeObjectLike
from fairway.kube.resource_slices import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from fairway.kube.topologies import KueueTopology

_T = TypeVar("_T", bound=KubeObjectLike)
_T_contra = TypeVar("_T_contra", contravariant=True)


class Sink(Protocol[_T_contra]):
    """Takes the objects of one type."""

    def upsert(self, obj: _T_contra, /) -> None:
        """One appeared or changed."""


def _filled(
    kind: type[_T], sink: Callable[[ClusterMirror], Sink[_T]], *, none_if_absent: bool = False
) -> Callable[[ClusterMirror, Dump], Iterator[None]]:
    def fill(mirror: ClusterMirror, dump: Dump) -> Iterator[None]:
        into = sink(mirror)
        for one in dump.of(kind):
            into.upsert(one)
            yield
        if isinstance(into, KindMirror):
            into.synced = kind in dump.others or (none_if_absent and kind not in dump.unread)

    return fill


_SINKS = (
    _filled(ResourceQuota, lambda mirror: mirror.quotas),
    _filled(Deployment, lambda mirror: mirror.controllers.deployments),
    _filled(ReplicaSet, lambda mirror: mirror.controllers.replica_sets),
    _filled(KueueTopology, lambda mirror: mirror.topologies),
    _filled(NodeDevices, lambda mirror: mirror.node_devices, none_if_absent=True),
    _filled(DeviceClass, lambda mirror: mirror.dra.classes),
    _filled(ResourceClaimTemplate, lambda mirror: mirror.dra.templates),
    _filled(ResourceSlice, lambda mirror: mirror.dra.slices),
    _filled(ResourceClaim, lambda mirror: mirror.dra.claims),
    _filled(Namespace, lambda mirror: mirror.admission.namespaces),
    # Who writes a dump without LimitRanges is taken to have none, as of quotas and agents.
    _filled(LimitRange, lambda mirror: mirror.admission.limit_ranges, none_if_absent=True),
    _filled(RuntimeClass, lambda mirror: mirror.admission.runtime_classes),
    _filled(PersistentVolume, lambda mirror: mirror.volumes.volumes),
    _filled(PersistentVolumeClaim, lambda mirror: mirror.volumes.claims),
    _filled(StorageClass, lambda mirror: mirror.volumes.classes),
    _filled(CsiNode, lambda mirror: mirror.volumes.csi_nodes),
    _filled(PriorityClass, lambda mirror: mirror.priority_classes),
)


def fill(mirror: ClusterMirror, dump: Dump) -> Iterator[None]:
    """Put everything into the mirror, one object at each step."""
    for node in dump.nodes:
        mirror.nodes.upsert(node)
        yield
    for pod in dump.pods:
        mirror.pods.upsert(pod)
        yield
    for into in _SINKS:
        yield from into(mirror, dump)
    if dump.read_at_s is None:
        mirror.node_devices.tick_by_newest()
    else:
        mirror.node_devices.tick(dump.read_at_s)
