from itertools import pairwise

import pytest

from queue_dispatcher.clock import SteadyClock


class Hands:
    def __init__(self) -> None:
        self.wall_s = 1_000_000.0
        self.monotonic_s = 5.0

    def pass_s(self, seconds: float) -> None:
        self.wall_s += seconds
        self.monotonic_s += seconds

    def clock(self) -> SteadyClock:
        return SteadyClock(lambda: self.wall_s, lambda: self.monotonic_s)


def test_it_tells_the_wall_time() -> None:
    hands = Hands()
    clock = hands.clock()
    assert clock.now_ms() == 1_000_000_000
    hands.pass_s(12.5)
    assert clock.now_ms() == 1_000_012_500
    assert clock.elapsed_ms() == 17_500


@pytest.mark.parametrize("jump_s", [3600.0, -3600.0])
def test_a_jump_moves_it_by_a_tenth_of_the_time_that_passes(jump_s: float) -> None:
    hands = Hands()
    clock = hands.clock()
    hands.wall_s += jump_s
    hands.pass_s(10)
    moved_ms = clock.now_ms() - 1_000_010_000
    assert moved_ms == (1_000 if jump_s > 0 else -1_000)


def test_it_has_caught_up_after_ten_times_the_jump() -> None:
    hands = Hands()
    clock = hands.clock()
    hands.wall_s += 60
    for _ in range(601):
        hands.pass_s(1)
        clock.now_ms()
    assert clock.now_ms() == int(hands.wall_s * 1000)


def test_it_never_goes_backwards() -> None:
    hands = Hands()
    clock = hands.clock()
    told = []
    for step in range(200):
        hands.pass_s(0.5)
        if step == 50:
            hands.wall_s -= 86_400
        if step == 120:
            hands.wall_s += 172_800
        told.append(clock.now_ms())
    assert all(earlier <= later for earlier, later in pairwise(told))
