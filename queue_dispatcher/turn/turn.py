"""The turn: from what is known and what has just happened to what is written, and what is asked.

It brings the cache up to date, looks after what was released (placed, put aside by Karmada, overdue), decides
what is admitted now, and says when time alone will call for the next turn. No I/O, no clock, no chance: equal
states, events and times give equal turns. The state is the caller's to keep, and is advanced in place,
because a hundred thousand bindings are not copied.

What is watched comes into the cache as it is watched; everything else that happens is an event.

Thousands of queues take longer to decide about than everything else can wait, so a turn can be taken in steps
(`turning`), between which things go on happening. Its decision is about what there was when it began: what is
watched and heard meanwhile is only noted, and what queues, quotas and bindings are taken to be follows from
it when the cache is settled next, or a binding refreshed. Whoever takes turns in steps keeps both from being
done until the turn has ended. To put off the events themselves instead would hold up answers and
leadership, and a turn could end without knowing that it may write no more.
"""

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass

from queue_dispatcher.bindings.bound import is_counted, lacking_nodes
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cache.entry import Entry, MaxWaitMissedNotice, PlacedNotice, Reached, ReachedNotice
from queue_dispatcher.cycle.actions import Admit, Decision
from queue_dispatcher.cycle.reservation import NO_RESERVATIONS
from queue_dispatcher.cycle.snapshot import Snapshot, Verdict
from queue_dispatcher.cycle.steps import to_the_end
from queue_dispatcher.estimates.estimates import Estimates, Probing
from queue_dispatcher.turn.admissions import admissions, standing
from queue_dispatcher.turn.displacing import claims_of, displace, hand_over, keep_displacements, told_of
from queue_dispatcher.turn.duties import duties, next_retry_ms, not_started, overdue, started
from queue_dispatcher.turn.events import Event
from queue_dispatcher.turn.evictions import evictions
from queue_dispatcher.turn.following import NOT_DECIDED, asked_by, released_by
from queue_dispatcher.turn.lost import lost
from queue_dispatcher.turn.notices import StaleNotice
from queue_dispatcher.turn.outcomes import hear, undo
from queue_dispatcher.turn.probing import probings_of
from queue_dispatcher.turn.queue_states import growing, queue_states
from queue_dispatcher.turn.reducing import reduce
from queue_dispatcher.turn.reserved import tell_reservations
from queue_dispatcher.turn.reserving import earliest_of, keep_reservations
from queue_dispatcher.turn.shrinking import yields
from queue_dispatcher.turn.state import Basis, Decided, TurnState, View
from queue_dispatcher.turn.suspending import waiting_in_place
from queue_dispatcher.turn.switching import switching
from queue_dispatcher.turn.waking import kicks
from queue_dispatcher.turn.writes import Write

FLOOR_MS = 1_000
"""For so long a decision is trusted of which nothing has changed that it looked at."""
EXPIRY_MS = 30_000
"""How long a state older than our own write is held back."""
FOLLOWERS_EVERY_MS = 2_000
MAX_PREPLACED = 64
"""How many releases that say where may be on their way to the API server at once."""


@dataclass(frozen=True, slots=True)
class Turned:
    """What follows from a turn.

    ``writes``: to be made, in order within each sequence. ``probings``: what to ask the estimators.
    ``next_due_ms``: when time alone calls for another turn, epoch milliseconds; None if it never does.
    ``has_decided``: whether the queues were looked at.
    """

    writes: tuple[Write, ...] = ()
    probings: tuple[Probing, ...] = ()
    next_due_ms: int | None = None
    has_decided: bool = False


def turn(state: TurnState, events: Iterable[Event], now: Moment) -> Turned:
    """One turn, without a stop."""
    return to_the_end(turning(state, events, now))


def turning(state: TurnState, events: Iterable[Event], now: Moment) -> Generator[None, None, Turned]:
    """One turn, in steps. Until it has ended the cache is not settled, nor is any entry refreshed.

    Nothing comes of a turn in the midst of which it changes who leads, nor of one that fails.
    """
    try:
        turned = yield from _turning(state, events, now)
    except Exception:
        undo(state)
        raise
    state.under_way.update(write.uid for write in turned.writes)
    return turned


def _turning(state: TurnState, events: Iterable[Event], now: Moment) -> Generator[None, None, Turned]:
    for event in events:
        hear(state, event, now)
    cache, term = state.cache, state.term
    state.advance(now)
    cache.settle()
    _take_notices(state, now)
    state.window.under_way(len(cache.running.in_flight), now.elapsed_ms)
    if not state.is_leading:
        return (yield from _followed(state, now))
    for entry in cache.take_held_back(now.elapsed_ms, EXPIRY_MS):
        state.notices.append(StaleNotice(entry))
    keep_displacements(state, now)
    yielded, yield_ms = yields(state, now)
    shrunk, reduce_ms = reduce(state, now)
    evicted, evict_ms = evictions(state, now)
    writes = duties(cache, now.day_ms) + yielded + shrunk + evicted
    retry_ms = next_retry_ms(cache, now.day_ms)
    taken_back, overdue_ms = overdue(cache, now)
    writes += taken_back + not_started(cache, now) + started(cache, now)
    taken_off, lost_ms = lost(cache, now)
    waiting, give_up_ms = waiting_in_place(cache, now)
    writes += taken_off + waiting + switching(cache, now)
    kicked, probings = kicks(state, now)
    writes += kicked
    last = _last_decision(state, now)
    if last is not None:
        decided_ms = last.next_due_ms
    else:
        stated, changes = snapshot(state, now), cache.changes
        decision = yield from _decided(state, stated, now)
        if state.term != term:
            return Turned()
        decided_ms = decision.next_due_ms
        in_vain, void = frozenset(state.in_vain_ms), _void(state)
        began = Basis(
            changes,
            stated.envelope,
            stated.verdicts,
            None,
            stated.earliest,
            tuple(stated.claims.items()),
            in_vain,
            void,
        )
        stands = standing(cache, decision.actions)
        is_latest = began == _basis(state, now, is_full=False)
        hand_over(state, [action.item for action in stands])
        admitted = admissions(state, stands, now)
        writes += admitted
        state.turns = decision.turns
        tell_reservations(state, decision.reservations, now)
        probings += probings_of(state, decision, now) + keep_reservations(state, decision, now)
        asking = displace(state, decision, now)
        _note(state, decision, len(admitted), now, is_latest=is_latest)
        for look in asking:
            yield
            if state.term != term:
                return Turned()
            probings += look.ask()
    state.window.under_way(len(cache.running.in_flight), now.elapsed_ms)
    times = (retry_ms, yield_ms, reduce_ms, evict_ms, overdue_ms, lost_ms, give_up_ms, decided_ms)
    due = [at for at in (*times, _try_due_ms(state, now)) if at is not None]
    return Turned(tuple(writes), tuple(probings), min(due, default=None), has_decided=last is None)


def _try_due_ms(state: TurnState, now: Moment) -> int | None:
    """When a full window is to be tried out, epoch milliseconds; None if it is not."""
    at_ms = state.window.try_due_ms(len(state.cache.running.in_flight))
    return now.day_ms + at_ms - now.elapsed_ms if at_ms is not None and at_ms > now.elapsed_ms else None


def snapshot(state: TurnState, now: Moment) -> Snapshot:
    """What a cycle decides from; the cache must be settled."""
    cache = state.cache
    claims = claims_of(state, now)
    state.queues = queue_states(state, claims, now)
    tokens, preplaced_tokens = _tokens(state, now)
    return Snapshot(
        ledger=cache.charges.ledger,
        queues={name: one for name, (_, one) in state.queues.items()},
        envelope=cache.envelope(),
        verdicts=_verdicts(state, now),
        tokens=tokens,
        preplaced_tokens=preplaced_tokens,
        in_flight=len(cache.running.in_flight),
        elsewhere=None if state.is_leading else asked_by(state.leader),
        turns=state.turns,
        endings=cache.running.endings,
        earliest=earliest_of(state),
        reservations=state.reservations,
        claims=claims,
        growing=growing(state, now),
    )


def _followed(state: TurnState, now: Moment) -> Generator[None, None, Turned]:
    """A follower decides as well, so as to tell why workloads wait, but seldom, and nothing comes of it."""
    if now.elapsed_ms - state.view.decided_ms < FOLLOWERS_EVERY_MS:
        return Turned()
    decision = yield from _decided(state, snapshot(state, now), now)
    return Turned(next_due_ms=decision.next_due_ms, has_decided=True)


def _decided(state: TurnState, stated: Snapshot, now: Moment) -> Generator[None, None, Decision]:
    leads = state.is_leading
    undecided = NOT_DECIDED if leads else released_by(state.leader)
    decision = yield from state.cycles.steps(stated, now.day_ms)
    since = state.view.full_since_ms
    full = {item: since.get(item, now.elapsed_ms) for item in decision.window_full}
    reservations = decision.reservations if leads else NO_RESERVATIONS
    told = told_of(state)
    state.view = View(decision.waits, now.elapsed_ms, full, undecided, told, reservations)
    return decision


def _last_decision(state: TurnState, now: Moment) -> Decided | None:
    """The last decision, if to decide now would find the same; for at most `FLOOR_MS` it is trusted.

    Of the events that a release causes, most only tell what was known: that it was written, and placed.
    """
    last = state.decided
    if last is None or now.elapsed_ms - last.at_ms >= FLOOR_MS:
        return None
    if last.next_due_ms is not None and now.day_ms >= last.next_due_ms:
        return None
    return last if last.basis == _basis(state, now, is_full=last.basis.tokens is not None) else None


def _note(state: TurnState, decision: Decision, written: int, now: Moment, *, is_latest: bool) -> None:
    """Keep what a decision was based on, with its admissions made, unless there is more to decide.

    ``is_latest``: nothing of it changed while it was made.
    """
    state.decided = None
    admitted = [action for action in decision.actions if isinstance(action, Admit)]
    is_made = written == sum(len(action.item.members) for action in admitted)
    is_made = is_made and not decision.preemptors.seconds
    if is_latest and is_made and len(admitted) == len(decision.actions):
        basis = _basis(state, now, is_full=bool(decision.window_full))
        state.decided = Decided(basis, now.elapsed_ms, decision.next_due_ms)


def _basis(state: TurnState, now: Moment, *, is_full: bool) -> Basis:
    cache = state.cache
    tokens = _tokens(state, now) if is_full else None
    claims = tuple(claims_of(state, now).items())
    known = (cache.envelope(), _verdicts(state, now), tokens, earliest_of(state), claims)
    return Basis(cache.changes, *known, frozenset(state.in_vain_ms), _void(state))


def _void(state: TurnState) -> frozenset[str]:
    return frozenset(item_id for item_id, one in state.displacements.items() if one.is_void)


def _tokens(state: TurnState, now: Moment) -> tuple[int, int]:
    """How many may be released that Karmada has to place, and how many that say where."""
    running = state.cache.running
    tokens = state.window.tokens(len(running.in_flight), now.elapsed_ms)
    # What was refused and is to be written again is not on its way, and may be refused for ever.
    entries = state.cache.entries
    return tokens, max(0, MAX_PREPLACED - sum(entries[uid].is_writing for uid in running.preplaced))


def _verdicts(state: TurnState, now: Moment) -> Mapping[str, Verdict]:
    estimates = state.estimates
    return estimates.verdicts.current(now.elapsed_ms) if estimates is not None else {}


def _settle(estimates: Estimates, uid: str, entry: Entry | None, now: Moment) -> None:
    """Of what is placed, find out whether it has arrived."""
    if entry is None or not entry.binding.placed:
        estimates.called_off(uid)
    elif is_counted(entry.binding, entry.counts):
        estimates.counted_pods(uid, lacking_nodes(entry.binding, entry.counts) or 0)
    else:
        estimates.reported(uid, entry.binding.progress.unseen, now.elapsed_ms)


def _take_notices(state: TurnState, now: Moment) -> None:
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
        under_way, put_aside = running.in_flight | running.preplaced, running.parked | running.unobserved
        estimates.retain(under_way, put_aside, now.elapsed_ms)
    if cache.room:
        room, cache.room = cache.room, {}
        for cluster in room:
            state.room_ms[cluster] = now.elapsed_ms
        if estimates is not None:
            estimates.room_given(room)
