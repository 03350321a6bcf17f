"""Keeps long synchronous work from blocking the event loop."""

import asyncio
from collections.abc import Callable

_SLICE_ITEMS = 100
_SLICE_S = 0.002


class Pace:
    """Says after 100 items or 2 ms, whichever is first, that it is time to let other tasks run."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._begin()

    def is_due(self) -> bool:
        """Count one more item; whether to pause before working on it."""
        self._items += 1
        return self._items > _SLICE_ITEMS or self._clock() >= self._ends_s

    async def pause(self) -> None:
        """Let the loop run everything that is ready, then begin the next slice."""
        await asyncio.sleep(0)
        self._begin()
        self._items = 1

    def _begin(self) -> None:
        self._items = 0
        self._ends_s = self._clock() + _SLICE_S
