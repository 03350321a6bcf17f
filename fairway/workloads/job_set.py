"""JobSet: replicated jobs, several copies of each, that make up one run.

jobset.x-k8s.io/v1alpha2, JobSet 0.12. All jobs are needed: the JobSet fails with the first of them. Exclusive
placement gives each job, not the JobSet, a whole topology domain (a TPU slice, a rack); it is stated on the
JobSet for all jobs or on the job template of a replicated job for its own.
"""

import msgspec

from fairway.kube.objects import KubeStruct
from fairway.kube.templates import TemplateMeta
from fairway.workloads.batch import JobFields, pods_at_a_time
from fairway.workloads.fields import (
    ABSENT,
    NO_META,
    Problems,
    RawCount,
    Unreadable,
    WorkloadMeta,
    decode,
    product,
    read_count,
    template_at,
)
from fairway.workloads.gang import PodSet, TopologyMode, TopologyRequest
from fairway.workloads.levels import read_level
from fairway.workloads.outline import Binding, Outline

EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"


class _JobTemplate(KubeStruct, frozen=True):
    metadata: TemplateMeta | None = None
    spec: JobFields | None = None


class _ReplicatedJob(KubeStruct, frozen=True):
    name: str = ""
    replicas: RawCount = ABSENT
    template: _JobTemplate | None = None


class _Spec(KubeStruct, frozen=True):
    replicated_jobs: list[_ReplicatedJob] | None = None


class _JobSet(KubeStruct, frozen=True):
    metadata: WorkloadMeta | None = None
    spec: _Spec | None = None


_DECODER = msgspec.json.Decoder(_JobSet)


def read_job_set(raw: bytes, problems: Problems) -> Outline:
    """A JobSet. Raises Unreadable."""
    found = decode(_DECODER, raw)
    meta = found.metadata or NO_META
    jobs = (found.spec or _Spec()).replicated_jobs
    if not jobs:
        raise Unreadable("spec.replicatedJobs: expected at least one job, found none")
    pod_sets = tuple(
        _pod_set(job, f"spec.replicatedJobs[{index}]", meta, problems) for index, job in enumerate(jobs)
    )
    fields = tuple(f"spec.replicatedJobs[{index}].template.spec.template" for index in range(len(jobs)))
    return Outline(meta, Binding.ALWAYS, pod_sets, fields)


def _pod_set(job: _ReplicatedJob, field: str, meta: WorkloadMeta, problems: Problems) -> PodSet:
    spec = (job.template or _JobTemplate()).spec or JobFields()
    each = pods_at_a_time(spec, f"{field}.template.spec", problems)
    replicas = read_count(job.replicas, f"{field}.replicas", 1, problems)
    count = product(field, problems, each, replicas)
    labels = {
        "jobset.sigs.k8s.io/jobset-name": meta.name,
        "jobset.sigs.k8s.io/replicatedjob-name": job.name,
    }
    template = template_at(spec.template, f"{field}.template.spec.template", labels)
    return PodSet(job.name, count, count, template, _exclusive(job, field, meta, each, problems))


def _exclusive(
    job: _ReplicatedJob, field: str, meta: WorkloadMeta, each: int, problems: Problems
) -> TopologyRequest | None:
    job_meta = (job.template or _JobTemplate()).metadata or TemplateMeta()
    for annotations, where in (
        (job_meta.annotations, f"{field}.template.metadata.annotations[{EXCLUSIVE}]"),
        (meta.annotations, f"metadata.annotations[{EXCLUSIVE}]"),
    ):
        level = (annotations or {}).get(EXCLUSIVE)
        if level is not None:
            return TopologyRequest(TopologyMode.EXCLUSIVE, read_level(level, where, problems), each)
    return None
