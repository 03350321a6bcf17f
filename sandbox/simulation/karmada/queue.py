"""karmada-scheduler's priority queue: active, backoff, unschedulable (pkg/scheduler/internal/queue, 1.19).

What found no room is looked at again after five minutes, checked every 30 s; what failed otherwise after 1 s,
doubled up to 10 s, checked every second. Nothing leaves the queue for being suspended, and every event about
a binding brings it back to the front part with its count of attempts at naught. Pure: time is an argument.
"""

import heapq
from dataclasses import dataclass, field

MAX_UNSCHEDULABLE_MS = 300_000
FLUSH_UNSCHEDULABLE_MS = 30_000
FIRST_BACKOFF_MS = 1_000
LAST_BACKOFF_MS = 10_000
FLUSH_BACKOFF_MS = 1_000


@dataclass(slots=True)
class Queued:
    """A binding in the queue; ``since_ms``: when it became active last. The priority is that of then."""

    key: str
    priority: int
    since_ms: int = 0
    attempts: int = 0

    @property
    def backs_off_until_ms(self) -> int:
        """When it may become active again; counted from when it became so last, not from its failure."""
        if not self.attempts:
            return self.since_ms
        return self.since_ms + min(LAST_BACKOFF_MS, FIRST_BACKOFF_MS << min(self.attempts - 1, 10))


@dataclass(slots=True)
class SchedulingQueue:
    """``backoff`` and ``unschedulable`` by key; `pop` gives the active one of highest priority, then age."""

    backoff: dict[str, Queued] = field(default_factory=dict)
    unschedulable: dict[str, Queued] = field(default_factory=dict)
    _heap: list[tuple[int, int, int, Queued]] = field(default_factory=list)
    _dirty: set[str] = field(default_factory=set)
    _processing: set[str] = field(default_factory=set)
    _number: int = 0

    def __len__(self) -> int:
        """How many are active."""
        return len(self._heap)

    def push(self, queued: Queued, now_ms: int) -> None:
        """Make it active, wherever it is; nothing if it is active already."""
        self.backoff.pop(queued.key, None)
        self.unschedulable.pop(queued.key, None)
        if queued.key in self._dirty:
            return
        queued.since_ms = now_ms
        self._dirty.add(queued.key)
        if queued.key not in self._processing:
            self._add(queued)

    def pop(self) -> Queued | None:
        """The next one to schedule; `done` has to follow."""
        if not self._heap:
            return None
        queued = heapq.heappop(self._heap)[3]
        queued.attempts += 1
        self._processing.add(queued.key)
        self._dirty.discard(queued.key)
        return queued

    def done(self, queued: Queued, now_ms: int) -> None:
        """It was scheduled or not; if something happened to it meanwhile it is active again."""
        self._processing.discard(queued.key)
        if queued.key in self._dirty:
            queued.since_ms = now_ms
            self._add(queued)

    def failed(self, queued: Queued, *, is_unschedulable: bool) -> None:
        """Put it away, unless it has become active again; to be called before `done`."""
        if queued.key in self._dirty:
            return
        if is_unschedulable:
            if queued.key not in self.backoff:
                self.unschedulable[queued.key] = queued
        elif queued.key not in self.unschedulable:
            self.backoff[queued.key] = queued

    def forget(self, queued: Queued) -> None:
        """It needs no further attempt."""
        self.backoff.pop(queued.key, None)

    def flush_backoff(self, now_ms: int) -> None:
        """Make active what has backed off for long enough."""
        self._flush([one for one in self.backoff.values() if one.backs_off_until_ms <= now_ms], now_ms)

    def flush_unschedulable(self, now_ms: int) -> None:
        """Make active what found no room more than five minutes ago."""
        old_ms = now_ms - MAX_UNSCHEDULABLE_MS
        self._flush([one for one in self.unschedulable.values() if one.since_ms < old_ms], now_ms)

    def _flush(self, queued: list[Queued], now_ms: int) -> None:
        for one in sorted(queued, key=lambda one: (-one.priority, one.since_ms)):
            self.push(one, now_ms)

    def _add(self, queued: Queued) -> None:
        self._number += 1
        heapq.heappush(self._heap, (-queued.priority, queued.since_ms, self._number, queued))
