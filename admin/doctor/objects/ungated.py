"""Checks of what queues reach: what namespaces say of it, and CronJobs, whose Jobs nothing can hold."""

from collections.abc import Iterator

import msgspec

from admin.doctor.check import Check
from admin.doctor.evidence import Evidence
from admin.doctor.finding import Finding, Verdict
from admin.doctor.karmada_kinds import CRON_JOBS
from admin.doctor.objects.gathered import Case, gathered
from admin.doctor.objects.seen import Seen, seen
from fairway.kube.objects import KubeStruct, RawResources, object_key
from fairway.names import DEFAULT_QUEUE, QUEUE, QUEUEING, SKIP
from fairway.scope import Queueing, Reach, asked_for
from queue_dispatcher.api.kinds import LOCAL_QUEUES
from queue_dispatcher.bindings.objects import RESOURCE_BINDINGS
from queue_dispatcher.cache.objects import NAMESPACES, TemplateObject


class _Resources(KubeStruct, frozen=True):
    limits: RawResources | None = None
    requests: RawResources | None = None


class _Container(KubeStruct, frozen=True):
    resources: _Resources = _Resources()


class _PodSpec(KubeStruct, frozen=True):
    containers: list[_Container] | None = None
    init_containers: list[_Container] | None = None


class _PodTemplate(KubeStruct, frozen=True):
    spec: _PodSpec = _PodSpec()


class _JobSpec(KubeStruct, frozen=True):
    template: _PodTemplate = _PodTemplate()


class _JobTemplate(KubeStruct, frozen=True):
    spec: _JobSpec = _JobSpec()


class _CronJobSpec(KubeStruct, frozen=True):
    """batch/v1 CronJobSpec, as far as what its pods ask for."""

    suspend: bool | None = None
    job_template: _JobTemplate = _JobTemplate()


def _cron_jobs(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, RESOURCE_BINDINGS)
    propagated = {
        (entry.binding.workload.namespace, entry.binding.workload.name)
        for entry in found.entries.values()
        if (entry.binding.workload.group, entry.binding.workload.kind) == ("batch", "CronJob")
    }
    asking = [
        object_key(one.metadata)
        for one in evidence.on_karmada().listed(CRON_JOBS)
        if (one.metadata.namespace, one.metadata.name) in propagated and _asks(one, found)
    ]
    yield from gathered((_PAST_THE_QUEUES, f"CronJob {key}") for key in sorted(asking))


_PAST_THE_QUEUES = Case(
    Verdict.ERROR,
    "its Jobs are made in the members, where they have no bindings: what they ask for is not held, and is "
    "charged to no quota",
    "have its Jobs made on Karmada's API server instead, suspend it, or let members refuse such CronJobs: "
    "manifests/webhook/accelerator-cronjobs.yaml",
)


def _asks(cron_job: TemplateObject, found: Seen) -> bool:
    metadata = cron_job.metadata
    if SKIP in (metadata.labels or ()) or SKIP in (metadata.annotations or ()):
        return False
    try:
        spec = msgspec.json.decode(cron_job.spec, type=_CronJobSpec)
    except msgspec.DecodeError:
        return False
    pod = spec.job_template.spec.template.spec
    containers = (*(pod.containers or ()), *(pod.init_containers or ()))
    asked = asked_for(
        requests for each in containers for requests in (each.resources.limits, each.resources.requests)
    )
    names_queue = QUEUE in (metadata.labels or ())
    return not spec.suspend and (names_queue or any(found.is_accelerator(name) for name in asked))


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
CRONJOBS_NOT_GATED = Check(
    "cronjobs-not-gated",
    "Does any CronJob use accelerators past the queues?",
    "no CronJob that is propagated asks for accelerators",
    _cron_jobs,
)
