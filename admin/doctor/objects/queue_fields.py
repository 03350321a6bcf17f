"""Checks of single fields of queues, flavors and classes: can they be read, and do they do anything?

Both are what the dispatcher itself finds when it reads them.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from admin.doctor.check import Check
from admin.doctor.evidence import Evidence, NotRead
from admin.doctor.finding import Finding, Verdict
from admin.doctor.objects.seen import Seen, seen
from admin.doctor.objects.written import misfits
from admin.doctor.program import DISPATCHER, chooses_clusters, needed
from queue_dispatcher.api.cluster_queue import ClusterQueue, QueueingStrategy
from queue_dispatcher.api.effect import IS_ABOVE_OTHERS, KARMADA_CHOOSES, Stated, unshared, without_effect
from queue_dispatcher.api.kinds import (
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    RESOURCE_FLAVORS,
    SERVICE_CLASSES,
)
from queue_dispatcher.api.local_queue import LocalQueue
from queue_dispatcher.api.problem import Problem


def _fields(evidence: Evidence) -> Iterator[Finding]:
    yield from misfits(evidence.on_karmada().written)
    found = seen(evidence, CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS, SERVICE_CLASSES)
    queues = found.cache.queues
    read: Iterable[tuple[str, Sequence[Problem]]] = chain(
        ((queue_title(found, name), one.problems) for name, one in queues.queues.cluster_queues.items()),
        ((f"LocalQueue {one.key}", one.problems) for one in queues.queues.local_queues.values()),
        ((f"ResourceFlavor {name}", one.problems) for name, one in found.cache.flavors.values.items()),
        ((f"ServiceClass {name}", one.problems) for name, one in queues.service_classes.values.items()),
    )
    for subject, problems in read:
        for problem in problems:
            yield Finding(
                Verdict.WARNING, subject, str(problem), f"correct the field: {edit(subject, found)}"
            )


def _effect(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS, SERVICE_CLASSES)
    queues = found.cache.queues
    stated: Iterable[tuple[str, Stated]] = chain(
        ((f"ClusterQueue {name}", one) for name, one in queues.cluster_queues.values.items()),
        ((f"LocalQueue {one.key}", one) for one in queues.queues.local_queues.values()),
        ((f"ResourceFlavor {name}", one) for name, one in found.cache.flavors.values.items()),
        ((f"ServiceClass {name}", one) for name, one in queues.service_classes.values.items()),
    )
    inner = found.cache.resolved.inner
    elsewhere = _unplaced(evidence)
    for subject, one in stated:
        above = IS_ABOVE_OTHERS if isinstance(one, ClusterQueue) and one.name in inner else ""
        known = above or ("" if isinstance(elsewhere, NotRead) else elsewhere)
        queue = queues.queues.cluster_queues.get(one.cluster_queue) if isinstance(one, LocalQueue) else None
        for field in without_effect(one, known, unshared=unshared(queue)):
            yield Finding(
                Verdict.WARNING,
                subject,
                str(field),
                _mend(field),
            )
        if isinstance(elsewhere, NotRead) and not above:
            yield from _by_flags(subject, one, elsewhere)


def _mend(field: Problem) -> str:
    """What gives a field its effect, by why it has none."""
    if IS_ABOVE_OTHERS in field.message:
        return "state it of the queues below, and remove it here"
    match field.field:
        case "spec.preemption.budget":
            return "state it of the root of the tree, and remove it here"
        case "spec.reservation":
            return f"state spec.queueingStrategy: {QueueingStrategy.BACKFILL_FIFO}, or remove the field"
        case _:
            return "change what keeps it from having its effect, or remove the field"


def _unplaced(evidence: Evidence) -> str | NotRead:
    """Why the dispatcher's releases say no clusters, empty where they do; or why its flags are not known."""
    try:
        dispatcher = needed(evidence.on_host(), DISPATCHER)[-1]
    except NotRead as why:
        return why
    return "" if chooses_clusters(dispatcher) else KARMADA_CHOOSES


def _by_flags(subject: str, one: Stated, why: NotRead) -> Iterator[Finding]:
    """The fields that have their effect with some flags of the dispatcher only, where these are not known."""
    always = without_effect(one)
    for field in without_effect(one, KARMADA_CHOOSES):
        if field not in always:
            yield Finding(
                Verdict.UNKNOWN,
                subject,
                f"{field.field}: of effect only where {DISPATCHER} chooses the clusters, and its flags are "
                f"not known: {why.why}",
                why.remedy,
            )


def queue_title(found: Seen, name: str) -> str:
    """How findings call a queue: Volcano's are none of Fairway's."""
    is_ours = name in found.cache.queues.cluster_queues.values
    return f"ClusterQueue {name}" if is_ours else f"Queue {name}"


def edit(subject: str, found: Seen) -> str:
    """How to edit an object, by what findings call it, such as ``LocalQueue team/main``.

    A command, or the file of one that no API server has had yet.
    """
    if file := found.files.get(subject):
        return f"edit {file}"
    kind, _, key = subject.partition(" ")
    namespace, _, name = key.rpartition("/")
    where = f" -n {namespace}" if namespace else ""
    return f"kubectl edit {kind.lower()} {name}{where}"


QUEUE_FIELDS = Check(
    "queue-fields",
    "Can every field of queues, flavors and classes be read?",
    "every field of queues, flavors and classes can be read",
    _fields,
)
QUEUE_EFFECT = Check(
    "queue-effect",
    "Does every field of queues, flavors and classes that is stated do something?",
    "every known field of queues, flavors and classes that is stated has its effect",
    _effect,
)
