"""The token bucket, in virtual time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.kube.throttle import TokenBucket


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_burst_is_free_and_then_requests_are_spread() -> None:
    bucket = TokenBucket(20, 3, Clock())
    assert [bucket.reserve() for _ in range(5)] == pytest.approx([0, 0, 0, 0.05, 0.1])


def test_tokens_come_back_with_time_up_to_the_burst() -> None:
    clock = Clock()
    bucket = TokenBucket(2, 2, clock)
    assert [bucket.reserve() for _ in range(3)] == [0, 0, 0.5]
    clock.now_s += 1.0
    assert [bucket.reserve() for _ in range(2)] == [0, 0.5]
    clock.now_s += 1000.0
    assert [bucket.reserve() for _ in range(3)] == [0, 0, 0.5]


def test_a_clock_that_goes_back_takes_nothing_away() -> None:
    clock = Clock()
    bucket = TokenBucket(1, 1, clock)
    bucket.reserve()
    clock.now_s -= 50.0
    assert bucket.reserve() == 1.0


@pytest.mark.parametrize(
    ("qps", "burst", "free", "next_wait_s"),
    [(0, 0, 10, 0.2), (0, 4, 4, 0.2), (10, 0, 10, 0.1), (50, 100, 100, 0.02), (0.5, 1, 1, 2.0)],
)
def test_zero_means_the_default_of_go_clients(qps: float, burst: int, free: int, next_wait_s: float) -> None:
    bucket = TokenBucket(qps, burst, Clock())
    assert [bucket.reserve() for _ in range(free)] == [0] * free
    assert bucket.reserve() == pytest.approx(next_wait_s)


def test_below_zero_means_no_limit() -> None:
    bucket = TokenBucket(-1, 1, Clock())
    assert {bucket.reserve() for _ in range(10_000)} == {0.0}


@given(
    st.floats(0.1, 100),
    st.integers(1, 50),
    st.lists(st.floats(0, 10), min_size=1, max_size=60),
)
def test_no_window_sees_more_than_burst_and_rate_allow(qps: float, burst: int, gaps_s: list[float]) -> None:
    clock = Clock()
    bucket = TokenBucket(qps, burst, clock)
    sent_s: list[float] = []
    for gap_s in gaps_s:
        clock.now_s += gap_s
        sent_s.append(clock.now_s + bucket.reserve())
    for first, begin_s in enumerate(sent_s):
        for last in range(first, len(sent_s)):
            allowed = burst + qps * (sent_s[last] - begin_s)
            assert last - first + 1 <= allowed + 1e-6 * (1 + allowed)
