"""What is written for each purpose, and whether the binding still calls for it."""

from collections.abc import Mapping

from queue_dispatcher.bindings import patches
from queue_dispatcher.bindings.admission import admission_record, placed_flavors
from queue_dispatcher.bindings.record import AdmissionRecord
from queue_dispatcher.bindings.requeue import RequeueRecord
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
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.items import promised_to
from queue_dispatcher.turn.overdue import why_overdue
from queue_dispatcher.turn.writes import Purpose
from queue_dispatcher.workloads.queue_of import Resolved


def body_of(cache: Cache, entry: Entry, purpose: Purpose, day_ms: int) -> Mapping[str, object] | None:
    """The patch for the entry as it is known now; None if it does not call for it, or no more."""
    binding, state = entry.binding, entry.state
    match purpose:
        case Purpose.ADMIT:
            return _admission(cache, entry)
        case Purpose.CLEAR_HOLD if isinstance(state, HeldWithin):
            return patches.clear_hold(binding, state.record)
        case Purpose.SHRINK if isinstance(state, Shrinking):
            return patches.shrink(binding, state.record)
        case Purpose.REASSERT if isinstance(state, Reassert):
            return patches.clear(binding)
        case Purpose.ADOPT if isinstance(state, Adopted) and state.restore:
            return _adoption(cache, entry, state, day_ms)
        case Purpose.TAKE_BACK if isinstance(state, Admitted):
            return _take_back(entry, state, day_ms)
        case Purpose.KICK if isinstance(state, Admitted) and entry.uid in cache.parked:
            return None if binding.placed else patches.hold(binding)
        case _:
            return None


def _admission(cache: Cache, entry: Entry) -> Mapping[str, object] | None:
    admission, record = entry.admission, entry.record
    if admission is None or record is None or admission.is_off:
        return None
    is_begun = bool(admission.released) or entry.uid in cache.forward
    for uid in (entry.uid,) if is_begun else admission.records:
        member = cache.present(uid)
        if member is None:
            return None
        cache.refresh(member)
        if not _still_wants(member, admission.records[uid]):
            return None
    return patches.admit(entry.binding, record)


def _take_back(entry: Entry, state: Admitted, day_ms: int) -> Mapping[str, object] | None:
    promised = promised_to(entry)
    reason = why_overdue(entry.binding, state, promised.start_timeout_ms, day_ms)
    if reason is None:
        return None
    count = state.record.tries + 1
    return patches.take_back(
        entry.binding,
        RequeueRecord(count, day_ms + promised.backoff_ms(count), state.record.enqueued_ms, reason),
    )


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


def _still_wants(entry: Entry, record: AdmissionRecord) -> bool:
    """Whether the entry still waits for just what the record says."""
    state = entry.state
    if isinstance(state, Pending):
        queue = state.queue.cluster_queue
    elif isinstance(state, Growing) and state.blocked is None:
        queue = state.queue
    else:
        return False
    asked = (entry.binding.demand.replicas, state.copies, state.demand, queue)
    return asked == (record.replicas, record.copies, record.requests, record.queue)
