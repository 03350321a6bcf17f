"""Kubernetes' own kinds, all of one template: Deployment, ReplicaSet, StatefulSet, Job and Pod.

Nothing in them says that their pods need each other, not even that a Job is indexed: an indexed Job is as
often a list of independent shards as a training run. So they are gangs only where annotations say so. Kueue's
pod groups state their size on every pod, so such a Pod stands for a group of as many like it; the size of a
PodGroup stands elsewhere, and then only the Pod counts. apps/v1, batch/v1, core/v1.
"""

import msgspec

from fairway.kube.objects import KubeStruct
from fairway.kube.templates import TemplateMeta, TemplateSpec
from fairway.selectors import parse_int64
from fairway.workloads.fields import ABSENT, RawCount, TemplateFields, WorkloadMeta, shown
from fairway.workloads.kueue import JOB_MINIMUM, POD_GROUP_SIZE
from fairway.workloads.levels import read_size
from fairway.workloads.outline import Outline
from fairway.workloads.pod_groups import group_of

_TEMPLATE = "spec.template"


class ReplicaFields(KubeStruct, frozen=True):
    """What Fairway looks at in the spec of a Deployment, a ReplicaSet or a StatefulSet."""

    replicas: RawCount = ABSENT
    template: TemplateFields | None = None
    volume_claim_templates: list[msgspec.Raw] | None = None


class JobFields(KubeStruct, frozen=True):
    """What Fairway looks at in a JobSpec."""

    parallelism: RawCount = ABSENT
    completions: RawCount = ABSENT
    template: TemplateFields | None = None


def read_replicas(of: Outline, spec: ReplicaFields) -> None:
    """So many replicas of a template. Raises Unreadable."""
    if spec.volume_claim_templates:
        of.problems.append("spec.volumeClaimTemplates: where these volumes can be is not looked at")
    of.add(
        "main", of.count(spec.replicas, "spec.replicas", 1), of.template(spec.template, _TEMPLATE), _TEMPLATE
    )


def read_job(of: Outline, spec: JobFields) -> None:
    """A Job. Raises Unreadable."""
    count = pods_at_a_time(of, spec, "spec")
    labels = {"batch.kubernetes.io/job-name": of.meta.name, "job-name": of.meta.name}
    template = of.template(spec.template, _TEMPLATE, labels)
    of.add("main", count, template, _TEMPLATE, minimum=_job_minimum(of, count))


def read_pod(of: Outline, spec: TemplateSpec) -> None:
    """A Pod. Raises Unreadable."""
    meta = of.meta
    template = of.template(TemplateFields(TemplateMeta(meta.labels, meta.annotations), spec), "spec")
    of.add("main", _group_size(of), template, "")
    # The template is the object itself: what its annotations say, they say of the pods.
    of.meta = WorkloadMeta(meta.name, meta.namespace)


def pods_at_a_time(of: Outline, spec: JobFields, field: str) -> int:
    """How many pods of a Job run at the same time: its parallelism, but never more than its completions."""
    parallelism = of.count(spec.parallelism, f"{field}.parallelism", 1)
    return min(parallelism, of.count(spec.completions, f"{field}.completions", parallelism))


def _job_minimum(of: Outline, count: int) -> int:
    """With how many pods Kueue may admit the Job."""
    text = of.annotations.get(JOB_MINIMUM)
    if text is None:
        return count
    minimum = parse_int64(text)
    if minimum is None or not 1 <= minimum <= count:
        of.problems.append(
            f"metadata.annotations[{JOB_MINIMUM}]: {shown(text)}: expected 1 to {count} pods; read as {count}"
        )
        return count
    return minimum


def _group_size(of: Outline) -> int:
    group = group_of(of.meta.labels or {}, of.annotations)
    if not group:
        return 1
    text = of.annotations.get(POD_GROUP_SIZE)
    if text is None:
        of.problems.append(f"metadata: the size of group {group[:63]} is not stated here; read as 1 pod")
        return 1
    return read_size(text, f"metadata.annotations[{POD_GROUP_SIZE}]", of.problems) or 1
