"""The Job of Kubernetes itself: as many pods at a time as parallelism says.

batch/v1. Nothing in a Job says that its pods need each other, not even that it is indexed: an indexed Job is
as often a list of independent shards as a training run. So it is a gang only where annotations say so.
"""

import msgspec

from fairway.kube.objects import KubeStruct
from fairway.selectors import parse_int64
from fairway.workloads.fields import (
    ABSENT,
    NO_META,
    Problems,
    RawCount,
    TemplateFields,
    WorkloadMeta,
    decode,
    read_count,
    shown,
    template_at,
)
from fairway.workloads.gang import PodSet
from fairway.workloads.kueue import JOB_MINIMUM
from fairway.workloads.outline import Binding, Outline


class JobFields(KubeStruct, frozen=True):
    """What Fairway looks at in a JobSpec."""

    parallelism: RawCount = ABSENT
    completions: RawCount = ABSENT
    template: TemplateFields | None = None


class _Job(KubeStruct, frozen=True):
    metadata: WorkloadMeta | None = None
    spec: JobFields | None = None


_DECODER = msgspec.json.Decoder(_Job)
_TEMPLATE = "spec.template"


def read_job(raw: bytes, problems: Problems) -> Outline:
    """A Job. Raises Unreadable."""
    found = decode(_DECODER, raw)
    meta = found.metadata or NO_META
    spec = found.spec or JobFields()
    count = pods_at_a_time(spec, "spec", problems)
    labels = {"batch.kubernetes.io/job-name": meta.name, "job-name": meta.name}
    template = template_at(spec.template, _TEMPLATE, labels)
    pod_set = PodSet("main", count, _minimum(meta, count, problems), template)
    return Outline(meta, Binding.WHEN_SAID, (pod_set,), (_TEMPLATE,))


def pods_at_a_time(spec: JobFields, field: str, problems: Problems) -> int:
    """How many pods of a Job run at the same time: its parallelism, but never more than its completions."""
    parallelism = read_count(spec.parallelism, f"{field}.parallelism", 1, problems)
    return min(parallelism, read_count(spec.completions, f"{field}.completions", parallelism, problems))


def _minimum(meta: WorkloadMeta, count: int, problems: Problems) -> int:
    """With how many pods Kueue may admit the Job."""
    text = (meta.annotations or {}).get(JOB_MINIMUM)
    if text is None:
        return count
    minimum = parse_int64(text)
    if minimum is None or not 1 <= minimum <= count:
        problems.append(
            f"metadata.annotations[{JOB_MINIMUM}]: {shown(text)}: expected 1 to {count} pods; read as {count}"
        )
        return count
    return minimum
