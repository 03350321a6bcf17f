"""What happens after a release: looked at or not, refused, placed, lost, and by whose clock."""

import pytest

from queue_dispatcher.bindings.state import Admitted, InFlight, Unplaced
from queue_dispatcher.turn.window import START
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
