"""Whom a pod belongs to: the controller behind it, and the queue that it came through."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from fairway.kube.member_kinds import Namespace
from fairway.kube.objects import Deployment, ObjectMeta, Pod, ReplicaSet
from fairway.names import DEFAULT_QUEUE, QUEUE

HASH = "pod-template-hash"


@dataclass(frozen=True, slots=True)
class Owner:
    """A workload by kind and name; a pod that nobody controls is its own.

    ``uid``: empty where the object itself has not been seen; like ``api_version`` it is no part of the name.
    """

    kind: str
    name: str
    api_version: str = field(default="", compare=False)
    uid: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


class Owners:
    """The objects of one cluster that stand behind pods, as far as they are known."""

    def __init__(
        self,
        replica_sets: Iterable[ReplicaSet] = (),
        deployments: Iterable[Deployment] = (),
        default_queues: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._replica_sets = _by_name(one.metadata for one in replica_sets)
        self._deployments = _by_name(one.metadata for one in deployments)
        self._default_queues = default_queues

    def owner(self, pod: Pod) -> Owner:
        """The pod's controller; behind a ReplicaSet what controls that."""
        metadata = pod.metadata
        own = Owner("Pod", metadata.name, "v1", metadata.uid)
        return self.behind(
            metadata.namespace, own, controller(metadata), (metadata.labels or {}).get(HASH, "")
        )

    def behind(self, namespace: str, pod: Owner, controlled_by: Owner | None, template_hash: str) -> Owner:
        """The same of a pod whose controller is known, and the hash that a Deployment labels its pods with.

        A Deployment names its ReplicaSets after itself and that hash, so it is known without them.
        """
        if controlled_by is None:
            return pod
        if controlled_by.kind != "ReplicaSet":
            return controlled_by
        replica_set = self._replica_sets.get((namespace, controlled_by.name))
        if replica_set is not None:
            return controller(replica_set) or controlled_by
        name, _, end = controlled_by.name.rpartition("-")
        if not name or end != template_hash:
            return controlled_by
        return Owner("Deployment", name, controlled_by.api_version)

    def queue(self, namespace: str, own: str, owner: Owner) -> str:
        """The LocalQueue that the pod (``own``), its Deployment or the namespace names; else empty."""
        if not own and owner.kind == "Deployment":
            behind = self._deployments.get((namespace, owner.name))
            own = stated(behind, QUEUE) if behind else ""
        return own or self._default_queues.get(namespace, "")


def default_queues(namespaces: Iterable[Namespace]) -> dict[str, str]:
    """The LocalQueues that namespaces give to pods that name none, by namespace."""
    return {one.metadata.name: queue for one in namespaces if (queue := stated(one.metadata, DEFAULT_QUEUE))}


def controller(metadata: ObjectMeta) -> Owner | None:
    """Who controls the object, None where nobody does."""
    owners = (one for one in metadata.owner_references or () if one.controller)
    return next((Owner(one.kind, one.name, one.api_version, one.uid) for one in owners), None)


def stated(metadata: ObjectMeta, key: str) -> str:
    """The label or annotation, empty where there is none."""
    return (metadata.labels or {}).get(key) or (metadata.annotations or {}).get(key) or ""


def _by_name(found: Iterable[ObjectMeta]) -> Mapping[tuple[str, str], ObjectMeta]:
    return {(metadata.namespace, metadata.name): metadata for metadata in found}
