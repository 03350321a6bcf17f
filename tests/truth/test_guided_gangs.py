"""A real kube-scheduler makes the gangs whole that are guided; ``python -m tests.truth.guided`` asks more."""

from collections.abc import Sequence

import pytest

from tests.envtest import assets
from tests.truth.gangs import crowded, tight
from tests.truth.guiding import Way
from tests.truth.kinds import KINDS
from tests.truth.whole import Outcome, outcomes

pytestmark = pytest.mark.envtest

EACH, NODES = 6, 12
_NO_PROGRAMS = "KUBEBUILDER_ASSETS names no folder with etcd, kube-apiserver and kube-scheduler"


def whole(found: Sequence[Outcome], way: Way) -> tuple[int, int]:
    """How many gangs were whole, and how many had been promised."""
    of = [one for one in found if one.way is way]
    return sum(one.whole for one in of), sum(one.promised for one in of)


def test_gangs_that_fit_exactly_once_become_whole() -> None:
    programs = assets("kube-scheduler")
    if programs is None:
        pytest.skip(_NO_PROGRAMS)
    fleets = [fleet for suite in "ABC" for fleet in tight(suite, EACH)]
    found = outcomes(programs, fleets, (Way.UNGUIDED, Way.GUIDED))
    guided, promised = whole(found, Way.GUIDED)
    assert promised == len(fleets)
    # The scheduler may take the first pods before it has seen the others.
    assert guided >= promised - 1, [one for one in found if one.waiting and one.way is Way.GUIDED]
    # Else it would show nothing: by itself the scheduler makes one of ten whole.
    assert whole(found, Way.UNGUIDED)[0] <= len(fleets) // 2


def test_sets_that_are_released_at_once_become_whole() -> None:
    programs = assets("kube-scheduler")
    if programs is None:
        pytest.skip(_NO_PROGRAMS)
    found = outcomes(programs, list(crowded(KINDS, NODES)), (Way.UNGUIDED, Way.GUIDED), most=100)
    guided, promised = whole(found, Way.GUIDED)
    assert promised > len(KINDS)
    assert guided >= 0.97 * promised, [one for one in found if one.waiting and one.way is Way.GUIDED]
    assert whole(found, Way.UNGUIDED)[0] < guided
