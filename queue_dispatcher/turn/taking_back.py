"""What is taken back because it did not start: a workload, and with it those that started together with it.

Of a group that was never whole those go first that did start, and whoever did not goes last, being the reason
for the others. A new leader cannot tell whether what was released long before it was whole: it stops nothing
else for that. Nor is anything taken back while a cluster in which it is placed is away, or has just come
back: nobody knows then what has become of it there.
"""

from collections.abc import Iterator

from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.part import part_of
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.bindings.state import Admitted, Growing, Placed, Unplaced
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.items import promised_to
from queue_dispatcher.turn.overdue import StartTerms, began_before, why_not_started, why_overdue


def why_taken_back(cache: Cache, entry: Entry, now: Moment) -> str | None:
    """Why all of it is to be taken back now; None if it is not."""
    own = why_not_begun(cache, entry, now)
    if own is not None or not _may_go(cache, entry, now):
        return own
    for mate in cache.pending.mates(entry):
        reason = why_not_begun(cache, mate, now)
        if reason is not None and _was_never_whole(mate, now):
            return f"{mate.binding.workload.name}, which starts with it, did not start: {reason}"
    return None


def to_take_back(cache: Cache, entry: Entry, now: Moment) -> Iterator[Entry]:
    """Whom to take back now because of an entry that did not start."""
    mates = cache.pending.mates(entry) if _was_never_whole(entry, now) else ()
    # Whose write was refused keeps nobody else waiting.
    first = [
        one
        for one in mates
        if not one.failures and _may_go(cache, one, now) and why_not_begun(cache, one, now) is None
    ]
    yield from first or (entry,)


def why_not_begun(cache: Cache, entry: Entry, now: Moment) -> str | None:
    """Why it did not start, whatever became of its group; None where it did, or still may."""
    binding, seen, state = entry.binding, entry.seen, entry.state
    if not isinstance(state, Admitted | Growing):
        return None
    if not binding.placed:
        return why_overdue(binding, seen, state, promised_to(entry).start_timeout_ms, now)
    if isinstance(state, Growing) or not is_reached(cache, entry, now):
        return None
    return why_not_started(_released(entry), seen, state, start_terms(cache, entry), now)


def start_terms(cache: Cache, entry: Entry) -> StartTerms:
    """What its start is judged by."""
    here_ms = cache.fleet.outages.here_ms(entry.seen.untold)
    return StartTerms(promised_to(entry), entry.facts.gang_pods, here_ms)


def is_reached(cache: Cache, entry: Entry, now: Moment) -> bool:
    """Whether all clusters in which it is placed are here, and for long enough that what they say of it is
    how it is.

    In one that is away it may run for long without anybody knowing, and is not at fault if it does not.
    """
    outages, finished = cache.fleet.outages, entry.binding.finished
    clusters = (share.cluster for share in entry.binding.placed if share.cluster not in finished)
    return all(outages.is_settled(one, now.elapsed_ms) for one in clusters)


def _may_go(cache: Cache, entry: Entry, now: Moment) -> bool:
    """Whether Karmada has dealt with it, it can be stopped, and nothing of it would be left behind."""
    binding, state = _released(entry), entry.state
    if not isinstance(state, Admitted) or binding.is_held or binding.is_preserved:
        return False
    if not is_reached(cache, entry, now):
        return False
    return isinstance(state.phase, Unplaced) or (isinstance(state.phase, Placed) and binding.is_settled)


def _released(entry: Entry) -> Binding:
    """The binding; of an elastic workload of which a part runs, that part."""
    state = entry.state
    is_part = isinstance(state, Admitted) and state.growth is not None
    return part_of(entry.binding) if is_part else entry.binding


def _was_never_whole(entry: Entry, now: Moment) -> bool:
    """Whether it fails at its first start, rather than after a loss, which is its own alone."""
    seen = entry.seen
    return not seen.was_lost and not began_before(entry.binding, seen, promised_to(entry), now)
