"""A drawn month of a small fleet: who held what and what it did, minute by minute, and what that comes to.

`truth` sums it up by intervals and fractions; it shares nothing with what it is compared with.
"""

import random
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction

MINUTE_S, DAY_S = 60, 86_400
WRITES_EVERY_S = 300
BEGIN_S = int(datetime(2026, 10, 23, tzinfo=UTC).timestamp())
END_S = int(datetime(2026, 11, 22, 12, 0, tzinfo=UTC).timestamp())
TEAMS = (("vision", "train"), ("vision", ""), ("research", "nightly"), ("serving", ""), ("notebooks", ""))
PERCENTS = (None, 0, 0, 3, 5, 40, 77, 100)
INSTANCE = Fraction(1, 7)

Team = tuple[str, str]
Interval = tuple[int, int]
Sums = tuple[float, float, float, float]
"""Allocated, measured, used and idle, in device-seconds."""


@dataclass(frozen=True)
class Stretch:
    """A time in which nothing changes on a device; moments in seconds since the epoch."""

    begin_s: int
    end_s: int
    teams: tuple[Team, ...]
    percent: int | None


@dataclass(frozen=True)
class Device:
    """``is_instance``: a seventh of an H100."""

    id: str
    node: str
    index: int
    is_instance: bool
    stretches: tuple[Stretch, ...]

    def at(self, moment_s: int) -> Stretch:
        """What was in the minute that ends then."""
        return self.stretches[bisect_left(self.stretches, moment_s, key=lambda one: one.end_s)]


@dataclass(frozen=True)
class Month:
    """``outages``: by node, when its agent did not run."""

    devices: tuple[Device, ...]
    outages: dict[str, tuple[Interval, ...]]

    def runs(self, node: str) -> Iterator[Interval]:
        """When the node's agent looked first and last, run by run."""
        since_s = BEGIN_S
        for begin_s, end_s in self.outages[node]:
            yield since_s, begin_s
            since_s = end_s
        yield since_s, END_S


def drawn(seed: int, nodes: int = 3) -> Month:
    """The month of one seed."""
    chance = random.Random(seed)
    devices, outages = [], {}
    for number in range(nodes):
        node = f"g{number}"
        for index in range(3):
            device = f"GPU-{number}{index}"
            devices.append(Device(device, node, index, index == 2, tuple(_stretches(chance))))
        outages[node] = tuple(_outages(chance))
    return Month(tuple(devices), outages)


def _stretches(chance: random.Random) -> Iterator[Stretch]:
    at_s = BEGIN_S
    while at_s < END_S:
        until_s = min(END_S, at_s + MINUTE_S * chance.randint(30, 60 * 40))
        count = chance.choice((0, 1, 1, 1, 1, 2, 3))
        teams = tuple(chance.choice(TEAMS) for _ in range(count))
        while at_s < until_s:
            end_s = min(until_s, at_s + MINUTE_S * chance.randint(10, 60 * 12))
            yield Stretch(at_s, end_s, teams, chance.choice(PERCENTS))
            at_s = end_s


def _outages(chance: random.Random) -> Iterator[Interval]:
    at_s = BEGIN_S
    while True:
        at_s += MINUTE_S * chance.randint(60 * 24, 60 * 24 * 9)
        end_s = at_s + MINUTE_S * chance.randint(5, 60 * 30)
        if end_s >= END_S - DAY_S:
            return
        yield at_s, end_s
        at_s = end_s


def observed(month: Month, node: str) -> list[Interval]:
    """What the agent saw and still knew: from its first look to the last time that it wrote."""
    ends = ((begin_s, end_s // WRITES_EVERY_S * WRITES_EVERY_S) for begin_s, end_s in month.runs(node))
    return [(begin_s, end_s) for begin_s, end_s in ends if begin_s < end_s]


def truth(month: Month, seen: dict[str, list[Interval]] | None = None) -> dict[tuple[str, Team], Sums]:
    """By day and team, of what was ``seen`` on each node; of all the time where that is not said."""
    sums: dict[tuple[str, Team], list[Fraction]] = defaultdict(lambda: [Fraction(0)] * 4)
    for device in month.devices:
        for one in device.stretches:
            for begin_s, end_s in seen[device.node] if seen is not None else [(BEGIN_S, END_S)]:
                for midnight_s in range(BEGIN_S, END_S, DAY_S):
                    seconds = min(one.end_s, end_s, midnight_s + DAY_S) - max(
                        one.begin_s, begin_s, midnight_s
                    )
                    for team in one.teams if seconds > 0 else ():
                        part = Fraction(seconds, len(one.teams)) * (INSTANCE if device.is_instance else 1)
                        key = (datetime.fromtimestamp(midnight_s, UTC).date().isoformat(), team)
                        known = 0 if one.percent is None else 1
                        share = Fraction(one.percent or 0, 100)
                        idle = 1 if one.percent is not None and one.percent < 5 else 0
                        for n, factor in enumerate((Fraction(1), Fraction(known), share, Fraction(idle))):
                            sums[key][n] += part * factor
    return {key: (float(a), float(b), float(c), float(d)) for key, (a, b, c, d) in sums.items()}
