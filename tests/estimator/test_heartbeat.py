"""Is the API server still there? Asked only when nothing else has heard of it."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from estimator.heartbeat import EVERY_S, Heartbeat
from fairway.kube.errors import Forbidden, KubeError, Unreachable


class Stage:
    """A server that answers as told, and seconds that pass only when somebody sleeps."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.heard_s = 100.0
        self.trouble: KubeError | None = None
        self.asked = 0
        self.changes = 0
        self.heartbeat = Heartbeat(
            self, lambda: self.heard_s, self.changed, clock=lambda: self.now_s, sleep=self.sleep
        )

    async def get_bytes(self, path: str) -> bytes:
        self.asked += 1
        if self.trouble is not None:
            raise self.trouble
        return b"{}"

    def changed(self) -> None:
        self.changes += 1

    async def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        self.left -= 1
        if self.left < 0:
            raise asyncio.CancelledError
        await asyncio.sleep(0)

    async def beats(self, count: int) -> None:
        self.left = count
        with pytest.raises(asyncio.CancelledError):
            await self.heartbeat.run()


def play(scenario: Callable[[Stage], Awaitable[None]]) -> None:
    async def acted() -> None:
        await scenario(Stage())

    asyncio.run(acted())


def test_a_server_that_is_heard_of_is_not_asked() -> None:
    async def scenario(stage: Stage) -> None:
        stage.heard_s = 1000.0
        await stage.beats(5)
        assert stage.asked == 0
        assert stage.heartbeat.silent_since_s() is None

    play(scenario)


def test_a_quiet_server_is_asked_and_is_well() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.beats(4)
        assert stage.asked == 4
        assert stage.heartbeat.silent_since_s() is None
        assert stage.changes == 0

    play(scenario)


def test_a_refusal_is_an_answer() -> None:
    async def scenario(stage: Stage) -> None:
        stage.trouble = Forbidden("/version", 403, "no")
        await stage.beats(2)
        assert stage.heartbeat.silent_since_s() is None

    play(scenario)


def test_a_silent_server_was_last_heard_when_it_last_was() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.beats(1)
        stage.trouble = Unreachable("gone")
        await stage.beats(3)
        # It answered at the first beat, and not since.
        assert stage.heartbeat.silent_since_s() == 100.0 + EVERY_S
        assert stage.changes == 1
        stage.trouble = None
        await stage.beats(1)
        assert stage.heartbeat.silent_since_s() is None
        assert stage.changes == 2

    play(scenario)


def test_who_waits_to_retry_is_woken_when_the_server_is_back() -> None:
    async def scenario(stage: Stage) -> None:
        stage.trouble = Unreachable("gone")
        await stage.beats(1)
        waiting = asyncio.create_task(stage.heartbeat.pause(3600))
        await stage.beats(1)
        assert not waiting.done()
        stage.trouble = None
        await stage.beats(1)
        await waiting

    play(scenario)


def test_a_pause_ends_by_itself_too() -> None:
    async def scenario(stage: Stage) -> None:
        await stage.heartbeat.pause(0)

    play(scenario)
