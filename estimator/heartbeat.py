"""Notices that an API server has gone silent, and that it is back.

A watch on a quiet cluster says nothing for a minute, and neither does one whose peer has hung: to tell them
apart, a server that was not heard of for some seconds is asked for its version. Any reply will do, a
refusal too. When it answers again, whoever waits to retry is woken, instead of after its whole backoff.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Protocol

from fairway.kube.errors import KubeError, Refused
from fairway.kube.pace import take_turn

EVERY_S = 5.0
ANSWER_WITHIN_S = 5.0
_PATH = "/version"


class Asked(Protocol):
    """The one thing that is asked of a `fairway.kube.client.KubeClient`."""

    async def get_bytes(self, path: str) -> bytes:
        """The body of a GET. Raises KubeError."""


class Heartbeat:
    """Watches over one API server.

    ``last_heard_s`` tells when anything else last heard from it, by the same monotonic ``clock``;
    ``on_change`` is called when it falls silent and when it is back.
    """

    def __init__(
        self,
        server: Asked,
        last_heard_s: Callable[[], float],
        on_change: Callable[[], None],
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._server = server
        self._last_heard_elsewhere_s = last_heard_s
        self._on_change = on_change
        self._clock = clock
        self._sleep = sleep
        self._answered_s = clock()
        self._failing = False
        self._back = asyncio.Event()

    def silent_since_s(self) -> float | None:
        """When the server was last heard of, if it does not answer now; None while it does."""
        return self._heard_s() if self._failing else None

    async def run(self) -> None:
        """Ask whenever it has been silent for a while, until cancelled."""
        while True:
            await self._sleep(EVERY_S)
            if self._failing or self._clock() - self._heard_s() >= EVERY_S:
                await take_turn()  # hundreds of clusters are asked at the same moment
                self._note(await self._answers())

    async def pause(self, seconds: float) -> None:
        """Sleep, but no longer than until a server that was silent is back."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._back.wait()

    def _heard_s(self) -> float:
        return max(self._answered_s, self._last_heard_elsewhere_s())

    async def _answers(self) -> bool:
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                await self._server.get_bytes(_PATH)
        except Refused:
            return True
        except (KubeError, TimeoutError):
            return False
        return True

    def _note(self, answers: bool) -> None:
        if answers:
            self._answered_s = self._clock()
        if answers is self._failing:
            self._failing = not answers
            if answers:
                self._back.set()
                self._back = asyncio.Event()
            self._on_change()
