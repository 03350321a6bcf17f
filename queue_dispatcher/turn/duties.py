"""Duties: the writes that states call for whatever a cycle decides, and those that time calls for.

What is being written, and what failed a moment ago, is left alone.
"""

from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.bindings.state import Admitted, Adopted, Growing, HeldWithin, Reassert, Shrinking
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.items import promised_to
from queue_dispatcher.turn.overdue import due_ms, why_overdue
from queue_dispatcher.turn.taking_back import to_take_back, why_not_begun
from queue_dispatcher.turn.writes import Purpose, Write

MAX_RETRY_MS = 600_000
"""What could not be written is tried again after so long, at the latest."""
STARTED_MS = 60_000
"""What has been placed for so long has started."""

_PURPOSES = {
    HeldWithin: Purpose.CLEAR_HOLD,
    Shrinking: Purpose.SHRINK,
    Reassert: Purpose.REASSERT,
    Adopted: Purpose.ADOPT,
}


def duties(cache: Cache, day_ms: int) -> list[Write]:
    """The writes that states call for, those of half released groups first."""
    writes = []
    for uid in sorted(cache.forward):
        entry = cache.entries[uid]
        is_awaited = entry.admission is not None and cache.awaits(entry.admission)
        if entry.record is not None and not is_awaited and may_write(entry, day_ms):
            writes.append(begin(entry, Purpose.ADMIT, uid if entry.has_failed else entry.record.queue))
    for uid in sorted(cache.duties):
        entry = cache.entries[uid]
        purpose = _PURPOSES.get(type(entry.state))
        if purpose is not None and may_write(entry, day_ms):
            writes.append(begin(entry, purpose, uid))
    for uid in sorted(() if cache.observes else cache.checks.retries):
        entry = cache.entries[uid]
        if may_write(entry, day_ms):
            writes.append(begin(entry, Purpose.RETRY_CHECK, uid))
    return writes


def started(cache: Cache, now: Moment) -> list[Write]:
    """The writes that forget tries in vain, of what has run for a while since: the next loss begins anew."""
    return [
        begin(entry, Purpose.STARTED, uid)
        for uid in sorted(cache.running.retried)
        if now.elapsed_ms - (entry := cache.entries[uid]).seen.since_ms >= STARTED_MS
        and may_write(entry, now.day_ms)
    ]


def not_started(cache: Cache, now: Moment) -> list[Write]:
    """The writes that take back what is placed and whose pods have no nodes, or do not run, in the time that
    its class gives.
    """
    writes = []
    for uid in sorted(cache.running.starting | cache.running.unbound):
        entry = cache.entries[uid]
        if isinstance(entry.state, Admitted) and why_not_begun(cache, entry, now) is not None:
            writes += _take_back(cache, entry, now)
    return writes


def next_retry_ms(cache: Cache, day_ms: int) -> int | None:
    """When a duty whose write failed may be tried again; None if there is none."""
    due = [
        entry.retry_ms
        for uid in (*cache.duties, *cache.forward, *cache.checks.retries, *cache.unswitched)
        if (entry := cache.entries[uid]).retry_ms > day_ms and not entry.is_writing
    ]
    return min(due, default=None)


def overdue(cache: Cache, now: Moment) -> tuple[list[Write], int | None]:
    """The writes that take back what should have started; when the next one is due."""
    writes: list[Write] = []
    next_ms: int | None = None
    running = cache.running
    for uid in (*running.in_flight, *running.parked, *running.outgrown):
        entry = cache.entries[uid]
        state = entry.state
        if entry.record is not None or not isinstance(state, Admitted | Growing):
            continue
        binding, seen, timeout_ms = entry.binding, entry.seen, promised_to(entry).start_timeout_ms
        if why_overdue(binding, seen, state, timeout_ms, now) is not None:
            if may_write(entry, now.day_ms):
                if binding.placed:
                    writes.append(begin(entry, Purpose.TAKE_BACK_GROWTH, uid))
                else:
                    writes += _take_back(cache, entry, now)
            continue
        at_ms = due_ms(binding, seen, timeout_ms, now)
        if at_ms > now.day_ms and (next_ms is None or at_ms < next_ms):
            next_ms = at_ms
    return writes, next_ms


def _take_back(cache: Cache, entry: Entry, now: Moment) -> list[Write]:
    """The writes that take it back, or first those that it started with."""
    return [
        begin(one, Purpose.TAKE_BACK, one.uid)
        for one in to_take_back(cache, entry, now)
        if may_write(one, now.day_ms)
    ]


def begin(entry: Entry, purpose: Purpose, sequence: str) -> Write:
    """A write of the entry, which is under way from now on."""
    entry.is_writing = True
    return Write(entry.uid, sequence, purpose)


def may_write(entry: Entry, day_ms: int) -> bool:
    """Whether a write of the entry may be begun."""
    # A time that is further off was set by a clock that has been set back since.
    return not entry.is_writing and not day_ms < entry.retry_ms <= day_ms + MAX_RETRY_MS
