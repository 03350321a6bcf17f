"""Threads shared fairly: so many pieces of work at once, and callers take turns for the places.

Each caller has a queue of its own, and the queues are served round robin, so that one with many questions
makes nobody else wait for all of them. Work that nobody waits for any more never starts; what has started
keeps its place until it ends, even if nobody waits for it.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Executor, Future
from typing import TypeVar

_T = TypeVar("_T")


class FairQueue:
    """Runs work on ``executor``, ``at_once`` pieces at the same time. For one event loop."""

    def __init__(self, executor: Executor, at_once: int) -> None:
        self._executor = executor
        self._free = at_once
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}

    async def run(self, caller: Hashable, start: Callable[[], Callable[[], _T]]) -> _T:
        """What the work returns that ``start`` gives.

        ``start`` is called on the event loop once it is the caller's turn: what is copied there for the work
        is of that moment. Cancelled, the work does not start, or goes on with nobody to tell.
        """
        await self._turn(caller)
        try:
            future = self._executor.submit(start())
        except BaseException:
            self._next()
            raise
        loop = asyncio.get_running_loop()

        def ended(_: Future[_T]) -> None:
            loop.call_soon_threadsafe(self._next)

        future.add_done_callback(ended)
        return await asyncio.wrap_future(future)

    async def _turn(self, caller: Hashable) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                # The turn came in the very moment in which the caller went.
                self._next()
            raise

    def _next(self) -> None:
        """A place is free: for the next caller that still waits."""
        while self._waiting:
            caller = next(iter(self._waiting))
            turns = self._waiting.pop(caller)
            turn = turns.popleft()
            if turns:
                self._waiting[caller] = turns
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
