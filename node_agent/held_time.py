"""Who held the node's devices for how long, by UTC day: looks in, sums out, in bounded memory.

The one idea: a look speaks for the time since the look before, by the monotonic clock, and for no more than
``gap_s`` of it; what nobody looked at is in no sum and not in the time observed. The wall clock only names
the day. Sums are totals that go on from what an agent before us stored, so that writing one twice, or after
somebody else, adds nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from fairway.accelerators.mig_geometry import most_instances
from fairway.kube.node_devices import Holder, HolderSource
from fairway.kube.usage_days import DAY_S, MOST_DAYS, MOST_SECONDS, MOST_TEAMS, TeamSeconds, UsageDay
from fairway.usage.definitions import THRESHOLDS
from node_agent import bounds
from node_agent.bounds import measured
from node_agent.reading import DeviceReading
from node_agent.window import IDLE

_DAY_MS: Final = DAY_S * 1000
_WHOLE: Final = 1_000_000
_UNIT: Final = _WHOLE * 1000
"""Millionths of devices times milliseconds in a device-second."""
_MOST_KNOWN: Final = 4 * MOST_TEAMS
"""Teams of a day that are told apart in memory; which of them get a line of their own the sums decide."""
_CLOCK_IS_SET_MS: Final = 1_735_689_600_000
"""2025: a node without a battery begins in 1970, and its time is of no day that anybody knows."""
_GIVEN: Final = frozenset({HolderSource.POD_RESOURCES, HolderSource.ANNOTATION})

Team = tuple[str, str]
"""Namespace and queue; both empty for all others together."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one container holds of one device, in millionths. ``utilization_percent``: of the device."""

    team: Team
    millionths: int
    utilization_percent: int | None


def parts(devices: Iterable[DeviceReading], holders: Mapping[str, Sequence[Holder]]) -> Iterator[Part]:
    """What was allocated: the devices that kubelet gave, each divided evenly among its containers.

    What runs on a device that it was not given holds nothing. A MIG instance is a part of a device.
    """
    for device in devices:
        given = sorted(
            (bounds.NAME.within(one.namespace), bounds.NAME.within(one.queue))
            for one in holders.get(device.id, ())
            if one.source in _GIVEN
        )
        whole = _part(device.product, device.mig_profile) if device.parent else _WHOLE
        utilization = measured(device.utilization_percent, bounds.MOST_PERCENT)
        for number, team in enumerate(given):
            share = whole * (number + 1) // len(given) - whole * number // len(given)
            yield Part(team if team[0] else ("", ""), share, utilization)


@dataclass(slots=True)
class _Sums:
    """In millionths of devices times milliseconds."""

    allocated: int = 0
    measured: int = 0
    used: int = 0
    quiet: int = 0

    def add(self, part: Part, ms: int) -> None:
        amount, percent = part.millionths * ms, part.utilization_percent
        self.allocated += amount
        if percent is not None:
            self.measured += amount
            self.used += amount * percent // 100
            if percent < THRESHOLDS.quiet_percent:
                self.quiet += amount

    def merge(self, other: "_Sums") -> None:
        self.allocated += other.allocated
        self.measured += other.measured
        self.used += other.used
        self.quiet += other.quiet

    def told(self, team: Team) -> TeamSeconds:
        amounts = (self.allocated, self.measured, self.used, self.quiet)
        return TeamSeconds(*team, *(min(MOST_SECONDS, amount // _UNIT) for amount in amounts))


@dataclass(slots=True)
class _Day:
    observed_ms: int = 0
    teams: dict[Team, _Sums] = field(default_factory=dict)

    def add(self, held: Iterable[Part], ms: int) -> None:
        """A day has no more than 24 hours, however often a clock is set back into it."""
        ms = min(ms, _DAY_MS - self.observed_ms)
        if ms > 0:
            self.observed_ms += ms
            for part in held:
                self._of(part.team).add(part, ms)

    def go_on(self, stored: UsageDay) -> None:
        """Add what was summed up before."""
        self.observed_ms = min(_DAY_MS, self.observed_ms + stored.observed_seconds * 1000)
        for team in stored.teams:
            amounts = (team.allocated_seconds, team.measured_seconds, team.used_seconds, team.quiet_seconds)
            self._of((team.namespace, team.queue)).merge(_Sums(*(amount * _UNIT for amount in amounts)))

    def told(self, date: str) -> UsageDay:
        """Those who held most by name, in the order of their names, and the others in one line."""
        named = sorted(
            (team for team in self.teams if team[0]), key=lambda team: (-self.teams[team].allocated, team)
        )
        others = _Sums()
        for team in (*named[MOST_TEAMS:], *(team for team in self.teams if not team[0])):
            others.merge(self.teams[team])
        lines = [self.teams[team].told(team) for team in sorted(named[:MOST_TEAMS])]
        lines.append(others.told(("", "")))
        return UsageDay(date, self.observed_ms // 1000, [one for one in lines if one.allocated_seconds])

    def _of(self, team: Team) -> _Sums:
        if team not in self.teams and len(self.teams) >= _MOST_KNOWN:
            team = ("", "")
        return self.teams.setdefault(team, _Sums())


class HeldTime:
    """The sums of one node. ``gap_s``: looks that are further apart speak for nothing between them."""

    def __init__(self, gap_s: float = IDLE.gap_s) -> None:
        self._gap_ms = int(gap_s * 1000)
        self._days: dict[str, _Day] = {}
        self._last_ms: int | None = None
        self._began_s: float | None = None

    def add(self, held: Iterable[Part], now_s: float, wall_s: float) -> None:
        """One more look at the moment ``now_s``, which is ``wall_s`` seconds after the epoch."""
        now_ms, wall_ms = int(now_s * 1000), int(wall_s * 1000)
        last_ms, self._last_ms = self._last_ms, now_ms
        if self._began_s is None:
            self._began_s = wall_s
        if last_ms is None or not 0 < now_ms - last_ms <= self._gap_ms or wall_ms < _CLOCK_IS_SET_MS:
            return
        parts_now = tuple(held)
        for date, ms in _by_day(wall_ms - (now_ms - last_ms), wall_ms):
            self._days.setdefault(date, _Day()).add(parts_now, ms)
            self._forget(date)

    def go_on(self, days: Iterable[UsageDay], observed_s: float) -> None:
        """Go on from what is stored, which was written ``observed_s`` seconds after the epoch.

        Where that was after we began to look, somebody else looked, too, and has counted what we have.
        """
        if self._began_s is not None and observed_s > self._began_s:
            self._days.clear()
        for day in days:
            self._days.setdefault(day.date, _Day()).go_on(day)

    def days(self) -> tuple[UsageDay, ...]:
        """The days, the earliest first."""
        return tuple(self._days[date].told(date) for date in sorted(self._days))

    def _forget(self, today: str) -> None:
        """Days that a clock which was ahead has named give way first, then the earliest."""
        while len(self._days) > MOST_DAYS:
            last = max(self._days)
            del self._days[last if last > today else min(self._days)]


def _by_day(from_ms: int, to_ms: int) -> Iterator[tuple[str, int]]:
    """The days of a time, and how many milliseconds of it are in each."""
    while from_ms < to_ms:
        end_ms = min(to_ms, (from_ms // _DAY_MS + 1) * _DAY_MS)
        yield _date(from_ms // _DAY_MS), end_ms - from_ms
        from_ms = end_ms


@lru_cache(maxsize=8)
def _date(day: int) -> str:
    return datetime.fromtimestamp(day * DAY_S, UTC).date().isoformat()


@lru_cache(maxsize=64)
def _part(product: str, profile: str) -> int:
    return _WHOLE // most_instances(product, profile)
