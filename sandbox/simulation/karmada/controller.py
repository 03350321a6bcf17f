"""A controller of controller-runtime: a queue of keys without doubles, workers, a throttled client, retries.

That a key is queued once however often it changes is what makes a throttled controller merge its work: the
busier it is, the fewer requests there are for each object.
"""

from collections import deque
from collections.abc import Callable
from functools import partial

from sandbox.simulation.errors import ApiError
from sandbox.simulation.karmada.throttle import Throttle
from sandbox.simulation.timeline import Timeline

FIRST_RETRY_MS = 5
LAST_RETRY_MS = 1_000_000
"""Karmada's default limiter of items that fail: 5 ms, doubled each time, at most 1000 s."""


class Controller:
    """``cost`` says what a key's reconciliation takes of the throttle, 0 where nothing is to be done.

    ``reconcile`` does it, ``took_ms`` after its requests are through; what it raises is tried again.
    ``slow``: how many times longer that takes at present.
    """

    def __init__(
        self,
        timeline: Timeline,
        throttle: Throttle,
        cost: Callable[[str], int],
        reconcile: Callable[[str], None],
        *,
        took_ms: Callable[[], int],
        workers: int = 5,
    ) -> None:
        self._timeline, self._throttle = timeline, throttle
        self._cost, self._reconcile, self._took_ms = cost, reconcile, took_ms
        self._idle = workers
        self._queue: deque[str] = deque()
        self._queued: set[str] = set()
        self._busy: set[str] = set()
        self._failures: dict[str, int] = {}
        self.is_stopped = False
        self.slow = 1

    def __len__(self) -> int:
        """How many keys wait."""
        return len(self._queue)

    def enqueue(self, key: str) -> None:
        """Reconcile the key, now or as soon as a worker is free."""
        if key in self._queued:
            return
        self._queued.add(key)
        if key not in self._busy:
            self._queue.append(key)
            self._next()

    def pause(self) -> None:
        """Take up nothing, as a process that is away; what is queued stays for when it is back."""
        self.is_stopped = True

    def resume(self) -> None:
        """End `pause`."""
        self.is_stopped = False
        self.slow = 1
        self._next()

    def _next(self) -> None:
        while self._queue and self._idle and not self.is_stopped:
            key = self._queue.popleft()
            self._queued.discard(key)
            cost = self._cost(key)
            if not cost:
                continue
            self._idle -= 1
            self._busy.add(key)
            through_ms = self._throttle.reserve(self._timeline.now_ms, cost)
            self._timeline.at(through_ms + self._took_ms() * self.slow, partial(self._do, key))

    def _do(self, key: str) -> None:
        try:
            self._reconcile(key)
        except ApiError:
            failures = self._failures[key] = self._failures.get(key, -1) + 1
            delay_ms = min(LAST_RETRY_MS, FIRST_RETRY_MS << min(failures, 20))
            self._timeline.after(delay_ms, lambda: self.enqueue(key))
        else:
            self._failures.pop(key, None)
        self._idle += 1
        self._busy.discard(key)
        if key in self._queued:
            self._queue.append(key)
        self._next()
