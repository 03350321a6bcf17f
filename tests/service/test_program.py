"""What all programs have in common, seen through one that does next to nothing."""

import asyncio
import logging

import pytest

from fairway.service.addresses import BindAddress
from fairway.service.common_flags import EndpointSettings, LogSettings
from fairway.service.program import Program, run

NOWHERE = EndpointSettings(health=None, metrics=None, profiling=None)


def test_work_is_cancelled_at_the_end_and_a_failure_ends_the_rest() -> None:
    ended: list[str] = []

    async def endless(name: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    async def fails() -> None:
        raise RuntimeError("a defect")

    async def scenario() -> None:
        program = Program(NOWHERE)
        async with program.work() as work:
            work.begin("a", endless("a"))
            work.begin("b", endless("b"))
            await asyncio.sleep(0)
        assert sorted(ended) == ["a", "b"]

        async def failing() -> None:
            async with program.work() as work:
                work.begin("c", endless("c"))
                work.begin("d", fails())
                await asyncio.Event().wait()

        with pytest.raises(ExceptionGroup, match="unhandled errors"):
            await failing()
        assert ended[-1] == "c"

    asyncio.run(scenario())


def test_notices_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    Program(NOWHERE, ["--this has no effect"])
    assert caplog.messages == ["--this has no effect"]


def test_what_is_denied_is_a_metric() -> None:
    program = Program(NOWHERE)
    program.tell_denied(lambda: [("karmada", "list", "pods")])
    labels = {"api": "karmada", "verb": "list", "resource": "pods"}
    assert program.registry.get_sample_value("fairway_permission_denied", labels) == 1


def test_a_program_that_cannot_start_says_why_and_ends_with_1(capfd: pytest.CaptureFixture[str]) -> None:
    async def serve(stop: asyncio.Event) -> int:
        async with Program(EndpointSettings(BindAddress("192.0.2.1", 1), None, None)).endpoints(list):
            return 0

    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        assert run(LogSettings("text", 0), serve) == 1
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    assert "cannot start: cannot serve health on 192.0.2.1:1" in capfd.readouterr().err
