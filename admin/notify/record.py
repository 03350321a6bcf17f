"""Who was told and when, in ConfigMaps of ours: Events themselves are gone after an hour.

The one idea: a workload is claimed before its Event is created, under a name that follows from the claim. So
whoever finds an unfinished claim may finish it: while the Event lives its name lets no second one come into
being. A claim that is older than that counts as told, because an Event that is lost harms less than two.

Entries are kept by uid, which a workload that is made anew does not share, and forgotten after a day.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from hashlib import sha256
from typing import Final

from fairway.kube.objects import ApiObject
from fairway.kube.resource import ResourceKind
from fairway.moments import moment_s

RECORDS: Final = tuple(f"fairway-notified-{number}" for number in range(8))
"""Names of the ConfigMaps; a workload is in the one that its uid says."""
MOST: Final = 8000
"""Entries of each: half a megabyte, of the one that an object may have."""

_UNFINISHED: Final = " unfinished"
_FINISHED_WITHIN_S: Final = 1800
"""Well within the hour that API servers keep Events by default."""
_HOUR_S: Final = 3600
_EVERY_HOURS: Final = 24


class ConfigMap(ApiObject, frozen=True):
    """core/v1 ConfigMap."""

    data: dict[str, str] | None = None


CONFIG_MAPS: Final = ResourceKind("configmaps", "/api/v1/configmaps", ConfigMap)


@dataclass(frozen=True, slots=True)
class Entry:
    """``at_s``: when the workload was claimed, seconds since the epoch. ``is_told``: its Event is written."""

    at_s: int
    is_told: bool


class Standing(Enum):
    """Whether a workload may be told."""

    DUE = "may be claimed"
    UNFINISHED = "is claimed; its Event is to be created under the name of the claim"
    TOLD = "has been told"


def record_of(uid: str) -> str:
    """The name of the ConfigMap that has the workload's entry."""
    return RECORDS[sha256(uid.encode()).digest()[0] % len(RECORDS)]


def entries(data: Mapping[str, str] | None, now_s: float) -> dict[str, Entry]:
    """What of a ConfigMap still says something: entries of the last day that can be read."""
    found = {}
    for uid, text in (data or {}).items():
        at_s = moment_s(text.removesuffix(_UNFINISHED))
        # What lies a day ahead was written by a clock that nobody should wait for.
        if at_s is not None and abs(_hours(now_s) - _hours(at_s)) < _EVERY_HOURS:
            found[uid] = Entry(int(at_s), not text.endswith(_UNFINISHED))
    return found


def data(kept: Mapping[str, Entry]) -> dict[str, str]:
    """The entries as a ConfigMap has them."""
    return {uid: _moment(one.at_s) + _UNFINISHED * (not one.is_told) for uid, one in sorted(kept.items())}


def standing(entry: Entry | None, now_s: float) -> Standing:
    """Whether a workload with this entry may be told. Days are counted in whole hours, so that a run that
    begins a little earlier than yesterday's is not a day late."""
    if entry is None:
        return Standing.DUE
    if entry.is_told or abs(now_s - entry.at_s) > _FINISHED_WITHIN_S:
        return Standing.TOLD
    return Standing.UNFINISHED


def claimed(kept: Mapping[str, Entry], uids: Iterable[str], now_s: float) -> dict[str, Entry]:
    """The entries with those that are due claimed, as far as there is room."""
    found = dict(kept)
    for uid in uids:
        if len(found) >= MOST:
            break
        found.setdefault(uid, Entry(int(now_s), is_told=False))
    return found


def settled(
    kept: Mapping[str, Entry], told: Mapping[str, Entry], given_back: Mapping[str, Entry]
) -> dict[str, Entry]:
    """The entries after claims were used, and others, which nobody else has used meanwhile, given back."""
    left = {uid: one for uid, one in kept.items() if given_back.get(uid) != one}
    return left | {uid: Entry(one.at_s, is_told=True) for uid, one in told.items()}


def event_id(uid: str, entry: Entry) -> str:
    """What tells the Event of this claim from all others."""
    return sha256(f"{uid} {entry.at_s}".encode()).hexdigest()


def _hours(at_s: float) -> int:
    return int(at_s) // _HOUR_S


def _moment(at_s: int) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
