"""The requeue record: a workload was released and taken back, as it did not start in time, lost its cluster,
ran for as long as it may, or as its queue was drained or its quota lowered.

What was suspended in its cluster instead of being taken off it says where, and until when it waits for that
one alone.

Written in the same patch that holds the binding again, so that its place in the line, the number of tries and
the time of the next one survive the dispatcher. It also marks the binding as taken back by us: whatever
Karmada still places of it, out of its own queue, is cleared again.
"""

from dataclasses import dataclass
from enum import StrEnum

import msgspec

from fairway.kube.objects import KubeStruct
from fairway.names import REQUEUE
from queue_dispatcher.bindings.annotation import (
    AnnotationError,
    Malformed,
    decode,
    encode,
    in_range,
    location,
)
from queue_dispatcher.bindings.record import MAX_REASON, Flavors, read_flavors, read_moment
from queue_dispatcher.bindings.timestamp import format_ms

MAX_COUNT = 2**31 - 1
LOST = "its cluster cannot be reached"
"""How the reason begins where a cluster was lost."""


class Cause(StrEnum):
    """Why a workload was taken back, where that decides what becomes of it."""

    FAILED = ""
    """It did not start, or lost its cluster: it is tried again."""
    MAX_RUNTIME = "MaxRuntimeExceeded"
    """It has run for as long as it may: it stays held until somebody removes the annotation."""
    DRAINED = "QueueDrained"
    """Its queue was drained: it waits for that to go on."""
    QUOTA_REDUCED = "QuotaReduced"
    """Its queue used more than it may: it waits, in its place."""
    PREEMPTED = "Preempted"
    """Another workload needs its room: it waits, in its place."""


_CAUSES = {cause.value: cause for cause in Cause}


@dataclass(frozen=True, slots=True)
class Suspended:
    """It was suspended in its ``cluster``, where it was charged to these ``flavors``, by resource.

    ``until_ms``: it gives up its place there then, epoch milliseconds; 0 while that is not counted, as its
    queue is drained.
    """

    cluster: str
    flavors: Flavors
    until_ms: int = 0


@dataclass(frozen=True, slots=True)
class RequeueRecord:
    """``count``: how many times in a row it did not start, 0 where only its cluster was lost.
    ``not_before_ms``: when it is due again.

    ``enqueued_ms``: since when it has its place in the line. All epoch milliseconds. ``reason``: why it was
    taken back, for people; ``cause``: for the dispatcher. ``by``: the id of the item that it was displaced
    for; empty for nobody. ``stopped_ms``: when that was, where ``not_before_ms`` does not tell any more, as
    it has waited for something else since; 0 where it does. ``suspended``: None where it was taken off its
    clusters. ``displaced``: how many times in a row it was, by `queue_dispatcher.preemption.pause`, whatever
    it was taken back for since.
    """

    count: int
    not_before_ms: int
    enqueued_ms: int
    reason: str = ""
    cause: Cause = Cause.FAILED
    by: str = ""
    suspended: Suspended | None = None
    displaced: int = 0
    stopped_ms: int = 0

    @property
    def is_lost(self) -> bool:
        """Whether it was taken off a cluster that was lost."""
        return self.reason.startswith(LOST)


class _Suspended(KubeStruct, frozen=True):
    cluster: str
    flavors: dict[str, list[str]]
    until: str = ""


class _Requeue(KubeStruct, frozen=True):
    count: int
    not_before: str
    enqueued_at: str
    reason: str = ""
    cause: str = ""
    by: str = ""
    suspended: _Suspended | None = None
    displaced: int = 0
    stopped_at: str = ""


_RECORDS = msgspec.json.Decoder(_Requeue)


def parse_requeue(text: str) -> RequeueRecord | Malformed:
    """The record in the annotation's value; never raises."""
    try:
        raw = decode(_RECORDS, text)
        return RequeueRecord(
            count=in_range("count", raw.count, 0, MAX_COUNT),
            not_before_ms=read_moment("notBefore", raw.not_before),
            enqueued_ms=read_moment("enqueuedAt", raw.enqueued_at),
            reason=raw.reason[:MAX_REASON],
            # What a later version knows of is tried again.
            cause=_CAUSES.get(raw.cause, Cause.FAILED),
            by=raw.by[:MAX_REASON],
            suspended=None if raw.suspended is None else _suspended(raw.suspended),
            displaced=in_range("displaced", raw.displaced, 0, MAX_COUNT),
            stopped_ms=read_moment("stoppedAt", raw.stopped_at) if raw.stopped_at else 0,
        )
    except AnnotationError as error:
        return Malformed(f"{location(REQUEUE)}: {error}; tried again at once, with the age of the binding")


def write_requeue(record: RequeueRecord) -> str:
    """The annotation's value: compact JSON, keys sorted; `parse_requeue` gives the same record back."""
    value: dict[str, object] = {
        "count": record.count,
        "notBefore": format_ms(record.not_before_ms),
        "enqueuedAt": format_ms(record.enqueued_ms),
        "reason": record.reason[:MAX_REASON],
    }
    if record.cause is not Cause.FAILED:
        value["cause"] = record.cause.value
    if record.by:
        value["by"] = record.by
    if record.displaced:
        value["displaced"] = record.displaced
    if record.stopped_ms:
        value["stoppedAt"] = format_ms(record.stopped_ms)
    if record.suspended is not None:
        stay = record.suspended
        stated: dict[str, object] = {"cluster": stay.cluster, "flavors": dict(stay.flavors)}
        if stay.until_ms:
            stated["until"] = format_ms(stay.until_ms)
        value["suspended"] = stated
    return encode(value)


def _suspended(raw: _Suspended) -> Suspended:
    if not raw.cluster:
        raise AnnotationError("suspended.cluster: expected a name, found none")
    until_ms = read_moment("suspended.until", raw.until) if raw.until else 0
    return Suspended(raw.cluster, read_flavors("suspended.flavors", raw.flavors), until_ms)
