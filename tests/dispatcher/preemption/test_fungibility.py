"""Which flavor is taken at which price, against the rule as Kueue states it and the cases that it has."""

from itertools import product

import pytest

from queue_dispatcher.api.cluster_queue import FlavorFungibility, FlavorPreference, SearchPolicy
from queue_dispatcher.preemption.fungibility import Mode, Outcome, chosen

STOP, NEXT = SearchPolicy.MAY_STOP_SEARCH, SearchPolicy.TRY_NEXT_FLAVOR
BORROWING, PREEMPTING = FlavorPreference.BORROWING_OVER_PREEMPTION, FlavorPreference.PREEMPTION_OVER_BORROWING
DEFAULT = FlavorFungibility()
STOPS = FlavorFungibility(STOP, STOP)
STOPS_AT_OWN = FlavorFungibility(NEXT, STOP)
LOOKS_ON = FlavorFungibility(NEXT, NEXT)
BORROWS_LAST = FlavorFungibility(NEXT, NEXT, PREEMPTING)
ALL = (DEFAULT, STOPS, STOPS_AT_OWN, LOOKS_ON, FlavorFungibility(NEXT, NEXT, BORROWING), BORROWS_LAST)

NONE = Outcome(Mode.NONE)
FIT, FIT1, FIT2 = (Outcome(Mode.FIT, far) for far in range(3))
RECLAIM, RECLAIM1 = Outcome(Mode.RECLAIM), Outcome(Mode.RECLAIM, 1)
PREEMPT, PREEMPT1 = Outcome(Mode.PREEMPT), Outcome(Mode.PREEMPT, 1)


# By the flavors in their order: which one is taken with each of DEFAULT, STOPS, STOPS_AT_OWN, LOOKS_ON, and
# BORROWS_LAST. The first eight as in the table of KEP-582 and Kueue's documentation.
@pytest.mark.parametrize(
    ("flavors", "taken"),
    [
        ((FIT, FIT), (0, 0, 0, 0, 0)),
        ((NONE, FIT), (1, 1, 1, 1, 1)),
        ((PREEMPT, FIT), (1, 0, 0, 1, 1)),
        ((FIT1, FIT), (0, 0, 1, 1, 1)),
        ((FIT1, FIT1), (0, 0, 0, 0, 0)),
        ((PREEMPT, FIT1), (1, 0, 0, 1, 0)),
        ((FIT1, PREEMPT), (0, 0, 1, 0, 1)),
        ((PREEMPT1, PREEMPT), (1, 0, 1, 1, 1)),
        # Preempt before try next flavor; preempt try next flavor.
        ((PREEMPT, PREEMPT), (0, 0, 0, 0, 0)),
        # When borrowing while preemption is needed for flavor one.
        ((PREEMPT1, FIT), (1, 0, 1, 1, 1)),
        ((RECLAIM1, FIT), (1, 0, 1, 1, 1)),
        # Cannot preempt in cohort for the first flavor, tries the second one, which fits.
        ((NONE, FIT1), (1, 1, 1, 1, 1)),
        # Select first flavor where gpu reclamation is possible; when flavor fungibility is disabled.
        ((PREEMPT, RECLAIM, NONE), (1, 0, 0, 1, 1)),
        # Select deeper borrowing flavor that fits when the shallower one has no preemption candidates.
        ((NONE, FIT2, NONE), (1, 1, 1, 1, 1)),
        # Prioritises lower preemption, and breaks ties of borrowing with preemption.
        ((PREEMPT1, FIT2), (1, 0, 1, 1, 0)),
        ((PREEMPT1, FIT1), (1, 0, 1, 1, 1)),
        # No flavor can be had.
        ((NONE, NONE), (None, None, None, None, None)),
        ((), (None, None, None, None, None)),
    ],
)
def test_the_flavor_that_is_taken(flavors: tuple[Outcome, ...], taken: tuple[int | None, ...]) -> None:
    policies = (DEFAULT, STOPS, STOPS_AT_OWN, LOOKS_ON, BORROWS_LAST)
    assert tuple(chosen(flavors, policy) for policy in policies) == taken


def _is_preferred(one: Outcome, other: Outcome, policy: FlavorFungibility) -> bool:
    if Mode.NONE in (one.mode, other.mode):
        return one.mode is not Mode.NONE and other.mode is Mode.NONE
    if policy.preference is PREEMPTING and one.distance != other.distance:
        return one.distance < other.distance
    return one.distance < other.distance if one.mode == other.mode else one.mode > other.mode


def _searched(flavors: tuple[Outcome, ...], policy: FlavorFungibility) -> int | None:
    """As Kueue's loop over the flavors has it."""
    best: int | None = None
    for number, one in enumerate(flavors):
        goes_on = one.mode is Mode.NONE
        goes_on |= one.mode in (Mode.PREEMPT, Mode.RECLAIM) and policy.when_can_preempt is NEXT
        goes_on |= one.distance > 0 and policy.when_can_borrow is NEXT
        if not goes_on:
            return number
        if one.mode is not Mode.NONE and (best is None or _is_preferred(one, flavors[best], policy)):
            best = number
    return best


@pytest.mark.parametrize("policy", ALL)
def test_of_any_three_flavors_it_is_the_one_at_which_the_search_ends(policy: FlavorFungibility) -> None:
    for flavors in product((NONE, FIT, FIT1, FIT2, RECLAIM, RECLAIM1, PREEMPT, PREEMPT1), repeat=3):
        assert chosen(flavors, policy) == _searched(flavors, policy), flavors


@pytest.mark.parametrize("policy", ALL)
def test_displacing_goes_before_a_start_only_where_that_is_stated(policy: FlavorFungibility) -> None:
    goes_first = any(
        flavors[taken].mode is not Mode.FIT
        for flavors in product((FIT, FIT1, FIT2, RECLAIM, PREEMPT, PREEMPT1), repeat=2)
        if any(one.mode is Mode.FIT for one in flavors) and (taken := chosen(flavors, policy)) is not None
    )
    assert goes_first == policy.may_displace_first
