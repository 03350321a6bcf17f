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
    """Runs work on ``executor``, ``at_once`` pieces at the same time. For one event loop.

    With ``after``, work starts only while nobody waits for a place in that other queue.
    """

    def __init__(self, executor: Executor, at_once: int, after: "FairQueue | None" = None) -> None:
        self._executor = executor
        self._free = at_once
        self._after = after
        self._behind: list[FairQueue] = []
        if after is not None:
            after._behind.append(self)
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}

    @property
    def is_crowded(self) -> bool:
        """Whether anybody waits for a place."""
        return any(not turn.done() for turns in self._waiting.values() for turn in turns)

    async def run(self, caller: Hashable, start: Callable[[], Callable[[], _T]]) -> _T:
        """What the work returns that ``start`` gives.

        ``start`` is called on the event loop once it is the caller's turn: what is copied there for the work
        is of that moment. Cancelled, the work does not start, or goes on with nobody to tell.
        """
        await self._turn(caller)
        try:
            future = self._executor.submit(start())
        except BaseException:
            self._leave()
            raise
        loop = asyncio.get_running_loop()

        def ended(_: Future[_T]) -> None:
            loop.call_soon_threadsafe(self._leave)

        future.add_done_callback(ended)
        return await asyncio.wrap_future(future)

    async def _turn(self, caller: Hashable) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        self._give_turns()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                # The turn came in the very moment in which the caller went.
                self._free += 1
            self._give_turns()
            raise

    def _leave(self) -> None:
        self._free += 1
        self._give_turns()

    def _give_turns(self) -> None:
        """Free places go to the next callers that still wait, and to those behind once nobody does."""
        while self._waiting and self._free and not (self._after is not None and self._after.is_crowded):
            caller = next(iter(self._waiting))
            turns = self._waiting.pop(caller)
            turn = turns.popleft()
            if turns:
                self._waiting[caller] = turns
            if not turn.done():
                turn.set_result(None)
                self._free -= 1
        for queue in self._behind:
            queue._give_turns()
