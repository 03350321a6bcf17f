"""What a turn asks the estimators, and what it tells them of what has been released."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from queue_dispatcher.bindings.part import at_size
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cycle.actions import Decision, Probe
from queue_dispatcher.cycle.items import Alternative, Item
from queue_dispatcher.estimates.estimates import Probing, Subject
from queue_dispatcher.turn.state import TurnState
from queue_dispatcher.workloads.choice import Choice
from queue_dispatcher.workloads.flavors import preferred_clusters


def probings_of(state: TurnState, decision: Decision, now: Moment) -> list[Probing]:
    """What to ask the estimators, once what was decided is admitted.

    What still fits by then, as they have said, was to be asked about anew for what would have taken its room
    and was not admitted, or went elsewhere. They know nothing of that, would say the same, and would be asked
    without end for as long as it is decided and may not be written.
    """
    estimates = state.estimates
    if estimates is None:
        return []
    probings = []
    for action in decision.actions:
        if isinstance(action, Probe):
            known = estimates.verdicts.get(action.probe, now.elapsed_ms)
            if known is not None and known.fits > 0:
                continue
            subjects = asked_about(state.cache, action.item, action.alternative)
            probing = estimates.ask(action.probe, subjects, action.alternative.through)
            if probing is not None:
                probings.append(probing)
    return probings


def asked_about(cache: Cache, item: Item, alternative: Alternative) -> list[Subject]:
    """What is asked about an item that would be charged so."""
    subjects = subjects_of(cache, item.members, is_growth=item.is_growth)
    if item.pods:
        subjects = [_elastic(one, item) for one in subjects]
    clusters = alternative.clusters
    if clusters is not None:
        subjects = [replace(one, permitted=one.permitted & clusters) for one in subjects]
    if alternative.keeps:
        split = cache.pending.split(item, alternative)
        keeps = {uid: one.keeps for uid, one in zip(item.members, split, strict=True)}
        subjects = [replace(one, keeps=keeps[one.binding.uid]) for one in subjects]
    if len(subjects) == len(item.members) > 1:
        subjects = _preferring(cache, subjects, item, alternative)
    return subjects


def _elastic(subject: Subject, item: Item) -> Subject:
    """An elastic workload is asked about pod by pod: how many there is room for, up to all of them."""
    binding, placed = subject.binding, subject.binding.placed
    runs = sum(share.replicas for share in placed)
    binding = at_size(binding, runs + item.pods)
    if binding.placement is not None and binding.placement.max_clusters == 1:
        binding = replace(binding, placement=replace(binding.placement, max_clusters=0))
    permitted = subject.permitted
    if item.in_one and placed:
        permitted &= {share.cluster for share in placed}
    return replace(subject, binding=binding, permitted=permitted, most=item.most, in_one=item.in_one)


def _preferring(
    cache: Cache, subjects: Sequence[Subject], item: Item, alternative: Alternative
) -> list[Subject]:
    """The members of a group with where each prefers to go, which those after it are told that it goes to."""
    return [
        replace(one, preferred=preferred_clusters(own, cache.fleet.reaches, cache.fleet.tiers(placement)))
        if (placement := one.binding.placement) is not None
        else one
        for one, own in zip(subjects, cache.pending.split(item, alternative), strict=True)
    ]


def tell_released(
    state: TurnState, item: Item, probe: str, chosen: Mapping[str, Choice], now: Moment
) -> None:
    """The item is about to be released on the answer to this question; by member, where to, empty where
    Karmada chooses.
    """
    estimates, entries = state.estimates, state.cache.entries
    if estimates is None:
        return
    if not probe:
        estimates.passed(subjects_of(state.cache, item.members, is_growth=item.is_growth))
        return
    # By its name the estimators would take what runs for the growth that is on its way.
    names = {uid: "" if item.is_growth else entries[uid].binding.workload.name for uid in item.members}
    until_ms = now.elapsed_ms + state.window.expected_ms
    taken: dict[str, int] = {}
    for one in chosen.values():
        taken.update(one.taken)
    places = {uid: one.more for uid, one in chosen.items()}
    where = {uid: {of.cluster: of.where for of in one.guidance} for uid, one in chosen.items()}
    estimates.released(probe, names, until_ms, places, taken, where)


def subjects_of(cache: Cache, uids: Iterable[str], *, is_growth: bool) -> list[Subject]:
    """The bindings that are asked about, and where each may go; ``is_growth``: about what is not placed."""
    return [
        Subject(
            binding,
            cache.fleet.permitted(binding.placement),
            cache.fleet.copies(binding.placement, binding.demand),
            is_growth,
            templates=entry.facts.pods,
        )
        for entry in map(cache.entries.__getitem__, uids)
        if (binding := entry.binding).placement is not None
    ]
