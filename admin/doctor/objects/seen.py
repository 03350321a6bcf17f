"""What is on karmada-apiserver as the dispatcher understands it.

The one idea: the objects are fed to the dispatcher's own `Cache`, so that what the doctor says of a queue or
a binding is what the dispatcher makes of it, and no rule is written twice. A hundred thousand bindings are
read once for all checks.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol, TypeVar

from msgspec.structs import replace

from admin.doctor.evidence import Evidence, NotRead, Plane
from admin.doctor.karmada_kinds import (
    CLUSTER_PROPAGATION_POLICIES,
    PROPAGATION_POLICIES,
    WORKLOADS,
    WorkloadObject,
)
from admin.doctor.objects.policies import Policy, read_policy
from admin.doctor.registration import scope_in_force
from fairway.kube.dump_items import title as named
from fairway.kube.objects import object_key
from fairway.kube.resource import KubeObjectLike, ResourceKind
from fairway.scope import Scope
from queue_dispatcher.api.kinds import (
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    RESOURCE_FLAVORS,
    SERVICE_CLASSES,
    VOLCANO_QUEUES,
)
from queue_dispatcher.api.objects import ClusterQueueObject, ResourceFlavorObject, ServiceClassObject
from queue_dispatcher.bindings.binding import Binding, PolicyReference
from queue_dispatcher.bindings.cluster import CLUSTERS, ClusterObject
from queue_dispatcher.bindings.objects import (
    CLUSTER_RESOURCE_BINDINGS,
    RESOURCE_BINDINGS,
    ResourceBinding,
)
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.objects import NAMESPACES, PRIORITY_CLASSES, MetadataObject
from queue_dispatcher.cache.templates import Kind, template_key
from queue_dispatcher.cycle.headroom import Headroom
from queue_dispatcher.cycle.items import Shape
from queue_dispatcher.cycle.queue_headroom import QueueHeadroom
from queue_dispatcher.cycle.reasons import Reason
from queue_dispatcher.cycle.snapshot import Snapshot
from queue_dispatcher.workloads.finished import is_finished

T = TypeVar("T", bound=KubeObjectLike)
Global = TypeVar("Global", ClusterObject, ResourceFlavorObject, ClusterQueueObject, ServiceClassObject)
"""What is in no namespace."""

SCHEDULED_BY = (
    "propagationpolicy.karmada.io/permanent-id",
    "clusterpropagationpolicy.karmada.io/permanent-id",
    "binding.karmada.io/managed-by",
)
"""Labels of which karmada-scheduler wants one, not empty, before it looks at a binding."""


class Seen:
    """One karmada-apiserver, understood as of ``now_ms``, epoch milliseconds."""

    def __init__(self, plane: Plane, scope: Scope, now_ms: int) -> None:
        self._plane = plane
        self.scope = scope
        self.not_read: dict[str, NotRead] = {}
        """Why a kind was not read, by its name."""
        self.unlabelled: set[str] = set()
        """Uids of bindings that karmada-scheduler never looks at."""
        self.finished_templates: set[str] = set()
        """Uids of bindings whose workload's own object says that it has ended."""
        volcano = bool(self._listed(VOLCANO_QUEUES))
        self.cache = Cache(scope, lambda: None, volcano=volcano)
        self._rooms: dict[str, QueueHeadroom] = {}
        self._never: dict[tuple[str, Shape], Reason | None] = {}
        self._feed(now_ms)

    @property
    def name(self) -> str:
        """The plane's name, for patches."""
        return self._plane.name

    @cached_property
    def files(self) -> Mapping[str, str]:
        """The file of each object of ours that no API server has had yet, by what findings call it."""
        return {named(one.kind, one.text): one.file for one in self._plane.written if not one.is_stored}

    @property
    def volcano(self) -> Collection[str]:
        """Names of the queues that are Volcano's, and of the root above them."""
        return self.cache.queues.queues.volcano

    @property
    def entries(self) -> Mapping[str, Entry]:
        """All bindings, by uid."""
        return self.cache.entries

    @cached_property
    def queued_policies(self) -> tuple[Policy, ...]:
        """The policies of what is queued: accelerators, gangs, and whatever else names a queue."""
        return tuple(
            one
            for one in self.policies
            if one.queue or one.gangs or any(self.asks_accelerators(entry) for entry in one.users)
        )

    @cached_property
    def policies(self) -> tuple[Policy, ...]:
        """All policies, with the bindings that they made."""
        users: dict[PolicyReference, list[Entry]] = {}
        for entry in self.entries.values():
            if entry.binding.policy is not None:
                users.setdefault(entry.binding.policy, []).append(entry)
        stated = (*self._listed(PROPAGATION_POLICIES), *self._listed(CLUSTER_PROPAGATION_POLICIES))
        return tuple(read_policy(one, users) for one in stated)

    def is_accelerator(self, resource: str) -> bool:
        """Whether the catalogue calls the resource an accelerator."""
        return self.scope.is_accelerator(resource)

    def accelerators(self, binding: Binding) -> frozenset[str]:
        """The accelerators that a workload asks for."""
        return frozenset(
            resource
            for component in binding.demand.components
            for resource, _ in component.requests
            if self.is_accelerator(resource)
        )

    def asks_accelerators(self, entry: Entry) -> bool:
        """Whether a workload asks for any accelerator."""
        return bool(self.accelerators(entry.binding))

    def never(self, entry: Entry) -> Reason | None:
        """Why what waits could not be admitted even if nothing else ran; None if it could."""
        if entry.item is None:
            waits = entry.waits
            return waits if waits is not None and waits.kind == "NeverFits" else None
        item = entry.item
        key = (item.queue, item.shape)
        if key not in self._never:
            room = self._rooms.get(item.queue)
            if room is None and item.queue in self.cache.resolved.tree.paths:
                room = self._rooms[item.queue] = QueueHeadroom(self._room, item.queue)
            is_possible = room is None or room.can_ever_admit(item.shape)
            self._never[key] = None if is_possible or room is None else room.why(item.shape)
        return self._never[key]

    @cached_property
    def _room(self) -> Headroom:
        cache = self.cache
        return Headroom(Snapshot(cache.charges.ledger, {}, envelope=cache.envelope()))

    def knows_template(self, entry: Entry) -> bool:
        """Whether workloads of the entry's kind were read, so that one that is not there is gone."""
        workload = entry.binding.workload
        return self._kind_trouble((workload.group, workload.kind)) == ""

    def _listed(self, kind: ResourceKind[T]) -> tuple[T, ...]:
        try:
            return self._plane.listed(kind)
        except NotRead as why:
            # Told by the checks that need the kind.
            self.not_read[kind.name] = why
            return ()

    def _feed(self, now_ms: int) -> None:
        cache = self.cache
        for cluster in self._listed(CLUSTERS):
            cache.clusters.upsert(_in_no_namespace(cluster))
        for flavor in self._listed(RESOURCE_FLAVORS):
            cache.flavors.upsert(_in_no_namespace(flavor))
        queues = cache.queues
        for queue in self._listed(CLUSTER_QUEUES):
            queues.cluster_queues.upsert(_in_no_namespace(queue))
        for local in self._listed(LOCAL_QUEUES):
            queues.local_queues.upsert(local)
        for service_class in self._listed(SERVICE_CLASSES):
            queues.service_classes.upsert(_in_no_namespace(service_class))
        for volcano in self._listed(VOLCANO_QUEUES):
            queues.volcano_queues.upsert(volcano)
        for priority in self._listed(PRIORITY_CLASSES):
            queues.priority_classes.upsert(priority)
        for namespace in self._listed(NAMESPACES):
            queues.known_namespaces.upsert(namespace)
        for policy in self._listed(PROPAGATION_POLICIES):
            queues.policies.upsert(MetadataObject(policy.metadata))
        for policy in self._listed(CLUSTER_PROPAGATION_POLICIES):
            queues.cluster_policies.upsert(MetadataObject(policy.metadata))
        for binding in self._listed(RESOURCE_BINDINGS):
            self._read_binding(binding, cache.bindings.upsert)
        for binding in self._listed(CLUSTER_RESOURCE_BINDINGS):
            self._read_binding(binding, cache.cluster_bindings.upsert)
        self._read_templates()
        # How old a refusal is, and for how long a cluster is not Ready, counts.
        cache.advance(Moment(day_ms=now_ms))
        while not cache.settle():
            pass

    def _read_binding(self, stated: ResourceBinding, upsert: Callable[[ResourceBinding], None]) -> None:
        upsert(stated)
        labels = stated.metadata.labels or {}
        if not any(labels.get(label) for label in SCHEDULED_BY):
            self.unlabelled.add(stated.metadata.uid)

    def _read_templates(self) -> None:
        ended: dict[Kind, set[str]] = {}
        for name, kind in self.cache.templates.kinds.items():
            trouble = self._kind_trouble(name)
            if trouble:
                self.cache.kind_in_trouble(name, trouble)
                continue
            for template in self._listed(WORKLOADS[name]):
                kind.upsert(template)
                if _has_ended(name, template):
                    ended.setdefault(name, set()).add(object_key(template.metadata))
        for entry in self.entries.values():
            workload = entry.binding.workload
            if template_key(workload) in ended.get((workload.group, workload.kind), ()):
                self.finished_templates.add(entry.uid)

    def _kind_trouble(self, name: Kind) -> str:
        group, kind = name
        listed = WORKLOADS.get(name)
        if listed is None:
            return f"objects of kind {kind} of {group or 'the core group'} are not among those that are read"
        if (why := self._plane.unread.get(listed.name)) is not None:
            return f"{listed.name} could not be read: {why}"
        if listed.name not in self._plane.objects:
            return f"{listed.name} were not read"
        return ""


def _in_no_namespace(stated: Global) -> Global:
    """An object of a kind that has no namespaces: an API server drops what a file states of them."""
    if not stated.metadata.namespace:
        return stated
    return replace(stated, metadata=replace(stated.metadata, namespace=""))


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """A plane as a key: equal only to itself, whenever it is looked at."""

    plane: Plane
    now_ms: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and other.plane is self.plane

    def __hash__(self) -> int:
        return id(self.plane)


@lru_cache(maxsize=1)
def _seen(held: _Held, scope: Scope) -> Seen:
    return Seen(held.plane, scope, held.now_ms)


class Named(Protocol):
    """A `ResourceKind`, of whatever type."""

    @property
    def name(self) -> str:
        """Its plural."""


def seen(evidence: Evidence, *needed: Named) -> Seen:
    """What is on karmada-apiserver. Raises NotRead if that, or one of the kinds ``needed``, was not read."""
    found = _seen(_Held(evidence.on_karmada(), evidence.now_ms), scope_in_force(evidence))
    for kind in needed:
        if (why := found.not_read.get(kind.name)) is not None:
            raise NotRead(why.plane, why.why, why.remedy)
    return found


def title(binding: Binding) -> str:
    """How findings call a binding."""
    kind = "ResourceBinding" if binding.namespace else "ClusterResourceBinding"
    return f"{kind} {binding.key}"


def target(binding: Binding) -> str:
    """How kubectl calls a binding."""
    if not binding.namespace:
        return f"clusterresourcebinding/{binding.name}"
    return f"resourcebinding/{binding.name} -n {binding.namespace}"


def _has_ended(name: Kind, template: WorkloadObject) -> bool:
    return is_finished(*name, template.status)
