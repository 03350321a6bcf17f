"""Keeps long synchronous work from blocking the event loop: everything paced on one loop takes turns.

The one idea: what the loop does between two looks at its sockets is one budget, however many work. In each
pass of the loop one of those who wait gets a turn, in the order in which they began to wait, and those who
just arrived share one more. A turn is never held across a wait, so somebody who hangs holds up nobody.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Generator
from typing import TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

SLICE_ITEMS = 100
SLICE_S = 0.002
"""A turn: so many items or so long, whichever is first. A pass of the loop holds two turns at most."""


class Pace:
    """Says when it is time to let others run; one for each piece of work, made on its loop.

    ``clock`` is monotonic, in seconds, and the same for all work of a loop.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._turns = _turns_here()
        self._items_left = 0
        self._ends_s = 0.0
        self._had_turn_in = -1

    def is_due(self) -> bool:
        """Count one more item; whether to pause before working on it."""
        now_s = self._clock()
        if self._items_left > 0 and now_s < self._ends_s:
            self._items_left -= 1
            return False
        # What is left for those who arrive is not for whoever just had a turn.
        return self._turns.passes == self._had_turn_in or not self._turns.admits(now_s)

    async def pause(self) -> None:
        """Wait for a turn, and begin it with the item that was due."""
        await self._turns.next()
        self._items_left = SLICE_ITEMS - 1
        self._ends_s = self._clock() + SLICE_S
        self._had_turn_in = self._turns.passes


async def in_slices(steps: Generator[None, None, T]) -> T:
    """What the work comes to, which others may interrupt at each of its steps."""
    pace = Pace(time.monotonic)
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            found: T = stop.value
            return found
        if pace.is_due():
            await pace.pause()


async def take_turn() -> None:
    """Wait for a turn, for one piece of work that cannot be cut."""
    await _turns_here().next()


class _Turns:
    """The passes of one loop: who waits, and what is left for those who arrive in this pass."""

    # It keeps no reference to the loop, whose end shall be its own.

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.passes = 0
        self._counts_passes = False
        self._items_left = SLICE_ITEMS
        self._ends_s: float | None = None

    def admits(self, now_s: float) -> bool:
        """Count one item of somebody who has no turn; whether this pass has room for it."""
        if self._ends_s is None:
            self._ends_s = now_s + SLICE_S
            self._count_passes()
        if self._items_left <= 0 or now_s >= self._ends_s:
            return False
        self._items_left -= 1
        return True

    async def next(self) -> None:
        """Return when it is one's turn."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._count_passes()
        await turn
        # So that the pass in which it works is told from the next.
        self._count_passes()

    def _count_passes(self) -> None:
        if not self._counts_passes:
            self._counts_passes = True
            asyncio.get_running_loop().call_soon(self._pass)

    def _pass(self) -> None:
        """Another pass has begun; whose turn it is runs in the next one."""
        self.passes += 1
        self._items_left, self._ends_s = SLICE_ITEMS, None
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # else whoever waited was cancelled
                turn.set_result(None)
                break
        self._counts_passes = False
        if self._waiting:
            self._count_passes()


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, _Turns] = WeakKeyDictionary()


def _turns_here() -> _Turns:
    return _turns.setdefault(asyncio.get_running_loop(), _Turns())
