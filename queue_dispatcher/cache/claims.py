"""Claims: for whom workloads have been displaced, or have given pods up, as far as that is written on them,
and until when the room is theirs.

So a dispatcher that was restarted in the midst of it keeps the room for whom it was made.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from queue_dispatcher.bindings.requeue import Cause, RequeueRecord
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.ledger.accrual import MAX_AHEAD_MS
from queue_dispatcher.preemption.pause import pause_ms

CLAIMED_MS: Final = 600_000
"""For so long the room of what was displaced is kept, since its pods may take that long to go."""


def stopped_ms(requeue: RequeueRecord) -> int:
    """When it was stopped that was displaced, or whose queue was drained, epoch milliseconds."""
    return requeue.stopped_ms or requeue.not_before_ms - paused_ms(requeue)


def paused_ms(requeue: RequeueRecord) -> int:
    """For how long it is not admitted again because it was displaced; 0 where it was not."""
    return pause_ms(requeue.displaced) if requeue.cause is Cause.PREEMPTED else 0


class Claims:
    """By item, those that were displaced for it, or gave pods up, and until when it has a claim to their
    room, epoch milliseconds. What was displaced itself since had started by then: it has none any more to
    what was left before.
    """

    def __init__(self) -> None:
        self._until: dict[str, dict[str, int]] = {}
        self._by: dict[str, Mapping[str, int]] = {}
        self._stopped: dict[str, int] = {}

    def put(self, entry: Entry) -> None:
        """The entry is as it is."""
        preempted = entry.binding.preempted
        if preempted is not None:
            self._stopped[entry.uid] = stopped_ms(preempted)
        else:
            self._stopped.pop(entry.uid, None)
        found = dict(_claims_on(entry))
        if self._by.get(entry.uid, {}) == found:
            return
        self._forget(entry.uid)
        if found:
            self._by[entry.uid] = found
        for by, until_ms in found.items():
            self._until.setdefault(by, {})[entry.uid] = until_ms

    def drop(self, uid: str) -> None:
        """It is gone, or has started again."""
        self._stopped.pop(uid, None)
        self._forget(uid)

    def at(self, day_ms: int) -> dict[str, int]:
        """The items that have a claim then, in the order in which those began, and until when, epoch
        milliseconds.

        None that would be for longer than any is: it was written by a clock that has been set back since, or
        by somebody else.
        """
        last_ms = day_ms + CLAIMED_MS + MAX_AHEAD_MS
        found: list[tuple[int, str, int]] = []
        for item, until in self._until.items():
            over_ms = max(day_ms, self._stopped.get(item, 0) + CLAIMED_MS)
            held = [until_ms for until_ms in until.values() if over_ms < until_ms <= last_ms]
            if held:
                found.append((min(held), item, max(held)))
        return {item: until_ms for _, item, until_ms in sorted(found)}

    def _forget(self, uid: str) -> None:
        for by in self._by.pop(uid, ()):
            del self._until[by][uid]
            if not self._until[by]:
                del self._until[by]


def _claims_on(entry: Entry) -> Iterator[tuple[str, int]]:
    preempted, record = entry.binding.preempted, entry.binding.record
    if preempted is not None and preempted.by:
        yield preempted.by, stopped_ms(preempted) + CLAIMED_MS
    for one in record.given if record is not None else ():
        yield one.by, one.at_ms + CLAIMED_MS
