"""Moments of clocks that may be wrong."""

import pytest

from node_agent.times import rfc3339


@pytest.mark.parametrize(
    ("wall_s", "written"),
    [
        (1_767_225_600.9, "2026-01-01T00:00:00Z"),
        (-5.0, "1970-01-01T00:00:00Z"),
        (1e15, "9999-12-31T23:59:59Z"),
    ],
)
def test_every_clock_says_a_moment(wall_s: float, written: str) -> None:
    assert rfc3339(wall_s) == written
