"""Suspending: what can stand still in its cluster is not taken off it when it has to make room, or its queue
is drained; it waits there with what it has done, and goes on there at its turn.

It waits for that one cluster, and for the flavors that it ran in there, for so long as what it has done is
worth it, and only where it could go elsewhere; then it is taken off after all. That moment is written down,
so it is the same for whoever leads; while its queue admits nothing it is not counted. What does not
stop by its switch (`queue_dispatcher.turn.switching`) is taken off as well.
"""

from dataclasses import replace
from typing import Final

from queue_dispatcher.bindings.admission import flavors_of_placed
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.patches import Patch, give_up, wait_on
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.bindings.requeue import Cause, RequeueRecord, Suspended
from queue_dispatcher.bindings.state import Admitted, Pending, Placed
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.ledger.accrual import MAX_AHEAD_MS
from queue_dispatcher.turn.duties import begin, may_write
from queue_dispatcher.turn.switching import NOT_HEEDED, due_ms, is_not_heeded, may_switch, stops_ms
from queue_dispatcher.turn.writes import Purpose, Write
from queue_dispatcher.workloads.form import Form, form_of

WAITS_MS: Final = 600_000
"""For so long it waits for room in its cluster,"""
WAITS_UNDONE_MS: Final = 30_000
"""but where none of its pods has succeeded, for so long."""


def place_kept(cache: Cache, entry: Entry, cause: Cause, not_before_ms: int) -> Suspended | None:
    """How the workload is to be suspended in its cluster where it is stopped for this cause, to go on no
    earlier than then; None where it is to be taken off its clusters.
    """
    charged = cache.charges.get(entry.uid)
    if cause in (Cause.MAX_RUNTIME, Cause.FAILED) or charged is None or not _may_pause(cache, entry):
        return None
    flavors = flavors_of_placed(charged.charge, cache.table)
    (share,) = entry.binding.placed
    has_done = entry.binding.progress.done or entry.facts.switch is not None
    waits_ms = WAITS_MS if has_done else WAITS_UNDONE_MS
    return Suspended(share.cluster, flavors, 0 if cause is Cause.DRAINED else not_before_ms + waits_ms)


def _may_pause(cache: Cache, entry: Entry) -> bool:
    binding, state, facts = entry.binding, entry.state, entry.facts
    if not facts.may_pause or entry.elastic is not None or not isinstance(state, Admitted):
        return False
    if not isinstance(state.phase, Placed):
        return False
    if facts.group or state.record.group:
        return False
    # Where a release does not say where to, it might go on elsewhere, or in two places.
    if not cache.preplaces or binding.placement is None or len(binding.placement.groups) > 1:
        return False
    if facts.switch is not None:
        if not may_switch(cache, binding, facts.switch):
            return False
    # What is copied has as many pods as its template says, whatever stands in its binding.
    elif binding.placement.is_duplicated:
        return False
    if form_of(binding.placement, binding.demand)[0] is not Form.CONFIRM:
        return False
    return _is_whole_in_one(binding) and binding.placed[0].cluster not in cache.fleet.lost


def _is_whole_in_one(binding: Binding) -> bool:
    """Whether one cluster has all of it, can be written, and has told of it."""
    demand, progress = binding.demand, binding.progress
    if binding.problems or binding.is_preserved or binding.finished:
        return False
    if len(binding.placed) != 1 or not demand.replicas:
        return False
    return not (progress.silent or progress.unsent or progress.refused)


def waiting_in_place(cache: Cache, now: Moment) -> tuple[list[Write], int | None]:
    """The writes about those that are suspended: until when they wait for their clusters, and the end of it;
    when the next one is due, epoch milliseconds.
    """
    writes, due = [], []
    for uid in sorted(() if cache.observes else cache.suspended):
        entry = cache.entries[uid]
        purpose = _called_for(cache, entry, now)
        if purpose is not None and may_write(entry, now.day_ms):
            writes.append(begin(entry, purpose, uid))
        stay = entry.binding.suspended
        if stay is not None:
            due += [at_ms for at_ms in (stay.by.until_ms, stops_ms(entry)) if at_ms > now.day_ms]
    return writes, min(due, default=None)


def _called_for(cache: Cache, entry: Entry, now: Moment) -> Purpose | None:
    stay = entry.binding.suspended
    if stay is None or entry.uid not in cache.suspended or entry.record is not None:
        return None
    until_ms, latest_ms = stay.by.until_ms, max(now.day_ms, due_ms(entry)) + WAITS_MS + MAX_AHEAD_MS
    # What is later than any that is written was written by a clock that is wrong, or by somebody else.
    if bool(until_ms) is _is_stopped(cache, entry) or until_ms > latest_ms:
        return Purpose.WAIT_ON
    if entry.binding.is_preserved:
        # Karmada would leave it in its cluster, and start it elsewhere too.
        return None
    if is_not_heeded(cache, entry, now):
        return Purpose.GIVE_UP
    is_over = 0 < until_ms <= now.day_ms
    return Purpose.GIVE_UP if is_over and _can_go_elsewhere(cache, entry) else None


def waits_on(cache: Cache, entry: Entry, now: Moment) -> Patch | None:
    """The patch that says until when it waits; None if nothing about that has changed."""
    binding, requeue = entry.binding, entry.binding.requeue
    stay = binding.suspended
    if stay is None or not isinstance(requeue, RequeueRecord):
        return None
    if _called_for(cache, entry, now) is not Purpose.WAIT_ON:
        return None
    waits_ms = WAITS_MS if stay.has_done else WAITS_UNDONE_MS
    until_ms = 0 if _is_stopped(cache, entry) else max(now.day_ms, due_ms(entry)) + waits_ms
    return wait_on(binding, replace(requeue, suspended=replace(stay.by, until_ms=until_ms)))


def gives_up(cache: Cache, entry: Entry, now: Moment) -> Patch | None:
    """The patch that takes it off its cluster; None if it is not to go."""
    requeue = entry.binding.requeue
    if not isinstance(requeue, RequeueRecord) or _called_for(cache, entry, now) is not Purpose.GIVE_UP:
        return None
    reason = NOT_HEEDED if is_not_heeded(cache, entry, now) else requeue.reason
    return give_up(entry.binding, replace(requeue, reason=reason, suspended=None))


def _is_stopped(cache: Cache, entry: Entry) -> bool:
    """Whether it cannot be admitted whatever room there is."""
    state = entry.state
    return not isinstance(state, Pending) or bool(cache.resolved.refusal(state.queue.cluster_queue))


def _can_go_elsewhere(cache: Cache, entry: Entry) -> bool:
    """Whether another cluster, or another flavor in its own, is open to it, or its own is not any more."""
    stay, state, fleet = entry.binding.suspended, entry.state, cache.fleet
    if stay is None or not isinstance(state, Pending):
        return False
    cluster = stay.by.cluster
    if fleet.permitted(stay.elsewhere) - fleet.lost != {cluster}:
        return True
    queue = cache.queues.queues.cluster_queues.get(state.queue.cluster_queue)
    own = {flavor for _, flavors in stay.by.flavors for flavor in flavors}
    offered = {one.flavor for group in queue.groups for one in group.flavors} if queue is not None else set()
    if not own <= offered:
        return True
    reaches = fleet.reaches
    return any(one in reaches and cluster in reaches[one].clusters for one in offered - own)
