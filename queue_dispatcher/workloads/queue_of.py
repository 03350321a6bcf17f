"""Which queue a workload waits in: the name that counts, and what it leads to.

The first that names one counts: the binding (label or annotation), the template, the policy that propagates
it, the namespace's default. A name that was meant for Fairway and leads nowhere is told, never replaced by
another; one that was meant for Volcano or Kueue counts only where there is such a queue here.

A workload in a namespace names a LocalQueue of it. Names of ClusterQueues are taken from those that only
administrators write: cluster-scoped bindings and policies. Volcano's queues have no LocalQueues, so a name
meant for Volcano may be one of them directly.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from queue_dispatcher.api.cluster_queue import ClusterQueue, StopPolicy
from queue_dispatcher.api.local_queue import LocalQueue
from queue_dispatcher.cycle.reasons import Reason, namespace_not_allowed, queue_not_found, queue_stopped
from queue_dispatcher.workloads.template import NO_FACTS, TemplateFacts


@dataclass(frozen=True, slots=True)
class Queues:
    """The queues there are. ``local_queues``: by ``namespace/name``. ``volcano``: those of Volcano's."""

    cluster_queues: Mapping[str, ClusterQueue] = field(default_factory=dict)
    local_queues: Mapping[str, LocalQueue] = field(default_factory=dict)
    volcano: Collection[str] = frozenset()


@dataclass(frozen=True, slots=True)
class QueueNames:
    """Who names which queue for a workload; empty for nobody.

    ``binding``: label or annotation of the binding. ``policy``: annotation of its policy. ``namespace``: the
    namespace's default.
    """

    binding: str = ""
    template: TemplateFacts = NO_FACTS
    policy: str = ""
    namespace: str = ""

    @property
    def is_named(self) -> bool:
        """Whether the workload itself, or what propagates it, names a queue."""
        return bool(self.binding or self.policy or self.template.names_queue)


@dataclass(frozen=True, slots=True)
class Resolved:
    """The queue of a workload. ``local_queue``: empty where the ClusterQueue is named directly.

    ``default_class``: ServiceClass of workloads of the LocalQueue that name none. ``stopped``: why nothing is
    admitted through that LocalQueue at present; what runs is charged to its ClusterQueue all the same.
    """

    cluster_queue: str
    local_queue: str = ""
    default_class: str = ""
    stopped: Reason | None = None


def queue_of(
    namespace: str, namespace_labels: Mapping[str, str], names: QueueNames, queues: Queues
) -> Resolved | Reason:
    """The queue of a workload of this namespace (empty for cluster-scoped ones)."""
    if not namespace:
        return _cluster_scoped(names, queues)
    own = names.binding or names.template.queue
    if own:
        return _local(namespace, namespace_labels, own, queues)
    volcano, kueue = names.template.volcano_queue, names.template.kueue_queue
    for name in (volcano, kueue):
        if name and f"{namespace}/{name}" in queues.local_queues:
            return _local(namespace, namespace_labels, name, queues)
        if name and name == volcano and name in queues.volcano and name in queues.cluster_queues:
            return _led_to(namespace, namespace_labels, Resolved(name), "", queues)
    fallback = names.policy or names.namespace
    if fallback:
        return _local(namespace, namespace_labels, fallback, queues)
    tried = " or ".join(f"{name} (named for Volcano or Kueue)" for name in (volcano, kueue) if name)
    return queue_not_found(
        f"there is no queue {tried}, and namespace {namespace} has no default queue"
        if tried
        else f"the workload names no queue, and namespace {namespace} has no default queue"
    )


def may_be_charged(cluster_queue: str, namespace: str, labels: Mapping[str, str], queues: Queues) -> bool:
    """Whether a workload of the namespace can have been admitted to the ClusterQueue, whoever wrote so.

    It can where the queue takes the namespace, and where it did once: a LocalQueue still leads there, or the
    queue is gone. What is in no namespace can have been admitted to any.
    """
    known = queues.cluster_queues.get(cluster_queue)
    if known is None or not namespace or known.takes(labels):
        return True
    return any(
        local.namespace == namespace and local.cluster_queue == cluster_queue
        for local in queues.local_queues.values()
    )


def _cluster_scoped(names: QueueNames, queues: Queues) -> Resolved | Reason:
    name = names.binding or names.policy
    if not name:
        return queue_not_found("neither the cluster-scoped binding nor its policy names a ClusterQueue")
    return _led_to("", None, Resolved(name), "", queues)


def _local(namespace: str, labels: Mapping[str, str], name: str, queues: Queues) -> Resolved | Reason:
    local = queues.local_queues.get(f"{namespace}/{name}")
    if local is None:
        return queue_not_found(f"LocalQueue {namespace}/{name[:253]} does not exist")
    if not local.cluster_queue:
        return queue_not_found(f"LocalQueue {local.key} names no ClusterQueue")
    stopped = None
    if local.stop_policy is not StopPolicy.NONE:
        stopped = queue_stopped(local.key, f"the LocalQueue's stopPolicy is {local.stop_policy}")
    resolved = Resolved(local.cluster_queue, local.name, local.default_class, stopped)
    return _led_to(namespace, labels, resolved, f"LocalQueue {local.key} leads to ", queues)


def _led_to(
    namespace: str, labels: Mapping[str, str] | None, resolved: Resolved, by: str, queues: Queues
) -> Resolved | Reason:
    queue = queues.cluster_queues.get(resolved.cluster_queue)
    if queue is None:
        return queue_not_found(f"{by}ClusterQueue {resolved.cluster_queue[:253]} does not exist")
    # A cluster-scoped workload has no namespace whose labels could be selected or not.
    if labels is not None and not queue.takes(labels):
        return namespace_not_allowed(queue.name, namespace)
    return resolved
