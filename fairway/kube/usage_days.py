"""The days of a NodeDevices object: who held the devices of the node on which day, in device-seconds.

Written by the node's agent as totals, never as additions: whoever writes twice says the same twice. Read by
who asks for it, since the sums of a month are larger than all else in the object. Days are UTC. What cannot
be is left out and said, and costs nothing else.
"""

import re
from datetime import date
from typing import Final

import msgspec

from fairway.kube.node_devices import NodeDevices
from fairway.kube.objects import KubeStruct

DAY_S: Final = 86_400
MOST_DAYS: Final = 31
MOST_TEAMS: Final = 16
"""Of one day; the others are one more line, without a namespace."""
MOST_SECONDS: Final = 128 * DAY_S
"""Device-seconds of a day on a node with as many devices as an object can have."""

_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_MOST_NAME: Final = 253
_SHOWN: Final = 60


class TeamSeconds(KubeStruct, frozen=True):
    """What the pods of one namespace and queue held on one day, in device-seconds; what they ``used`` and
    what lay ``quiet`` are parts of what is ``measured``, and that of what is ``allocated``.

    ``namespace``: empty for all who have no line of their own. ``queue``: empty where the pods name none.
    """

    namespace: str = ""
    queue: str = ""
    allocated_seconds: int = 0
    measured_seconds: int = 0
    used_seconds: int = 0
    quiet_seconds: int = 0


class UsageDay(KubeStruct, frozen=True):
    """One day. ``date``: ``2026-11-01``, UTC. ``observed_seconds``: for how long of it the agent looked."""

    date: str = ""
    observed_seconds: int = 0
    teams: list[TeamSeconds] = msgspec.field(default_factory=list)


_RAW_DAYS: Final = msgspec.json.Decoder(list[msgspec.Raw] | None)
_DAY: Final = msgspec.json.Decoder(UsageDay)


def usage_days(found: NodeDevices) -> tuple[tuple[UsageDay, ...], tuple[str, ...]]:
    """The days that can be true, in their order, and a sentence for each thing that cannot."""
    problems: list[str] = []
    try:
        raw_days = _RAW_DAYS.decode(found.days) or []
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return (), (f"days: {error}: not read",)
    if len(raw_days) > MOST_DAYS:
        problems.append(f"days: expected at most {MOST_DAYS}, found {len(raw_days)}: the last ones are read")
    days: dict[str, UsageDay] = {}
    for raw in raw_days[-MOST_DAYS:]:
        try:
            day = _DAY.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            problems.append(f"days: {error}: the day is left out")
            continue
        why = _flaw(day) or ("expected each day once" if day.date in days else "")
        if why:
            problems.append(f"days: {day.date[:_SHOWN]!r}: {why}: the day is left out")
        else:
            days[day.date] = day
    return tuple(days[key] for key in sorted(days)), tuple(problems)


def encoded_days(days: tuple[UsageDay, ...]) -> msgspec.Raw:
    """As they stand in the object: what is empty or zero is left out."""
    return msgspec.Raw(msgspec.json.encode([_written(day) for day in days]))


def _written(day: UsageDay) -> dict[str, object]:
    teams = [_team(one) for one in day.teams]
    return {"date": day.date, "observedSeconds": day.observed_seconds, "teams": teams}


def _team(team: TeamSeconds) -> dict[str, object]:
    found: dict[str, object] = msgspec.to_builtins(team)
    return {key: value for key, value in found.items() if value}


def _flaw(day: UsageDay) -> str:
    """Why the day cannot be; empty where it can."""
    try:
        if date.fromisoformat(day.date).isoformat() != day.date:
            return "date: expected as 2026-11-01"
    except ValueError:
        return "date: expected as 2026-11-01"
    if not 0 <= day.observed_seconds <= DAY_S:
        return f"observedSeconds: expected 0 to {DAY_S}, found {day.observed_seconds}"
    if len(day.teams) > MOST_TEAMS + 1:
        return f"teams: expected at most {MOST_TEAMS + 1}, found {len(day.teams)}"
    if len({(team.namespace, team.queue) for team in day.teams}) != len(day.teams):
        return "teams: expected each namespace and queue once"
    return next((why for team in day.teams if (why := _team_flaw(team))), "")


def _team_flaw(team: TeamSeconds) -> str:
    for name in (team.namespace, team.queue):
        if name and (len(name) > _MOST_NAME or not _NAME.fullmatch(name)):
            return f"teams: expected the name of a namespace or queue, found {name[:_SHOWN]!r}"
    measured, allocated = team.measured_seconds, team.allocated_seconds
    parts = (team.used_seconds, team.quiet_seconds)
    if not 0 <= min(parts) <= max(parts) <= measured <= allocated <= MOST_SECONDS:
        numbers = f"{allocated}, {measured}, {team.used_seconds}, {team.quiet_seconds}"
        return (
            f"teams: expected allocated (up to {MOST_SECONDS}), of it measured, of that used and quiet, "
            f"found {numbers} seconds"
        )
    return ""
