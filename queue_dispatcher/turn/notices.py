"""Notices: what a turn has to tell people, logs and metrics; values, told by whoever runs the turn."""

from dataclasses import dataclass

from queue_dispatcher.bindings.record import AdmissionRecord
from queue_dispatcher.bindings.requeue import RequeueRecord
from queue_dispatcher.cache.entry import (
    Entry,
    FinishedNotice,
    MaxWaitMissedNotice,
    ReachedNotice,
    RestartedNotice,
)
from queue_dispatcher.turn.writes import Purpose
from queue_dispatcher.workloads.choice import Choice


@dataclass(frozen=True, slots=True)
class AdmittedNotice:
    """The binding, or its growth, was released after so long in the queue; ``choice``: where to.

    ``passes``: past a reservation.
    """

    entry: Entry
    record: AdmissionRecord
    waited_ms: int
    choice: Choice | None = None
    passes: bool = False


@dataclass(frozen=True, slots=True)
class TakenBackNotice:
    """The binding was released, did not start, and is held again."""

    entry: Entry
    queue: str
    requeue: RequeueRecord


@dataclass(frozen=True, slots=True)
class LostNotice:
    """The binding was taken off a cluster that is lost. ``reason``: why it is held again, empty where the
    rest of it runs on.
    """

    entry: Entry
    queue: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class YieldedNotice:
    """The binding runs on with fewer pods from now on. ``reason``: why, for people."""

    entry: Entry
    queue: str
    reason: str


@dataclass(frozen=True, slots=True)
class EvictedNotice:
    """The binding was taken back because it has run for as long as it may, or its queue is drained."""

    entry: Entry
    queue: str
    requeue: RequeueRecord


@dataclass(frozen=True, slots=True)
class PlaceGivenUpNotice:
    """It was suspended, and has been taken off its cluster, as its requeue record says now."""

    entry: Entry
    requeue: RequeueRecord


@dataclass(frozen=True, slots=True)
class ReservedNotice:
    """The binding, or the group that it is the first of, holds a reservation, which was not told yet."""

    entry: Entry
    queue: str
    told: str


@dataclass(frozen=True, slots=True)
class GivenUpNotice:
    """Its reservation was given up."""

    entry: Entry
    queue: str
    told: str


@dataclass(frozen=True, slots=True)
class FulfilledNotice:
    """What held a reservation was released."""

    queue: str


@dataclass(frozen=True, slots=True)
class RefusedNotice:
    """The API server refuses a write."""

    entry: Entry
    purpose: Purpose
    message: str


@dataclass(frozen=True, slots=True)
class FailedNotice:
    """The API server fails at a write, or does not answer."""

    entry: Entry
    purpose: Purpose
    message: str


@dataclass(frozen=True, slots=True)
class StaleNotice:
    """The watch never told of our write; the older state counts."""

    entry: Entry


@dataclass(frozen=True, slots=True)
class AnsweredNotice:
    """Estimators were asked. ``answer``: ``fits``, ``waits``; ``later`` to when it fits; where nobody knew,
    ``unknown``, ``without``.

    ``unknown``: of the last two, why nobody knew.
    """

    answer: str
    took_ms: int
    unknown: tuple[str, ...] = ()


Notice = (
    AdmittedNotice
    | ReachedNotice
    | FinishedNotice
    | RestartedNotice
    | MaxWaitMissedNotice
    | TakenBackNotice
    | LostNotice
    | YieldedNotice
    | EvictedNotice
    | PlaceGivenUpNotice
    | ReservedNotice
    | GivenUpNotice
    | FulfilledNotice
    | RefusedNotice
    | FailedNotice
    | StaleNotice
    | AnsweredNotice
)
