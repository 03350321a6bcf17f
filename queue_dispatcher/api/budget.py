"""Budget: how many device-hours a queue may use in each day, week or month, and what follows once it has."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

MAX_BUDGETS: Final = 8


class Period(StrEnum):
    """After what a budget is new again; in UTC, weeks begin on Mondays."""

    DAY = "Day"
    WEEK = "Week"
    MONTH = "Month"

    def starts_ms(self, now_ms: int) -> int:
        """When the one under way began, epoch milliseconds."""
        day = _day(now_ms)
        match self:
            case Period.DAY:
                return _ms(day)
            case Period.WEEK:
                # The epoch was a Thursday: the days of its week before it are of no period.
                return max(0, _ms(day - timedelta(days=day.weekday())))
            case Period.MONTH:
                return _ms(day.replace(day=1))

    def renews_ms(self, now_ms: int) -> int:
        """When the next one begins, epoch milliseconds."""
        day = _day(now_ms)
        match self:
            case Period.DAY:
                return _ms(day + timedelta(days=1))
            case Period.WEEK:
                return _ms(day + timedelta(days=7 - day.weekday()))
            case Period.MONTH:
                return _ms((day.replace(day=1) + timedelta(days=32)).replace(day=1))


class BudgetPolicy(StrEnum):
    """What becomes of the workloads that wait in a queue whose budget is used up; what runs goes on."""

    SOFT = "Soft"
    """They go behind all others of their tree of queues."""
    HARD = "Hard"
    """They wait for the next period."""


@dataclass(frozen=True, slots=True)
class Budget:
    """``device_ms``: how much may be used in a period, device-milliseconds, 0 for nothing at all."""

    name: str
    device_ms: int
    period: Period
    policy: BudgetPolicy


@dataclass(frozen=True, slots=True)
class PreemptionBudget:
    """How much work may be lost in a tree of queues as its workloads displace each other.

    ``device_ms``: in a period, device-milliseconds that those had run that go; 0 for nobody ever goes.
    """

    device_ms: int
    period: Period


HOUR_MS: Final = 3_600_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_DAY = datetime(9990, 1, 1, tzinfo=UTC)


def _day(now_ms: int) -> datetime:
    latest_ms = _ms(_LAST_DAY)
    moment = _EPOCH + timedelta(milliseconds=max(0, min(now_ms, latest_ms)))
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _ms(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)
