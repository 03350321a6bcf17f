import asyncio
from pathlib import Path

import pytest

from sandbox.fakeapi import Cut, FakeApi, Seen
from sandbox.fakeapi.listening import stop_listening
from tests.crash.observer import Observer
from tests.dispatcher.process.builders import (
    ALONE,
    ELECTED,
    WITHIN_S,
    Plane,
    control_plane,
    fleet_of,
    free_port,
    workload,
)

WORKLOADS = tuple(workload(f"w-{number}") for number in range(6))


def ours(seen: Seen) -> bool:
    """A write to a binding, or the reading of one, by the dispatcher."""
    return seen.user == "dispatcher" and "/resourcebindings/" in seen.path


def storm(api: FakeApi, name: str) -> None:
    match name:
        case "conflicts":
            # One more in a row, and the binding would be left for later, and those after it go first.
            api.fail(409, times=3, when=lambda seen: ours(seen) and seen.is_write)
        case "flow control":
            api.fail(429, times=2, when=ours, retry_after_s=1)
        case "errors":
            api.fail(500, times=3, when=ours)
        case "lost answers":
            api.cut(Cut.AFTER, times=4, when=ours)
        case "lost requests":
            api.cut(Cut.BEFORE, times=4, when=ours)
        case _:
            raise ValueError(name)


async def all_admitted_once(plane: Plane) -> None:
    """All are submitted, and each is admitted by one write that was applied."""
    observer = Observer(plane.api, fleet_of(*WORKLOADS))
    observing = asyncio.create_task(observer.run())
    await asyncio.sleep(0)
    plane.submit(*WORKLOADS)
    await plane.admitted(*WORKLOADS)
    await asyncio.sleep(0)
    observing.cancel()
    await asyncio.wait((observing,))
    assert observer.faults == []
    assert sorted(name for _, name in plane.written) == sorted(f"{one.name}-deployment" for one in WORKLOADS)


@pytest.mark.parametrize("name", ["conflicts", "flow control", "errors", "lost answers", "lost requests"])
def test_a_storm_delays_admissions_and_repeats_none(name: str, tmp_path: Path) -> None:
    async def run() -> None:
        async with control_plane(tmp_path) as plane:
            child = await plane.start(*ALONE)
            storm(plane.api, name)
            await all_admitted_once(plane)
            assert not child.code.done()

    asyncio.run(run())


def test_an_api_server_that_is_down_at_the_start_is_waited_for(tmp_path: Path) -> None:
    async def run() -> None:
        knocked = asyncio.Event()

        def refuse(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            knocked.set()
            writer.close()

        port = free_port()
        nobody = await asyncio.start_server(refuse, "127.0.0.1", port)
        # Started before there is anything behind the address.
        starter = Plane(FakeApi(port=port), tmp_path)
        child = await starter.start(*ELECTED)
        try:
            await asyncio.wait_for(knocked.wait(), WITHIN_S)
            await stop_listening(nobody)
            async with control_plane(tmp_path, port=port) as plane:
                await all_admitted_once(plane)
            assert not child.code.done()
        finally:
            await child.end()

    asyncio.run(run())


def test_an_api_server_that_restarts_is_waited_for(tmp_path: Path) -> None:
    async def run() -> None:
        async with control_plane(tmp_path) as plane:
            child = await plane.start(*ELECTED)
            plane.submit(before := workload("before"))
            await plane.admitted(before)
            plane.written.clear()
            await plane.api.refuse()
            await plane.api.start()
            await all_admitted_once(plane)
            assert not child.code.done()

    asyncio.run(run())
