"""Who was told and when, in ConfigMaps of ours: Events themselves are gone after an hour.

The one idea: a workload is claimed before its Event is created, under a name that follows from the claim. So
whoever finds an unfinished claim may finish it: while the Event lives its name lets no second one come into
being. A claim that is older than that counts as told, because an Event that is lost harms less than two.

Entries are kept by uid, which a workload that is made anew does not share, and forgotten after a day.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, StrEnum
from hashlib import sha256
from typing import Final

from fairway.kube.objects import ApiObject
from fairway.kube.resource import ResourceKind
from fairway.moments import moment_s

RECORDS: Final = tuple(f"fairway-notified-{number}" for number in range(8))
"""Names of the ConfigMaps; a workload is in the one that its uid says."""
MOST: Final = 8000
"""Entries of each: half a megabyte, of the one that an object may have."""

_FINISHED_WITHIN_S: Final = 1800
"""Well within the hour that API servers keep Events by default."""
_HOUR_S: Final = 3600
_EVERY_HOURS: Final = 24
_SEEN_HOURS: Final = 48
_APART_HOURS: Final = 1


class ConfigMap(ApiObject, frozen=True):
    """core/v1 ConfigMap."""

    data: dict[str, str] | None = None


CONFIG_MAPS: Final = ResourceKind("configmaps", "/api/v1/configmaps", ConfigMap)


class State(StrEnum):
    """What an entry says, as it ends there."""

    TOLD = ""
    UNFINISHED = " unfinished"
    """Claimed; whether its Event is there is not known yet."""
    SEEN = " seen"
    """Something was found that is to be found twice."""


@dataclass(frozen=True, slots=True)
class Entry:
    """``at_s``: when the workload was claimed, or first seen, in seconds since the epoch."""

    at_s: int
    state: State


class Standing(Enum):
    """Whether a workload may be told."""

    DUE = "may be claimed"
    NEW = "is to be noted, for it is told when the same is found again"
    SEEN = "was noted a moment ago"
    UNFINISHED = "is claimed; its Event is to be created under the name of the claim"
    TOLD = "has been told"


def record_of(uid: str) -> str:
    """The name of the ConfigMap that has the workload's entry."""
    return RECORDS[sha256(uid.encode()).digest()[0] % len(RECORDS)]


def entries(data: Mapping[str, str] | None, now_s: float) -> dict[str, Entry]:
    """What of a ConfigMap still says something: entries of the last day that can be read."""
    found = {}
    for uid, text in (data or {}).items():
        state = next((one for one in State if one and text.endswith(one)), State.TOLD)
        at_s, kept = moment_s(text.removesuffix(state)), _SEEN_HOURS if state is State.SEEN else _EVERY_HOURS
        # What lies a day ahead was written by a clock that nobody should wait for.
        if at_s is not None and abs(_hours(now_s) - _hours(at_s)) < kept:
            found[uid] = Entry(int(at_s), state)
    return found


def data(kept: Mapping[str, Entry]) -> dict[str, str]:
    """The entries as a ConfigMap has them."""
    return {uid: _moment(one.at_s) + one.state for uid, one in sorted(kept.items())}


def standing(entry: Entry | None, now_s: float, *, lasts: bool = True) -> Standing:
    """Whether a workload with this entry may be told; ``lasts``: as of `admin.notify.notices.Notice`.

    Time is counted in whole hours, so that a run that begins a little earlier than yesterday's is not a day
    late.
    """
    if entry is None:
        return Standing.DUE if lasts else Standing.NEW
    if entry.state is State.SEEN:
        is_later = _hours(now_s) - _hours(entry.at_s) >= _APART_HOURS
        return Standing.DUE if lasts or is_later else Standing.SEEN
    if entry.state is State.TOLD or abs(now_s - entry.at_s) > _FINISHED_WITHIN_S:
        return Standing.TOLD
    return Standing.UNFINISHED


def claimed(kept: Mapping[str, Entry], uids: Iterable[str], now_s: float) -> dict[str, Entry]:
    """The entries with those that are due claimed, as far as there is room."""
    found = dict(kept)
    for uid in uids:
        known = found.get(uid)
        is_free = known is None and len(found) < MOST
        if is_free or (known is not None and known.state is State.SEEN):
            found[uid] = Entry(int(now_s), State.UNFINISHED)
    return found


def noted(kept: Mapping[str, Entry], uids: Iterable[str], now_s: float) -> dict[str, Entry]:
    """The entries with those seen that have none, as far as half of the room."""
    found = dict(kept)
    for uid in uids:
        if len(found) < MOST // 2:
            found.setdefault(uid, Entry(int(now_s), State.SEEN))
    return found


def settled(
    kept: Mapping[str, Entry], told: Mapping[str, Entry], given_back: Mapping[str, Entry]
) -> dict[str, Entry]:
    """The entries after claims were used, and others, which nobody else has used meanwhile, given back."""
    left = {uid: one for uid, one in kept.items() if given_back.get(uid) != one}
    return left | {uid: Entry(one.at_s, State.TOLD) for uid, one in told.items()}


def event_id(uid: str, entry: Entry) -> str:
    """What tells the Event of this claim from all others."""
    return sha256(f"{uid} {entry.at_s}".encode()).hexdigest()


def _hours(at_s: float) -> int:
    return int(at_s) // _HOUR_S


def _moment(at_s: int) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
