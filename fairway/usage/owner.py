"""Whom a pod belongs to: the controller behind it, and the queue that it came through."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fairway.kube.member_kinds import Namespace
from fairway.kube.objects import Deployment, ObjectMeta, Pod, ReplicaSet
from fairway.names import DEFAULT_QUEUE, QUEUE

_HASH = "pod-template-hash"


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
        namespaces: Iterable[Namespace] = (),
    ) -> None:
        self._replica_sets = _by_name(one.metadata for one in replica_sets)
        self._deployments = _by_name(one.metadata for one in deployments)
        self._default_queues = {
            one.metadata.name: queue for one in namespaces if (queue := _stated(one.metadata, DEFAULT_QUEUE))
        }

    def owner(self, pod: Pod) -> Owner:
        """The pod's controller; behind a ReplicaSet what controls that.

        A Deployment names its ReplicaSets after itself and the hash that it labels their pods with, so it is
        known without them.
        """
        found = _controller(pod.metadata)
        if found is None:
            return Owner("Pod", pod.metadata.name, "v1", pod.metadata.uid)
        if found.kind != "ReplicaSet":
            return found
        behind = self._replica_sets.get((pod.metadata.namespace, found.name))
        if behind is not None:
            return _controller(behind) or found
        name, _, end = found.name.rpartition("-")
        hashed = (pod.metadata.labels or {}).get(_HASH)
        return Owner("Deployment", name, found.api_version) if name and end == hashed else found

    def queue(self, pod: Pod, owner: Owner) -> str:
        """The LocalQueue that the pod, its Deployment or the namespace names; empty where none does."""
        namespace = pod.metadata.namespace
        stated = _stated(pod.metadata, QUEUE)
        if not stated and owner.kind == "Deployment":
            behind = self._deployments.get((namespace, owner.name))
            stated = _stated(behind, QUEUE) if behind else ""
        return stated or self._default_queues.get(namespace, "")


def _controller(metadata: ObjectMeta) -> Owner | None:
    owners = (one for one in metadata.owner_references or () if one.controller)
    return next((Owner(one.kind, one.name, one.api_version, one.uid) for one in owners), None)


def _stated(metadata: ObjectMeta, key: str) -> str:
    """The label or annotation."""
    return (metadata.labels or {}).get(key) or (metadata.annotations or {}).get(key) or ""


def _by_name(found: Iterable[ObjectMeta]) -> Mapping[tuple[str, str], ObjectMeta]:
    return {(metadata.namespace, metadata.name): metadata for metadata in found}
