"""Coroutines without an event loop: each goes on when what it waits for is there, in virtual time."""

import contextlib
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Later(Generic[T]):
    """What will be there later: a value, or an exception; waited for by at most one coroutine."""

    def __init__(self) -> None:
        self.is_there = False
        self._value: T | None = None
        self._error: Exception | None = None
        self._heard: Callable[[], None] | None = None

    def set(self, value: T) -> None:
        """It is there."""
        self._settle(value, None)

    def fail(self, error: Exception) -> None:
        """It never will be."""
        self._settle(None, error)

    def _settle(self, value: T | None, error: Exception | None) -> None:
        if not self.is_there:
            self.is_there, self._value, self._error = True, value, error
            if self._heard is not None:
                self._heard()

    def tell(self, heard: Callable[[], None]) -> None:
        """Whom to call when it is there."""
        self._heard = heard

    def __await__(self) -> Generator["Later[T]", None, T]:
        if not self.is_there:
            yield self
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # set together with is_there


class Started:
    """A coroutine that was begun. It goes on by itself; ``stop`` ends it where it waits."""

    def __init__(self, coroutine: Coroutine[Later[Any], None, object]) -> None:
        self._coroutine = coroutine
        self._is_stopped = False
        self._go_on()

    def _go_on(self) -> None:
        if self._is_stopped:
            return
        with contextlib.suppress(StopIteration):
            self._coroutine.send(None).tell(self._go_on)

    def stop(self) -> None:
        """End it now, as if its process were gone: nothing of it happens any more."""
        self._is_stopped = True
        self._coroutine.close()


class Mailbox(Generic[T]):
    """A queue that coroutines wait at, as much of ``asyncio.Queue`` as is used.

    ``soon`` lets something happen as soon as what happens now is over.
    """

    def __init__(self, soon: Callable[[Callable[[], None]], None]) -> None:
        self._soon = soon
        self._items: deque[T] = deque()
        self._waiting: deque[Later[None]] = deque()

    def put_nowait(self, item: T) -> None:
        """Whoever waited longest gets it."""
        self._items.append(item)
        if self._waiting:
            later = self._waiting.popleft()
            self._soon(lambda: later.set(None))

    async def get(self) -> T:
        """The next item."""
        while not self._items:
            later = Later[None]()
            self._waiting.append(later)
            await later
        return self._items.popleft()
