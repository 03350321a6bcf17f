"""Check of what makes accelerator workloads where nothing holds them: CronJobs, whose Jobs arise in members.

Karmada sees no pods of a CronJob, so its binding is never held, and what it makes in its clusters was never
on karmada-apiserver. Whoever may propagate one has a way around every queue.
"""

from collections.abc import Iterator

import msgspec

from admin.doctor.check import Check
from admin.doctor.evidence import Evidence
from admin.doctor.finding import Finding, Verdict
from admin.doctor.karmada_kinds import CRON_JOBS, WorkloadObject
from admin.doctor.objects.gathered import Case, gathered
from admin.doctor.objects.seen import Seen, seen
from fairway.kube.objects import KubeStruct, object_key
from fairway.names import QUEUE, SKIP
from fairway.resources import ResourceError, pod_template_request
from fairway.workloads.fields import WorkloadMeta
from fairway.workloads.gang import Gang
from fairway.workloads.registry import read_parts
from queue_dispatcher.bindings.objects import CLUSTER_RESOURCE_BINDINGS, NULL, RESOURCE_BINDINGS
from queue_dispatcher.cache.templates import template_key


class _JobTemplate(KubeStruct, frozen=True):
    spec: msgspec.Raw = NULL


class _Spec(KubeStruct, frozen=True):
    job_template: _JobTemplate = _JobTemplate()
    suspend: bool | None = None


_SPECS = msgspec.json.Decoder(_Spec)
_REMEDY = (
    "submit Jobs to Karmada at these times instead, from a CronJob outside of its policies; or let members "
    "refuse such CronJobs: manifests/webhook/accelerator-cronjobs.yaml"
)


def _cron_jobs(evidence: Evidence) -> Iterator[Finding]:
    found = seen(evidence, RESOURCE_BINDINGS, CLUSTER_RESOURCE_BINDINGS)
    spread = {
        template_key(entry.binding.workload)
        for entry in found.entries.values()
        if (entry.binding.workload.group, entry.binding.workload.kind) == ("batch", "CronJob")
    }
    if not spread:
        return
    yield from gathered(
        (case, f"CronJob {object_key(one.metadata)}")
        for one in evidence.on_karmada().listed(CRON_JOBS)
        if object_key(one.metadata) in spread
        for case in _case(one, found)
    )


def _case(cron_job: WorkloadObject, found: Seen) -> Iterator[Case]:
    labels = cron_job.metadata.labels or {}
    if SKIP in labels or SKIP in (cron_job.metadata.annotations or {}):
        return
    devices, named = _accelerators(cron_job, found), labels.get(QUEUE, "")
    if devices:
        yield Case(
            Verdict.ERROR,
            f"asks for {', '.join(devices)} in the Jobs that it makes in its clusters: they are never held "
            "and charged to no quota",
            _REMEDY,
        )
    elif named:
        yield Case(
            Verdict.WARNING,
            f"names queue {named[:253]}, and is not gated: the Jobs that it makes in its clusters pass "
            f"that queue",
            _REMEDY,
        )


def _accelerators(cron_job: WorkloadObject, found: Seen) -> list[str]:
    try:
        spec = _SPECS.decode(cron_job.spec)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []
    gang = read_parts("Job", "batch/v1", WorkloadMeta(), spec.job_template.spec)
    if spec.suspend or not isinstance(gang, Gang):
        return []
    names: set[str] = set()
    for pods in gang.pod_sets:
        try:
            names.update(name for name, amount in pod_template_request(pods.template.spec).items() if amount)
        except ResourceError:
            continue
    return sorted(name for name in names if found.is_accelerator(name))


WORKLOADS_UNGATED = Check(
    "workloads-ungated",
    "Does anything make accelerator workloads past the queues?",
    "nothing makes accelerator workloads past the queues",
    _cron_jobs,
)
