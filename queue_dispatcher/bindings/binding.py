"""A binding as the dispatcher remembers it: Karmada's decision about one workload, reduced.

One `Binding` per ResourceBinding or ClusterResourceBinding, of which there may be 100,000, so what many have
in common (demand, placement, queue names, clusters) is one object for all of them, and the status of the
workload, which can be long, is reduced to the names of the clusters where it has finished. `BindingReader`
in `queue_dispatcher.bindings.reading` makes them.
"""

from dataclasses import dataclass
from enum import StrEnum

from fairway.scope import Subject
from queue_dispatcher.bindings.annotation import Malformed
from queue_dispatcher.bindings.checks import NO_ANSWERS, Answer
from queue_dispatcher.bindings.progress import ALL_RUNS, Progress
from queue_dispatcher.bindings.record import AdmissionRecord
from queue_dispatcher.bindings.requeue import Cause, RequeueRecord, Suspended
from queue_dispatcher.workloads.demand import NOTHING, Demand, Placed
from queue_dispatcher.workloads.placement import Placement


@dataclass(frozen=True, slots=True)
class WorkloadReference:
    """The template that the binding is about; ``namespace`` empty for a cluster-scoped one."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str = ""

    @property
    def group(self) -> str:
        """The API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class PolicyReference:
    """The policy that propagates the workload; ``namespace`` empty for a ClusterPropagationPolicy."""

    namespace: str
    name: str


class SchedulingReason(StrEnum):
    """Reasons of Karmada's condition Scheduled that mean different things to do."""

    SUCCESS = "Success"
    UNSCHEDULABLE = "Unschedulable"
    """No room: tried again by Karmada only every five minutes, so worth a kick when there is."""
    NO_CLUSTER_FIT = "NoClusterFit"
    """The placement allows no cluster: not tried again until something changes."""
    SCHEDULER_ERROR = "SchedulerError"
    QUOTA_EXCEEDED = "QuotaExceeded"
    """A FederatedResourceQuota of Karmada's own."""


@dataclass(frozen=True, slots=True)
class ScheduledCondition:
    """Karmada's condition ``Scheduled``.

    It stays as it was while a binding is held, and its time changes only with its status, so it may be about
    an earlier try. ``changed_ms``: epoch milliseconds, whole seconds, 0 where it cannot be read.
    """

    is_scheduled: bool
    reason: str
    message: str
    changed_ms: int


@dataclass(frozen=True, slots=True)
class InPlace:
    """Suspended in a cluster, as its requeue record says. ``leaving``: how many of its pods are still there
    by the last report; ``has_done``: whether any has succeeded. ``elsewhere``: its placement by its policy.
    """

    by: Suspended
    leaving: int
    has_done: bool
    elsewhere: Placement


@dataclass(frozen=True, slots=True)
class Binding:
    """A ResourceBinding, or with an empty ``namespace`` a ClusterResourceBinding.

    ``created_ms``: epoch milliseconds, 0 where it cannot be read. ``observed_generation``: the generation
    that Karmada's scheduler has dealt with; it moves only while the binding is not held. ``queue``,
    ``service_class``: as stated on the binding itself. ``names_queue``: whether it states a queue, be it an
    empty one. ``resources``: of which it asks for more than none, or may. ``gated_ms``: when the gate held
    it, 0 where that is not said, None where it did not. ``placement``: None for what is not scheduled but
    only follows another binding. ``is_held``: ``spec.suspension.scheduling`` is true. ``is_preserved``: what
    is placed stays in the cluster when the binding lets go of it. ``finished``: clusters where the workload
    has come to its end; ``is_endless``: its kind never does by itself. ``admission``, ``requeue``: our
    annotations, None where absent. ``checks``: what others say of whether it may be admitted.
    ``problems``: what in the spec cannot be understood, by field; such a workload is not admitted.
    ``notes``: what else is wrong. ``foreign_scheduler``: who is to place it, where that is none of Karmada's.
    ``progress``: what members report of what is placed; ``let_go_by``: whoever else cleared the hold of what
    was never admitted. ``suspended``: how it is suspended in a cluster; then none of it is ``placed``, and
    its ``placement`` permits that cluster alone.
    """

    uid: str
    namespace: str
    name: str
    resource_version: str
    generation: int
    created_ms: int
    workload: WorkloadReference
    demand: Demand = NOTHING
    resources: frozenset[str] = frozenset()
    is_workload: bool = False
    placement: Placement | None = None
    placed: tuple[Placed, ...] = ()
    finished: frozenset[str] = frozenset()
    is_endless: bool = False
    is_held: bool = False
    is_preserved: bool = False
    is_deleting: bool = False
    is_skipped: bool = False
    queue: str = ""
    names_queue: bool = False
    gated_ms: int | None = None
    service_class: str = ""
    policy: PolicyReference | None = None
    schedule_priority: int | None = None
    observed_generation: int = 0
    scheduled: ScheduledCondition | None = None
    admission: AdmissionRecord | Malformed | None = None
    requeue: RequeueRecord | Malformed | None = None
    checks: tuple[Answer, ...] = NO_ANSWERS
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    foreign_scheduler: str = ""
    progress: Progress = ALL_RUNS
    let_go_by: str = ""
    suspended: InPlace | None = None

    @property
    def key(self) -> str:
        """``namespace/name``, or just ``name``; as `fairway.kube.objects.object_key`."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def subject(self) -> Subject:
        """What decides whether it waits in a queue."""
        workload = self.workload
        return Subject(self.names_queue, workload.kind, workload.group, self.resources)

    @property
    def preempted(self) -> RequeueRecord | None:
        """The requeue record of what was displaced for another one; None of all else."""
        requeue = self.requeue
        if isinstance(requeue, RequeueRecord) and requeue.cause is Cause.PREEMPTED:
            return requeue
        return None

    @property
    def is_held_by_us(self) -> bool:
        """Whether the gate, or the dispatcher, has held it and says so."""
        return self.is_held and (self.gated_ms is not None or self.requeue is not None)

    @property
    def is_settled(self) -> bool:
        """Whether Karmada's scheduler has dealt with the binding as it is now.

        Until then it may still overwrite what we write. A held binding never becomes settled.
        """
        return self.observed_generation == self.generation

    @property
    def record(self) -> AdmissionRecord | None:
        """The admission record, if it can be read and is of this very binding."""
        admission = self.admission
        return admission if isinstance(admission, AdmissionRecord) and admission.id == self.uid else None

    @property
    def is_refused(self) -> bool:
        """Whether the last that Karmada said is that it found no place, be it in this try or in one before.

        It says so only once: the condition of a second try in vain is the same, so nothing is written.
        """
        return self.scheduled is not None and not self.scheduled.is_scheduled

    def copies(self, expected: int) -> int:
        """How many clusters get all of the workload: as expected, or more if there are more; 1 if divided."""
        if self.demand.is_set or (self.placement is not None and self.placement.is_duplicated):
            return max(1, expected, len(self.placed))
        return 1
