"""Basis: what a decision was made on, and whether it holds still."""

from collections.abc import Mapping
from typing import Final

from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cycle.actions import Admit, Decision
from queue_dispatcher.cycle.snapshot import Snapshot, Verdict
from queue_dispatcher.turn.displacing import claims_of
from queue_dispatcher.turn.reserving import earliest_of
from queue_dispatcher.turn.state import Basis, Decided, TurnState

FLOOR_MS: Final = 1_000
"""For so long a decision is trusted of which nothing has changed that it looked at."""
MAX_PREPLACED: Final = 64
"""How many releases that say where may be on their way to the API server at once."""


def last_decision(state: TurnState, now: Moment) -> Decided | None:
    """The last decision, if to decide now would find the same; for at most `FLOOR_MS` it is trusted.

    Of the events that a release causes, most only tell what was known: that it was written, and placed.
    """
    last = state.decided
    if last is None or now.elapsed_ms - last.at_ms >= FLOOR_MS:
        return None
    if last.next_due_ms is not None and now.day_ms >= last.next_due_ms:
        return None
    return last if last.basis == basis_of(state, now, is_full=last.basis.tokens is not None) else None


def note(state: TurnState, decision: Decision, written: int, now: Moment, *, is_latest: bool) -> None:
    """Keep what a decision was based on, with its admissions made, unless there is more to decide.

    ``is_latest``: nothing of it changed while it was made.
    """
    state.decided = None
    admitted = [action for action in decision.actions if isinstance(action, Admit)]
    is_made = written == sum(len(action.item.members) for action in admitted)
    is_made = is_made and not decision.preemptors.seconds
    if is_latest and is_made and len(admitted) == len(decision.actions):
        basis = basis_of(state, now, is_full=bool(decision.window_full))
        state.decided = Decided(basis, now.elapsed_ms, decision.next_due_ms)


def basis_of(state: TurnState, now: Moment, *, is_full: bool) -> Basis:
    """What a decision would be made on now; ``is_full``: as the release window keeps somebody waiting."""
    cache = state.cache
    tokens = tokens_of(state, now) if is_full else None
    claims = tuple(claims_of(state, now).items())
    known = (cache.envelope(), verdicts_of(state, now), tokens, earliest_of(state), claims)
    return Basis(cache.changes, *known, frozenset(state.in_vain_ms), _void(state))


def basis_then(state: TurnState, stated: Snapshot, changes: int) -> Basis:
    """What the decision is made on that is made from the snapshot; ``changes``: of the cache, by then."""
    claims, in_vain = tuple(stated.claims.items()), frozenset(state.in_vain_ms)
    known = (stated.envelope, stated.verdicts, None, stated.earliest, claims)
    return Basis(changes, *known, in_vain, _void(state))


def tokens_of(state: TurnState, now: Moment) -> tuple[int, int]:
    """How many may be released that Karmada has to place, and how many that say where."""
    running = state.cache.running
    tokens = state.window.tokens(len(running.in_flight), now.elapsed_ms)
    # What was refused and is to be written again is not on its way, and may be refused for ever.
    entries = state.cache.entries
    return tokens, max(0, MAX_PREPLACED - sum(entries[uid].is_writing for uid in running.preplaced))


def verdicts_of(state: TurnState, now: Moment) -> Mapping[str, Verdict]:
    """What the estimators have said that holds still."""
    estimates = state.estimates
    return estimates.verdicts.current(now.elapsed_ms) if estimates is not None else {}


def _void(state: TurnState) -> frozenset[str]:
    return frozenset(item_id for item_id, one in state.displacements.items() if one.is_void)
