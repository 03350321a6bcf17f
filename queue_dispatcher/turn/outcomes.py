"""What an event changes: `hear`. Writes that were made, refused or lost; answers; who leads."""

from queue_dispatcher.bindings.phase import Moment, released
from queue_dispatcher.bindings.requeue import Cause, RequeueRecord
from queue_dispatcher.bindings.state import Pending
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.entry import Entry, Released
from queue_dispatcher.cache.indexes import charged_name, queue_name
from queue_dispatcher.cycle.reservation import NO_RESERVATIONS
from queue_dispatcher.estimates.estimates import Answered
from queue_dispatcher.turn.duties import MAX_RETRY_MS
from queue_dispatcher.turn.events import Counted, Event, Led, Saw, Wrote
from queue_dispatcher.turn.notices import (
    AdmittedNotice,
    AnsweredNotice,
    EvictedNotice,
    FailedNotice,
    FulfilledNotice,
    LostNotice,
    PlaceGivenUpNotice,
    RefusedNotice,
    TakenBackNotice,
    YieldedNotice,
)
from queue_dispatcher.turn.state import TurnState
from queue_dispatcher.turn.writes import Fate, Purpose, Write

FIRST_RETRY_MS = 1_000
GONE_RETRY_MS = 5_000


def hear(state: TurnState, event: Event, now: Moment) -> None:
    """Take one event into the state."""
    match event:
        case Saw(binding):
            cache = state.cache
            table = cache.bindings if binding.metadata.namespace else cache.cluster_bindings
            table.answer(binding)
        case Wrote(write, fate, message):
            entry = state.cache.entries.get(write.uid)
            if entry is None:
                state.under_way.discard(write.uid)
            elif fate is Fate.OPEN:
                _left_open(state.cache, entry, message)
                state.notices.append(FailedNotice(entry, write.purpose, message))
            else:
                _wrote(state, entry, write, fate, message, now)
        case Answered():
            if state.estimates is not None:
                answer = state.estimates.answered(event, now.elapsed_ms)
                if event.probing.of_choice:
                    # Whoever waits for it is looked at once more, whatever was decided just now.
                    state.decided = None
                state.notices.append(AnsweredNotice(answer, event.took_ms, event.unknown))
        case Counted(cluster, bound):
            for uid, count in bound.items():
                _counted(state.cache, uid, cluster, count)
        case Led(is_leading):
            state.is_leading = is_leading
            state.term += 1
            state.decided = None
            state.cache.usages.lead(is_leading)
            if not is_leading:
                _abandon(state)


def _counted(cache: Cache, uid: str, cluster: str, bound: int | None) -> None:
    entry = cache.entries.get(uid)
    # It may have moved, or been released anew, since it was asked about.
    if entry is None or all(share.cluster != cluster for share in entry.binding.placed):
        return
    if cluster not in entry.counts or entry.counts[cluster] != bound:
        entry.counts = {**entry.counts, cluster: bound}
        cache.mark(entry)


def written(state: TurnState, entry: Entry) -> None:
    """Nothing of the entry is being written any more."""
    state.under_way.discard(entry.uid)
    entry.is_writing = entry.is_open = False
    state.cache.mark(entry)


def call_off(cache: Cache, entry: Entry) -> None:
    """The entry was not released: nor is its group, unless some of it has been, or may be by a write of it
    that is under way; until that is told, all of it stays charged.
    """
    admission = entry.admission
    if admission is None or entry.record is None:
        return
    admission.released.discard(entry.uid)
    admission.is_off = not admission.released
    if admission.is_off and not cache.awaits(admission):
        for member in cache.members(admission):
            cache.forget(member)
    elif isinstance(entry.state, Pending):
        cache.forward.add(entry.uid)
    else:
        cache.forget(entry)


def _left_open(cache: Cache, entry: Entry, message: str) -> None:
    """It is still under way, and charged, but no longer in the release window; for its group it counts as
    released, since it may have been.
    """
    entry.note, entry.is_open = message, True
    cache.mark(entry)
    if entry.admission is not None:
        entry.admission.released.add(entry.uid)


def _wrote(state: TurnState, entry: Entry, write: Write, fate: Fate, message: str, now: Moment) -> None:
    cache = state.cache
    written(state, entry)
    match fate:
        case Fate.APPLIED:
            _applied(state, entry, write.purpose, now)
        case Fate.DROPPED:
            call_off(cache, entry)
        case Fate.GONE:
            # The watch tells in a moment; until then it is not to be decided over and over.
            entry.retry_ms = now.day_ms + GONE_RETRY_MS
            call_off(cache, entry)
        case Fate.REFUSED | Fate.FAILED | Fate.GIVEN_UP:
            entry.failures += 1
            entry.retry_ms = now.day_ms + min(MAX_RETRY_MS, FIRST_RETRY_MS << min(entry.failures - 1, 30))
            entry.note, entry.has_failed = message, fate is Fate.FAILED
            call_off(cache, entry)
            if fate is Fate.REFUSED:
                state.notices.append(RefusedNotice(entry, write.purpose, message))
            elif fate is Fate.FAILED:
                state.notices.append(FailedNotice(entry, write.purpose, message))


def _applied(state: TurnState, entry: Entry, purpose: Purpose, now: Moment) -> None:
    entry.failures, entry.retry_ms, entry.note, entry.has_failed = 0, 0, "", False
    match purpose:
        case Purpose.ADMIT:
            admission, choice = entry.admission, None
            if admission is not None:
                admission.released.add(entry.uid)
                if state.reserved.pop(admission.item.id, None) is not None:
                    state.notices.append(FulfilledNotice(admission.item.queue))
                # What had become impossible by the time of the write was left to Karmada.
                choice = admission.choices.get(entry.uid) if entry.binding.placed else None
            state.cache.forget(entry)
            record = entry.binding.record
            if record is not None:
                entry.seen = released(record, now.elapsed_ms, entry.seen)
                if choice is not None:
                    guided = tuple(one.cluster for one in choice.guidance)
                    entry.released = Released(record.admitted_ms, choice.reason, guided)
                waited_ms = max(0, record.admitted_ms - record.enqueued_ms)
                passes = admission is not None and admission.passes
                state.notices.append(AdmittedNotice(entry, record, waited_ms, choice, passes))
        case Purpose.KICK:
            entry.seen = entry.seen.kicked(now.elapsed_ms)
            if state.estimates is not None:
                state.estimates.kicked(entry.uid, now.elapsed_ms + state.window.expected_ms)
        case Purpose.TAKE_BACK:
            requeue = entry.binding.requeue
            if isinstance(requeue, RequeueRecord):
                state.notices.append(TakenBackNotice(entry, queue_name(entry), requeue))
        case Purpose.TAKE_BACK_LOST:
            requeue = entry.binding.requeue
            if isinstance(requeue, RequeueRecord):
                state.notices.append(LostNotice(entry, queue_name(entry), requeue.reason))
        case Purpose.EVICT:
            requeue = entry.binding.requeue
            if isinstance(requeue, RequeueRecord):
                notice = TakenBackNotice if requeue.cause is Cause.FAILED else EvictedNotice
                state.notices.append(notice(entry, queue_name(entry), requeue))
        case Purpose.YIELD:
            if entry.shrinks_for.by:
                state.cache.ends.keep(entry.uid)
            state.notices.append(YieldedNotice(entry, queue_name(entry), entry.shrinks_for.reason))
        case Purpose.SWITCH:
            # The watch tells in a moment; until then it is not to be done over and over.
            entry.retry_ms = now.day_ms + GONE_RETRY_MS
        case Purpose.GIVE_UP:
            requeue = entry.binding.requeue
            if isinstance(requeue, RequeueRecord):
                state.notices.append(PlaceGivenUpNotice(entry, requeue))
        case Purpose.LEAVE_LOST:
            state.notices.append(LostNotice(entry, charged_name(entry)))
        case Purpose.TAKE_BACK_GROWTH:
            record, scheduled = entry.binding.record, entry.binding.scheduled
            if record is not None:
                why = f"all of it: {scheduled.reason}" if scheduled is not None else "all of it"
                again = RequeueRecord(record.tries, record.not_before_ms, record.enqueued_ms, why)
                state.notices.append(TakenBackNotice(entry, record.queue, again))
        case _:
            pass


def _abandon(state: TurnState) -> None:
    """This process leads no more, and nothing of it is being written: what was under way is forgotten.

    Whether a write that had no answer was made, the watch will tell.
    """
    state.under_way.clear()
    if state.estimates is not None:
        state.estimates.abandon()
    state.reservations = NO_RESERVATIONS
    state.reserved.clear()
    for item_id in list(state.displacements):
        state.call_off(item_id)
    state.cache.ends.reduce({})
    state.cache.excess.forget()
    for entry in state.cache.entries.values():
        if entry.is_writing or entry.record is not None:
            entry.is_writing = entry.is_open = False
            state.cache.forget(entry)


def undo(state: TurnState) -> None:
    """A turn has failed, and what it had begun is never carried out: it is as if it had not been begun."""
    if state.estimates is not None:
        state.estimates.abandon()
    state.decided = None
    for entry in state.cache.entries.values():
        if entry.is_writing and entry.uid not in state.under_way:
            entry.is_writing = False
            state.cache.forget(entry)
