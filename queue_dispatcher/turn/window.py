"""How many workloads may be released and not yet placed: one to two seconds of what Karmada places.

karmada-scheduler does not look at the suspension again once a binding is in its queue, so a backlog there can
no longer be called back. The window therefore follows the scheduler: each placement that took under a second
lets one more be under way, each that took over two takes some back, and never is it more than what was placed
in two seconds of work. That is how a sender finds the room of a network, with the placement as its
acknowledgement.

The rate counts only time in which something was under way, so that a quiet night does not close the window.

When nothing is placed any more, either Karmada is down or what is under way is not looked at, whatever the
reason. One more release now and then tells the two apart: if that one is placed, those before it are
overtaken and no longer count. The tries become rarer with each one in vain.
"""

from collections import deque
from typing import Final

START: Final = 10
FLOOR: Final = 4
CEILING: Final = 4096

QUICK_MS: Final = 1_000
SLOW_MS: Final = 2_000
PATIENCE_MS: Final = 5_000
"""After so long without a placement a full window is tried out with one more release; then double that."""
_MOST_TRIES: Final = 20
_EXPECTED_MS: Final = 5_000

# The rate is that of the last placements, and of no less work than this: a handful placed at once is no rate.
_SAMPLES: Final = 256
_RATE_FROM: Final = 8
_RECENT_MS: Final = 10_000


class ReleaseWindow:
    """The window of one dispatcher. Times are of one monotonic clock, in milliseconds."""

    def __init__(self, *, start: int = START, floor: int = FLOOR, ceiling: int = CEILING) -> None:
        self._size = float(start)
        self._floor = floor
        self._ceiling = ceiling
        self._busy_ms = 0
        self._busy_since_ms: int | None = None
        self._placed_ms = 0
        self._took_ms = 0.0
        # Busy time at which each of the last placements came.
        self._placements: deque[int] = deque(maxlen=_SAMPLES)

    @property
    def size(self) -> int:
        """How many may be under way at once."""
        return int(self._size)

    @property
    def expected_ms(self) -> int:
        """Within what time a release is placed, if it is placed at all."""
        return max(_EXPECTED_MS, 2 * int(self._took_ms))

    def tokens(self, in_flight: int, now_ms: int) -> int:
        """How many more may be released."""
        left = self.size - in_flight
        if left > 0:
            return left
        due_ms = self.try_due_ms(in_flight)
        return int(due_ms is not None and due_ms <= now_ms)

    def try_due_ms(self, in_flight: int) -> int | None:
        """When a full window is to be tried out; None if it is not."""
        tries = in_flight - self.size
        if not 0 <= tries <= _MOST_TRIES or self._busy_since_ms is None:
            return None
        return max(self._busy_since_ms, self._placed_ms) + (PATIENCE_MS << tries)

    def rate(self, now_ms: int) -> float | None:
        """Placements a second of work, lately; None before there is enough to tell it from."""
        busy_ms = self._busy_at(now_ms)
        while self._placements and busy_ms - self._placements[0] > _RECENT_MS:
            self._placements.popleft()
        if len(self._placements) < _RATE_FROM:
            return None
        return 1000.0 * (len(self._placements) - 1) / max(1, busy_ms - self._placements[0])

    def under_way(self, count: int, now_ms: int) -> None:
        """So many are under way from now on."""
        if count > 0 and self._busy_since_ms is None:
            self._busy_since_ms = now_ms
        elif count <= 0 and self._busy_since_ms is not None:
            self._busy_ms = self._busy_at(now_ms)
            self._busy_since_ms = None

    def placed(self, took_ms: int | None, now_ms: int) -> None:
        """Karmada placed one, so long after it was given it; None where it had put it aside meanwhile.

        To be called before `under_way` counts it out.
        """
        self._placements.append(self._busy_at(now_ms))
        self._placed_ms = now_ms
        if took_ms is None:
            return
        self._took_ms += (took_ms - self._took_ms) / 8 if self._took_ms else took_ms
        if took_ms < QUICK_MS:
            self._size += 1.0
        elif took_ms > SLOW_MS:
            # As many as the window holds were released before the answer came: together they take a quarter.
            self._size -= 0.25
        rate = self.rate(now_ms)
        if rate is not None:
            self._size = min(self._size, rate * SLOW_MS / 1000.0)
        self._size = min(max(self._size, float(self._floor)), float(self._ceiling))

    def _busy_at(self, now_ms: int) -> int:
        if self._busy_since_ms is None:
            return self._busy_ms
        # A clock that was set back adds nothing.
        return self._busy_ms + max(0, now_ms - self._busy_since_ms)
