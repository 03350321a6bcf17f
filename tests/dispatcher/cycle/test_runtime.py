"""Times to run in steps: never too short, hardly too long, and few."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queue_dispatcher.cycle.runtime import in_steps, longest_within

CI = settings(max_examples=300, derandomize=True, deadline=None)
HOUR_MS = 3_600_000
LONGEST_MS = 2_562_047 * HOUR_MS
times = st.integers(0, 63).flatmap(lambda bits: st.integers(1, 1 << bits)) | st.integers(1, LONGEST_MS)


@pytest.mark.parametrize(
    ("runtime_ms", "step_ms"),
    [
        *((small, small) for small in range(1, 17)),
        (17, 18),
        (18, 18),
        (1023, 1024),
        (1024, 1024),
        (1025, 1152),
        (HOUR_MS, 3_670_016),
        (24 * HOUR_MS, 92_274_688),
    ],
)
def test_steps(runtime_ms: int, step_ms: int) -> None:
    assert in_steps(runtime_ms) == step_ms


@CI
@given(times)
def test_never_less_and_at_most_an_eighth_more(runtime_ms: int) -> None:
    step_ms = in_steps(runtime_ms)
    assert runtime_ms <= step_ms
    assert 8 * (step_ms - runtime_ms) <= runtime_ms
    assert in_steps(step_ms) == step_ms, "what is a step stays one"


@CI
@given(times, times)
def test_who_runs_longer_is_never_taken_to_run_shorter(one_ms: int, other_ms: int) -> None:
    assert in_steps(min(one_ms, other_ms)) <= in_steps(max(one_ms, other_ms))


@CI
@given(st.integers(4, 60))
def test_there_are_eight_from_one_power_of_two_to_the_next(bits: int) -> None:
    start_ms = 1 << bits
    spread = range(start_ms, 2 * start_ms, max(1, start_ms // 64))
    assert len({in_steps(one) for one in spread} - {2 * start_ms}) == 8


@CI
@given(times, times)
def test_what_is_within_the_longest_step_of_a_time_is_over_in_it(runtime_ms: int, time_ms: int) -> None:
    most_ms = longest_within(time_ms)
    assert (in_steps(runtime_ms) <= time_ms) == (runtime_ms <= most_ms)
