"""The pods of this node, as the API server has them: found by uid, by that of a static pod, and by name.

Whole pods are watched and little of them is kept. Their metadata alone would not do: a cgroup names a
container by its id, and only the pod's status says what that container is called. Pods that have ended are
not selected, so that what kubelet still lists of them is not taken for held.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import msgspec

from fairway.accelerators.schemes import MARKS
from fairway.kube.node_devices import HolderOwner
from fairway.kube.objects import ApiObject, Condition, KubeStruct, ObjectMeta, object_key
from fairway.kube.resource import ResourceKind
from fairway.names import QUEUE
from fairway.usage.bound import bound_s

MIRROR = "kubernetes.io/config.mirror"
"""On the pod that stands for a static one in the API: the uid that kubelet gave the static pod itself.

kubelet deletes what bears it and is no mirror of its own (``pkg/kubelet/pod/mirror_client.go``).
"""


class ContainerId(KubeStruct, frozen=True):
    """Name and id of a container; the id as ``<runtime>://<id>``."""

    name: str = ""
    container_id: str = msgspec.field(default="", name="containerID")


class StatusOnNode(KubeStruct, frozen=True):
    """Of a pod's status: its containers, and when it was bound."""

    conditions: list[Condition] | None = None
    container_statuses: list[ContainerId] | None = None
    init_container_statuses: list[ContainerId] | None = None
    ephemeral_container_statuses: list[ContainerId] | None = None


class PodOnNode(ApiObject, frozen=True):
    """What is read of a pod."""

    status: StatusOnNode = StatusOnNode()


def pods_on(node: str) -> ResourceKind[PodOnNode]:
    """The pods of one node that have not ended."""
    selector = f"spec.nodeName={node},status.phase!=Succeeded,status.phase!=Failed"
    return ResourceKind("pods", "/api/v1/pods", PodOnNode, {"fieldSelector": selector})


@dataclass(frozen=True, slots=True)
class LocalPod:
    """A pod of this node. ``containers``: names by container id; ``marks``: what sharing schemes wrote on
    it; ``bound_s``: since when it is here, in seconds since the epoch; ``queue``: the LocalQueue that it
    names itself, for what its workload or namespace names is not read.
    """

    namespace: str
    name: str
    uid: str
    static_uid: str = ""
    owner: HolderOwner | None = None
    containers: Mapping[str, str] = field(default_factory=dict)
    marks: Mapping[str, str] = field(default_factory=dict)
    bound_s: float | None = None
    queue: str = ""


class LocalPods:
    """The sink of a reflector of `pods_on`."""

    def __init__(self) -> None:
        self._pods: dict[str, LocalPod] = {}
        self._uids: dict[str, LocalPod] = {}
        self._static_uids: dict[str, LocalPod] = {}

    def keys(self) -> Collection[str]:
        """``namespace/name`` of all pods."""
        return self._pods.keys()

    def upsert(self, obj: PodOnNode) -> None:
        """Take the pod as it is now, which may be another one of the same name."""
        key, pod = object_key(obj.metadata), local_pod(obj)
        self.delete(key)
        self._pods[key] = pod
        if pod.uid:
            self._uids[pod.uid] = pod
        if pod.static_uid:
            self._static_uids[pod.static_uid] = pod

    def delete(self, key: str) -> None:
        """Forget a pod."""
        pod = self._pods.pop(key, None)
        if pod is not None:
            self._uids.pop(pod.uid, None)
            if self._static_uids.get(pod.static_uid) is pod:
                del self._static_uids[pod.static_uid]

    def by_uid(self, uid: str) -> LocalPod | None:
        """The pod with this uid, of a static pod the uid that kubelet gave it; what pods claim comes last."""
        return self._uids.get(uid) or self._static_uids.get(uid)

    def by_name(self, namespace: str, name: str) -> LocalPod | None:
        """The pod of this name."""
        return self._pods.get(f"{namespace}/{name}")


def local_pod(obj: PodOnNode) -> LocalPod:
    """What is kept of a pod."""
    metadata, status = obj.metadata, obj.status
    statuses = (
        *(status.container_statuses or ()),
        *(status.init_container_statuses or ()),
        *(status.ephemeral_container_statuses or ()),
    )
    annotations = metadata.annotations or {}
    return LocalPod(
        metadata.namespace,
        metadata.name,
        metadata.uid,
        annotations.get(MIRROR, ""),
        _controller(metadata),
        {one.container_id.rpartition("//")[2]: one.name for one in statuses if one.container_id},
        {name: text for name, text in annotations.items() if name in MARKS},
        bound_s(metadata, status.conditions),
        (metadata.labels or {}).get(QUEUE) or annotations.get(QUEUE, ""),
    )


def _controller(metadata: ObjectMeta) -> HolderOwner | None:
    for owner in metadata.owner_references or ():
        if owner.controller:
            return HolderOwner(owner.api_version, owner.kind, owner.name)
    return None
