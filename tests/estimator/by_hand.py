"""Threads whose work is done when a test says so."""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class ByHand(Executor):
    """Takes work, and does it at `work`, on the event loop."""

    def __init__(self) -> None:
        self.taken = 0
        self._waiting: deque[Callable[[], None]] = deque()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        done: Future[T] = Future()
        self.taken += 1

        # As on a thread of its own, it can no longer be called off.
        done.set_running_or_notify_cancel()

        def work() -> None:
            done.set_result(fn(*args, **kwargs))

        self._waiting.append(work)
        return done

    async def work(self) -> None:
        """Do what has been taken so far, one after the other, and let the loop hear of it."""
        await turns()
        for _ in range(len(self._waiting)):
            self._waiting.popleft()()
            await turns()


async def turns(count: int = 8) -> None:
    """Let the event loop go round so often."""
    for _ in range(count):
        await asyncio.sleep(0)
