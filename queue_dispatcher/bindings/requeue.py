"""The requeue record: a workload was released, did not start in time or lost its cluster, and was taken back.

Written in the same patch that holds the binding again, so that its place in the line, the number of tries and
the time of the next one survive the dispatcher. It also marks the binding as taken back by us: whatever
Karmada still places of it, out of its own queue, is cleared again.
"""

from dataclasses import dataclass

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
from queue_dispatcher.bindings.record import read_moment
from queue_dispatcher.bindings.timestamp import format_ms

MAX_COUNT = 2**31 - 1
MAX_REASON = 1024
LOST = "its cluster cannot be reached"
"""How the reason begins where a cluster was lost."""


@dataclass(frozen=True, slots=True)
class RequeueRecord:
    """``count``: how many times in a row it did not start, 0 where only its cluster was lost.
    ``not_before_ms``: when it is due again.

    ``enqueued_ms``: since when it has its place in the line. All epoch milliseconds. ``reason``: why it was
    taken back, for people.
    """

    count: int
    not_before_ms: int
    enqueued_ms: int
    reason: str = ""

    @property
    def is_lost(self) -> bool:
        """Whether it was taken off a cluster that was lost."""
        return self.reason.startswith(LOST)


class _Requeue(KubeStruct, frozen=True):
    count: int
    not_before: str
    enqueued_at: str
    reason: str = ""


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
        )
    except AnnotationError as error:
        return Malformed(f"{location(REQUEUE)}: {error}; tried again at once, with the age of the binding")


def write_requeue(record: RequeueRecord) -> str:
    """The annotation's value: compact JSON, keys sorted; `parse_requeue` gives the same record back."""
    return encode(
        {
            "count": record.count,
            "notBefore": format_ms(record.not_before_ms),
            "enqueuedAt": format_ms(record.enqueued_ms),
            "reason": record.reason[:MAX_REASON],
        }
    )
