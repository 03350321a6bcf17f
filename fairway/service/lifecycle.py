"""How a process runs and ends: signals, the interpreter's own pauses, and a watch on the event loop.

The first SIGTERM or SIGINT asks the program to finish what it has in hand; the second ends the process at
once. Pauses come from two places that Python lets us tune: garbage collections, whose length grows with the
number of objects that they visit, and threads that hold the interpreter while the loop wants to run.
"""

import asyncio
import asyncio.constants
import asyncio.sslproto
import ctypes
import gc
import logging
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from fairway.service.event_loop import new_event_loop

logger = logging.getLogger(__name__)

# A collection's pause grows with what it visits: at most 2,000 new objects, or 8,000 of middle age, each a
# few milliseconds. Full ones come after 10 million surviving allocations, and frozen objects are not visited.
GC_THRESHOLDS: Final = (2_000, 4, 1_300)
# A thread that computes hands the interpreter to the loop after this time (default 5 ms).
SWITCH_INTERVAL_S: Final = 0.001
# A TLS record has 16 KiB at most. Every TLS connection of asyncio keeps a buffer of the first size (default
# 256 KiB) as long as it is open, and another that grows up to the second (also 256 KiB) while nobody reads,
# and never shrinks: a hundred clusters are some hundred watches.
TLS_BUFFER_BYTES: Final = 16 << 10
TLS_READ_AHEAD_KIB: Final = 16
# So seldom that full collections, which are counted by those of middle age, come no sooner for it.
YOUNG_TO_MIDDLE: Final = 8
STALL_S: Final = 0.020
SAMPLE_INTERVAL_S: Final = 0.010
WINDOW_S: Final = 60


def run(
    main: Callable[[asyncio.Event], Coroutine[Any, Any, int]], *, exit_now: Callable[[int], None] = os._exit
) -> int:
    """Run ``main`` in a new event loop and return its exit code.

    ``main`` gets an event that SIGTERM or SIGINT sets, and should return soon after. A further signal calls
    ``exit_now`` with 128 plus its number.
    """

    async def supervised() -> int:
        stop = asyncio.Event()

        def on_signal(number: signal.Signals) -> None:
            if stop.is_set():
                logger.warning("second signal, exiting at once", extra={"signal": number.name})
                exit_now(128 + number)
            logger.info("stopping, in-flight work is finished first", extra={"signal": number.name})
            stop.set()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, on_signal, number)
        return await main(stop)

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(supervised())


_M_ARENA_MAX = -8
_HEAPS = 2


def tune_interpreter() -> None:
    """Call once when everything is imported: rare collections, none over modules, quick thread switches.

    And TLS connections that cost little memory while they are silent.
    """
    asyncio.sslproto.SSLProtocol.max_size = TLS_BUFFER_BYTES
    # A default that is looked up for each connection.
    asyncio.constants.FLOW_CONTROL_HIGH_WATER_SSL_READ = TLS_READ_AHEAD_KIB  # type: ignore[misc]  # a constant to the type checker
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    # Each thread would keep a heap of its own for good; musl, which has no mallopt, keeps one for all.
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, _HEAPS)


def freeze_long_lived() -> None:
    """Call when much has been read that is going to stay: no later collection visits what lives now.

    Only what is young is looked through for garbage before, since visiting everything would be the very pause
    to avoid; older garbage of the start-up stays, a bounded amount.
    """
    gc.collect(1)
    gc.freeze()


def collect_young() -> None:
    """Call with time to spare after work that has put many objects in place of others: what it has made is
    looked through for garbage while that is little, about a millisecond, and not amid the next such work.

    Left alone a collection comes once so many more objects were made than went, by when many more are young.
    """
    is_middle_due = gc.get_count()[1] >= YOUNG_TO_MIDDLE
    gc.collect(1 if is_middle_due else 0)


def return_memory() -> None:
    """Give what was needed for reading only back to the kernel; takes some milliseconds."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


@dataclass(frozen=True, slots=True)
class StallReading:
    """How late the event loop has been: stalls since the start, and the worst delay of the last minute."""

    stalls: int
    worst_last_minute_s: float


class StallMonitor:
    """Sleeps a short while again and again, and notes how much too late it wakes up.

    That delay is what any callback waits for: other callbacks, collections, threads that hold the
    interpreter.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._stalls = 0
        self._worst_by_second: deque[tuple[int, float]] = deque(maxlen=WINDOW_S)

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            started_s = self._clock()
            await self._sleep(SAMPLE_INTERVAL_S)
            woken_s = self._clock()
            self._note(woken_s, max(0.0, woken_s - started_s - SAMPLE_INTERVAL_S))

    def reading(self) -> StallReading:
        """The counts now."""
        oldest = int(self._clock()) - WINDOW_S
        worst_s = max((delay_s for second, delay_s in self._worst_by_second if second > oldest), default=0.0)
        return StallReading(self._stalls, worst_s)

    def _note(self, now_s: float, delay_s: float) -> None:
        if delay_s > STALL_S:
            self._stalls += 1
        second = int(now_s)
        if self._worst_by_second and self._worst_by_second[-1][0] == second:
            delay_s = max(delay_s, self._worst_by_second.pop()[1])
        self._worst_by_second.append((second, delay_s))
