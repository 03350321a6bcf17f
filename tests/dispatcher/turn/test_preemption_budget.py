"""What may be lost in a tree of queues as others are displaced: charged once, and nobody goes beyond it."""

import msgspec
import pytest

from fairway.visibility import DISPLACED
from queue_dispatcher.api.effect import without_effect
from queue_dispatcher.api.kinds import CLUSTER_QUEUES
from queue_dispatcher.api.reading.history import cluster_queue_history
from queue_dispatcher.bindings.timestamp import format_ms
from queue_dispatcher.visibility.viewer import EVERYTHING
from queue_dispatcher.visibility.views import Views
from tests.dispatcher.scenarios.objects import Obj, cluster_queue
from tests.dispatcher.turn.builders import Plane
from tests.dispatcher.turn.test_displacing import (
    LOWER,
    RECLAIM,
    cohort,
    comes,
    displaced,
    note,
    plane,
    queue,
    runs,
)

GPU_S = 1_000


def lost_s(made: Plane, root: str = "main") -> int:
    """GPU-seconds."""
    return made.cache.usages.of_queue(root, made.now.day_ms).displaced.device_ms // GPU_S


def budget(**said: object) -> Obj:
    return {**LOWER, "budget": {"period": "Day", **said}}


def ran(made: Plane, name: str, gpus: int = 4, seconds: int = 900, queue: str = "main") -> None:
    runs(made, name, gpus, queue=queue)
    made.passes(seconds - 1, step_s=10)


def write_status(made: Plane, name: str = "main") -> None:
    """As the leader does once something was displaced."""
    history = made.cache.usages.of_queue(name, made.now.day_ms)
    stated = cluster_queue_history(history, format_ms(history.at_ms))
    (found,) = [of for kind, of in made._fed if kind is CLUSTER_QUEUES and of["metadata"]["name"] == name]
    made.feed(CLUSTER_QUEUES, {**found, "status": {"history": msgspec.to_builtins(stated)}})


@pytest.mark.parametrize(
    ("hours", "goes"),
    [(None, True), (2, True), ("1.1", True), ("0.9", False), (0, False)],
)
def test_who_goes_has_run_no_longer_than_is_left(hours: object, goes: bool) -> None:
    made = plane(4, LOWER if hours is None else budget(deviceHours=hours))
    ran(made, "long")
    comes(made, "urgent", 4, "high")
    made.passes(5)
    assert displaced(made) == (["long"] if goes else [])
    told = "what may be lost by displacing others in queue main is used up until 2027-01-16T00:00:00.000Z: "
    assert (told in note(made, "urgent")) is not goes


def test_each_that_goes_is_charged_what_it_has_run_and_the_next_period_is_new() -> None:
    made = plane(4, budget(deviceHours="1.5"))
    ran(made, "first")
    comes(made, "urgent", 4, "high")
    made.passes(30)
    assert (displaced(made), made.is_held("urgent")) == (["first"], False)
    assert 3_600 <= lost_s(made) <= 3_640
    made.delete("urgent")
    made.passes(120)
    made.place("first", m1=4)
    made.passes(900, step_s=10)
    comes(made, "again", 4, "high")
    made.passes(30)
    assert displaced(made) == ["first"]
    assert note(made, "again").endswith(" would be lost for it")
    # What ran goes for less than it has run by the next day only.
    made.delete("first")
    made.passes(10)
    assert not made.is_held("again")
    made.passes(86_400, step_s=3_600)
    assert lost_s(made) == 0


def test_what_was_lost_survives_a_restart_and_is_counted_once() -> None:
    made = plane(4, budget(deviceHours="1.5"))
    ran(made, "first")
    comes(made, "urgent", 4, "high")
    made.passes(30)
    before = lost_s(made)
    write_status(made)
    assert lost_s(made) == before
    made.restart()
    made.passes(30)
    assert lost_s(made) == before > 0


def test_who_takes_back_what_it_owns_counts_too_for_the_root_of_its_tree() -> None:
    made = plane(8, {})
    cohort(made, a={"gpus": 4, "preemption": RECLAIM}, b={"gpus": 4})
    queue(made, "root", 0, preemption={"budget": {"deviceHours": "0.5"}})
    made.turn()
    ran(made, "borrows", 8, 600, queue="b")
    comes(made, "mine", 4, queue="a")
    made.passes(10)
    assert displaced(made) == []
    assert "in queue root" in note(made, "mine")
    queue(made, "root", 0, preemption={"budget": {"deviceHours": 10}})
    made.passes(20)
    assert displaced(made) == ["borrows"]
    assert lost_s(made, "root") >= 4_800


def test_it_is_seen_beside_other_budgets() -> None:
    made = plane(4, budget(deviceHours=2))
    ran(made, "first")
    comes(made, "urgent", 4, "high")
    made.passes(30)
    views = Views(made.cache, made.state.view, made.now.day_ms, EVERYTHING)
    view = views.queue("main", 0, 10)
    assert view is not None
    (seen,) = view.budgets
    assert (seen.name, seen.period, seen.policy) == ("preemption.budget", "Day", DISPLACED)
    assert (seen.device_hours_milli, seen.used_milli // 100) == (2_000, 10)


def test_below_a_root_it_has_no_effect_and_is_told() -> None:
    made = plane(4, {})
    stated = cluster_queue("x", {"f": 4})
    stated["spec"] |= {"parent": "root", "preemption": budget(deviceHours=0)}
    made.feed(CLUSTER_QUEUES, stated)
    found = made.cache.queues.cluster_queues.values["x"]
    assert [str(one) for one in without_effect(found)] == [
        "spec.preemption.budget: no effect: state it of the root of the tree of queues"
    ]
