"""What a turn asks the estimators, and what it tells them of what has been released."""

from collections.abc import Iterable

from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cycle.actions import Admit, Decision, Probe
from queue_dispatcher.estimates.estimates import Probing, Subject
from queue_dispatcher.turn.state import TurnState


def probings_of(state: TurnState, decision: Decision, now: Moment) -> list[Probing]:
    """What to ask the estimators; they are told as well what has been released on their word."""
    estimates, entries = state.estimates, state.cache.entries
    if estimates is None:
        return []
    until_ms = now.elapsed_ms + state.window.expected_ms
    probings = []
    for action in decision.actions:
        match action:
            case Admit(item=item) if item.shape.probe:
                # By its name the estimators would take what runs for the growth that is on its way.
                names = {
                    uid: "" if item.is_growth else entries[uid].binding.workload.name for uid in item.members
                }
                estimates.released(item.shape.probe, names, until_ms)
            case Admit(item=item):
                estimates.passed(subjects_of(state.cache, item.members, is_growth=item.is_growth))
            case Probe(item=item):
                probing = estimates.ask(
                    item.shape.probe, subjects_of(state.cache, item.members, is_growth=item.is_growth)
                )
                if probing is not None:
                    probings.append(probing)
    return probings


def subjects_of(cache: Cache, uids: Iterable[str], *, is_growth: bool) -> list[Subject]:
    """The bindings that are asked about, and where each may go; ``is_growth``: about what is not placed."""
    return [
        Subject(
            binding,
            cache.fleet.permitted(binding.placement),
            cache.fleet.copies(binding.placement, binding.demand),
            is_growth,
        )
        for uid in uids
        if (binding := cache.entries[uid].binding).placement is not None
    ]
