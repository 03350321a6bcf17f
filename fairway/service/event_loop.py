"""An event loop for many servers: it looks after a few sockets in each of its passes, however many are ready.

asyncio calls everything that is ready before it looks again, and a hundred connections that answer at once,
with a step of a TLS handshake or a piece of a list each, would hold the loop for tens of milliseconds.
"""

import asyncio
import selectors
import socket
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import TypeVar

MOST_AT_ONCE = 8
LOOKUPS = 64
_T = TypeVar("_T")
_Ready = list[tuple[selectors.SelectorKey, int]]


class FairSelector(selectors.DefaultSelector):
    """Of more ready files than `MOST_AT_ONCE` those that had no turn for longest; the rest stays ready."""

    def __init__(self) -> None:
        super().__init__()
        self._had_turn: set[int] = set()

    def select(self, timeout: float | None = None) -> _Ready:
        """See `selectors.BaseSelector.select`."""
        ready = super().select(timeout)
        if len(ready) <= MOST_AT_ONCE:
            self._had_turn.clear()
            return ready
        waiting = [each for each in ready if each[0].fd not in self._had_turn]
        if not waiting:
            self._had_turn.clear()
            waiting = ready
        chosen = waiting[:MOST_AT_ONCE]
        self._had_turn.update(key.fd for key, _ in chosen)
        return chosen


class _Loop(asyncio.SelectorEventLoop):
    """Names are looked up on threads of their own.

    One that no server resolves blocks its thread for half a minute, and asyncio has few for everything.
    """

    def __init__(self) -> None:
        super().__init__(FairSelector())
        self._lookups = ThreadPoolExecutor(LOOKUPS, thread_name_prefix="lookup")

    def run_in_executor(
        self, executor: Executor | None, func: Callable[..., _T], *args: object
    ) -> asyncio.Future[_T]:
        if executor is None and func is socket.getaddrinfo:
            executor = self._lookups
        return super().run_in_executor(executor, func, *args)

    def close(self) -> None:
        super().close()
        self._lookups.shutdown(wait=False, cancel_futures=True)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A loop for a process that talks to many servers."""
    return _Loop()
