"""The release window against schedulers that place at a steady pace, in virtual time."""

import heapq

import pytest

from queue_dispatcher.turn.window import CEILING, FLOOR, START, ReleaseWindow


def after(
    seconds: int,
    *,
    placements_a_second: float,
    latency_ms: int = 20,
    backlog: int = 1_000_000,
    window: ReleaseWindow | None = None,
    start_ms: int = 0,
) -> tuple[ReleaseWindow, list[int]]:
    """Release whenever the window lets us; answers the window and how long each placement took.

    The scheduler has one worker, as Karmada's: it takes 1 / rate for each, after ``latency_ms`` on the way.
    """
    window = window or ReleaseWindow()
    each_ms = 1000 / placements_a_second
    now_ms, free_ms = start_ms, float(start_ms)
    under_way: list[tuple[int, int]] = []
    took: list[int] = []
    while now_ms < start_ms + seconds * 1000:
        while backlog and len(under_way) < window.size:
            backlog -= 1
            free_ms = max(free_ms, now_ms) + each_ms
            heapq.heappush(under_way, (int(free_ms) + latency_ms, now_ms))
            window.under_way(len(under_way), now_ms)
        if not under_way:
            break
        now_ms, released_ms = heapq.heappop(under_way)
        took.append(now_ms - released_ms)
        window.placed(took[-1], now_ms)
        window.under_way(len(under_way), now_ms)
    return window, took


def test_it_begins_small() -> None:
    assert ReleaseWindow().size == START == 10


@pytest.mark.parametrize("rate", [2, 4, 8, 10, 17, 50, 200])
def test_it_settles_at_one_to_two_seconds_of_placements(rate: int) -> None:
    window, took = after(60, placements_a_second=rate)
    assert max(FLOOR, rate * 0.8) <= window.size <= max(FLOOR, 2 * rate + 1)
    settled = took[len(took) // 2 :]
    assert max(settled) <= max(2100, 1000 * FLOOR / rate + 100)


def test_it_does_not_hold_a_quick_scheduler_back() -> None:
    _, took = after(60, placements_a_second=1000)
    # Once it has grown, the scheduler is never idle.
    assert len(took) >= 0.95 * 60 * 1000


def test_it_grows_within_a_second_or_two_from_the_start() -> None:
    _, took = after(2, placements_a_second=200)
    assert len(took) >= 0.9 * 2 * 200


def test_it_shrinks_when_the_scheduler_slows_down() -> None:
    window, _ = after(60, placements_a_second=200)
    assert window.size > 100
    window, took = after(120, placements_a_second=5, window=window, start_ms=60_000)
    assert window.size <= 11
    assert max(took[-10:]) <= 2500


def test_a_scheduler_that_places_nothing_gets_no_more() -> None:
    window = ReleaseWindow()
    window.under_way(window.size, 0)
    window.under_way(window.size, 3_600_000)
    assert window.size == START


def test_it_never_falls_below_the_floor_nor_rises_above_the_ceiling() -> None:
    window = ReleaseWindow()
    window.under_way(1, 0)
    for now_ms in range(0, 10_000_000, 10_000):
        window.placed(600_000, now_ms)
    assert window.size == FLOOR
    window = ReleaseWindow(ceiling=50)
    window.under_way(1, 0)
    for now_ms in range(10_000):
        window.placed(1, now_ms)
    assert window.size == 50 < CEILING


def test_quiet_times_do_not_close_it() -> None:
    window, _ = after(20, placements_a_second=50)
    before = window.size
    now_ms = 20_000
    for _ in range(100):
        now_ms += 60_000
        window.under_way(1, now_ms)
        window.placed(60, now_ms + 60)
        window.under_way(0, now_ms + 60)
    # One at a time tells of 16 a second at least; that the scheduler can do 50 shows again with a backlog.
    assert before >= 40
    assert window.size >= 20


def test_a_clock_set_back_harms_nothing() -> None:
    window = ReleaseWindow()
    window.under_way(3, 1_000_000)
    for _ in range(20):
        window.placed(10, 5)
    window.under_way(0, 5)
    assert FLOOR <= window.size <= 2000 * CEILING
    window, took = after(10, placements_a_second=50, window=window)
    assert len(took) > 300
