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

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cycle.actions import Decision
from queue_dispatcher.cycle.reservation import NO_RESERVATIONS
from queue_dispatcher.cycle.snapshot import Snapshot
from queue_dispatcher.cycle.steps import to_the_end
from queue_dispatcher.estimates.estimates import Probing
from queue_dispatcher.estimates.victims import VictimsAnswer
from queue_dispatcher.turn.admissions import admissions, standing
from queue_dispatcher.turn.basis import basis_of, basis_then, last_decision, note, tokens_of, verdicts_of
from queue_dispatcher.turn.displacing import claims_of, displace, hand_over, keep_displacements, told_of
from queue_dispatcher.turn.duties import duties, next_retry_ms, not_started, overdue, started
from queue_dispatcher.turn.events import Event
from queue_dispatcher.turn.evictions import evictions
from queue_dispatcher.turn.following import NOT_DECIDED, asked_by, released_by
from queue_dispatcher.turn.lost import lost
from queue_dispatcher.turn.notices import StaleNotice
from queue_dispatcher.turn.outcomes import hear, undo
from queue_dispatcher.turn.placing import take_notices
from queue_dispatcher.turn.plan_questions import PlanQuestion
from queue_dispatcher.turn.probing import probings_of
from queue_dispatcher.turn.queue_states import growing, queue_states
from queue_dispatcher.turn.reducing import reduce
from queue_dispatcher.turn.reserved import tell_reservations
from queue_dispatcher.turn.reserving import earliest_of, keep_reservations
from queue_dispatcher.turn.shrinking import yields
from queue_dispatcher.turn.state import Basis, TurnState, View
from queue_dispatcher.turn.suspending import waiting_in_place
from queue_dispatcher.turn.switching import switching
from queue_dispatcher.turn.waking import kicks
from queue_dispatcher.turn.writes import Write

EXPIRY_MS = 30_000
"""How long a state older than our own write is held back."""
FOLLOWERS_EVERY_MS = 2_000


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
    take_notices(state, now)
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
    last = last_decision(state, now)
    if last is not None:
        decided_ms = last.next_due_ms
    else:
        stated, changes = snapshot(state, now), cache.changes
        decision = yield from _decided(state, stated, now)
        if state.term != term:
            return Turned()
        decided_ms = decision.next_due_ms
        stands = standing(cache, decision.actions)
        is_latest = basis_then(state, stated, changes) == basis_of(state, now, is_full=False)
        hand_over(state, [action.item for action in stands])
        admitted = admissions(state, stands, now)
        writes += admitted
        state.turns = decision.turns
        tell_reservations(state, decision.reservations, now)
        probings += probings_of(state, decision, now) + keep_reservations(state, decision, now)
        looked = yield from _looked(state, decision, now)
        if looked is None:
            return Turned()
        note(state, decision, len(admitted), now, is_latest=is_latest and looked.is_latest)
        for question in looked.questions:
            yield
            if state.term != term:
                return Turned()
            probings += question.put(state, now)
    state.window.under_way(len(cache.running.in_flight), now.elapsed_ms)
    times = (retry_ms, yield_ms, reduce_ms, evict_ms, overdue_ms, lost_ms, give_up_ms, decided_ms)
    due = [at for at in (*times, _try_due_ms(state, now)) if at is not None]
    return Turned(tuple(writes), tuple(probings), min(due, default=None), has_decided=last is None)


class _Looked(NamedTuple):
    """What came of looking whom to displace: what is to be asked for that; ``is_latest``: nothing that it
    looked at changed meanwhile.
    """

    questions: list[PlanQuestion]
    is_latest: bool


def _looked(state: TurnState, decision: Decision, now: Moment) -> Generator[None, None, _Looked | None]:
    """Look whom to displace; None if it has changed meanwhile who leads."""
    term, is_latest, steps = state.term, True, displace(state, decision, now)
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            questions: list[PlanQuestion] = stop.value
            return _Looked(questions, is_latest)
        known = _known(state, decision, now)
        yield
        if state.term != term:
            return None
        is_latest = is_latest and known == _known(state, decision, now)


def _known(state: TurnState, decision: Decision, now: Moment) -> tuple[Basis, dict[str, VictimsAnswer]]:
    """What the decision was made on, and whom to displace is looked for."""
    told = state.estimates.victims if state.estimates is not None else {}
    return basis_of(state, now, is_full=bool(decision.window_full)), dict(told)


def _try_due_ms(state: TurnState, now: Moment) -> int | None:
    """When a full window is to be tried out, epoch milliseconds; None if it is not."""
    at_ms = state.window.try_due_ms(len(state.cache.running.in_flight))
    return now.day_ms + at_ms - now.elapsed_ms if at_ms is not None and at_ms > now.elapsed_ms else None


def snapshot(state: TurnState, now: Moment) -> Snapshot:
    """What a cycle decides from; the cache must be settled."""
    cache = state.cache
    claims = claims_of(state, now)
    state.queues = queue_states(state, claims, now)
    tokens, preplaced_tokens = tokens_of(state, now)
    grows, over_budget = growing(state, now)
    return Snapshot(
        ledger=cache.charges.ledger,
        queues={name: one.state for name, one in state.queues.items()},
        envelope=cache.envelope(),
        verdicts=verdicts_of(state, now),
        tokens=tokens,
        preplaced_tokens=preplaced_tokens,
        in_flight=len(cache.running.in_flight),
        elsewhere=None if state.is_leading else asked_by(state.leader),
        turns=state.turns,
        endings=cache.running.endings,
        earliest=earliest_of(state),
        reservations=state.reservations,
        claims=claims,
        growing=grows,
        over_budget=over_budget,
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
