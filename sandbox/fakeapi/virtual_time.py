"""An event loop whose clock jumps to the next timer when nothing else is left to do.

Sockets work as ever, so that a client and the fake API server can talk within one such loop and hours pass in
no time. What is still under way on loopback when the loop runs dry gets a real millisecond to arrive. Time
stands still while a thread works for the loop.
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, TypeVar

T = TypeVar("T")

_GRACE_S = 0.001
_STUCK_AFTER_S = 20.0


class _Selector(selectors.DefaultSelector):
    """Instead of waiting for a timer, makes it due."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 1000.0
        self.threads = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None or self.threads:
            ready = super().select(_STUCK_AFTER_S)
            if not ready:
                raise RuntimeError("everything waits for something, and no timer is set, or for a thread")
            return ready
        # The loop's own wake-up pipe is always registered.
        if len(self.get_map()) > 1:
            ready = super().select(_GRACE_S)
        if not ready:
            self.now_s += max(0.0, timeout)
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Starts at 1000 s."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now_s

    def run_in_executor(
        self, executor: Executor | None, func: Callable[..., T], *args: object
    ) -> asyncio.Future[T]:
        self._virtual.threads += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._thread_ended)
        return future

    def _thread_ended(self, future: asyncio.Future[Any]) -> None:
        self._virtual.threads -= 1


def run(main: Coroutine[Any, Any, T]) -> T:
    """As ``asyncio.run``, in virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
