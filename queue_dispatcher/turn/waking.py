"""Waking: the kicks of a turn, and what the estimators are asked about what is parked.

Where there are estimators, room that has appeared is news only if it is enough: what is parked is kicked when
they say that it fits, not into clusters that are known to be full. Where nobody can tell, room is hope.
"""

from queue_dispatcher.bindings.phase import Moment, placed_replicas
from queue_dispatcher.bindings.state import Growing, Pending
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.estimates.estimates import Probing
from queue_dispatcher.turn.duties import begin, may_write
from queue_dispatcher.turn.kicks import Parked, due_kicks
from queue_dispatcher.turn.probing import subjects_of
from queue_dispatcher.turn.state import TurnState
from queue_dispatcher.turn.writes import Purpose, Write
from queue_dispatcher.workloads.demand import beyond
from queue_dispatcher.workloads.queue_of import Resolved

MAX_PROBES = 4
"""How many questions about what is parked one turn may raise."""


def kicks(state: TurnState, now: Moment) -> tuple[list[Write], list[Probing]]:
    """The writes that have Karmada look again at what it put aside, and what to ask before more are made."""
    cache = state.cache
    entries = [cache.entries[uid] for uid in sorted(cache.running.parked)]
    waiting = {entry.uid: entry for entry in entries if not entry.is_writing}
    parked: list[Parked] = []
    probes: dict[str, str] = {}
    probings: list[Probing] = []
    for entry in waiting.values():
        one = _parked(state, entry)
        if one.pause_ends_ms > now.elapsed_ms:
            continue
        probe = _probe(state, entry) if state.estimates is not None else ""
        if state.estimates is None or not probe:
            parked.append(one)
            continue
        probes[entry.uid] = probe
        verdict = state.estimates.verdicts.get(probe, now.elapsed_ms)
        if verdict is None:
            if len(probings) < MAX_PROBES:
                subjects = subjects_of(cache, (entry.uid,), is_growth=bool(entry.binding.placed))
                probing = state.estimates.ask(probe, subjects) if subjects else None
                if probing is not None:
                    probings.append(probing)
        elif verdict.unanswered:
            parked.append(one)
        elif verdict.fits > 0:
            parked.append(one.fitting())
    busy = len(cache.running.in_flight) + len(entries) - len(waiting)
    writes = []
    for uid in due_kicks(parked, now.elapsed_ms, state.window.size - busy):
        entry = waiting[uid]
        if not may_write(entry, now.day_ms):
            continue
        if state.estimates is not None and uid in probes:
            if state.estimates.verdicts.get(probes[uid], now.elapsed_ms) is None:
                # Those before it were all that fits.
                continue
            state.estimates.verdicts.admitted(probes[uid])
        writes.append(begin(entry, Purpose.KICK, uid))
    return writes, probings


def _probe(state: TurnState, entry: Entry) -> str:
    """What the estimators are asked about what is not placed of it; empty where nobody is."""
    cache, binding, record = state.cache, entry.binding, entry.binding.record
    queue = cache.queues.queues.cluster_queues.get(record.queue) if record is not None else None
    if record is None or queue is None:
        return ""
    copies = binding.copies(cache.fleet.copies(binding.placement, binding.demand))
    wanted = binding.demand.total(copies)
    waits: Pending | Growing = Pending(Resolved(record.queue), wanted, copies, 0)
    if placed_replicas(binding):
        need = beyond(wanted, binding.demand.held(binding.placed))
        waits = Growing(record, record.queue, "", wanted, need, copies, 0)
    return cache.shapes.of(waits, binding, queue, cache.templates.question(binding.workload)).probe


def _parked(state: TurnState, entry: Entry) -> Parked:
    binding, record, seen = entry.binding, entry.binding.record, entry.seen
    fleet = state.cache.fleet
    clusters = fleet.permitted(binding.placement) if binding.placement is not None else ()
    order = (-record.priority, record.enqueued_ms) if record is not None else (0, 0)
    # Whether room appeared while another process looked, or none did, nobody knows: it is tried once.
    unknown_ms = 0 if seen.is_ours or seen.kicks else seen.since_ms + 1
    return Parked(
        uid=entry.uid,
        since_ms=seen.since_ms,
        room_ms=max((unknown_ms, *(state.room_ms.get(cluster, 0) for cluster in clusters))),
        order=(*order, entry.uid),
        kicked_ms=seen.kicked_ms,
        kicks=seen.kicks,
    )
