"""What a turn asks the estimators, and what it tells them of what has been released."""

from collections.abc import Iterable, Mapping

from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cycle.actions import Decision, Probe
from queue_dispatcher.cycle.items import Item
from queue_dispatcher.estimates.estimates import Probing, Subject
from queue_dispatcher.turn.state import TurnState


def probings_of(state: TurnState, decision: Decision) -> list[Probing]:
    """What to ask the estimators."""
    estimates = state.estimates
    if estimates is None:
        return []
    probings = []
    for action in decision.actions:
        if isinstance(action, Probe):
            item = action.item
            subjects = subjects_of(state.cache, item.members, is_growth=item.is_growth)
            probing = estimates.ask(item.shape.probe, subjects)
            if probing is not None:
                probings.append(probing)
    return probings


def tell_released(state: TurnState, item: Item, taken: Mapping[str, int] | None, now: Moment) -> None:
    """The item is about to be released. ``taken``: as of `Estimates.released`."""
    estimates, entries = state.estimates, state.cache.entries
    if estimates is None:
        return
    if not item.shape.probe:
        estimates.passed(subjects_of(state.cache, item.members, is_growth=item.is_growth))
        return
    # By its name the estimators would take what runs for the growth that is on its way.
    names = {uid: "" if item.is_growth else entries[uid].binding.workload.name for uid in item.members}
    estimates.released(item.shape.probe, names, now.elapsed_ms + state.window.expected_ms, taken)


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
