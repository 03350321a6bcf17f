"""The queues, classes, namespaces and policies there are, and whom a change of one concerns.

Sinks only note what changed; `Cache.settle` then looks at each binding that may be concerned once, however
many events there were.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from fairway.kube.objects import ObjectMeta
from queue_dispatcher.api.cluster_queue import ClusterQueue
from queue_dispatcher.api.local_queue import LocalQueue
from queue_dispatcher.api.objects import ClusterQueueObject, LocalQueueObject, ServiceClassObject
from queue_dispatcher.api.problem import Problem
from queue_dispatcher.api.reading.cluster_queue import read_cluster_queue
from queue_dispatcher.api.reading.local_queue import read_local_queue
from queue_dispatcher.api.reading.service_class import read_service_class
from queue_dispatcher.api.service_class import ServiceClass
from queue_dispatcher.api.volcano import read_volcano_queues
from queue_dispatcher.api.volcano_objects import VolcanoQueueObject
from queue_dispatcher.bindings.binding import PolicyReference
from queue_dispatcher.cache.objects import (
    MetadataObject,
    NamespaceFacts,
    PriorityClassObject,
    read_namespace,
    read_policy,
    read_priority_class,
)
from queue_dispatcher.cache.table import Table
from queue_dispatcher.workloads.queue_of import Queues

_UNKNOWN = NamespaceFacts()


class QueueCache:
    """All that administrators and namespaces say. ``changed`` is called after each event that matters.

    What has to be looked at again collects in ``namespaces`` (their bindings), ``all_bindings``,
    ``reshaped`` (queues whose flavors changed) and ``is_tree_stale``, until `taken`.
    """

    def __init__(
        self, changed: Callable[[], None], volcano_capacity: Callable[[], Mapping[str, int]]
    ) -> None:
        self._changed = changed
        self._volcano_capacity = volcano_capacity
        self.cluster_queues = Table[ClusterQueueObject, ClusterQueue](
            read_cluster_queue, self._cluster_queue_changed
        )
        self.volcano_queues = Table[VolcanoQueueObject, VolcanoQueueObject](
            _read_volcano_queue, self._volcano_changed
        )
        self.local_queues = Table[LocalQueueObject, LocalQueue](read_local_queue, self._local_queue_changed)
        self.service_classes = Table[ServiceClassObject, ServiceClass](
            read_service_class, self._class_changed
        )
        self.priority_classes = Table[PriorityClassObject, int](read_priority_class, self._class_changed)
        self.known_namespaces = Table[MetadataObject, NamespaceFacts](read_namespace, self._namespace_changed)
        self.policies = Table[MetadataObject, str](read_policy, self._policy_changed)
        self.cluster_policies = Table[MetadataObject, str](read_policy, self._policy_changed)
        self.unread: dict[str, str] = {}
        """Why what is not known here may not be read, by resource; such as ``namespaces``."""
        self.namespaces: set[str] = set()
        self.all_bindings = False
        self.reshaped: set[str] = set()
        self.is_tree_stale = True
        self._of_volcano: dict[str, ClusterQueue] = {}
        self._is_volcano_stale = False
        self._queues: Queues | None = None
        self._shares: frozenset[tuple[str, str]] | None = None

    @property
    def queues(self) -> Queues:
        """All queues, ours and Volcano's; of equal names ours counts."""
        if self._is_volcano_stale:
            self._is_volcano_stale = False
            self._read_volcano()
        if self._queues is None:
            merged = {**self._of_volcano, **self.cluster_queues.values}
            for name in self._of_volcano.keys() & self.cluster_queues.values.keys():
                told = "a Volcano Queue has the same name: that one is passed over"
                merged[name] = replace(
                    merged[name], problems=(*merged[name].problems, Problem("metadata.name", told))
                )
            volcano = frozenset(self._of_volcano.keys() - self.cluster_queues.values.keys())
            self._queues = Queues(merged, self.local_queues.values, volcano)
        return self._queues

    def namespace(self, name: str) -> NamespaceFacts:
        """What a namespace says; nothing if it is not known."""
        return self.known_namespaces.values.get(name, _UNKNOWN)

    def knows_namespace(self, name: str) -> bool:
        """Whether what the namespace says is known; what is in none says nothing."""
        return not name or name in self.known_namespaces.values

    def policy(self, policy: PolicyReference | None) -> str:
        """The queue that a policy names; empty for none."""
        if policy is None:
            return ""
        if not policy.namespace:
            return self.cluster_policies.values.get(policy.name, "")
        return self.policies.values.get(f"{policy.namespace}/{policy.name}", "")

    def cannot_read(self, resource: str, why: str) -> None:
        """The resource may not be read, for this reason; with an empty one it may be again."""
        if self.unread.get(resource, "") != why:
            self.unread.pop(resource, None)
            if why:
                self.unread[resource] = why
            self.all_bindings = True
            self._changed()

    def capacity_changed(self) -> None:
        """Volcano's trees are made of capacities."""
        if self.volcano_queues.values:
            self._is_volcano_stale = self.is_tree_stale = True

    @property
    def shares(self) -> frozenset[tuple[str, str]]:
        """The pairs of flavor and resource of which quotas are percentages."""
        if self._shares is None:
            queues = self.cluster_queues.values.values()
            self._shares = frozenset(share for queue in queues for share in queue.percentages)
        return self._shares

    def taken(self) -> None:
        """All that collected has been looked at."""
        self.namespaces = set()
        self.all_bindings = False
        self.reshaped = set()
        self.is_tree_stale = False

    def _cluster_queue_changed(
        self, key: str, before: ClusterQueue | None, after: ClusterQueue | None
    ) -> None:
        self._queues = self._shares = None
        self.is_tree_stale = True
        if before is None or after is None or before.namespace_selector != after.namespace_selector:
            self._leads_elsewhere(key)
        if before is None or after is None or _search(before) != _search(after):
            self.reshaped.add(key)
        self._changed()

    def _leads_elsewhere(self, queue: str) -> None:
        # What names a ClusterQueue directly has no namespace, or no LocalQueue: Volcano's.
        self.namespaces.add("")
        self.namespaces.update(
            local.namespace for local in self.local_queues.values.values() if local.cluster_queue == queue
        )
        if queue in self._of_volcano:
            self.all_bindings = True

    def _volcano_changed(self, key: str, before: object, after: object) -> None:
        self._is_volcano_stale = True
        self.is_tree_stale = True
        self._changed()

    def _read_volcano(self) -> None:
        before = self._of_volcano
        stated = self.volcano_queues.values.values()
        made = read_volcano_queues(stated, self._volcano_capacity()) if stated else ()
        self._of_volcano = {queue.name: queue for queue in made}
        if before.keys() != self._of_volcano.keys():
            self.all_bindings = True
        for name, queue in self._of_volcano.items():
            known = before.get(name)
            if known is None or known.groups != queue.groups:
                self.reshaped.add(name)
        self._queues = None

    def _local_queue_changed(self, key: str, before: LocalQueue | None, after: LocalQueue | None) -> None:
        self._queues = None
        self.namespaces.add(key.partition("/")[0])
        self._changed()

    def _namespace_changed(self, key: str, before: object, after: object) -> None:
        self.namespaces.add(key)
        self._changed()

    def _class_changed(self, key: str, before: object, after: object) -> None:
        self.all_bindings = True
        self._changed()

    def _policy_changed(self, key: str, before: object, after: object) -> None:
        namespace, slash, _ = key.partition("/")
        if slash:
            self.namespaces.add(namespace)
        else:
            self.all_bindings = True
        self._changed()


def _search(queue: ClusterQueue) -> object:
    """What of a queue decides who and what may be charged to it, in which order, and after whose word."""
    is_shared = queue.fair_sharing is not None
    return queue.groups, queue.fungibility.when_can_borrow, queue.namespace_selector, queue.checks, is_shared


def _read_volcano_queue(obj: VolcanoQueueObject) -> VolcanoQueueObject:
    """The queue without what changes at every write."""
    return VolcanoQueueObject(ObjectMeta(name=obj.metadata.name), obj.spec, obj.status)
