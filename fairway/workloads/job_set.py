"""JobSet: replicated jobs, several copies of each, that make up one run.

jobset.x-k8s.io/v1alpha2, JobSet 0.12. All jobs are needed: the JobSet fails with the first of them. Exclusive
placement gives each job, not the JobSet, a whole topology domain (a TPU slice, a rack); it is stated on the
JobSet for all jobs or on the job template of a replicated job for its own.
"""

from fairway.kube.objects import KubeStruct
from fairway.kube.templates import TemplateMeta
from fairway.workloads.fields import ABSENT, RawCount, Unreadable, product
from fairway.workloads.gang import TopologyMode, TopologyRequest
from fairway.workloads.levels import read_level
from fairway.workloads.outline import Outline
from fairway.workloads.replicated import JobFields, pods_at_a_time

EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"


class _JobTemplate(KubeStruct, frozen=True):
    metadata: TemplateMeta | None = None
    spec: JobFields | None = None


class _ReplicatedJob(KubeStruct, frozen=True):
    name: str = ""
    replicas: RawCount = ABSENT
    template: _JobTemplate | None = None


class JobSetFields(KubeStruct, frozen=True):
    """What Fairway looks at in a JobSetSpec."""

    replicated_jobs: list[_ReplicatedJob] | None = None


def read_job_set(of: Outline, spec: JobSetFields) -> None:
    """A JobSet. Raises Unreadable."""
    if not spec.replicated_jobs:
        raise Unreadable("spec.replicatedJobs: expected at least one job, found none")
    for index, job in enumerate(spec.replicated_jobs):
        field = f"spec.replicatedJobs[{index}]"
        of_job = job.template or _JobTemplate()
        fields = of_job.spec or JobFields()
        each = pods_at_a_time(of, fields, f"{field}.template.spec")
        count = product(field, of.problems, each, of.count(job.replicas, f"{field}.replicas", 1))
        labels = {
            "jobset.sigs.k8s.io/jobset-name": of.meta.name,
            "jobset.sigs.k8s.io/replicatedjob-name": job.name,
        }
        at = f"{field}.template.spec.template"
        template = of.template(fields.template, at, labels)
        exclusive = _exclusive(of, of_job.metadata or TemplateMeta(), f"{field}.template.", each)
        of.add(job.name, count, template, at, topology=exclusive)


def _exclusive(of: Outline, job: TemplateMeta, field: str, each: int) -> TopologyRequest | None:
    for annotations, where in ((job.annotations or {}, field), (of.annotations, "")):
        if EXCLUSIVE in annotations:
            level = read_level(
                annotations[EXCLUSIVE], f"{where}metadata.annotations[{EXCLUSIVE}]", of.problems
            )
            return TopologyRequest(TopologyMode.EXCLUSIVE, level, each)
    return None
