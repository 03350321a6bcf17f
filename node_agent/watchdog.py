"""Calls into a library that may hang: each runs in a thread of its own, and is given up at a deadline.

A thread in a system call that does not return cannot be ended. It is left behind as a daemon, whatever it
answers later is nobody's, and no more than a few are left behind at a time: past that no call is started
until one of them returns, which is also how the library is found to be well again.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

_Result = TypeVar("_Result")


class HungError(Exception):
    """A call did not return in time, or was not begun because too many have not returned."""


class Watchdog:
    """Runs calls, one at a time, each with the deadline that holds when it begins. For one thread."""

    def __init__(self, name: str, deadline_s: float, most_abandoned: int = 3) -> None:
        self._name = name
        self.deadline_s = deadline_s
        self._most_abandoned = most_abandoned
        self._abandoned: set[int] = set()
        self._lock = threading.Lock()
        self._calls = 0

    @property
    def abandoned(self) -> int:
        """How many calls have been given up and have not returned."""
        with self._lock:
            return len(self._abandoned)

    def run(self, call: Callable[[], _Result]) -> _Result:
        """What the call answers or raises. HungError after the deadline, and at once while too many hang."""
        if (hanging := self.abandoned) >= self._most_abandoned:
            raise HungError(f"{hanging} calls of {self._name} hang; no other is begun until one returns")
        self._calls += 1
        ticket = self._calls
        answer: Future[_Result] = Future()
        threading.Thread(
            target=self._work, args=(call, answer, ticket), name=f"{self._name}-{ticket}", daemon=True
        ).start()
        deadline_s = self.deadline_s
        try:
            return answer.result(deadline_s)
        except TimeoutError:
            with self._lock:
                if not answer.done():
                    self._abandoned.add(ticket)
                    raise HungError(f"a call of {self._name} has not returned for {deadline_s:g} s") from None
        return answer.result()

    def _work(self, call: Callable[[], _Result], answer: Future[_Result], ticket: int) -> None:
        try:
            result = call()
        except BaseException as error:  # noqa: BLE001  # raised where the call was asked for, whatever it is
            with self._returning(ticket):
                answer.set_exception(error)
        else:
            with self._returning(ticket):
                answer.set_result(result)

    @contextmanager
    def _returning(self, ticket: int) -> Iterator[None]:
        with self._lock:
            self._abandoned.discard(ticket)
            yield
