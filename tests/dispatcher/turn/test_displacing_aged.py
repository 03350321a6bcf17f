"""Ageing says who goes first in a queue, and class priority alone who may be displaced: what is made for
somebody is not for who could be displaced for it next.
"""

import pytest

from queue_dispatcher.api.kinds import SERVICE_CLASSES
from tests.dispatcher.scenarios.objects import service_class
from tests.dispatcher.turn.builders import Plane
from tests.dispatcher.turn.test_displacing import (
    LOWER,
    Hanging,
    comes,
    displaced,
    furnish,
    lines,
    plane,
    queue,
    runs,
    settle,
)

NEWER = {"withinClusterQueue": "LowerOrNewerEqualPriority"}
STRATEGIES = ["BestEffortFIFO", "BackfillFIFO", "StrictFIFO"]


def ages(made: Plane, priority: int = 0) -> None:
    made.feed(SERVICE_CLASSES, service_class("aged", priority, ageing={"step": "1s", "cap": 100}))


def aging(strategy: str) -> Hanging:
    made = Hanging({"m1": 3})
    furnish(made, 3, LOWER)
    queue(made, "main", 3, preemption=LOWER, queueingStrategy=strategy)
    ages(made)
    return made


def urgent_comes(made: Hanging) -> None:
    """While its victim does not go yet."""
    made.hangs = ("x2",)
    comes(made, "urgent", 1, "high")
    settle(made)


def full(made: Plane) -> None:
    for number in range(3):
        runs(made, f"x{number}", 1)


def test_nor_does_one_of_its_priority_that_came_later_and_ages_faster() -> None:
    made = Hanging({"m1": 2})
    furnish(made, 2, NEWER)
    ages(made, 10)
    runs(made, "stays", 1, "high")
    runs(made, "x", 1)
    made.hangs = ("x",)
    comes(made, "urgent", 1, "high")
    settle(made)
    comes(made, "aged", 1, "aged")
    made.passes(60)
    made.goes_on()
    made.passes(30)
    assert (displaced(made), made.is_held("urgent"), made.is_held("aged")) == (["x"], False, True)


@pytest.mark.parametrize("strategy", ["BestEffortFIFO", "BackfillFIFO"])
def test_no_more_go_than_have_to_where_others_have_aged_above_it(strategy: str) -> None:
    made = plane(3, LOWER)
    queue(made, "main", 3, preemption=LOWER, queueingStrategy=strategy)
    ages(made)
    full(made)
    for number in range(3):
        comes(made, f"aged{number}", 1, "aged")
    made.passes(60)
    comes(made, "urgent", 1, "high")
    made.passes(30)
    assert (displaced(made), made.is_held("urgent")) == (["x2"], False)
    assert all(made.is_held(f"aged{number}") for number in range(3))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_it_starts_though_somebody_ages_above_it_while_others_go(strategy: str) -> None:
    """Nobody passes the first of a StrictFIFO queue, which is for whom others go."""
    made = aging(strategy)
    full(made)
    comes(made, "aged", 1, "aged")
    urgent_comes(made)
    assert "urgent" in made.state.displacements
    made.passes(60)
    made.goes_on()
    made.passes(30)
    assert (displaced(made), made.is_held("urgent"), made.is_held("aged")) == (["x2"], False, True)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_like_it_that_came_earlier_starts_in_its_place(strategy: str) -> None:
    """Who has aged above both waits."""
    made = aging(strategy)
    made.submit("older", replicas=1, said={"fairway.dev/class": "high", "fairway.dev/queue": "comes"})
    made.passes(5)
    for name, of in (("x0", "high"), ("x1", "high"), ("x2", "low")):
        runs(made, name, 1, of)
    comes(made, "aged", 1, "aged")
    urgent_comes(made)
    lines(made, comes="main")
    made.passes(60)
    made.goes_on()
    made.passes(30)
    assert (displaced(made), made.is_held("older"), made.is_held("aged")) == (["x2"], False, True)


def test_who_goes_before_it_by_priority_too_is_the_head() -> None:
    made = aging("StrictFIFO")
    made.feed(SERVICE_CLASSES, service_class("top", 50))
    full(made)
    comes(made, "aged", 1, "aged")
    urgent_comes(made)
    made.passes(60)
    comes(made, "best", 1, "top")
    made.goes_on()
    made.passes(10)
    assert (made.is_held("best"), made.is_held("aged")) == (False, True)
