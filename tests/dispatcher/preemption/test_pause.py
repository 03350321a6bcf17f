"""What is displaced again and again waits ever longer, until a run of it was worth its start."""

import pytest

from queue_dispatcher.preemption.pause import FIRST_MS, MOST_MS, in_a_row, pause_ms


@pytest.mark.parametrize(
    ("times", "minutes"),
    [(0, 1), (1, 1), (2, 2), (3, 4), (4, 8), (5, 16), (6, 16), (2**31 - 1, 16)],
)
def test_the_pause_doubles_up_to_a_bound(times: int, minutes: int) -> None:
    assert pause_ms(times) == minutes * 60_000


@pytest.mark.parametrize(
    ("before", "ran_ms", "times"),
    [
        (0, 0, 1),
        (0, 10**9, 1),
        (1, 0, 2),
        (1, 4 * FIRST_MS - 1, 2),
        (1, 4 * FIRST_MS, 1),
        (3, 16 * FIRST_MS - 1, 4),
        (3, 16 * FIRST_MS, 1),
        (9, 4 * MOST_MS - 1, 10),
        (9, 4 * MOST_MS, 1),
    ],
)
def test_a_run_that_was_worth_its_start_ends_that(before: int, ran_ms: int, times: int) -> None:
    assert in_a_row(before, ran_ms) == times


def test_in_a_round_of_three_no_run_is_worth_its_start() -> None:
    """Each runs until the pause of who displaces it is over, which was displaced as often, or once more."""
    times = 1
    for _ in range(10):
        assert in_a_row(times, pause_ms(times + 1)) == times + 1
        times += 1
