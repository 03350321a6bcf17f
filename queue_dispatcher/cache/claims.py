"""Claims: for whom workloads have been displaced, as far as that is written on them, and until when the room
is theirs.

So a dispatcher that was restarted in the midst of it keeps the room for whom it was made.
"""

from collections.abc import Iterator
from typing import Final

from queue_dispatcher.bindings.requeue import Cause, RequeueRecord
from queue_dispatcher.cache.entry import Entry

COOLDOWN_MS: Final = 60_000
"""What was displaced is admitted again after so long at the earliest."""
CLAIMED_MS: Final = 600_000
"""For so long the room of what was displaced is kept, since its pods may take that long to go."""


class Claims:
    """By item, those that were displaced for it, and until when it has a claim to their room, epoch
    milliseconds.
    """

    def __init__(self) -> None:
        self._until: dict[str, dict[str, int]] = {}
        self._by: dict[str, str] = {}

    def put(self, entry: Entry) -> None:
        """The entry is as it is."""
        requeue = entry.binding.requeue
        is_displaced = isinstance(requeue, RequeueRecord) and requeue.cause is Cause.PREEMPTED
        if not is_displaced or not isinstance(requeue, RequeueRecord) or not requeue.by:
            self.drop(entry.uid)
            return
        if self._by.get(entry.uid) != requeue.by:
            self.drop(entry.uid)
            self._by[entry.uid] = requeue.by
        until_ms = requeue.not_before_ms - COOLDOWN_MS + CLAIMED_MS
        self._until.setdefault(requeue.by, {})[entry.uid] = until_ms

    def drop(self, uid: str) -> None:
        """It is gone, or has started again."""
        by = self._by.pop(uid, None)
        if by is not None:
            del self._until[by][uid]
            if not self._until[by]:
                del self._until[by]

    def at(self, day_ms: int) -> Iterator[tuple[str, int]]:
        """The items that have a claim then, and until when, epoch milliseconds."""
        last = ((item, max(until.values())) for item, until in self._until.items())
        return ((item, until_ms) for item, until_ms in last if until_ms > day_ms)
