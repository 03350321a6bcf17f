"""Virtual time: what is to happen, in the order in which it happens."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

EPOCH_MS = 1_767_225_600_000
"""When simulations begin: 1 January 2026, 00:00 UTC."""


@dataclass(slots=True)
class Timer:
    """Something that is to happen at ``at_ms``, unless it is cancelled."""

    at_ms: int
    action: Callable[[], None] | None

    def cancel(self) -> None:
        """It is not to happen; nothing if it has happened."""
        self.action = None

    @property
    def is_set(self) -> bool:
        """Whether it is still to happen."""
        return self.action is not None


@dataclass(slots=True)
class Timeline:
    """All that is still to happen. ``now_ms``: the true time, since the epoch; ``events``: how many happened.

    What falls on one millisecond happens in the order in which it was asked for.
    """

    now_ms: int = EPOCH_MS
    events: int = 0
    _number: int = 0
    _heap: list[tuple[int, int, Timer]] = field(default_factory=list)

    def at(self, at_ms: int, action: Callable[[], None]) -> Timer:
        """Let it happen at ``at_ms``, or now if that is over."""
        timer = Timer(max(at_ms, self.now_ms), action)
        self._number += 1
        heapq.heappush(self._heap, (timer.at_ms, self._number, timer))
        return timer

    def after(self, delay_ms: int, action: Callable[[], None]) -> Timer:
        """Let it happen ``delay_ms`` from now."""
        return self.at(self.now_ms + delay_ms, action)

    def next_ms(self) -> int | None:
        """When the next thing happens; None if nothing is left."""
        heap = self._heap
        while heap and heap[0][2].action is None:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def step(self) -> bool:
        """Let the next thing happen; whether there was one."""
        at_ms = self.next_ms()
        if at_ms is None:
            return False
        timer = heapq.heappop(self._heap)[2]
        action, timer.action = timer.action, None
        self.now_ms = at_ms
        self.events += 1
        if action is not None:
            action()
        return True

    def run_until(self, at_ms: int) -> None:
        """Let everything happen that happens no later than ``at_ms``, which then is the time."""
        while (next_ms := self.next_ms()) is not None and next_ms <= at_ms:
            self.step()
        self.now_ms = max(self.now_ms, at_ms)
