"""Rounds: three that could each displace the next come to rest, until something changes from outside; and who
is displaced again and again waits ever longer.
"""

import pytest

from queue_dispatcher.api.kinds import CLUSTER_QUEUES, SERVICE_CLASSES
from queue_dispatcher.bindings.timestamp import parse_ms
from tests.dispatcher.scenarios.objects import cluster_queue, service_class
from tests.dispatcher.turn.builders import Plane
from tests.dispatcher.turn.test_displacing import (
    LOWER,
    RECLAIM,
    Hanging,
    cohort,
    comes,
    displaced,
    furnish,
    lines,
    plane,
    queue,
    runs,
)

EVERY = LOWER | RECLAIM


def of_three() -> Plane:
    """Of three that no two of fit beside each other, ``large`` of a goes for ``small`` of b, by shares; that
    one for ``urgent``, of its queue; and that one for ``large`` again, by shares. So ``small`` could go on.
    """
    made = plane(3, {})
    cohort(made, a={"gpus": 1, "preemption": EVERY}, b={"gpus": 1, "preemption": EVERY}, c={"gpus": 2})
    # Which owns nothing.
    made.feed(CLUSTER_QUEUES, cluster_queue("b", {"f": 0}, parent="root", preemption=EVERY))
    queue(made, "elsewhere", 1)
    lines(made, elsewhere="elsewhere")
    made.passes(5)
    runs(made, "large", 3, "mid", "a")
    for name, gpus, of in (("small", 1, "low"), ("urgent", 3, "mid")):
        comes(made, name, gpus, of, "b")
        made.passes(5)
        made.place(name, m1=gpus)
    made.passes(60)
    made.place("large", m1=3)
    made.passes(1)
    assert displaced(made) == ["large", "small", "urgent"]
    return made


@pytest.mark.parametrize("dies", [False, True])
def test_three_that_could_displace_each_other_come_to_rest(*, dies: bool) -> None:
    made = of_three()
    if dies:
        # Who takes over knows of it by what is written on those that wait.
        made.restart()
    made.passes(3_000, step_s=20)
    assert displaced(made) == ["large", "small", "urgent"]
    assert [made.is_held(name) for name in ("large", "small", "urgent")] == [False, True, True]


def another_comes(made: Plane) -> None:
    comes(made, "other", 3, "low", "c")


def one_is_edited(made: Plane) -> None:
    made.feed(SERVICE_CLASSES, service_class("low", 1))


def quotas_are_edited(made: Plane) -> None:
    queue(made, "c", 3, parent="root")


def one_is_gone(made: Plane) -> None:
    made.delete("urgent")


def a_cluster_grows(made: Plane) -> None:
    made.cluster("m2", 1)


@pytest.mark.parametrize(
    "changes", [another_comes, one_is_edited, quotas_are_edited, one_is_gone, a_cluster_grows]
)
def test_what_changes_from_outside_gives_rights_anew(changes: object) -> None:
    made = of_three()
    made.passes(300, step_s=20)
    assert callable(changes)
    changes(made)
    made.passes(60, step_s=20)
    assert displaced(made)[3:] == ["large"]


def test_what_happens_in_another_tree_changes_nothing() -> None:
    made = of_three()
    for number in range(10):
        comes(made, f"other{number}", 1, "low", "elsewhere")
        made.passes(100, step_s=20)
        made.delete(f"other{number}")
    assert len(displaced(made)) == 3


def waits_s(made: Plane, name: str) -> int:
    """How long it waits from when it was displaced."""
    requeue = made.requeue(name)
    assert requeue is not None
    until_ms = parse_ms(requeue["notBefore"])
    assert until_ms is not None
    return round((until_ms - made.now.day_ms) / 1000)


def urgent(made: Plane, number: int, *, places: bool = True) -> int:
    """Something urgent displaces ``x``, which waits for so many seconds; and ends."""
    name = f"urgent{number}"
    made.submit(name, replicas=2, said={"fairway.dev/class": "high"})
    while made.requeue("x") is None:
        made.passes(1)
    waits = waits_s(made, "x")
    made.place(name, m1=2)
    made.passes(2)
    made.delete(name)
    made.passes(waits - 5)
    assert made.is_held("x")
    made.passes(5)
    assert not made.is_held("x")
    if places:
        made.place("x", m1=2)
    return waits


def test_who_is_displaced_again_and_again_waits_ever_longer() -> None:
    made = plane(2, LOWER)
    runs(made, "x", 2)
    waits = []
    for number in range(6):
        made.passes(30)
        waits.append(urgent(made, number))
        if number == 2:
            # What is written says how often, to whoever takes over.
            made.restart()
    assert waits == [60, 120, 240, 480, 960, 960]
    # When it began is seen as late as turns are taken.
    made.passes(4 * 960 + 60, step_s=60)
    assert urgent(made, 6) == 60


@pytest.mark.parametrize("base", ["0s", "10s", "1h"])
def test_the_pause_is_not_that_of_its_class(base: str) -> None:
    made = plane(2, LOWER)
    made.feed(SERVICE_CLASSES, service_class("low", 0, requeue={"backoffBase": base}))
    runs(made, "x", 2)
    assert [urgent(made, number) for number in range(3)] == [60, 120, 240]


def test_what_else_it_is_taken_back_for_does_not_count_it_anew() -> None:
    made = plane(2, LOWER)
    made.feed(SERVICE_CLASSES, service_class("low", 0, startTimeout="120s"))
    runs(made, "x", 2)
    urgent(made, 0, places=False)
    made.refuse("x")
    made.passes(150)
    requeue = made.requeue("x")
    assert requeue is not None
    assert (requeue.get("cause", ""), requeue["displaced"]) == ("", 1)


def test_who_takes_the_room_that_was_made_for_somebody_behind_it_is_not_displaced_for_that_in_turn() -> None:
    """``first`` goes for ``large``, by shares, and that for ``small``, which is behind it in its own queue:
    so ``first`` has the room, as its pause is over by then.
    """
    made = Hanging({"m1": 8})
    furnish(made, 8, {})
    cohort(made, a={"gpus": 0}, b={"gpus": 4, "preemption": RECLAIM}, c={"gpus": 4})
    made.feed(CLUSTER_QUEUES, cluster_queue("a", {"f": 0}, parent="root", preemption=RECLAIM))
    runs(made, "first", 8, "high", "a")
    comes(made, "large", 8, "low", "b")
    made.passes(5)
    made.place("large", m1=8)
    made.hangs = ("large",)
    comes(made, "small", 2, "low", "a")
    made.passes(90)
    made.goes_on()
    for _ in range(200):
        made.passes(20, step_s=5)
        for name in made.released():
            made.place(name, m1=made.bindings[name]["spec"]["replicas"])
    assert displaced(made) == ["first", "large"]
    assert made.released() == ["first"]
