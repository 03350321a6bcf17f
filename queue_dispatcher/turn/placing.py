"""Placing: what the cache has noticed is taken in: what is placed, has arrived, or has made room."""

from queue_dispatcher.bindings.bound import is_counted, lacking_nodes
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cache.entry import Entry, MaxWaitMissedNotice, PlacedNotice, Reached, ReachedNotice
from queue_dispatcher.estimates.estimates import Estimates
from queue_dispatcher.turn.state import TurnState


def _settle(estimates: Estimates, uid: str, entry: Entry | None, now: Moment) -> None:
    """Of what is placed, find out whether it has arrived."""
    if entry is None or not entry.binding.placed:
        estimates.called_off(uid)
    elif is_counted(entry.binding, entry.counts):
        estimates.counted_pods(uid, lacking_nodes(entry.binding, entry.counts) or 0)
    else:
        estimates.reported(uid, entry.binding.progress.unseen, now.elapsed_ms)


def take_notices(state: TurnState, now: Moment) -> None:
    """Pass on what there is to tell, and have the release window and the estimates know."""
    cache, estimates = state.cache, state.estimates
    notices, cache.notices = cache.notices, []
    for notice in notices:
        if not isinstance(notice, PlacedNotice):
            # Every replica sees what is late, and it is to be counted once.
            if state.is_leading or not isinstance(notice, MaxWaitMissedNotice):
                state.notices.append(notice)
            continue
        seen = notice.seen
        if seen.is_ours and not notice.was_preplaced:
            took_ms = now.elapsed_ms - seen.tried_ms if notice.was_in_flight else None
            state.window.placed(took_ms, now.elapsed_ms)
        if seen.is_ours and not seen.was_placed:
            took_ms = now.elapsed_ms - seen.since_ms
            state.notices.append(ReachedNotice(notice.queue, Reached.PLACED, took_ms))
        entry = cache.entries.get(notice.uid)
        if estimates is not None and entry is not None:
            places = entry.binding.placed if not notice.was_preplaced else None
            estimates.placed(notice.uid, places, now.elapsed_ms)
    if estimates is not None:
        for uid in estimates.settling():
            _settle(estimates, uid, cache.entries.get(uid), now)
        running = cache.running
        under_way = running.in_flight | running.preplaced | running.open
        estimates.retain(under_way, running.parked | running.unobserved, now.elapsed_ms)
    if cache.room:
        room, cache.room = cache.room, {}
        for cluster in room:
            state.room_ms[cluster] = now.elapsed_ms
        if estimates is not None:
            estimates.room_given(room)
