"""The time of day, steady: it runs with the monotonic clock and follows the wall clock only slowly.

Times on objects (enqueued, admitted, not before) are of the day, and a wall clock can jump: a machine that
wakes up, an operator who corrects it. A jump of an hour must not take every workload back that was released
a second ago. So a jump is made up for at a tenth of the time that passes; until then time goes on as it was.
"""

import time
from collections.abc import Callable
from typing import Final

_CATCH_UP: Final = 0.1


class SteadyClock:
    """Epoch milliseconds that never go backwards. ``wall`` and ``monotonic`` give seconds."""

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._now_s = wall()
        self._read_s = monotonic()

    def now_ms(self) -> int:
        """The time of day."""
        read_s = self._monotonic()
        passed_s = max(0.0, read_s - self._read_s)
        self._read_s = read_s
        steady_s = self._now_s + passed_s
        slack_s = passed_s * _CATCH_UP
        self._now_s = min(max(self._wall(), steady_s - slack_s), steady_s + slack_s)
        return int(self._now_s * 1000)

    def elapsed_ms(self) -> int:
        """Milliseconds of the monotonic clock, for durations."""
        return int(self._monotonic() * 1000)
