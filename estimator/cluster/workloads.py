"""Which workload each pod belongs to: how many of its pods hold room, have a node, or cannot be placed.

Pods of a Deployment belong to its ReplicaSets, so those are mirrored too, reduced to the identity of their
pod template: the Deployment's current ReplicaSet is the oldest with its template.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

import msgspec

from estimator.cluster.kind_mirror import KindMirror, discard
from estimator.cluster.report import Report
from fairway.kube.objects import Deployment, ObjectMeta, ReplicaSet, object_key
from fairway.workloads.members import CONTROLLING, LABELS

ControllerKey = tuple[str, str, str, str]
"""Namespace, name, kind and API group of a controller."""

WatchedWorkload = tuple[str, str, str]
"""Namespace, name and kind."""

_HASH_LABEL = "pod-template-hash"


MemberKey = tuple[str, str, str]
"""Namespace and name of a workload, and the label of its pods that holds the name."""


@dataclass(slots=True)
class PodCounts:
    """Pods of one workload: bound to a node, and not yet; ``holding`` room: also those nominated to one."""

    bound: int = 0
    waiting: int = 0
    holding: int = 0

    def __add__(self, other: "PodCounts") -> "PodCounts":
        return PodCounts(self.bound + other.bound, self.waiting + other.waiting, self.holding + other.holding)


@dataclass(slots=True)
class _Pods:
    counts: PodCounts = field(default_factory=PodCounts)
    unschedulable_since_s: dict[str, float] = field(default_factory=dict)


class Controllers:
    """Pods by controller, and ReplicaSets by Deployment."""

    def __init__(self, report: Report) -> None:
        self._by_name: dict[tuple[str, str], dict[tuple[str, str], _Pods]] = {}
        self._by_label: dict[MemberKey, PodCounts] = {}
        self._watched: frozenset[tuple[str, str]] = frozenset()
        self._watches_replica_sets = False
        self._version = 0
        self.deployments = DeploymentMirror(report)
        self.replica_sets = ReplicaSetMirror(report)

    def watch(self, workloads: Iterable[WatchedWorkload]) -> None:
        """From now on `watched_version` tells of changes to the pods of these, and may tell of others."""
        watched = tuple(workloads)
        self._watched = frozenset((namespace, name) for namespace, name, _ in watched)
        self._watches_replica_sets = any(kind == "Deployment" for _, _, kind in watched)
        self._version += 1

    @property
    def watched_version(self) -> int:
        """Changes whenever the number of pods of a workload does that is watched."""
        return self._version + (self.replica_sets.version if self._watches_replica_sets else 0)

    def count(
        self, key: ControllerKey | None, member: MemberKey | None, *, holds: bool, is_bound: bool, sign: int
    ) -> None:
        """A pod of the controller, and of the workload that its label names, is there (``sign`` 1), or is so
        no more (-1). ``holds``: room on a node; ``is_bound``: to it, not only nominated.
        """
        if self._watched and (self._is_watched(key) or (member is not None and member[:2] in self._watched)):
            self._version += 1
        if key is not None:
            _count(self._pods(key).counts, sign, holds=holds, is_bound=is_bound)
            self._drop_if_empty(key)
        if member is not None:
            counts = self._by_label.setdefault(member, PodCounts())
            _count(counts, sign, holds=holds, is_bound=is_bound)
            if not (counts.bound or counts.waiting):
                del self._by_label[member]

    def _is_watched(self, key: ControllerKey | None) -> bool:
        if key is None:
            return False
        return key[:2] in self._watched or (self._watches_replica_sets and key[2] == "ReplicaSet")

    def pods_of(self, namespace: str, name: str, kind: str, group: str) -> PodCounts | None:
        """The pods of a workload, bound and not; None where pods of that kind are not known by it."""
        label = LABELS.get((kind, group))
        if label is not None:
            return PodCounts() + self._by_label.get((namespace, name, label), PodCounts())
        if (kind, group) not in CONTROLLING:
            return None
        names = self.replica_sets.of(namespace, name) if kind == "Deployment" else (name,)
        kind = "ReplicaSet" if kind == "Deployment" else kind
        found = (self._by_name.get((namespace, one), {}).get((kind, group)) for one in names)
        return sum((pods.counts for pods in found if pods is not None), PodCounts())

    def known_by(
        self, namespace: str, name: str, kind: str, group: str
    ) -> tuple[ControllerKey | MemberKey, ...]:
        """By what pods of a workload are known to be its own, any of these; by nothing as in `pods_of`."""
        label = LABELS.get((kind, group))
        if label is not None:
            return ((namespace, name, label),)
        if (kind, group) not in CONTROLLING:
            return ()
        if kind == "Deployment":
            sets = self.replica_sets.of(namespace, name)
            return tuple((namespace, one, "ReplicaSet", group) for one in sets)
        return ((namespace, name, kind, group),)

    def mark_unschedulable(self, key: ControllerKey, pod: str, since_s: float) -> None:
        """A pod of the controller has been unschedulable since then."""
        self._pods(key).unschedulable_since_s[pod] = since_s

    def unmark_unschedulable(self, key: ControllerKey, pod: str) -> None:
        """It no longer is."""
        self._pods(key).unschedulable_since_s.pop(pod, None)
        self._drop_if_empty(key)

    def bound_pods(self, namespace: str, name: str) -> Mapping[str, int]:
        """Pods holding room, by kind of the controller of this name; a Deployment's are its ReplicaSets'."""
        found: dict[str, int] = {}
        for (kind, _), pods in self._by_name.get((namespace, name), {}).items():
            found[kind] = found.get(kind, 0) + pods.counts.holding
        replica_sets = self.replica_sets.of(namespace, name)
        if replica_sets:
            found["Deployment"] = sum(self._bound_of(namespace, replica_set) for replica_set in replica_sets)
        return found

    def unschedulable_since_s(self, namespace: str, name: str, kind: str, group: str) -> Collection[float]:
        """Since when each of the workload's pods has been unschedulable, in seconds since the epoch.

        For a Deployment the pods of its current ReplicaSet; for any other kind the pods that name it as
        their controller. Mirrors pkg/estimator/server/replica of Karmada 1.19, which knows Deployments only.
        """
        if (kind, group) == ("Deployment", "apps"):
            current = self._current_replica_set(namespace, name)
            if current is None:
                return ()
            name, kind = current, "ReplicaSet"
        pods = self._by_name.get((namespace, name), {}).get((kind, group))
        return pods.unschedulable_since_s.values() if pods else ()

    def _current_replica_set(self, namespace: str, deployment: str) -> str | None:
        wanted = self.deployments.template_of(namespace, deployment)
        same = [
            (template.created, name)
            for name, template in self.replica_sets.of(namespace, deployment).items()
            if template.digest == wanted
        ]
        return min(same)[1] if same else None

    def _bound_of(self, namespace: str, replica_set: str) -> int:
        pods = self._by_name.get((namespace, replica_set), {}).get(("ReplicaSet", "apps"))
        return pods.counts.holding if pods else 0

    def _pods(self, key: ControllerKey) -> _Pods:
        namespace, name, kind, group = key
        return self._by_name.setdefault((namespace, name), {}).setdefault((kind, group), _Pods())

    def _drop_if_empty(self, key: ControllerKey) -> None:
        namespace, name, kind, group = key
        pods = self._by_name[namespace, name][kind, group]
        counts = pods.counts
        if not (counts.bound or counts.waiting or pods.unschedulable_since_s):
            discard(self._by_name, (namespace, name), (kind, group))


def _count(counts: PodCounts, sign: int, *, holds: bool, is_bound: bool) -> None:
    counts.holding += sign if holds else 0
    if is_bound:
        counts.bound += sign
    else:
        counts.waiting += sign


@dataclass(frozen=True, slots=True)
class _Template:
    """That of a ReplicaSet; ``deployment``: namespace and name of its owner, None where it has none."""

    deployment: tuple[str, str] | None
    digest: bytes
    created: str


class DeploymentMirror(KindMirror[bytes]):
    """The pod template of every Deployment; the reflector's sink for them."""

    def upsert(self, deployment: Deployment) -> None:
        """A Deployment appeared or changed."""
        self._set(object_key(deployment.metadata), template_digest(deployment.spec.template))

    def template_of(self, namespace: str, name: str) -> bytes | None:
        """The identity of its pod template."""
        return self.get(object_key(ObjectMeta(namespace=namespace, name=name)))


class ReplicaSetMirror(KindMirror[_Template]):
    """The ReplicaSets of every Deployment; the reflector's sink for them."""

    def __init__(self, report: Report) -> None:
        super().__init__(report)
        self._by_deployment: dict[tuple[str, str], dict[str, _Template]] = {}

    def of(self, namespace: str, deployment: str) -> Mapping[str, _Template]:
        """The templates of a Deployment's ReplicaSets, by their names."""
        return self._by_deployment.get((namespace, deployment), {})

    def upsert(self, replica_set: ReplicaSet) -> None:
        """A ReplicaSet appeared or changed."""
        metadata = replica_set.metadata
        owner = next(
            (o for o in metadata.owner_references or () if o.controller and o.kind == "Deployment"), None
        )
        template = _Template(
            None if owner is None else (metadata.namespace, owner.name),
            b"" if owner is None else template_digest(replica_set.spec.template),
            metadata.creation_timestamp or "",
        )
        self._set(object_key(metadata), template)

    def _remember(self, key: str, value: _Template) -> None:
        if value.deployment is not None:
            self._by_deployment.setdefault(value.deployment, {})[key.rpartition("/")[2]] = value

    def _forget(self, key: str, value: _Template) -> None:
        if value.deployment is not None:
            discard(self._by_deployment, value.deployment, key.rpartition("/")[2])


def template_digest(template: msgspec.Raw) -> bytes:
    """The identity of a pod template: the same whatever the order of its fields or its hash label."""
    try:
        content = msgspec.json.decode(template)
        if isinstance(content, dict):
            metadata = content.get("metadata")
            if isinstance(metadata, dict) and isinstance(metadata.get("labels"), dict):
                metadata["labels"].pop(_HASH_LABEL, None)
        text = msgspec.json.encode(content, order="sorted")
    except (msgspec.DecodeError, RecursionError):
        text = bytes(template)  # what cannot be taken apart, say 1e999, can still be compared as it is
    return blake2b(text, digest_size=16).digest()
