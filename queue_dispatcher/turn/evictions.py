"""Evictions: what has run for as long as it may is taken back and stays held, unless its pods never all had
nodes, which is a failed start; what runs in a queue that is drained, or uses more than it may, is taken back
and waits there, in its place.

Both are whole: all of it, and with it those that started together with it, which go first, so that whoever is
the reason for the others goes last. As all that is placed it is touched only while Karmada's scheduler has
nothing to write about it that it began with before; in whatever clusters it is, for what is lost is deleted
once its cluster is back. Never touched is what would leave pods behind (preserveResourcesOnDeletion), what is
there without an admission of ours, and what has ended.

So many at once that releases do not wait for them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.bindings.requeue import Cause
from queue_dispatcher.bindings.state import Admitted, Growing, Placed, Unobserved, Unplaced
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.ends import Displaced, end_of, is_beginning_unnoted, may_be_stopped
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.order import Order
from queue_dispatcher.turn.duties import begin, may_write
from queue_dispatcher.turn.state import TurnState
from queue_dispatcher.turn.writes import Purpose, Write

MAX_EVICTING: Final = 16
"""How many evictions may be on their way to the API server at once: half of what it takes side by side. Not
among them those of which nobody can tell whether they were made, which may take for ever.
"""
MAX_LOOKS: Final = 256
"""How many workloads a turn looks at for that."""
LOOK_AGAIN_MS: Final = 2_000
"""What could not be evicted is looked at again after so long, if nothing is heard of it before."""
MATES_WAIT_MS: Final = 60_000
"""For so long beyond its end it runs on for those of its group that cannot be evicted yet."""


@dataclass(frozen=True, slots=True)
class Eviction:
    """That a workload is to be taken back, and why; ``by``: for which item, empty for none."""

    cause: Cause
    reason: str
    by: str = ""


def eviction_of(cache: Cache, entry: Entry, now: Moment) -> Eviction | None:
    """Why all of the workload is to be taken back now, be it for another of its group; None if it is not."""
    if cache.observes or not may_be_stopped(entry):
        return None
    found = _own(cache, entry, now)
    if found is not None:
        return found
    for mate in cache.pending.mates(entry):
        found = _own(cache, mate, now) if may_be_stopped(mate) else None
        if found is not None:
            name = mate.binding.workload.name
            return Eviction(found.cause, f"{name}, which started with it, {found.reason}", found.by)
    return None


def evictions(state: TurnState, now: Moment) -> tuple[list[Write], int | None]:
    """The writes that evict, those first that have run too long; when the next one is due, epoch
    milliseconds.
    """
    cache, ends = state.cache, state.cache.ends
    if cache.observes:
        return [], None
    state.evicting = {uid for uid in state.evicting if _is_being_written(cache, uid)}
    writes = [
        begin(entry, Purpose.BEGAN, uid)
        for uid in sorted(ends.unnoted)
        if isinstance((entry := cache.entries[uid]).state, Admitted) and may_write(entry, now.day_ms)
    ]
    writes += _evicted(state, ends.by_time, now, lambda order: order.first(now.elapsed_ms, now.elapsed_ms))
    for order in (ends.drained, ends.displaced, ends.reduced):
        writes += _evicted(state, order, now, lambda order: order.first(now.elapsed_ms))
    at_ms = ends.by_time.next_rank()
    looks = [one.next_look_ms() for one in (ends.by_time, ends.drained, ends.displaced, ends.reduced)]
    due = [ms for ms in (at_ms, *looks) if ms is not None and ms > now.elapsed_ms]
    return writes, now.day_ms + min(due) - now.elapsed_ms if due else None


def has_begun_late(entry: Entry, now: Moment) -> bool:
    """Whether when it began is to be written down."""
    return may_be_stopped(entry) and is_beginning_unnoted(entry, now)


def _evicted(
    state: TurnState, order: Order, now: Moment, first: Callable[[Order], str | None]
) -> list[Write]:
    cache, writes = state.cache, list[Write]()
    on_their_way = sum(not cache.entries[uid].is_open for uid in state.evicting)
    for _ in range(MAX_LOOKS):
        uid = first(order) if on_their_way + len(writes) < MAX_EVICTING else None
        if uid is None:
            break
        order.put_off(uid, now.elapsed_ms + LOOK_AGAIN_MS)
        for one in _together(cache, cache.entries[uid], now):
            state.evicting.add(one.uid)
            writes.append(begin(one, Purpose.EVICT, uid))
    return writes


def _together(cache: Cache, entry: Entry, now: Moment) -> list[Entry]:
    """Whom to evict now because of an entry, itself last; nobody while one of them cannot be yet."""
    own = _own(cache, entry, now)
    if own is None or not _may_go(entry, now):
        return []
    # Whose write was refused keeps nobody else running.
    mates = [one for one in cache.pending.mates(entry) if may_be_stopped(one) and not one.failures]
    ready = [one for one in mates if _may_go(one, now)]
    end = end_of(entry, now, is_ours=True)
    if end is None or now.day_ms < end.at_ms + MATES_WAIT_MS:
        # Who has a reason of its own follows by itself.
        left = (one for one in mates if one not in ready and not _is_passed_over(one))
        if any(_own(cache, one, now) is None for one in left):
            return []
    return [*ready, entry]


def _own(cache: Cache, entry: Entry, now: Moment) -> Eviction | None:
    end = end_of(entry, now, is_ours=True)
    if end is not None and end.at_ms <= now.day_ms:
        if _has_never_been_whole(entry):
            return Eviction(Cause.FAILED, f"its pods never all had nodes within {end.limit.by}")
        return Eviction(Cause.MAX_RUNTIME, f"ran for {end.limit.by}")
    queue = cache.drained_by(entry)
    if queue:
        return Eviction(Cause.DRAINED, f"runs in {queue}, which is drained")
    displaced = cache.ends.displaced_by.get(entry.uid)
    if displaced is not None and not displaced.fewer and _is_to_go(cache, entry, displaced):
        return Eviction(Cause.PREEMPTED, displaced.why, displaced.by)
    reduced = cache.ends.reduced_by.get(entry.uid)
    return Eviction(Cause.QUOTA_REDUCED, reduced) if reduced is not None else None


def _has_never_been_whole(entry: Entry) -> bool:
    """Whether pods of it are known to have been without nodes from its beginning, by who counts them and by
    what its clusters report: that is no run.
    """
    placed = entry.state.phase if isinstance(entry.state, Admitted) else None
    return isinstance(placed, Placed) and bool(placed.unbound and placed.starting)


def _is_to_go(cache: Cache, entry: Entry, displaced: Displaced) -> bool:
    """Whether it is waited for it to go: not in vain, after another that has to go as well was refused to."""
    if not is_waited_for(cache, displaced):
        return False
    others = (uid for uid, one in cache.ends.displaced_by.items() if one.by == displaced.by)
    return bool(entry.failures) or not any(cache.entries[uid].failures for uid in others)


def is_waited_for(cache: Cache, displaced: Displaced) -> bool:
    """Whether there still is whom it makes room for: who has found room meanwhile needs nobody to go."""
    preemptor = cache.present(displaced.by)
    return preemptor is not None and preemptor.effective_record is None


def _may_go(entry: Entry, now: Moment) -> bool:
    """Whether it may be written, and Karmada's scheduler has nothing to write about it any more."""
    return entry.record is None and may_write(entry, now.day_ms) and is_dealt_with(entry)


def is_dealt_with(entry: Entry) -> bool:
    """Whether Karmada's scheduler has nothing to write about it that it began with before."""
    state = entry.state
    if isinstance(state, Growing):
        return True
    if isinstance(state, Admitted) and state.growth is not None:
        return True
    if not isinstance(state, Admitted) or entry.binding.is_held:
        return False
    return entry.binding.is_settled or isinstance(state.phase, Unplaced)


def _is_passed_over(entry: Entry) -> bool:
    """Whether Karmada's scheduler does not look at it at all."""
    return isinstance(entry.state, Admitted) and isinstance(entry.state.phase, Unobserved)


def _is_being_written(cache: Cache, uid: str) -> bool:
    entry = cache.entries.get(uid)
    return entry is not None and entry.is_writing
