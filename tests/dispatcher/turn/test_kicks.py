"""When a parked workload is kicked."""

import dataclasses

import pytest

from queue_dispatcher.turn.kicks import MAX_PAUSE_MS, Parked, due_kicks

S = 1_000


def parked(uid: str = "a", *, since_ms: int = 100 * S, room_ms: int = 0, order: int = 0) -> Parked:
    return Parked(uid, since_ms, room_ms, (0, order, uid))


@pytest.mark.parametrize(
    ("one", "now_ms", "kicked"),
    [
        pytest.param(parked(), 10_000 * S, False, id="no room appeared"),
        pytest.param(parked(room_ms=99 * S), 10_000 * S, False, id="room from before it was parked"),
        pytest.param(parked(room_ms=101 * S), 101 * S, True, id="room appeared"),
        pytest.param(dataclasses.replace(parked(), fits=True), 101 * S, True, id="an estimator says it fits"),
        pytest.param(
            dataclasses.replace(parked(room_ms=101 * S), kicked_ms=102 * S, kicks=1),
            10_000 * S,
            False,
            id="kicked since the room appeared",
        ),
        pytest.param(
            dataclasses.replace(parked(room_ms=103 * S), kicked_ms=102 * S, kicks=1),
            103 * S,
            False,
            id="kicked just now",
        ),
        pytest.param(
            dataclasses.replace(parked(room_ms=103 * S), kicked_ms=102 * S, kicks=1),
            104 * S,
            True,
            id="after a pause",
        ),
        pytest.param(
            dataclasses.replace(parked(room_ms=103 * S), kicked_ms=102 * S, kicks=5),
            104 * S,
            False,
            id="often in vain: a longer pause",
        ),
        pytest.param(
            dataclasses.replace(parked(room_ms=103 * S), kicked_ms=102 * S, kicks=1000),
            102 * S + MAX_PAUSE_MS,
            True,
            id="the pause has a bound",
        ),
    ],
)
def test_a_kick_is_due(one: Parked, now_ms: int, kicked: bool) -> None:
    assert due_kicks([one], now_ms, 10) == (["a"] if kicked else [])


def test_few_at_a_time_and_in_order() -> None:
    many = [parked(f"w{number}", room_ms=200 * S, order=-number) for number in range(50)]
    assert due_kicks(many, 300 * S, 3) == ["w49", "w48", "w47"]
    assert due_kicks(many, 300 * S, 0) == []
