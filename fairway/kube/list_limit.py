"""How many lists are in hand at once, whichever servers they come from: each takes some megabytes.

One after the other, the first are complete when all would be half read. A list, or a page of one, is in
hand from when its server has begun to answer, so one that does not answer has none; and for some seconds at
most, so one that stops in the middle of its answer does not keep others from theirs.
"""

import asyncio
from typing import Self
from weakref import WeakKeyDictionary

MOST = 8
LAPSE_S = 1.0


class ListInHand:
    """One list or page, as a context that ends when it has been worked off."""

    def __init__(self) -> None:
        # Given in the order in which they are asked for.
        self._places = _places.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(MOST))
        self._lapse: asyncio.TimerHandle | None = None
        self._is_counted = False

    async def begin(self) -> None:
        """Wait for a place; call it once the server has begun to answer, before the rest is read."""
        await self._places.acquire()
        self._is_counted = True
        self._lapse = asyncio.get_running_loop().call_later(LAPSE_S, self._end)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """It has been worked off; leaving the context says so as well."""
        if self._lapse is not None:
            self._lapse.cancel()
        self._end()

    def _end(self) -> None:
        if self._is_counted:
            self._is_counted = False
            self._places.release()


_places: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
