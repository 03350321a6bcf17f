"""What happens after a release: looked at or not, refused, placed, lost, and by whose clock."""

import pytest

from queue_dispatcher.bindings.state import Admitted, InFlight, Unplaced
from queue_dispatcher.turn.window import START
from queue_dispatcher.visibility.views import state_name
from tests.dispatcher.turn.builders import Plane

HOUR_MS = 3_600_000


def phases(made: Plane) -> set[type]:
    return {
        type(entry.state.phase) for entry in made.cache.entries.values() if isinstance(entry.state, Admitted)
    }


@pytest.mark.parametrize("skew_ms", [HOUR_MS, -HOUR_MS, 0], ids=["ahead", "behind", "right"])
def test_the_clock_of_the_former_leader_jams_nothing(skew_ms: int) -> None:
    made = Plane()
    for number in range(START):
        made.submit(f"t{number}")
    made.skew_ms = skew_ms
    made.turn()
    for name in made.released():
        made.refuse(name)
    made.skew_ms = 0
    made.elapsed_ms += 5_000
    made.restart()
    made.submit("next")
    made.passes(15)
    assert phases(made) == {Unplaced, InFlight}
    assert not made.is_held("next")
    assert made.requeue("t0") is None
    made.passes(300)
    assert (made.requeue("t0") or {})["count"] == 1


def test_a_failover_has_as_long_to_start_as_a_start() -> None:
    made = Plane({"m1": 4, "m2": 4})
    made.submit("train", gpus=4)
    made.turn()
    made.place("train", m1=1)
    made.passes(3600, step_s=60)
    made.lose("train")
    made.turn()
    made.refuse("train")
    made.passes(290)
    assert not made.is_held("train")
    made.restart()
    made.passes(20)
    assert (made.requeue("train") or {})["count"] == 1


def test_the_time_from_a_kick_is_what_karmada_took() -> None:
    made = Plane()
    for number in range(40):
        made.submit(f"t{number}")
    for _ in range(8):
        made.passes(1)
        for name in made.released():
            made.refuse(name)
    made.passes(60)
    window = made.state.window.size
    assert len(made.cache.running.parked) == 40
    made.cache.room.add("m1")
    for _ in range(100):
        made.turn()
        for name in list(made.cache.running.in_flight):
            made.place(name, m1=1)
        made.elapsed_ms += 20
        if not made.cache.running.parked and not made.cache.running.in_flight:
            break
    assert len(list(made.cache.running)) == 40
    assert made.state.window.size >= window


def test_no_more_are_kicked_at_once_than_the_window_holds() -> None:
    made = Plane()
    for number in range(40):
        made.submit(f"t{number}")
    for _ in range(8):
        made.passes(1)
        for name in made.released():
            made.refuse(name)
    made.passes(20)
    made.cache.room.add("m1")
    made.turn()
    assert len(made.cache.running.in_flight) == made.state.window.size


def test_what_names_a_foreign_scheduler_is_not_released() -> None:
    made = Plane()
    made.submit("theirs", more={"schedulerName": "mine"})
    made.submit("ours", more={"schedulerName": "default-scheduler"})
    made.passes(5)
    assert made.released() == ["ours"]
    reason = made.reason("theirs")
    assert reason is not None
    assert reason.kind == "ForeignScheduler"
    assert "mine" in reason.text
    assert made.charged() == 1


def test_what_karmada_never_looks_at_stops_nobody_for_long() -> None:
    """It names Karmada's scheduler, or did when it was released."""
    made = Plane()
    made.queue("other", {"m1": 100})
    for number in range(START):
        made.submit(f"unseen{number}")
    made.turn()
    stuck = made.released()
    assert len(stuck) == START
    made.submit("innocent", "other")
    made.submit("next", "other")
    for _ in range(60):
        made.passes(1)
        for name in made.released():
            if name not in stuck:
                made.place(name, m1=1)
    assert not made.is_held("innocent")
    assert not made.is_held("next")
    assert {state_name(made.entry(name)) for name in stuck} == {"Unobserved"}
    assert made.cache.running.unobserved == set(stuck)
    assert made.charged() == START + 2
    made.place(stuck[0], m1=1)
    made.turn()
    assert state_name(made.entry(stuck[0])) == "Placed"


def test_while_karmada_is_down_hardly_more_is_released() -> None:
    made = Plane()
    for number in range(40):
        made.submit(f"t{number}")
    made.passes(3600)
    assert START < len(made.released()) <= START + 10
    assert not made.cache.running.unobserved
    assert made.requeue("t0") is None
    for name in made.released():
        made.place(name, m1=1)
    made.turn()
    assert len(made.released()) > START + 10


def test_what_is_not_placed_is_counted_where_it_may_go_for_a_while_only() -> None:
    made = Plane({"m1": 8, "m2": 8}, estimator=lambda name: 1)
    made.submit("stuck", gpus=8)
    made.turn()
    assert made.released() == ["stuck"]
    estimates = made.state.estimates
    assert estimates is not None
    assert set(estimates.assumed(made.elapsed_ms)) == {"m1", "m2"}
    (told,) = estimates.counted({"m1"}, made.elapsed_ms)
    assert told.startswith("1 released before")
    made.passes(6)
    assert estimates.assumed(made.elapsed_ms) == {}
    assert estimates.counted({"m1"}, made.elapsed_ms) == ()


def test_what_karmada_has_put_aside_is_counted_again_when_it_is_kicked() -> None:
    made = Plane({"m1": 8, "m2": 8}, estimator=lambda name: 1)
    made.submit("large", gpus=8)
    made.turn()
    made.refuse("large")
    made.passes(1)
    estimates = made.state.estimates
    assert estimates is not None
    assert estimates.assumed(made.elapsed_ms) == {}
    made.cache.room.add("m1")
    made.turn()
    assert set(estimates.assumed(made.elapsed_ms)) == {"m1", "m2"}
    made.place("large", m2=1)
    made.turn()
    assert set(estimates.assumed(made.elapsed_ms)) == {"m2"}
