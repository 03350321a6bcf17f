"""What is used weighs less with time, by laws; what is written down and what runs is counted once."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queue_dispatcher.api.budget import Budget, BudgetPolicy, Period
from queue_dispatcher.api.history import History, Spent
from queue_dispatcher.bindings.timestamp import parse_ms
from queue_dispatcher.ledger.accrual import IDLE, MAX_AHEAD_MS, Rate, Run, Terms, advanced, restored
from queue_dispatcher.ledger.decay import HALF_LIVES, accrued, decayed

CI = settings(max_examples=200, derandomize=True, deadline=None)
DAY_MS = 86_400_000
WEEK_MS = 7 * DAY_MS
NOON = "2026-11-24T12:00:00Z"

amounts = st.integers(0, 10**24)
rates = st.integers(0, 10**9)
times = st.integers(0, 100 * WEEK_MS)
half_lives = st.sampled_from([1, 1000, 3_600_000, DAY_MS, WEEK_MS, 2562047 * 3_600_000])


def at(text: str) -> int:
    found = parse_ms(text)
    assert found is not None
    return found


# Decay.


@pytest.mark.parametrize(
    ("amount", "passed_ms", "half_life_ms", "left"),
    [
        (1000, 0, 1000, 1000),
        (1000, 1000, 1000, 500),
        (1000, 2000, 1000, 250),
        (1000, 500, 1000, 707),
        (1001, 1000, 1000, 500),
        (1000, 1, WEEK_MS, 999),
        (10**24, HALF_LIVES * 1000, 1000, 0),
        (10**24, 10**18, 1, 0),
        (1000, -5000, 1000, 1000),
        (-3, 1000, 1000, 0),
    ],
)
def test_half_is_left_after_a_half_life(amount: int, passed_ms: int, half_life_ms: int, left: int) -> None:
    assert decayed(amount, passed_ms, half_life_ms) == left


@CI
@given(amounts, times, times, half_lives)
def test_decay_in_two_steps_is_decay_in_one(amount: int, one: int, other: int, half_life_ms: int) -> None:
    whole = decayed(amount, one + other, half_life_ms)
    assert abs(whole - decayed(decayed(amount, one, half_life_ms), other, half_life_ms)) <= 1


@CI
@given(amounts, amounts, times, times, half_lives)
def test_decay_keeps_the_order(one: int, other: int, early: int, late: int, half_life_ms: int) -> None:
    (less, more), (early, late) = sorted((one, other)), sorted((early, late))
    assert 0 <= decayed(less, late, half_life_ms) <= decayed(more, late, half_life_ms)
    assert decayed(more, late, half_life_ms) <= decayed(more, early, half_life_ms) <= more


@CI
@given(rates, times, st.lists(st.integers(0, 1000), min_size=1, max_size=20), half_lives)
def test_what_is_used_does_not_depend_on_how_often_one_looks(
    rate: int, passed_ms: int, looks: list[int], half_life_ms: int
) -> None:
    points = [*sorted(passed_ms * look // 1000 for look in looks), passed_ms]
    value = before = 0
    for point in points:
        value = decayed(value, point - before, half_life_ms) + accrued(rate, point - before, half_life_ms)
        before = point
    assert abs(accrued(rate, passed_ms, half_life_ms) - value) <= 2 * len(points)


@CI
@given(rates, times, half_lives)
def test_what_is_used_is_never_more_than_time_and_half_life_allow(
    rate: int, passed_ms: int, half_life_ms: int
) -> None:
    used = accrued(rate, passed_ms, half_life_ms)
    assert 0 <= used <= rate * passed_ms
    assert used <= Fraction(rate * half_life_ms) * Fraction(1_442_695_041, 10**9)
    assert accrued(rate, passed_ms + 1, half_life_ms) >= used
    if passed_ms * 1000 < half_life_ms:
        assert used >= rate * passed_ms * 999 // 1000 - 1


# Histories.

TERMS = Terms(WEEK_MS, {"daily": Budget("daily", 1000, Period.DAY, BudgetPolicy.HARD)})
held = st.builds(Rate, st.integers(0, 1000), st.integers(0, 10**6))


@CI
@given(held, times, times, times)
def test_a_dispatcher_that_starts_anew_counts_nothing_twice(
    rate: Rate, since_ms: int, wrote_after: int, read_after: int
) -> None:
    write_ms, now_ms = since_ms + wrote_after, since_ms + wrote_after + read_after
    nothing = {"daily": Spent(0, Period.DAY.starts_ms(since_ms))}
    written = advanced(History(since_ms, spent=nothing), rate, write_ms, TERMS)
    always = advanced(written, rate, now_ms, TERMS)
    once = restored(written, [Run(rate, since_ms)], now_ms, TERMS)
    assert (once.at_ms, once.device_ms, once.cost, once.spent) == (
        always.at_ms,
        always.device_ms,
        always.cost,
        always.spent,
    )
    assert abs(once.decayed - always.decayed) <= 1
    assert restored(once, [Run(rate, since_ms)], now_ms, TERMS) == once


@CI
@given(held, times, times)
def test_without_anything_written_what_runs_counts_since_its_admission(
    rate: Rate, since_ms: int, ran_ms: int
) -> None:
    found = restored(None, [Run(rate, since_ms)], since_ms + ran_ms, TERMS)
    assert (found.device_ms, found.cost) == (rate.devices * ran_ms, rate.price_milli * ran_ms)


@CI
@given(held, times, st.integers(-DAY_MS, 0))
def test_a_clock_that_goes_back_changes_nothing(rate: Rate, at_ms: int, jump_ms: int) -> None:
    history = advanced(History(0), rate, at_ms, TERMS)
    assert advanced(history, rate, at_ms + jump_ms, TERMS) is history


@pytest.mark.parametrize(
    ("ahead_ms", "counted_ms"),
    [
        (-10_000, 10_000 + 60_000),
        (0, 60_000),
        (20_000, 40_000),
        (MAX_AHEAD_MS, 0),
        (MAX_AHEAD_MS + 1, 60_000),
        (10**15, 60_000),
    ],
    ids=["behind", "same", "ahead", "far ahead", "too far", "absurd"],
)
def test_a_writer_whose_clock_is_ahead_costs_nobody_anything(ahead_ms: int, counted_ms: int) -> None:
    now_ms = 1_000_000_000
    written = History(now_ms + ahead_ms, device_ms=5, cost=7, decayed=11)
    found = restored(written, [Run(Rate(1, 0), 0)], now_ms, TERMS)
    later = advanced(found, Rate(1, 0), now_ms + 60_000, TERMS)
    assert found.device_ms - 5 == max(0, -ahead_ms)
    assert later.device_ms - 5 == counted_ms
    assert later.cost == 7


@pytest.mark.parametrize(
    ("wrote", "now", "spent"),
    [
        ("2026-11-24T11:00:00Z", NOON, 100 + 3600_000),
        ("2026-11-23T23:00:00Z", NOON, 12 * 3600_000),
        ("2026-10-01T00:00:00Z", NOON, 12 * 3600_000),
        (NOON, NOON, 100),
    ],
    ids=["the same day", "yesterday", "long ago", "now"],
)
def test_a_budget_is_new_in_each_period(wrote: str, now: str, spent: int) -> None:
    history = History(at(wrote), spent={"daily": Spent(100, Period.DAY.starts_ms(at(wrote)))})
    since_ms = Period.DAY.starts_ms(at(now))
    assert advanced(history, Rate(1, 5), at(now), TERMS).spent == {"daily": Spent(spent, since_ms)}
    runs = [Run(Rate(1, 5), 0)]
    assert restored(history, runs, at(now), TERMS).spent == {"daily": Spent(spent, since_ms)}


TUESDAY, HOUR_MS = "2026-11-24T00:00:00Z", 3_600_000


@pytest.mark.parametrize(
    ("since", "wrote", "period", "counted"),
    [
        ("2026-11-23T00:00:00Z", "2026-11-24T11:00:00Z", Period.DAY, 8 * HOUR_MS),
        ("2026-11-01T00:00:00Z", "2026-11-24T11:00:00Z", Period.WEEK, 8 * HOUR_MS),
        (TUESDAY, "2026-11-24T11:00:00Z", Period.DAY, 100 + HOUR_MS),
        (TUESDAY, "2026-11-24T11:00:00Z", Period.WEEK, 100 + HOUR_MS),
        (TUESDAY, "2026-11-24T11:00:00Z", Period.MONTH, 100 + HOUR_MS),
        ("2026-11-25T00:00:00Z", "2026-11-25T12:00:00Z", Period.DAY, 8 * HOUR_MS),
        (TUESDAY, "2026-11-24T20:00:00Z", Period.DAY, 100),
        ("2026-12-01T00:00:00Z", "2026-12-24T12:00:00Z", Period.MONTH, 8 * HOUR_MS),
        ("2026-11-01T00:00:00Z", "2026-11-25T12:00:00Z", Period.MONTH, 100),
    ],
    ids=[
        "of a week",
        "of a month",
        "of this day",
        "of a day of this week",
        "of a day of this month",
        "of tomorrow",
        "of this day by a clock that was ahead",
        "of another month",
        "of this month by a clock that was ahead",
    ],
)
def test_only_what_is_of_the_period_under_way_counts_for_a_budget(
    since: str, wrote: str, period: Period, counted: int
) -> None:
    """It is noon on a Tuesday; since 4 in the morning one device has been used."""
    terms = Terms(WEEK_MS, {"team": Budget("team", 1000, period, BudgetPolicy.HARD)}, period)
    spent = Spent(100, at(since))
    written = History(at(wrote), spent={"team": spent}, displaced=spent)
    now_ms, runs = at(NOON), [Run(Rate(1, 1000), at(TUESDAY) + 4 * HOUR_MS)]
    found = restored(written, runs, now_ms, terms)
    assert found.spent["team"].device_ms == counted
    assert found.displaced.device_ms == (100 if found.spent["team"].since_ms == at(since) else 0)
    later = advanced(found, Rate(1, 1000), now_ms + HOUR_MS, terms)
    assert later.spent["team"].device_ms == counted + HOUR_MS
    assert restored(found, runs, now_ms, terms).spent == found.spent


@pytest.mark.parametrize(
    ("period", "now", "starts", "renews"),
    [
        (Period.DAY, NOON, "2026-11-24T00:00:00Z", "2026-11-25T00:00:00Z"),
        (Period.WEEK, NOON, "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"),
        (Period.WEEK, "2026-11-29T23:59:59.999Z", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"),
        (Period.WEEK, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "1970-01-05T00:00:00Z"),
        (Period.MONTH, NOON, "2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z"),
        (Period.MONTH, "2026-12-31T23:59:59Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        (Period.MONTH, "2028-02-29T00:00:00Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"),
    ],
)
def test_periods_begin_at_midnight_utc(period: Period, now: str, starts: str, renews: str) -> None:
    assert (period.starts_ms(at(now)), period.renews_ms(at(now))) == (at(starts), at(renews))


@pytest.mark.parametrize("now_ms", [-5, 0, 10**18])
@pytest.mark.parametrize("period", list(Period))
def test_no_clock_is_too_wrong_for_a_period(period: Period, now_ms: int) -> None:
    assert 0 <= period.starts_ms(now_ms) < period.renews_ms(now_ms)


def test_a_budget_that_comes_later_begins_with_nothing() -> None:
    spent = advanced(History(at(NOON)), IDLE, at(NOON) + 1, TERMS).spent
    assert spent == {"daily": Spent(0, at(TUESDAY))}
