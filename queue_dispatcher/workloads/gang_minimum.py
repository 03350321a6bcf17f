"""What a gang scheduler has to read on the Jobs of a workload so that their pods start together. Pure.

Volcano and KAI make a PodGroup for the pods of a Job, of one pod at least: they start one by one unless the
Job that owns them says in an annotation how many have to start together. In a JobSet KAI takes as many as the
Job's parallelism for that, so that there it is told only where fewer do. So that is added, for the scheduler
that the pod template names; which one that is stays the tenant's word, since two schedulers on one node would
give its devices away twice.

Mirrors pkg/controllers/podgroup of Volcano 1.15 (since 1.12; the owner's annotations) and pkg/podgrouper of
KAI Scheduler 0.17 (of a Job since 0.15; of the job templates of a JobSet since 0.16). Kinds with controllers
that make PodGroups themselves need nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from fairway.kube.objects import KubeStruct
from fairway.workloads.gang import Gang, PodSet
from fairway.workloads.pod_groups import GROUP_MINIMUM, group_of
from queue_dispatcher.workloads.demand import Demand, Placed
from queue_dispatcher.workloads.placement import Placement
from queue_dispatcher.workloads.pod_template import KAI, PodTemplateFacts

KAI_MINIMUM: Final = "kai.scheduler/batch-min-member"
ANNOTATIONS: Final[Mapping[str, str]] = {"volcano": GROUP_MINIMUM, KAI: KAI_MINIMUM}
"""What a Job is annotated with, by the scheduler that its pods name."""
WORKLOAD: Final = "/metadata"
"""The pointer of a workload's own metadata."""
MAX_STATED_BYTES: Final = 64 << 10
"""Job templates with more annotations than this are told nothing: a policy would have to repeat them."""
_POD_SPEC: Final = "/spec/template/spec"


@dataclass(frozen=True, slots=True)
class GangMinimum:
    """That ``pods`` of each Job start together. ``pointer``: of the Job's metadata, as a JSON pointer.

    ``annotation``: which says so. ``stated``: the annotations of a job template; None where it has no
    metadata, and of the workload itself.
    """

    pointer: str
    annotation: str
    pods: int
    stated: tuple[tuple[str, str], ...] | None = None

    @property
    def path(self) -> str:
        """What is set, as a JSON pointer."""
        if self.pointer == WORKLOAD:
            return annotation_path(self.annotation)
        return self.pointer if self.stated is None else f"{self.pointer}/annotations"


@dataclass(frozen=True, slots=True)
class Together:
    """What Jobs are told in these clusters; in every cluster where none is named."""

    clusters: tuple[str, ...]
    minimums: tuple[GangMinimum, ...]


class _Metadata(KubeStruct, frozen=True):
    annotations: dict[str, str] | None = None


class _JobSpec(KubeStruct, frozen=True):
    parallelism: int | None = None
    completions: int | None = None
    backoff_limit: int | None = None
    pod_failure_policy: object = None


class _Job(KubeStruct, frozen=True):
    metadata: _Metadata | None = None
    spec: _JobSpec = _JobSpec()

    @property
    def parallelism(self) -> int:
        """How many pods run at a time at the most."""
        return 1 if self.spec.parallelism is None else self.spec.parallelism

    @property
    def takes_turns(self) -> bool:
        """Whether some of its pods run only after others are done."""
        return (self.spec.completions or 0) > self.parallelism

    @property
    def makes_none_anew(self) -> bool:
        """Whether it fails as a whole rather than make a pod again for one that failed or was evicted."""
        return self.spec.backoff_limit == 0 and self.spec.pod_failure_policy is None


class _ReplicatedJob(KubeStruct, frozen=True):
    replicas: int | None = None
    template: _Job = _Job()


class _SetSpec(KubeStruct, frozen=True):
    replicated_jobs: list[_ReplicatedJob] | None = None


class _JobSet(KubeStruct, frozen=True):
    spec: _SetSpec = _SetSpec()


_JOBS: Final = msgspec.json.Decoder(_Job)
_JOB_SETS: Final = msgspec.json.Decoder(_JobSet)


def annotation_path(annotation: str) -> str:
    """The JSON pointer of an annotation of a workload."""
    return f"{WORKLOAD}/annotations/{annotation.replace('~', '~0').replace('/', '~1')}"


def gang_minimums(
    group: str, raw: bytes, gang: Gang, templates: Sequence[PodTemplateFacts]
) -> tuple[GangMinimum, ...]:
    """What has to be told of the object ``raw``, JSON, with these pod ``templates``.

    Nothing of a Job that says it itself, nor of pods that name a PodGroup. Nor of a Job that works through
    more completions than run at a time, and KAI nothing of one that may make a pod anew: it counts pods that
    are done no more, so the last would wait for ever. Of several alike Jobs of which not all pods are needed,
    nobody can say how many of each are.
    """
    if not gang.is_gang:
        return ()
    try:
        owners = _owners(group, raw, gang)
    except (msgspec.DecodeError, RecursionError):
        return ()
    at = {template.pointer: template for template in templates}
    found = tuple(_minimums(gang, owners, at))
    stated = sum(len(key) + len(said) for one in found for key, said in one.stated or ())
    return found if stated <= MAX_STATED_BYTES else ()


def together(
    minimums: tuple[GangMinimum, ...], placement: Placement, demand: Demand, places: Sequence[Placed]
) -> Together | None:
    """What Jobs are told where the workload goes; None for nothing.

    ``places``: where it is released to; empty where Karmada chooses. Only clusters that get all of it: a
    share of what is divided would wait for pods that are elsewhere.
    """
    if not minimums:
        return None
    if placement.is_duplicated or demand.is_set or placement.max_clusters == 1:
        return Together((), minimums)
    if len(places) == 1 and places[0].replicas == demand.replicas:
        return Together((places[0].cluster,), minimums)
    return None


def _owners(group: str, raw: bytes, gang: Gang) -> list[tuple[str, _Job, int]]:
    """Of each pod set the pointer of its Jobs, these, and how many there are; empty for other kinds."""
    match group, gang.kind:
        case "batch", "Job":
            return [("", _JOBS.decode(raw), 1)]
        case "jobset.x-k8s.io", "JobSet":
            return [
                (
                    f"/spec/replicatedJobs/{index}/template",
                    job.template,
                    1 if job.replicas is None else job.replicas,
                )
                for index, job in enumerate(_JOB_SETS.decode(raw).spec.replicated_jobs or ())
            ]
        case _:
            return []


def _minimums(
    gang: Gang, owners: Sequence[tuple[str, _Job, int]], at: Mapping[str, PodTemplateFacts]
) -> Iterator[GangMinimum]:
    for pod_set, (pointer, job, jobs) in zip(gang.pod_sets, owners, strict=False):
        template = at.get(pointer + _POD_SPEC)
        annotation = ANNOTATIONS.get(template.scheduler) if template is not None else None
        if annotation is None or job.takes_turns or _is_grouped(pod_set):
            continue
        metadata = job.metadata
        annotations = (metadata.annotations or {}) if metadata is not None else {}
        pods = _of_each(pod_set, gang.copies, jobs)
        if annotation == KAI_MINIMUM and not _kai_lacks(job, pods, is_in_set=bool(pointer)):
            continue
        if pods > 1 and annotation not in annotations:
            # Karmada adds to those of the object itself whatever they are.
            stated = tuple(sorted(annotations.items())) if pointer and metadata is not None else None
            yield GangMinimum(pointer + WORKLOAD, annotation, pods, stated)


def _of_each(pod_set: PodSet, copies: int, jobs: int) -> int:
    """How many pods of each Job start together; 0 where nobody can say."""
    if jobs > 0 and pod_set.minimum == pod_set.count:
        return pod_set.count * copies // jobs
    return pod_set.minimum * copies if jobs == 1 else 0


def _kai_lacks(job: _Job, pods: int, *, is_in_set: bool) -> bool:
    """Whether KAI has to be told that so many pods of the Job start together, and can be.

    Of a Job in a JobSet it waits for as many as its parallelism by itself: only fewer are told.
    """
    return pods < job.parallelism if is_in_set else job.makes_none_anew


def _is_grouped(pod_set: PodSet) -> bool:
    """Whether its pods name a PodGroup, which then counts."""
    metadata = pod_set.template.metadata
    return bool(group_of(metadata.labels or {}, metadata.annotations or {}))
