"""What is reserved is asked about, and the estimators keep its room: of one cluster, the one that is free
first.

A reservation that nobody can tell a cluster for is one of quota and of amounts alone.
"""

from collections.abc import Sequence
from typing import Final

from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cycle.actions import Admit, Decision
from queue_dispatcher.cycle.earliest import Earliest
from queue_dispatcher.cycle.reservation import Reservation, Reservations, own_probe
from queue_dispatcher.estimates.estimates import Departures, Estimates, Probing
from queue_dispatcher.turn.probing import asked_about
from queue_dispatcher.turn.state import TurnState

EVERY_MS: Final = 5_000
"""A reservation is asked about again after so long,"""
EACH_MS: Final = 100
"""and where there are more than fifty after so long for each."""


def earliest_of(state: TurnState) -> dict[str, Earliest]:
    """By `own_probe`, what the estimators have said about what is reserved."""
    estimates = state.estimates
    if estimates is None:
        return {}
    return {probe: one.best for probe, one in estimates.earliest.items() if one.best is not None}


def keep_reservations(state: TurnState, decision: Decision, now: Moment) -> list[Probing]:
    """What was decided is kept from now on; what to ask the estimators about it."""
    before, state.reservations = state.reservations, decision.reservations
    state.order(one.item.id for one in decision.reservations.made)
    estimates = state.estimates
    if estimates is None:
        return []
    admitted = {action.item.id for action in decision.actions if isinstance(action, Admit)}
    made = [one for one in decision.reservations.made if one.item.id not in admitted]
    _forget(estimates, before, made)
    asking: list[Probing] = []
    endings: Departures | None = None
    for one in made:
        probe = own_probe(one.item, one.alternative)
        if not probe or len(one.item.members) > 1:
            continue
        _hold(state, estimates, one, probe)
        if one.is_claimed and one.cluster:
            state.move(one.item.id, one.cluster)
        known = estimates.earliest.get(probe)
        every_ms = max(EVERY_MS, EACH_MS * len(made))
        if known is not None and now.elapsed_ms - known.asked_ms < every_ms:
            continue
        if endings is None:
            endings = _endings(state.cache)
        subjects = asked_about(state.cache, one.item, one.alternative)
        # Those behind it give way. If each gave way to the other, both would go back and forth.
        through = decision.reservations.behind(one.item.id)
        if one.is_claimed:
            # Others' reservations may have come to hold the room that was made for it.
            through |= decision.reservations.through(one.item, one.rank, None, now.day_ms)
        probing = estimates.ask_earliest(probe, subjects, endings, day_ms=now.day_ms, through=through)
        if probing is not None:
            asking.append(probing)
    return asking


def _forget(estimates: Estimates, before: Reservations, made: Sequence[Reservation]) -> None:
    kept = {own_probe(one.item, one.alternative) for one in made}
    for one in before.made:
        probe = own_probe(one.item, one.alternative)
        if probe and probe not in kept:
            estimates.forget_earliest(probe)
    items = {one.item.id for one in made}
    for uid in [uid for uid, _ in estimates.reservations() if uid not in items]:
        estimates.unreserve(uid)


def _hold(state: TurnState, estimates: Estimates, one: Reservation, probe: str) -> None:
    known = estimates.earliest.get(probe)
    if not one.cluster or known is None or known.best is None:
        estimates.unreserve(one.item.id)
        return
    # Of growth nobody can tell the pods from those before.
    name = "" if one.item.is_growth else state.cache.entries[one.item.id].binding.workload.name
    estimates.reserve(one.item.id, name, probe, known.best)


def _endings(cache: Cache) -> Departures:
    """By cluster, what runs there and is known to end, and when."""
    running = cache.running
    return {cluster: tuple(running.leaving.of(cluster)) for cluster in running.clusters}
