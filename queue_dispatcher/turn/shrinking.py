"""Shrinking: what elastic workloads can give up of what they have, down to their minimums.

Whoever makes room for others takes this before it stops anything whole. What gives pods up is held in the
same write, so that Karmada adds none, and grows again later, when nobody else could use the room. For whom it
did is written down with it, so the room is kept for them also by who takes over.
"""

from collections.abc import Mapping
from dataclasses import replace

from queue_dispatcher.bindings.part import at_size
from queue_dispatcher.bindings.patches import Patch, resize
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.bindings.record import FOR_NOBODY, MAX_GIVEN, AdmissionRecord, Given
from queue_dispatcher.bindings.state import Admitted, Placed
from queue_dispatcher.bindings.timestamp import format_ms
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.claims import CLAIMED_MS
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.turn.duties import begin, may_write
from queue_dispatcher.turn.evictions import LOOK_AGAIN_MS, is_dealt_with, is_waited_for
from queue_dispatcher.turn.state import TurnState
from queue_dispatcher.turn.writes import Purpose, Write
from queue_dispatcher.workloads.demand import Placed as Share
from queue_dispatcher.workloads.demand import smallest
from queue_dispatcher.workloads.elastic import GROWS_EVERY_MS


def surplus_of(entry: Entry) -> int:
    """How many pods an elastic workload runs with beyond its minimum, and can give up now, in any of its
    clusters; 0 where it is not elastic, does not run, or is being written by somebody.
    """
    state, binding, elastic = entry.state, entry.binding, entry.elastic
    if elastic is None or entry.record is not None or not isinstance(state, Admitted):
        return 0
    if not isinstance(state.phase, Placed) or not is_dealt_with(entry):
        return 0
    if binding.is_deleting or binding.is_skipped or binding.finished or binding.problems:
        return 0
    # Over several clusters a Job's completions were divided by what each got.
    if elastic.in_one and len(binding.placed) > 1:
        return 0
    there = sum(share.replicas for share in binding.placed)
    return max(0, min(there, state.record.replicas) - elastic.least)


def yields(state: TurnState, now: Moment) -> tuple[list[Write], int | None]:
    """The writes of those that give pods up for others; when to look again, epoch milliseconds.

    For a plan of which one of them has not as many to give any more another one is looked for.
    """
    cache, displaced = state.cache, state.cache.ends.displaced_by
    writes: list[Write] = []
    is_left = False
    for uid in [uid for uid, one in displaced.items() if one.fewer]:
        one, entry = displaced.get(uid), cache.entries[uid]
        if one is None or entry.is_writing:
            continue
        write = shrink(entry, dict(one.fewer), now, Given(one.by, now.day_ms, one.why))
        if write is not None:
            writes.append(write)
        elif is_dealt_with(entry) and may_write(entry, now.day_ms):
            state.void(one.by)
        else:
            is_left = True
    return writes, now.day_ms + LOOK_AGAIN_MS if is_left else None


def still_yields(cache: Cache, entry: Entry) -> bool:
    """Whether those are still waited for that it is to give pods up for."""
    given, displaced = entry.shrinks_for, cache.ends.displaced_by.get(entry.uid)
    if not given.by:
        return True
    return displaced is not None and displaced.by == given.by and is_waited_for(cache, displaced)


def shrink(entry: Entry, fewer: Mapping[str, int], now: Moment, given: Given = FOR_NOBODY) -> Write | None:
    """The write that takes so many pods away, by cluster; None where it has not so many there, or cannot give
    up as many (`surplus_of`), or may not be written now. ``given``: for whom, and why.
    """
    left = {share.cluster: share.replicas for share in entry.binding.placed}
    for cluster, pods in fewer.items():
        if not 0 < pods <= left.get(cluster, 0):
            return None
        left[cluster] -= pods
    if not 0 < sum(fewer.values()) <= surplus_of(entry) or not may_write(entry, now.day_ms):
        return None
    entry.shrinks_to = tuple(Share(cluster, pods) for cluster, pods in sorted(left.items()) if pods)
    entry.shrinks_for = given
    return begin(entry, Purpose.YIELD, entry.uid)


def lowering(entry: Entry, now: Moment) -> Patch | None:
    """The patch of that write; None where it has something else by now."""
    binding, state, stays = entry.binding, entry.state, entry.shrinks_to
    had = {share.cluster: share.replicas for share in binding.placed}
    if not isinstance(state, Admitted) or any(share.replicas > had.get(share.cluster, 0) for share in stays):
        return None
    size = sum(share.replicas for share in stays)
    if not 0 < sum(had.values()) - size <= surplus_of(entry):
        return None
    record = replace(
        state.record,
        replicas=size,
        requests=smallest(state.record.requests, at_size(binding, size).demand.total()),
        not_before_ms=now.day_ms + GROWS_EVERY_MS,
        given=_given(state.record, entry.shrinks_for, now),
    )
    return resize(binding, record, stays, format_ms(now.day_ms))


def _given(record: AdmissionRecord, given: Given, now: Moment) -> tuple[Given, ...]:
    """For whom it has given pods up, as far as that is of any use yet."""
    if not given.by:
        return record.given
    before = (one for one in record.given if one.by != given.by and one.at_ms + CLAIMED_MS > now.day_ms)
    return (*before, given)[-MAX_GIVEN:]
