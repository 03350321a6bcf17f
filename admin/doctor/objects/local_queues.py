"""Checks of how workloads reach their queue: LocalQueues, namespaces, covered resources, stopped queues."""

from collections.abc import Iterator

from admin.doctor.check import Check
from admin.doctor.evidence import Evidence
from admin.doctor.finding import Finding, Verdict
from admin.doctor.objects.gathered import Case, gathered
from admin.doctor.objects.queue_fields import edit
from admin.doctor.objects.seen import Seen, seen, title
from queue_dispatcher.api.cluster_queue import StopPolicy
from queue_dispatcher.api.kinds import CLUSTER_QUEUES, LOCAL_QUEUES
from queue_dispatcher.api.local_queue import LocalQueue
from queue_dispatcher.bindings.objects import CLUSTER_RESOURCE_BINDINGS, RESOURCE_BINDINGS
from queue_dispatcher.bindings.state import Growing, Pending, Unresolved
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.objects import NAMESPACES
from queue_dispatcher.cycle.reasons import Reason
from queue_dispatcher.workloads.queue_of import Resolved

_BINDINGS = (RESOURCE_BINDINGS, CLUSTER_RESOURCE_BINDINGS)


def _references(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, CLUSTER_QUEUES, LOCAL_QUEUES)
    for local in found.cache.queues.queues.local_queues.values():
        if told := _wrong_with(local, found):
            verdict, message, remedy = told
            yield Finding(verdict, f"LocalQueue {local.key}", message, remedy)
    yield from _defaults(found)
    yield from _unreferenced(found)
    # Last, so that what hangs on no namespace is told where none were read.
    seen(evidence, NAMESPACES)


def _wrong_with(local: LocalQueue, found: Seen) -> tuple[Verdict, str, str] | None:
    cache = found.cache
    queue = cache.queues.queues.cluster_queues.get(local.cluster_queue)
    if not local.cluster_queue:
        return None  # a field that is told of as such
    if queue is None:
        return (
            Verdict.ERROR,
            f"spec.clusterQueue: there is no ClusterQueue {local.cluster_queue[:253]}: its workloads are "
            "held",
            f"{edit(f'LocalQueue {local.key}', found)}, or create the ClusterQueue",
        )
    if queue.name in cache.resolved.inner:
        return (
            Verdict.ERROR,
            f"spec.clusterQueue: {queue.name} has queues below it, and workloads wait in queues that have "
            "none",
            f"name one of those: {edit(f'LocalQueue {local.key}', found)}",
        )
    if queue.namespace_selector is None or NAMESPACES.name in found.not_read:
        return None
    namespace = cache.queues.known_namespaces.values.get(local.namespace)
    if namespace is None:
        return (
            Verdict.UNKNOWN,
            f"spec.clusterQueue: whether namespaceSelector of ClusterQueue {queue.name} selects namespace "
            f"{local.namespace} is not known: there is no such Namespace among those that were read",
            "give its Namespace too, or ask again once it is there",
        )
    if not queue.takes(namespace.labels):
        return (
            Verdict.ERROR,
            f"spec.clusterQueue: namespaceSelector of ClusterQueue {queue.name} does not select namespace "
            f"{local.namespace}: its workloads are held",
            f"label the namespace as ClusterQueue {queue.name} wants, or name another",
        )
    return None


def _defaults(found: Seen) -> Iterator[Finding]:
    queues = found.cache.queues
    for namespace, facts in queues.known_namespaces.values.items():
        name = facts.default_queue
        if name and f"{namespace}/{name}" not in queues.queues.local_queues:
            yield Finding(
                Verdict.ERROR,
                f"Namespace {namespace}",
                f"fairway.dev/default-queue: there is no LocalQueue {namespace}/{name[:253]}: workloads "
                "that name "
                "no queue are held",
                "correct the label, or create the LocalQueue",
            )


def _unreferenced(found: Seen) -> Iterator[Finding]:
    cache = found.cache
    queues = cache.queues.queues
    led_to = {local.cluster_queue for local in queues.local_queues.values()}
    led_to |= {policy.queue for policy in found.policies if not policy.namespace}
    led_to |= {entry.binding.queue for entry in found.entries.values() if not entry.binding.namespace}
    namespaces = cache.queues.known_namespaces.values
    for name, queue in queues.cluster_queues.items():
        if name in found.volcano or name in cache.resolved.inner:
            continue
        if namespaces and not any(queue.takes(facts.labels) for facts in namespaces.values()):
            yield Finding(
                Verdict.WARNING,
                f"ClusterQueue {name}",
                f"spec.namespaceSelector selects none of the {len(namespaces)} namespaces: it runs nothing",
                "correct the selector, or label the namespaces that it is for",
            )
        elif name not in led_to:
            yield Finding(
                Verdict.WARNING,
                f"ClusterQueue {name}",
                "no LocalQueue leads to it, so no workload reaches it; its unused quota is lent to others",
                "create a LocalQueue in each namespace that it is for",
            )


def _cover(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, CLUSTER_QUEUES, LOCAL_QUEUES, *_BINDINGS)
    yield from gathered(
        (
            Case(
                Verdict.ERROR,
                f"held in ClusterQueue {queue}, which has no quota for {', '.join(sorted(lacking))}: none "
                "of it "
                "can ever be admitted",
                f"add the resource to coveredResources and a quota of it to ClusterQueue {queue}, or let "
                "them "
                "name another queue",
            ),
            title(entry.binding),
        )
        for entry in found.entries.values()
        if isinstance(entry.state, Pending)
        for queue, lacking in ((entry.state.queue.cluster_queue, uncovered(entry, found)),)
        if lacking
    )


def uncovered(entry: Entry, found: Seen) -> frozenset[str]:
    """The accelerators that a workload asks for and its queue has no quota of."""
    name = entry.queue.cluster_queue if isinstance(entry.queue, Resolved) else ""
    queue = found.cache.queues.queues.cluster_queues.get(name)
    if queue is None:
        return frozenset()
    covered = {resource for group in queue.groups for resource in group.covered}
    return found.accelerators(entry.binding) - covered


def _stopped(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, CLUSTER_QUEUES, LOCAL_QUEUES, *_BINDINGS)
    yield from gathered(_waiting_in_stopped(found))


def _waiting_in_stopped(found: Seen) -> Iterator[tuple[Case, str]]:
    cache = found.cache
    remedy = "set stopPolicy to None where it is no longer meant"
    for entry in found.entries.values():
        why = ""
        match entry.state:
            case (
                Unresolved(reason=Reason(kind="QueueStopped") as stopped)
                | Growing(blocked=Reason(kind="QueueStopped") as stopped)
            ):
                why = stopped.text
            case Pending(queue=Resolved(cluster_queue=name)) | Growing(queue=name):
                if _is_stopped_by_policy(name, found):
                    why = cache.resolved.stopped[name]
            case _:
                pass
        if why:
            case = Case(Verdict.WARNING, f"waits although nothing is admitted: {why}", remedy)
            yield case, title(entry.binding)


def _is_stopped_by_policy(name: str, found: Seen) -> bool:
    """Whether the queue or one above it was stopped; one whose place in the tree is wrong is told "
    "elsewhere."""
    tree, queues = found.cache.resolved.tree, found.cache.queues.queues.cluster_queues
    return name in found.cache.resolved.stopped and any(
        queues[tree.nodes[number].name].stop_policy is not StopPolicy.NONE for number in tree.paths[name]
    )


LOCAL_QUEUE_REFERENCES = Check(
    "local-queues",
    "Does every LocalQueue and default queue lead to a queue that takes its workloads?",
    "every LocalQueue leads to a ClusterQueue, and each of those is reached",
    _references,
)
QUEUE_COVER = Check(
    "queue-cover",
    "Have the queues quota for what is asked of them?",
    "the queues have quota for every accelerator that is asked of them",
    _cover,
)
QUEUE_STOPPED = Check(
    "queue-stopped",
    "Does anything wait in a queue that was stopped?",
    "nothing waits in a stopped queue",
    _stopped,
)
