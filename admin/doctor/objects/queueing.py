"""Check of what namespaces say of how far queues reach into them."""

from collections.abc import Iterator

from admin.doctor.check import Check
from admin.doctor.evidence import Evidence
from admin.doctor.finding import Finding, Verdict
from admin.doctor.objects.seen import Seen, seen
from fairway.names import DEFAULT_QUEUE, QUEUEING
from fairway.scope import Queueing, Reach
from queue_dispatcher.api.kinds import LOCAL_QUEUES
from queue_dispatcher.bindings.objects import RESOURCE_BINDINGS
from queue_dispatcher.cache.objects import NAMESPACES


def _namespaces(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, NAMESPACES, LOCAL_QUEUES, RESOURCE_BINDINGS)
    scope = found.scope
    queued = {local.namespace for local in found.cache.queues.queues.local_queues.values()}
    for name, facts in found.cache.queues.known_namespaces.values.items():
        stated = facts.queueing
        if stated and stated not in set(Queueing):
            yield Finding(
                Verdict.ERROR,
                f"Namespace {name}",
                f"metadata.labels[{QUEUEING}]: {stated[:63]}: expected {', '.join(Queueing)}; it counts as "
                "if it were not there",
                f"kubectl label namespace {name} --overwrite {QUEUEING}={Queueing.ENABLED}",
            )
        elif stated and name not in queued and _gates_any(found, name, scope.reach(stated)):
            yield Finding(
                Verdict.WARNING,
                f"Namespace {name}",
                f"metadata.labels[{QUEUEING}]: {stated}, and it has no LocalQueue: what is held there waits "
                "until it has one",
                f"create a LocalQueue in it, and name it as the default: {DEFAULT_QUEUE}",
            )


def _gates_any(found: Seen, namespace: str, reach: Reach) -> bool:
    """Whether the gate would hold any of what the namespace has by now."""
    return any(
        entry.binding.is_workload and found.scope.gates(entry.binding.subject, reach)
        for entry in found.entries.values()
        if entry.binding.namespace == namespace
    )


NAMESPACES_QUEUEING = Check(
    "namespaces-queueing",
    "Do namespaces say in words that count how far queues reach, and have those a queue that are reached?",
    "every namespace that says how far queues reach is understood, and has a queue where it needs one",
    _namespaces,
)
