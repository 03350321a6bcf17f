"""Volcano's Job: tasks of one template each, with minimums per task and for the whole job.

batch.volcano.sh/v1alpha1, Volcano 1.15. A missing minimum means all pods, of the task or of the job. Once the
minimum of the job is reached Volcano starts it; a minimum below what the tasks ask for overrules them.
"""

from dataclasses import replace

import msgspec

from fairway.kube.objects import KubeStruct
from fairway.workloads.fields import (
    ABSENT,
    NO_META,
    Problems,
    RawCount,
    TemplateFields,
    Unreadable,
    WorkloadMeta,
    decode,
    product,
    read_count,
    template_at,
)
from fairway.workloads.gang import PodSet
from fairway.workloads.minimums import shared_minimum
from fairway.workloads.network_topology import NetworkTopology, network_topology
from fairway.workloads.outline import Binding, Outline


class _Partitions(KubeStruct, frozen=True):
    partition_size: RawCount = ABSENT
    min_partitions: RawCount = ABSENT
    network_topology: NetworkTopology | None = None


class _Task(KubeStruct, frozen=True):
    name: str = ""
    replicas: RawCount = ABSENT
    min_available: RawCount = ABSENT
    template: TemplateFields | None = None
    partition_policy: _Partitions | None = None


class _Spec(KubeStruct, frozen=True):
    min_available: RawCount = ABSENT
    tasks: list[_Task] | None = None
    network_topology: NetworkTopology | None = None


class _Job(KubeStruct, frozen=True):
    metadata: WorkloadMeta | None = None
    spec: _Spec | None = None


_DECODER = msgspec.json.Decoder(_Job)


def read_volcano_job(raw: bytes, problems: Problems) -> Outline:
    """A Volcano Job. Raises Unreadable."""
    found = decode(_DECODER, raw)
    meta = found.metadata or NO_META
    spec = found.spec or _Spec()
    if not spec.tasks:
        raise Unreadable("spec.tasks: expected at least one task, found none")
    tasks = [
        _pod_set(task, index, f"spec.tasks[{index}]", meta, problems) for index, task in enumerate(spec.tasks)
    ]
    counts = [task.count for task in tasks]
    least = [task.minimum for task in tasks]
    # Zero and absent are the same in the API: both mean what the tasks ask for.
    total = read_count(spec.min_available, "spec.minAvailable", 0, problems) or sum(least)
    if total > sum(counts):
        problems.append(f"spec.minAvailable: {total} of {sum(counts)} pods; read as all of them")
    pod_sets = tuple(
        replace(task, minimum=minimum)
        for task, minimum in zip(tasks, shared_minimum(total, counts, least), strict=True)
    )
    fields = tuple(f"spec.tasks[{index}].template" for index in range(len(tasks)))
    topology = network_topology(spec.network_topology, "spec.networkTopology", problems)
    return Outline(meta, Binding.ALWAYS, pod_sets, fields, topology=topology)


def _pod_set(task: _Task, index: int, field: str, meta: WorkloadMeta, problems: Problems) -> PodSet:
    """The task with its own minimum; named as Karmada names its component."""
    count = read_count(task.replicas, f"{field}.replicas", 0, problems)
    default, slice_size = count, 0
    policy = task.partition_policy
    if policy is not None:
        slice_size = read_count(policy.partition_size, f"{field}.partitionPolicy.partitionSize", 0, problems)
        partitions = read_count(policy.min_partitions, f"{field}.partitionPolicy.minPartitions", 0, problems)
        default = product(field, problems, partitions, slice_size) or count
    minimum = read_count(task.min_available, f"{field}.minAvailable", default, problems)
    if minimum > count:
        problems.append(f"{field}.minAvailable: {minimum} of {count} pods; read as all of them")
    topology = network_topology(
        policy.network_topology if policy else None,
        f"{field}.partitionPolicy.networkTopology",
        problems,
        slice_size,
    )
    labels = {"volcano.sh/job-name": meta.name, "volcano.sh/task-spec": task.name}
    template = template_at(task.template, f"{field}.template", labels)
    return PodSet(task.name or f"task-{index}", count, min(minimum, count), template, topology)
