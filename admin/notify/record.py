"""Who was told and when, in ConfigMaps of ours: Events themselves are gone after an hour.

The one idea: a workload is claimed before its Event is created, under a name that follows from the claim. So
whoever finds an unfinished claim may finish it: while the Event lives its name lets no second one come into
being. A claim that is older than that counts as told, because an Event that is lost harms less than two.

Entries are kept by uid, which a workload that is made anew does not share, and forgotten after a day. Whoever
makes pods chooses what they say of their owner; where that is all there is, the entry has a key that no other
object can have. What others keep in the ConfigMaps is left alone.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, StrEnum
from hashlib import sha256
from typing import Final

from fairway.kube.event_series import Regarding
from fairway.kube.objects import ApiObject
from fairway.kube.resource import ResourceKind
from fairway.moments import moment_s

RECORDS: Final = tuple(f"fairway-notified-{number}" for number in range(8))
"""Names of the ConfigMaps; a workload is in the one that its key says."""
MOST: Final = 8000
"""Entries of each: half a megabyte, of the one that an object may have."""

_UID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_STATED: Final = "stated."
_STATED_KEY: Final = re.compile(r"stated\.[0-9a-f]{32}")
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


def is_uid(text: str) -> bool:
    """Whether it looks like the uids that API servers give: RFC 4122's form."""
    return _UID.fullmatch(text) is not None


def key_of(regarding: Regarding, *, is_read: bool) -> str:
    """Under what a workload is kept: its uid where it ``is_read`` from the API server.

    Otherwise a digest of all that its pods say of it, so that naming another's uid says nothing of that one.
    """
    if is_read and is_uid(regarding.uid):
        return regarding.uid
    group = regarding.api_version.rpartition("/")[0]
    said = (group, regarding.kind, regarding.namespace, regarding.name, regarding.uid)
    return _STATED + sha256("\0".join(said).encode("utf-8", "replace")).hexdigest()[:32]


def record_of(key: str) -> str:
    """The name of the ConfigMap that has the workload's entry."""
    return RECORDS[sha256(key.encode()).digest()[0] % len(RECORDS)]


def entries(data: Mapping[str, str] | None, now_s: float) -> dict[str, Entry]:
    """What of a ConfigMap still says something: entries of the last day that can be read."""
    found = {}
    for key, text in (data or {}).items():
        one = _entry(key, text)
        if one is None:
            continue
        kept = _SEEN_HOURS if one.state is State.SEEN else _EVERY_HOURS
        # What lies a day ahead was written by a clock that nobody should wait for.
        if abs(_hours(now_s) - _hours(one.at_s)) < kept:
            found[key] = one
    return found


def data(kept: Mapping[str, Entry], before: Mapping[str, str] | None = None) -> dict[str, str]:
    """The entries as a ConfigMap has them, beside what of ``before`` is no entry at all."""
    others = {key: text for key, text in (before or {}).items() if _entry(key, text) is None}
    return others | {key: _moment(one.at_s) + one.state for key, one in sorted(kept.items())}


def _entry(key: str, text: str) -> Entry | None:
    """None for what somebody else has written."""
    if not (is_uid(key) or _STATED_KEY.fullmatch(key)):
        return None
    state = next((one for one in State if one and text.endswith(one)), State.TOLD)
    at_s = moment_s(text.removesuffix(state))
    return None if at_s is None else Entry(int(at_s), state)


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


def claimed(kept: Mapping[str, Entry], keys: Iterable[str], now_s: float) -> dict[str, Entry]:
    """The entries with those that are due claimed, as far as there is room."""
    found = dict(kept)
    for key in keys:
        known = found.get(key)
        is_free = known is None and len(found) < MOST
        if is_free or (known is not None and known.state is State.SEEN):
            found[key] = Entry(int(now_s), State.UNFINISHED)
    return found


def noted(kept: Mapping[str, Entry], keys: Iterable[str], now_s: float) -> dict[str, Entry]:
    """The entries with those seen that have none, as far as half of the room."""
    found = dict(kept)
    for key in keys:
        if len(found) < MOST // 2:
            found.setdefault(key, Entry(int(now_s), State.SEEN))
    return found


def settled(
    kept: Mapping[str, Entry], told: Mapping[str, Entry], given_back: Mapping[str, Entry]
) -> dict[str, Entry]:
    """The entries after claims were used, and others, which nobody else has used meanwhile, given back."""
    left = {key: one for key, one in kept.items() if given_back.get(key) != one}
    return left | {key: Entry(one.at_s, State.TOLD) for key, one in told.items()}


def event_id(key: str, entry: Entry) -> str:
    """What tells the Event of this claim from all others."""
    return sha256(f"{key} {entry.at_s}".encode()).hexdigest()


def _hours(at_s: float) -> int:
    return int(at_s) // _HOUR_S


def _moment(at_s: int) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
