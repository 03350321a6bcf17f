"""Remembered: answers that hold for a while, asked for once however many want them.

Bounded: what was not used for longest is forgotten first. An error is nobody's answer and is not kept.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

V = TypeVar("V")


class Remembered(Generic[V]):
    """Answers by key. ``clock`` is monotonic, in seconds; ``most`` answers are kept."""

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self._most = most
        self._clock = clock
        self._known: OrderedDict[bytes, tuple[float, V]] = OrderedDict()
        self._asking: dict[bytes, asyncio.Task[V]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: bytes) -> V | None:
        """The answer, if it is known and holds."""
        found = self._known.get(key)
        if found is None or found[0] <= self._clock():
            return None
        self._known.move_to_end(key)
        return found[1]

    def put(self, key: bytes, answer: V, holds_s: float) -> None:
        """Keep an answer for so long."""
        self._known[key] = (self._clock() + holds_s, answer)
        self._known.move_to_end(key)
        while len(self._known) > self._most:
            self._known.popitem(last=False)

    async def asked(self, key: bytes, ask: Callable[[], Awaitable[V]], holds_s: Callable[[V], float]) -> V:
        """The answer, known or asked for; raises what ``ask`` raises."""
        known = self.get(key)
        if known is not None:
            return known
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.create_task(self._ask(key, ask, holds_s))
        # Others wait for the same answer: one that goes away does not end the question.
        return await asyncio.shield(task)

    async def _ask(self, key: bytes, ask: Callable[[], Awaitable[V]], holds_s: Callable[[V], float]) -> V:
        try:
            answer = await ask()
            self.put(key, answer, holds_s(answer))
            return answer
        finally:
            del self._asking[key]
