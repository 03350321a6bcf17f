"""Volcano's Job: tasks of one template each, with minimums per task and for the whole job.

batch.volcano.sh/v1alpha1, Volcano 1.15. A missing minimum means all pods, of the task or of the job. Once the
minimum of the job is reached Volcano starts it; a minimum below what the tasks ask for overrules them.
"""

from fairway.kube.objects import KubeStruct
from fairway.workloads.fields import ABSENT, RawCount, TemplateFields, Unreadable, product
from fairway.workloads.minimums import shared_minimum
from fairway.workloads.network_topology import NetworkTopology, network_topology
from fairway.workloads.outline import Outline


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


class VolcanoFields(KubeStruct, frozen=True):
    """What Fairway looks at in a JobSpec of Volcano's."""

    min_available: RawCount = ABSENT
    tasks: list[_Task] | None = None
    network_topology: NetworkTopology | None = None


def read_volcano_job(of: Outline, spec: VolcanoFields) -> None:
    """A Volcano Job. Raises Unreadable."""
    if not spec.tasks:
        raise Unreadable("spec.tasks: expected at least one task, found none")
    for index, task in enumerate(spec.tasks):
        _add_task(of, task, index, f"spec.tasks[{index}]")
    counts = [task.count for task in of.pod_sets]
    least = [task.minimum for task in of.pod_sets]
    # Zero and absent are the same in the API: both mean what the tasks ask for.
    total = of.count(spec.min_available, "spec.minAvailable", 0) or sum(least)
    if total > sum(counts):
        of.problems.append(f"spec.minAvailable: {total} of {sum(counts)} pods; read as all of them")
    of.set_minimums(shared_minimum(total, counts, least))
    of.topology = network_topology(spec.network_topology, "spec.networkTopology", of.problems)


def _add_task(of: Outline, task: _Task, index: int, field: str) -> None:
    """The task with its own minimum; named as Karmada names its component."""
    count = of.count(task.replicas, f"{field}.replicas", 0)
    default, slice_size = count, 0
    policy = task.partition_policy
    if policy is not None:
        slice_size = of.count(policy.partition_size, f"{field}.partitionPolicy.partitionSize", 0)
        partitions = of.count(policy.min_partitions, f"{field}.partitionPolicy.minPartitions", 0)
        default = product(field, of.problems, partitions, slice_size) or count
    minimum = of.count(task.min_available, f"{field}.minAvailable", default)
    if minimum > count:
        of.problems.append(f"{field}.minAvailable: {minimum} of {count} pods; read as all of them")
    topology = network_topology(
        policy.network_topology if policy else None,
        f"{field}.partitionPolicy.networkTopology",
        of.problems,
        slice_size,
    )
    labels = {"volcano.sh/job-name": of.meta.name, "volcano.sh/task-spec": task.name}
    at = f"{field}.template"
    template = of.template(task.template, at, labels)
    of.add(task.name or f"task-{index}", count, template, at, minimum=min(minimum, count), topology=topology)
