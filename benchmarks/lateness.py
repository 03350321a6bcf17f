"""How late an event loop is while something goes on, the interpreter tuned as the estimator's."""

import asyncio
import gc
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from fairway.service.lifecycle import GC_THRESHOLDS, SWITCH_INTERVAL_S

_BEAT_S = 0.001


async def lateness(work: Callable[[], Awaitable[None]]) -> list[float]:
    """How late a timer was that is due every millisecond beside the work, ascending, in seconds."""
    late_s: list[float] = []

    async def beat() -> None:
        while True:
            due_s, cpu_s = time.perf_counter() + _BEAT_S, time.process_time()
            await asyncio.sleep(_BEAT_S)
            # What this process did meanwhile, on whatever thread: others on this machine do not count.
            late_s.append(min(max(0.0, time.perf_counter() - due_s), time.process_time() - cpu_s))

    beating = asyncio.create_task(beat())
    await work()
    beating.cancel()
    return sorted(late_s)


@contextmanager
def tuned() -> Iterator[None]:
    """The interpreter's own pauses as in the estimator; given back, for the questions that come after."""
    before_s, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.set_threshold(*GC_THRESHOLDS)
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*thresholds)
        sys.setswitchinterval(before_s)
