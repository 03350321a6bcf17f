"""What is written for each purpose, and whether the binding still calls for it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from queue_dispatcher.bindings import patches
from queue_dispatcher.bindings.admission import admission_record, placed_flavors
from queue_dispatcher.bindings.override_policy import override_policy, policy_path
from queue_dispatcher.bindings.phase import Moment, began_day_ms, placed_replicas
from queue_dispatcher.bindings.record import AdmissionRecord
from queue_dispatcher.bindings.requeue import Cause, RequeueRecord
from queue_dispatcher.bindings.state import (
    Admitted,
    Adopted,
    Growing,
    HeldWithin,
    Pending,
    Reassert,
    Shrinking,
)
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.checks import may_start, retried, why_retried
from queue_dispatcher.cache.claims import stopped_ms
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.items import promised_to
from queue_dispatcher.cache.running import is_placed
from queue_dispatcher.preemption.pause import in_a_row, pause_ms
from queue_dispatcher.turn.evictions import eviction_of, has_begun_late, is_dealt_with
from queue_dispatcher.turn.lost import to_take_off, why_lost
from queue_dispatcher.turn.overdue import why_overdue
from queue_dispatcher.turn.shrinking import lowering, still_yields
from queue_dispatcher.turn.suspending import gives_up, place_kept, waits_on
from queue_dispatcher.turn.switching import switched
from queue_dispatcher.turn.taking_back import why_taken_back
from queue_dispatcher.turn.writes import Companion, Purpose
from queue_dispatcher.workloads.choice import Choice
from queue_dispatcher.workloads.demand import Placed
from queue_dispatcher.workloads.elastic import sized
from queue_dispatcher.workloads.gang_minimum import Together, together
from queue_dispatcher.workloads.queue_of import Resolved

_KEEP: Final = "keep its pods on the nodes of a flavor"
_LET: Final = "stop an older policy from keeping its pods on the nodes of a flavor"


def body_of(cache: Cache, entry: Entry, purpose: Purpose, now: Moment) -> Mapping[str, object] | None:
    """The patch for the entry as it is known now; None if it does not call for it, or no more."""
    binding, state = entry.binding, entry.state
    match purpose:
        case Purpose.ADMIT:
            return _admission(cache, entry)
        case Purpose.CLEAR_HOLD if isinstance(state, HeldWithin):
            return patches.clear_hold(binding, state.record)
        case Purpose.SHRINK if isinstance(state, Shrinking):
            return patches.shrink(binding, state.record, state.places)
        case Purpose.YIELD if isinstance(state, Admitted) and still_yields(cache, entry):
            return lowering(entry, now)
        case Purpose.REASSERT if isinstance(state, Reassert):
            return patches.clear(binding)
        case Purpose.ADOPT if isinstance(state, Adopted) and state.restore:
            return _adoption(cache, entry, state, now.day_ms)
        case Purpose.TAKE_BACK if isinstance(state, Admitted | Growing):
            return _take_back(cache, entry, state, now)
        case Purpose.TAKE_BACK_LOST if isinstance(state, Admitted | Growing):
            return _take_back_lost(cache, entry, state, now)
        case Purpose.EVICT if isinstance(state, Admitted | Growing):
            return _evict(cache, entry, state, now)
        case Purpose.WAIT_ON:
            return waits_on(cache, entry, now)
        case Purpose.GIVE_UP:
            return gives_up(cache, entry, now)
        case Purpose.BEGAN if isinstance(state, Admitted) and has_begun_late(entry, now):
            began_ms = began_day_ms(binding, entry.seen, now) or state.record.admitted_ms
            return patches.began(binding, replace(state.record, began_ms=began_ms))
        case Purpose.LEAVE_LOST if isinstance(state, Admitted):
            loss = to_take_off(cache, entry, now)
            return patches.leave(binding, loss.stays) if loss is not None and loss.stays else None
        case Purpose.TAKE_BACK_GROWTH if isinstance(state, Admitted):
            return _take_back_growth(entry, state, now)
        case Purpose.RETRY_CHECK if isinstance(state, Pending):
            return _retry_check(cache, entry, state, now)
        case Purpose.STARTED if isinstance(state, Admitted) and is_placed(entry):
            return patches.started(binding, replace(state.record, tries=0))
        case Purpose.KICK if isinstance(state, Admitted) and entry.uid in cache.running.parked:
            return patches.hold(binding)
        case _:
            return None


def _admission(cache: Cache, entry: Entry) -> Mapping[str, object] | None:
    admission, record = entry.admission, entry.record
    if admission is None or record is None:
        return None
    is_begun = bool(admission.released)
    if admission.is_off and not is_begun:
        return None
    for uid in (entry.uid,) if is_begun else admission.records:
        member = cache.present(uid)
        if member is None:
            return None
        cache.refresh(member)
        is_forward = uid in cache.forward
        if not _still_wants(member, admission.records[uid], is_forward=is_forward):
            return None
        if not is_forward and not _is_approved(cache, member):
            return None
        if uid in admission.choices and not _may_go(cache, member, admission.choices[uid]):
            return None
    choice = admission.choices.get(entry.uid)
    places = choice.places if choice is not None else ()
    stay = entry.binding.suspended
    if stay is not None and not places:
        # Nobody has said that there is room, and it can go on there alone.
        places = (Placed(stay.by.cluster, 0 if entry.binding.demand.is_set else record.replicas),)
    if admission.item.pods and (choice is None or not _stays(entry, choice)):
        return None
    if admission.item.pods and record.replicas < entry.binding.demand.replicas:
        return patches.resize(entry.binding, record, places)
    return patches.admit(entry.binding, record, places)


def _take_back(
    cache: Cache, entry: Entry, state: Admitted | Growing, now: Moment
) -> Mapping[str, object] | None:
    promised, record, reason = promised_to(entry), state.record, why_taken_back(cache, entry, now)
    if record is None or reason is None:
        return None
    count = record.tries + 1
    not_before_ms = now.day_ms + promised.backoff_ms(count)
    requeue = RequeueRecord(count, not_before_ms, record.enqueued_ms, reason, displaced=record.displaced)
    if entry.binding.placed:
        return patches.stop(entry.binding, requeue)
    return patches.take_back(entry.binding, requeue)


def _take_back_lost(
    cache: Cache, entry: Entry, state: Admitted | Growing, now: Moment
) -> Mapping[str, object] | None:
    loss, record = to_take_off(cache, entry, now), state.record
    if loss is None or loss.stays or record is None:
        return None
    # It is none of its failures: due at once, and its tries are as many as before.
    why = why_lost(cache, loss, now)
    requeue = RequeueRecord(record.tries, now.day_ms, record.enqueued_ms, why, displaced=record.displaced)
    return patches.stop(entry.binding, requeue)


def _evict(cache: Cache, entry: Entry, state: Admitted | Growing, now: Moment) -> Mapping[str, object] | None:
    found, record = eviction_of(cache, entry, now), state.record
    if found is None or record is None or not is_dealt_with(entry):
        return None
    count, not_before_ms, displaced = record.tries, now.day_ms, record.displaced
    if found.cause is Cause.FAILED:
        count += 1
        not_before_ms += promised_to(entry).backoff_ms(count)
    if found.cause is Cause.PREEMPTED:
        began_ms = began_day_ms(entry.binding, entry.seen, now)
        displaced = in_a_row(displaced, now.day_ms - began_ms if began_ms is not None else 0)
        not_before_ms += pause_ms(displaced)
    stay = place_kept(cache, entry, found.cause, not_before_ms)
    why, cause = found.reason, found.cause
    requeue = RequeueRecord(count, not_before_ms, record.enqueued_ms, why, cause, found.by, stay, displaced)
    return patches.stop(entry.binding, requeue) if stay is None else patches.suspend(entry.binding, requeue)


def _retry_check(cache: Cache, entry: Entry, state: Pending, now: Moment) -> Mapping[str, object] | None:
    queue = cache.queues.queues.cluster_queues.get(state.queue.cluster_queue)
    answers = retried(entry, queue.checks) if queue is not None else []
    if not answers or entry.uid not in cache.checks.retries:
        return None
    count = state.tries + 1
    not_before_ms = now.day_ms + promised_to(entry).backoff_ms(count)
    in_place, requeued = entry.binding.suspended, entry.binding.requeue
    requeue = RequeueRecord(
        count,
        not_before_ms,
        state.enqueued_ms,
        why_retried(answers[0]),
        suspended=in_place.by if in_place is not None else None,
        displaced=requeued.displaced if isinstance(requeued, RequeueRecord) else 0,
    )
    preempted = entry.binding.preempted
    if preempted is not None:
        # It is known still for whom its room is.
        requeue = replace(requeue, cause=preempted.cause, by=preempted.by, stopped_ms=stopped_ms(preempted))
    return patches.ask_again(entry.binding, requeue, [one.check for one in answers])


def _take_back_growth(entry: Entry, state: Admitted, now: Moment) -> Mapping[str, object] | None:
    binding, promised = entry.binding, promised_to(entry)
    reason = why_overdue(binding, entry.seen, state, promised.start_timeout_ms, now)
    if reason is None or not binding.placed:
        return None
    count = state.record.tries + 1
    placed = replace(
        state.record,
        replicas=placed_replicas(binding),
        copies=binding.copies(1),
        requests=binding.demand.held(binding.placed),
        tries=count,
        not_before_ms=now.day_ms + promised.backoff_ms(count),
    )
    return patches.take_back_growth(binding, placed)


def companion_of(cache: Cache, entry: Entry, purpose: Purpose) -> Companion | None:
    """The policy that has to be there, or gone, before the write is made, or instead of one."""
    match purpose:
        case Purpose.ADMIT:
            return _guiding(cache, entry)
        case Purpose.SWITCH:
            return switched(cache, entry)
        case _:
            return None


def _guiding(cache: Cache, entry: Entry) -> Companion | None:
    """The policy that has to be there, or gone, before the entry is released.

    What was released before and taken back may have one of that time, and so may what was about to be when
    its leader died; it would guide it elsewhere, or keep it on the nodes of another flavor.
    """
    binding, admission = entry.binding, entry.admission
    # What is suspended goes on with the pods that it has been told of.
    if not binding.namespace or binding.placed or binding.suspended is not None:
        return None
    choice = admission.choices.get(entry.uid) if admission is not None else None
    guidance = choice.guidance if choice is not None else ()
    kept = admission.kept.get(entry.uid, ()) if admission is not None else ()
    told = _together(cache, entry, choice)
    if guidance or kept or told is not None:
        policy = override_policy(binding, guidance, kept, told)
        return Companion(policy_path(binding), policy, _KEEP if kept else "")
    is_there = binding.requeue is not None or cache.overrides.has_ours(binding)
    return Companion(policy_path(binding), None, _LET if cache.shapes.are_kept else "") if is_there else None


def _together(cache: Cache, entry: Entry, choice: Choice | None) -> Together | None:
    """How many of its pods start together, where their scheduler has to be told; None where somebody else's
    policies may tell it.
    """
    binding, minimums = entry.binding, entry.facts.minimums
    if binding.placement is None or not minimums:
        return None
    if cache.overrides.set_any(binding.workload, [one.path for one in minimums]):
        return None
    places = choice.places if choice is not None else ()
    return together(minimums, binding.placement, binding.demand, places)


def _adoption(cache: Cache, entry: Entry, state: Adopted, day_ms: int) -> Mapping[str, object] | None:
    if not isinstance(state.queue, Resolved):
        return None
    queue = cache.queues.queues.cluster_queues.get(state.queue.cluster_queue)
    if queue is None:
        return None
    record = admission_record(
        state,
        entry.binding,
        queue=state.queue.cluster_queue,
        local_queue=state.queue.local_queue,
        service_class=entry.priority.service_class.name if entry.priority.service_class else "",
        priority=entry.priority.value,
        flavors=placed_flavors(entry.binding, queue, cache.fleet.reaches, cache.table),
        admitted_ms=day_ms,
    )
    return patches.admit(entry.binding, record)


def _may_go(cache: Cache, entry: Entry, choice: Choice) -> bool:
    """Whether its policy is still that of the choice, and permits the new clusters as they are by now, none
    of which is lost; and its pod templates say what they said when it was decided what else they are told.

    Where some of it is placed already it stays, whatever became of the cluster.
    """
    told = (pods.template for one in choice.guidance for pods in one.pods)
    if not set(entry.facts.pods).issuperset(told):
        return False
    permitted = cache.fleet.permitted(choice.placement) - cache.fleet.lost
    return choice.placement == entry.binding.placement and permitted.issuperset(
        place.cluster for place in choice.more
    )


def _is_approved(cache: Cache, entry: Entry) -> bool:
    """Whether no check has taken back its word since; growth is not asked about."""
    state = entry.state
    if not isinstance(state, Pending):
        return True
    queue = cache.queues.queues.cluster_queues.get(state.queue.cluster_queue)
    return queue is None or may_start(entry, queue.checks)


def _still_wants(entry: Entry, record: AdmissionRecord, *, is_forward: bool) -> bool:
    """Whether the entry still waits for just what the record says; of an elastic workload, for as much."""
    state, demand = entry.state, entry.binding.demand
    least = state.least if isinstance(state, Pending) else 0
    if isinstance(state, Admitted) and state.growth is not None:
        least, state = state.record.replicas + 1, state.growth
    if isinstance(state, Pending):
        # What is rolled forward is charged as its group is, wherever its LocalQueue leads by now.
        queue = record.queue if is_forward else state.queue.cluster_queue
    elif isinstance(state, Growing) and state.blocked is None:
        queue = state.queue
    else:
        return False
    replicas, wanted = demand.replicas, state.demand
    if least and least <= record.replicas <= replicas:
        replicas, wanted = record.replicas, sized(demand, record.replicas).total()
    asked = (replicas, state.copies, wanted, queue)
    return asked == (record.replicas, record.copies, record.requests, record.queue)


def _stays(entry: Entry, choice: Choice) -> bool:
    """Whether all that is placed stays where it is."""
    places = {place.cluster: place.replicas for place in choice.places}
    return all(share.replicas <= places.get(share.cluster, 0) for share in entry.binding.placed)
