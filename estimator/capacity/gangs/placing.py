"""A gang placed in one cluster: room held for what is on its way, the search, and what spreading would do.

The one function behind Fairway's own `Place` and `Explain`, on the server and in the ``fairway`` command.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice

from estimator.capacity.answer import NO_LIMIT, Answer, lowest
from estimator.capacity.assumed import hold
from estimator.capacity.budget import Budget, Expired
from estimator.capacity.gangs.gang_replicas import Topology
from estimator.capacity.gangs.placements import Assignment, Placed
from estimator.capacity.gangs.shortage import shortage
from estimator.capacity.quota import quota_sets
from estimator.capacity.request import Component, GangQuestion
from estimator.capacity.room import Room
from estimator.capacity.sets.best_fit import further
from estimator.capacity.sets.creation_orders import Spreading
from estimator.capacity.sets.first_fit import Placement
from estimator.capacity.sets.spare import with_spare
from estimator.capacity.topology.gang_fit import place_gang
from estimator.capacity.topology.slices import asks_tpu
from estimator.capacity.topology.spreading import keeps_distance
from estimator.cluster.quotas import Quota
from estimator.reasons import DOUBT, Reason, in_doubt, understated

_SPREAD_S = 0.25
"""Time for the number that spreading gives; it is told beside the answer, and must not take its time."""
_SPARE_S = 0.25
"""Time for which nodes of a placement are to be filled last."""
_FURTHER_S = 0.05
"""Time for further placements, which save the next question."""
MAX_PLACEMENTS = 16


def place(
    room: Room,
    question: GangQuestion,
    topology: Topology,
    expired: Expired,
    search: Budget,
    quotas: tuple[Quota, ...] = (),
    *,
    placements: int = 0,
) -> Placed:
    """How many copies of the gang fit in the room, less what is on its way, and where they would go.

    ``quotas`` of the gang's namespace limit that further. ``search`` is time for an exact answer. Where no
    copy was found and none was ruled out, the first reason is a `Doubt`. The room is left with the assumed
    gangs placed. ``placements``: if not 0, the placement leaves as many nodes whole as it can, is of no more
    copies than are wanted, and is followed by so many less one further ones as far as they are soon found.
    Raises OutOfTime where the assumed could not all be placed in time.
    """
    coming = tuple(one for one in question.assumed if not one.waits)
    allowed = quota_sets(quotas, question.components, question.namespace, coming)
    if allowed.value == 0:
        return Placed(allowed)
    held = hold(room, coming, expired)
    waiting = tuple(one for one in question.assumed if one.waits)
    # A kube-scheduler left to itself knows of nothing that is kept.
    unkept = {one.shape: room.fits(one.shape) for one in question.components if waiting and placements}
    held = (*held, *hold(room, waiting, expired))
    is_tempted = any(bool((room.fits(shape) < fits).any()) for shape, fits in unkept.items())
    fit = place_gang(
        room,
        question.components,
        question.topology,
        topology.levels,
        topology.domains,
        expired,
        question.wanted if allowed == NO_LIMIT else min(question.wanted or allowed.value, allowed.value),
        search,
        tight=placements > 0,
    )
    answer = replace(fit.answer, reasons=(*_unsure(fit.answer, expired()), *fit.answer.reasons, *held))
    fits = min(answer.value, allowed.value)
    spread, is_packed = None, False
    is_bound = question.topology is not None or any(_is_bound(room, one) for one in question.components)
    found = [(room, fit.placement or {})]
    if placements and not is_bound:
        found += _further(room, question, fit.placement or {}, fits, placements, search)
    if fits and not is_bound:
        # All copies that fit, since a lower number would read as a risk; None where that is too much work.
        side = Budget(search.clock, search.clock() + _SPREAD_S)
        spreading = Spreading(room, question.components)
        spread = spreading.sets(fits, partial(_either, expired, side))
        if placements and fit.placement:
            # Where all of them together fill what there is, some of them may not.
            told, late = min(fits, question.wanted or fits), partial(_either, expired, side)
            is_packed = spreading.leaves_less_together([one for _, one in found], told, late)
    if is_tempted and fits and fit.placement:
        is_packed = True
    if allowed != NO_LIMIT:
        answer = lowest(answer, allowed)
    lacking: int | None = None
    copies = max(1, question.wanted)
    if answer.value < copies:
        short = shortage(room, question.components, copies)
        lacking = short.empty_bound
        answer = replace(answer, reasons=_first(answer.reasons, short.reasons))
    assignments: list[Assignment] = []
    for nth, (beside, placement) in enumerate(found):
        spare: Placement = {}
        if placements:
            side = Budget(search.clock, search.clock() + _SPARE_S)
            spare = with_spare(beside, question.components, placement, partial(_either, expired, side))
        assignments += _named(room, question, placement, spare, nth)
    return Placed(answer, spread, fit.level, tuple(assignments), lacking, is_packed)


def _further(
    room: Room, question: GangQuestion, first: Placement, fits: int, most: int, search: Budget
) -> Iterator[tuple[Room, Placement]]:
    """Placements of as many copies as the ``first`` is of, each in the room that those before leave.

    With the first no more than ``most``; none where the pods of one may be in the way of another's.
    """
    components, sets = question.components, question.wanted
    times = min(most, MAX_PLACEMENTS, fits // sets if sets else 1)
    if times < 2 or any(room.around(one.shape) is not None for one in components):
        return iter(())
    side = Budget(search.clock, search.clock() + _FURTHER_S)
    return islice(further(room, components, sets, first, lambda: side.spent), times - 1)


def _first(reasons: tuple[Reason, ...], short: tuple[Reason, ...]) -> tuple[Reason, ...]:
    """Doubts, then what is lacking, then what the search has found."""
    doubts = sum(reason.kind == DOUBT for reason in reasons)
    return (*reasons[:doubts], *short, *reasons[doubts:])


def _unsure(answer: Answer, late: bool) -> tuple[Reason, ...]:
    """What to tell beside a number that is not proven."""
    if answer.proven or (answer.value and not late):
        return ()
    if answer.value:
        return (understated("the time for the answer was up"),)
    if late:
        return (in_doubt("late", "the time was up before a placement was found or ruled out; give it more"),)
    return (in_doubt("unproven", "no placement was found and none ruled out; a longer search may tell"),)


def _is_bound(room: Room, component: Component) -> bool:
    """Whether more than room decides where its pods go, which the number for spreading does not look at."""
    shape = component.shape
    if component.topology is not None or keeps_distance(shape) or asks_tpu(shape):
        return True
    around = room.around(shape)
    return around is not None and bool(around.together or around.choices)


def _either(expired: Expired, side: Budget) -> bool:
    return expired() or side.spent


def _named(
    room: Room, question: GangQuestion, placement: Placement, spare: Placement, nth: int
) -> Iterator[Assignment]:
    return (
        Assignment(question.components[index].name, node.name, pods, (index, row) in spare, nth)
        for (index, row), pods in sorted(placement.items())
        if (node := room.nodes.rows[row]) is not None
    )
