"""Accrual: what a queue has used by now, from what is written down and what runs.

A pure function of the two and the time: what was used until the written moment stands there, and what runs
has been used since that moment, or since it was admitted. So nothing is counted twice, however often a
dispatcher starts anew, and nothing is lost but what ended after the last write.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from queue_dispatcher.api.budget import Budget, Period
from queue_dispatcher.api.fair_sharing import HALF_LIFE_MS
from queue_dispatcher.api.history import History
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
        history.displaced_ms if _is_within(terms.displaced, history.at_ms, now_ms) else 0,
    )


def restored(written: History | None, runs: Iterable[Run], now_ms: int, terms: Terms) -> History:
    """The history at a time, from what is written down, if anything, and what runs now.

    What was written by a clock slightly ahead stands until ours has come up: the time between was counted.
    """
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
            {name: spent + used.spent.get(name, 0) for name, spent in found.spent.items()},
            found.displaced_ms,
        )
    return found


def _is_within(period: Period | None, at_ms: int, now_ms: int) -> bool:
    return period is not None and period.starts_ms(now_ms) <= at_ms


def _spent(history: History, rate: Rate, now_ms: int, budget: Budget) -> int:
    begun_ms = budget.period.starts_ms(now_ms)
    before = history.spent.get(budget.name, 0) if begun_ms <= history.at_ms else 0
    return before + rate.devices * (now_ms - max(begun_ms, history.at_ms))
