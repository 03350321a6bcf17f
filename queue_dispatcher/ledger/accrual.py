"""Accrual: what a queue has used by now, from what is written down and what runs.

A pure function of the two and the time: what was used until the written moment stands there, and what runs
has been used since that moment, or since it was admitted. So nothing is counted twice, however often a
dispatcher starts anew, and nothing is lost but what ended after the last write.

Of a budget counts what is known to be of its period under way, whatever period it had before, and whatever
clock it was written by: what began before that period, or is to begin after now, is nothing, and then what
runs counts since the period began, or since it was admitted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from queue_dispatcher.api.budget import Budget, Period
from queue_dispatcher.api.fair_sharing import HALF_LIFE_MS
from queue_dispatcher.api.history import NOTHING, History, Spent
from queue_dispatcher.ledger.decay import accrued, decayed

MAX_AHEAD_MS: Final = 300_000
"""How far the clock of whoever wrote may be ahead of ours. What is from later than that is from now."""


class Rate(NamedTuple):
    """What is held: devices, and the sum of their prices in thousandths."""

    devices: int
    price_milli: int

    def plus(self, other: "Rate") -> "Rate":
        """Both together."""
        return Rate(self.devices + other.devices, self.price_milli + other.price_milli)

    def minus(self, other: "Rate") -> "Rate":
        """What is left without the other."""
        return Rate(self.devices - other.devices, self.price_milli - other.price_milli)


IDLE: Final = Rate(0, 0)


class Run(NamedTuple):
    """What one workload holds since a moment, epoch milliseconds."""

    rate: Rate
    since_ms: int


@dataclass(frozen=True, slots=True)
class Terms:
    """What use is counted by; ``displaced``: in what period what was displaced is, None where nobody asks."""

    half_life_ms: int = HALF_LIFE_MS
    budgets: Mapping[str, Budget] = field(default_factory=dict)
    displaced: Period | None = None


def advanced(history: History, rate: Rate, now_ms: int, terms: Terms) -> History:
    """The history at a time, if so much has been held since; an earlier time changes nothing."""
    passed_ms = now_ms - history.at_ms
    if passed_ms <= 0:
        return history
    half_life_ms = terms.half_life_ms
    return History(
        now_ms,
        decayed(history.decayed, passed_ms, half_life_ms)
        + accrued(rate.price_milli, passed_ms, half_life_ms),
        history.device_ms + rate.devices * passed_ms,
        history.cost + rate.price_milli * passed_ms,
        {name: _spent(history, rate, now_ms, budget) for name, budget in terms.budgets.items()},
        _displaced(history, terms.displaced, now_ms),
    )


def restored(written: History | None, runs: Iterable[Run], now_ms: int, terms: Terms) -> History:
    """The history at a time, from what is written down, if anything, and what runs now.

    What was written by a clock slightly ahead stands until ours has come up: the time between was counted.
    What was written by one far ahead is from now, but for budgets of a period that has not begun.
    """
    runs = tuple(runs)
    if written is None:
        written = History(0)
    elif written.at_ms > now_ms + MAX_AHEAD_MS:
        written = replace(written, at_ms=now_ms)
    before, later = IDLE, []
    for run in runs:
        if run.since_ms <= written.at_ms:
            before = before.plus(run.rate)
        else:
            later.append(run)
    found = advanced(written, before, now_ms, terms)
    for run in later:
        used = advanced(History(run.since_ms), run.rate, now_ms, terms)
        found = History(
            found.at_ms,
            found.decayed + used.decayed,
            found.device_ms + used.device_ms,
            found.cost + used.cost,
        )
    spent = {name: _spent_by(written, runs, now_ms, budget) for name, budget in terms.budgets.items()}
    return replace(found, spent=spent, displaced=_displaced(written, terms.displaced, now_ms))


def _spent(history: History, rate: Rate, now_ms: int, budget: Budget) -> Spent:
    begun_ms = budget.period.starts_ms(now_ms)
    before = _still(history.spent.get(budget.name), begun_ms, now_ms) or Spent(0, begun_ms)
    used_ms = rate.devices * (now_ms - max(begun_ms, history.at_ms))
    return before._replace(device_ms=before.device_ms + used_ms)


def _spent_by(written: History, runs: Iterable[Run], now_ms: int, budget: Budget) -> Spent:
    """What was spent by the time, if no more than what is written is known of what has ended."""
    begun_ms = budget.period.starts_ms(now_ms)
    before, counted_ms = _still(written.spent.get(budget.name), begun_ms, now_ms), written.at_ms
    if before is None:
        before, counted_ms = Spent(0, begun_ms), begun_ms
    used_ms = sum(run.rate.devices * max(0, now_ms - max(counted_ms, run.since_ms)) for run in runs)
    return before._replace(device_ms=before.device_ms + used_ms)


def _displaced(history: History, period: Period | None, now_ms: int) -> Spent:
    if period is None:
        return NOTHING
    begun_ms = period.starts_ms(now_ms)
    return _still(history.displaced, begun_ms, now_ms) or Spent(0, begun_ms)


def _still(before: Spent | None, begun_ms: int, now_ms: int) -> Spent | None:
    """What was spent, where all of it was in the period under way."""
    is_within = before is not None and begun_ms <= before.since_ms <= now_ms + MAX_AHEAD_MS
    return before if is_within else None
