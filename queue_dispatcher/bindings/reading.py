"""ResourceBindings as they come from the API server, reduced to `Binding`; never raises.

What is broken in the spec becomes a problem by field, and keeps the workload from being admitted; what is
broken elsewhere becomes a note. Everything that bindings have in common is one object for all of them.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

import msgspec

from fairway.names import ADMISSION, HELD_AT, QUEUE, REQUEUE, SERVICE_CLASS, SKIP
from fairway.scope import asked_for
from queue_dispatcher.bindings.annotation import Malformed, location
from queue_dispatcher.bindings.binding import (
    Binding,
    InPlace,
    PolicyReference,
    ScheduledCondition,
    WorkloadReference,
)
from queue_dispatcher.bindings.checks import read_answers
from queue_dispatcher.bindings.demand_spec import read_demand, read_placed
from queue_dispatcher.bindings.interning import Interner
from queue_dispatcher.bindings.objects import BindingSpec, BindingStatus, ResourceBinding
from queue_dispatcher.bindings.placement_spec import read_placement
from queue_dispatcher.bindings.progress import let_go_by, progress_of
from queue_dispatcher.bindings.record import AdmissionRecord, parse_record
from queue_dispatcher.bindings.requeue import RequeueRecord, parse_requeue
from queue_dispatcher.bindings.salvage import salvage
from queue_dispatcher.bindings.timestamp import parse_ms
from queue_dispatcher.workloads.demand import Demand, Placed
from queue_dispatcher.workloads.finished import RULES, GroupKind, Rule, is_finished
from queue_dispatcher.workloads.pausing import has_switch, is_still
from queue_dispatcher.workloads.placement import ANYWHERE, Placement, Stay
from queue_dispatcher.workloads.reclaimable import done_of, there_of

POLICY_NAMESPACE = "propagationpolicy.karmada.io/namespace"
POLICY_NAME = "propagationpolicy.karmada.io/name"
CLUSTER_POLICY_NAME = "clusterpropagationpolicy.karmada.io/name"

KARMADA_SCHEDULERS = frozenset(("default-scheduler",))
"""As karmada-scheduler is named unless it is told otherwise, and as whom it takes what names nobody."""

MAX_MESSAGE = 512
"""Of a condition's message, as many characters are kept."""

_SPECS = msgspec.json.Decoder(BindingSpec)
_STATUSES = msgspec.json.Decoder(BindingStatus)
_NO_SPEC = BindingSpec()
_NO_STATUS = BindingStatus()


class BindingReader:
    """Reads bindings; what they share is shared between all that one reader has read.

    ``schedulers``: the names of those that place what is released.
    """

    def __init__(
        self,
        rules: Mapping[GroupKind, Rule] = RULES,
        schedulers: Collection[str] = KARMADA_SCHEDULERS,
    ) -> None:
        self._rules = rules
        self._schedulers = frozenset(schedulers) | {""}
        self._interner = Interner()

    def read(self, stated: ResourceBinding) -> Binding:
        """The binding, reduced."""
        one = self._interner.one
        problems: list[str] = []
        notes: list[str] = []
        metadata = stated.metadata
        spec = salvage(stated.spec, _SPECS, _NO_SPEC, "spec", problems)
        status = salvage(stated.status, _STATUSES, _NO_STATUS, "status", notes)
        ours = metadata.annotations or {}
        said = {**ours, **(metadata.labels or {})}
        demand = read_demand(spec, problems)
        # A workload whose size or placement cannot be read is one all the same.
        is_workload = bool(spec.replicas > 0 or spec.replica_requirements or spec.components or problems)
        evicting = [task.from_cluster for task in spec.graceful_eviction_tasks or ()]
        scheduler = "" if spec.scheduler_name in ("", *KARMADA_SCHEDULERS) else one(spec.scheduler_name)
        placement = None if spec.placement is None else read_placement(spec.placement, evicting, scheduler)
        if placement is None and any(problem.startswith("spec.placement") for problem in problems):
            placement = ANYWHERE
        admission = parse_record(ours[ADMISSION]) if ADMISSION in ours else None
        requeue = parse_requeue(ours[REQUEUE]) if REQUEUE in ours else None
        notes += [a.problem for a in (admission, requeue) if isinstance(a, Malformed)]
        if isinstance(admission, AdmissionRecord):
            if admission.id != metadata.uid:
                notes.append(f"{location(ADMISSION)}: is of uid {admission.id[:63]}: treated as absent")
            admission = replace(
                admission,
                id=metadata.uid if admission.id == metadata.uid else admission.id,
                queue=one(admission.queue),
                local_queue=one(admission.local_queue),
                service_class=one(admission.service_class),
                requests=one(admission.requests),
                flavors=one(admission.flavors),
                components=one(admission.components),
                group=one(admission.group),
                decision=one(admission.decision),
            )
        workload = spec.resource
        is_held = bool(spec.suspension and spec.suspension.scheduling)
        placed = one(read_placed(spec.clusters))
        group = workload.api_version.rpartition("/")[0]
        finished = one(self._finished(spec, status))
        suspended = None
        is_admitted = isinstance(admission, AdmissionRecord) and admission.id == metadata.uid
        if placement is not None and is_held and not is_admitted and isinstance(requeue, RequeueRecord):
            suspended = _in_place(
                requeue, placement, placed, finished, (group, workload.kind), demand, status
            )
        if suspended is not None and placement is not None:
            placed = ()
            stay = suspended.by
            placement = replace(placement, stay=Stay(stay.cluster, one(stay.flavors)))
        return Binding(
            uid=metadata.uid,
            namespace=one(metadata.namespace),
            name=metadata.name,
            resource_version=metadata.resource_version,
            generation=metadata.generation,
            created_ms=parse_ms(metadata.creation_timestamp or "") or 0,
            workload=WorkloadReference(
                one(workload.api_version),
                one(workload.kind),
                one(workload.namespace),
                workload.name,
                workload.uid,
            ),
            demand=one(demand),
            resources=one(_resources(spec)),
            is_workload=is_workload,
            placement=None if placement is None else one(placement),
            placed=placed,
            finished=finished,
            is_endless=(group, workload.kind) not in self._rules,
            is_held=is_held,
            is_preserved=bool(spec.preserve_resources_on_deletion),
            is_deleting=metadata.deletion_timestamp is not None,
            is_skipped=SKIP in said,
            queue=one(said.get(QUEUE, "")),
            names_queue=QUEUE in said,
            gated_ms=(parse_ms(ours[HELD_AT]) or 0) if HELD_AT in ours else None,
            service_class=one(said.get(SERVICE_CLASS, "")),
            policy=self._policy(said),
            schedule_priority=spec.schedule_priority.priority if spec.schedule_priority else None,
            observed_generation=status.scheduler_observed_generation,
            scheduled=self._scheduled(status),
            admission=admission,
            requeue=requeue,
            checks=one(read_answers(ours)),
            problems=tuple(problems),
            notes=tuple(notes),
            foreign_scheduler="" if spec.scheduler_name in self._schedulers else one(spec.scheduler_name),
            progress=one(progress_of(group, workload.kind, demand, placed, status, spec.suspension)),
            let_go_by="" if is_held or admission else one(let_go_by(metadata.managed_fields)),
            suspended=suspended,
        )

    def _scheduled(self, status: BindingStatus) -> ScheduledCondition | None:
        for condition in status.conditions or ():
            if condition.type == "Scheduled":
                # Not as a whole: each has a time of its own, and would only push others out.
                return ScheduledCondition(
                    is_scheduled=condition.status == "True",
                    reason=self._interner.one(condition.reason),
                    message=self._interner.one(condition.message[:MAX_MESSAGE]),
                    changed_ms=parse_ms(condition.last_transition_time) or 0,
                )
        return None

    def _policy(self, said: Mapping[str, str]) -> PolicyReference | None:
        if POLICY_NAME in said:
            return self._interner.one(PolicyReference(said.get(POLICY_NAMESPACE, ""), said[POLICY_NAME]))
        if CLUSTER_POLICY_NAME in said:
            return self._interner.one(PolicyReference("", said[CLUSTER_POLICY_NAME]))
        return None

    def _finished(self, spec: BindingSpec, status: BindingStatus) -> frozenset[str]:
        group, kind = spec.resource.api_version.rpartition("/")[0], spec.resource.kind
        if (group, kind) not in self._rules:
            return frozenset()
        return frozenset(
            item.cluster_name
            for item in status.aggregated_status or ()
            if is_finished(group, kind, item.status, self._rules)
        )


def _in_place(
    requeue: RequeueRecord,
    placement: Placement,
    placed: tuple[Placed, ...],
    finished: Collection[str],
    kind: GroupKind,
    demand: Demand,
    status: BindingStatus,
) -> InPlace | None:
    """How it is suspended; None where Karmada, or somebody else, has placed it otherwise, or it has ended, or
    by a placement that copies it there would be pods of it, here or elsewhere.

    What has a switch stays placed, and has all its pods until its cluster says that it has none.
    """
    stay = requeue.suspended
    if stay is None or stay.cluster in finished or [share.cluster for share in placed] != [stay.cluster]:
        return None
    reports = [one.status for one in status.aggregated_status or () if one.cluster_name == stay.cluster]
    if has_switch(*kind):
        if (demand.is_set or placement.is_duplicated) and placement.max_clusters != 1:
            return None
        leaving = 0 if any(is_still(*kind, report) for report in reports) else demand.replicas
        return InPlace(stay, leaving, True, placement)
    if placement.is_duplicated or placed[0].replicas:
        return None
    leaving = sum(there_of(*kind, report) for report in reports)
    has_done = any(done_of(*kind, stay.cluster, report) for report in reports)
    return InPlace(stay, leaving, has_done, placement)


def _resources(spec: BindingSpec) -> frozenset[str]:
    parts = [spec.replica_requirements, *(part.replica_requirements for part in spec.components or ())]
    return asked_for(part.resource_request for part in parts if part is not None)
