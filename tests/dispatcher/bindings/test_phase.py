"""What has become of a release, by what is written, by what was seen, and by when."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.phase import (
    KICKED_MS,
    OVERTAKEN_MS,
    QUIET_MS,
    UNSEEN,
    Moment,
    Seen,
    follow,
    phase,
    since_day_ms,
)
from queue_dispatcher.bindings.phase import released as made
from queue_dispatcher.bindings.state import InFlight, Phase, Placed, Unobserved, Unplaced
from tests.dispatcher.bindings.builders import ADMITTED_MS, binding, record, scheduled
from tests.dispatcher.workloads.builders import LAW

HOUR_MS = 3_600_000
REFUSED = Unplaced("Unschedulable", "why", ADMITTED_MS)
OLD = scheduled("False", "Unschedulable", ADMITTED_MS - 60_000)


def released(status: dict[str, object] | None = None, placed: dict[str, int] | None = None) -> Binding:
    return binding(held=False, record=record(), status=status, placed=placed)


def at(ms: int, overtaken_ms: int = 0) -> Moment:
    """So long after the release, by clocks of which the monotonic one began with it."""
    return Moment(ADMITTED_MS + ms, ms, overtaken_ms)


FIRST = Seen(ADMITTED_MS, is_ours=True)


def test_a_release_counts_from_when_the_watch_told_of_it_however_late_its_answer_comes() -> None:
    one = released(scheduled("False", "Unschedulable"))
    assert one.record is not None
    told = Seen(ADMITTED_MS, True, 10_000, is_unbegun=True)
    assert made(one.record, 60_000, follow(UNSEEN, one, 10_000)) == told
    untold = Seen(ADMITTED_MS, True, 60_000, is_unbegun=True)
    assert made(one.record, 60_000, Seen(ADMITTED_MS - 1, since_ms=5)) == untold
    # Placed by its release, and the watch was faster.
    there = made(one.record, 60_000, follow(UNSEEN, released(placed={"a": 4}), 10_000))
    assert (there.began_ms, there.is_unbegun) == (10_000, False)


@pytest.mark.parametrize(
    ("of", "seen", "now", "expected"),
    [
        pytest.param(released(), FIRST, at(60_000), InFlight(), id="nothing said"),
        pytest.param(
            released(scheduled("False", "Unschedulable")), FIRST, at(1_000), REFUSED, id="refused in this try"
        ),
        pytest.param(released(OLD), FIRST, at(QUIET_MS - 1), InFlight(), id="refused in an earlier try"),
        pytest.param(
            released(OLD),
            FIRST,
            at(QUIET_MS),
            Unplaced("Unschedulable", "why", ADMITTED_MS - 60_000),
            id="which is all that Karmada says again",
        ),
        pytest.param(
            released(scheduled("False", "Unschedulable")),
            FIRST.kicked(60_000),
            at(60_000 + KICKED_MS - 1),
            InFlight(),
            id="just kicked",
        ),
        pytest.param(
            released(scheduled("False", "Unschedulable")),
            FIRST.kicked(60_000),
            at(60_000 + KICKED_MS),
            REFUSED,
            id="kicked in vain",
        ),
        pytest.param(released(), FIRST, at(OVERTAKEN_MS, 1), Unobserved(), id="overtaken"),
        pytest.param(released(), FIRST, at(OVERTAKEN_MS - 1, 1), InFlight(), id="overtaken just now"),
        pytest.param(
            released(), FIRST.kicked(5), at(HOUR_MS, 5), InFlight(), id="not overtaken since it was kicked"
        ),
        pytest.param(
            released({"schedulerObservedGeneration": 3}), FIRST, at(HOUR_MS, 1), InFlight(), id="looked at"
        ),
        pytest.param(released(placed={"a": 4}), FIRST, at(HOUR_MS, 1), Placed(), id="placed"),
    ],
)
def test_a_phase(of: Binding, seen: Seen, now: Moment, expected: Phase) -> None:
    assert phase(of, seen, now) == expected


def test_what_is_seen_follows_the_release_through_its_life() -> None:
    seen = follow(UNSEEN, released(), 10)
    assert seen == Seen(ADMITTED_MS, False, 10, True, is_unbegun=True)
    placed = follow(seen.kicked(15), released(placed={"a": 4}), 20)
    assert (placed.since_ms, placed.is_lacking, placed.was_placed, placed.kicks) == (20, False, True, 0)
    assert (placed.began_ms, placed.is_unbegun) == (20, False)
    lost = follow(placed, released(), 30)
    assert (lost.since_ms, lost.is_lacking, lost.was_placed, lost.began_ms) == (30, True, True, 20)
    grown = binding(held=False, record=record(admitted_ms=ADMITTED_MS + 7, began_ms=ADMITTED_MS))
    assert follow(lost, grown, 40).began_ms == 20
    again = binding(held=False, record=record(admitted_ms=ADMITTED_MS + 7))
    assert follow(lost, again, 40) == Seen(ADMITTED_MS + 7, False, 40, True, is_unbegun=True)
    assert follow(lost, binding(), 50) == UNSEEN


@pytest.mark.parametrize(
    ("of", "seen", "now", "since_ms"),
    [
        pytest.param(released(), FIRST, at(9_000), ADMITTED_MS, id="its release"),
        pytest.param(
            released(),
            Seen(ADMITTED_MS, since_ms=5_000),
            Moment(ADMITTED_MS - HOUR_MS, 6_000),
            ADMITTED_MS - HOUR_MS - 1_000,
            id="when it was first seen, if its record is of the future",
        ),
        pytest.param(
            released(scheduled("False", "Unschedulable", ADMITTED_MS + HOUR_MS)),
            Seen(ADMITTED_MS, since_ms=HOUR_MS + 9_000),
            at(HOUR_MS + 9_000),
            ADMITTED_MS + HOUR_MS,
            id="the refusal after a loss that nobody saw",
        ),
        pytest.param(
            released(),
            Seen(ADMITTED_MS, since_ms=HOUR_MS, was_placed=True),
            at(HOUR_MS + 5_000),
            ADMITTED_MS + HOUR_MS,
            id="the loss",
        ),
    ],
)
def test_a_start_timeout_counts_from(of: Binding, seen: Seen, now: Moment, since_ms: int) -> None:
    assert since_day_ms(of, seen, now) == since_ms


@LAW
@given(
    st.sampled_from((None, OLD, scheduled("False", "x", ADMITTED_MS + 10 * HOUR_MS))),
    st.sampled_from((None, {"a": 2}, {"a": 4})),
    st.integers(-HOUR_MS, 20 * HOUR_MS),
    st.integers(0, HOUR_MS),
    st.booleans(),
)
def test_nothing_counts_from_the_future(
    status: dict[str, object] | None,
    placed: dict[str, int] | None,
    day_ms: int,
    since_ms: int,
    was_placed: bool,
) -> None:
    seen = Seen(ADMITTED_MS, since_ms=since_ms, was_placed=was_placed)
    now = Moment(ADMITTED_MS + day_ms, HOUR_MS)
    assert since_day_ms(released(status, placed), seen, now) <= now.day_ms
