import asyncio
import signal
from pathlib import Path

from tests.dispatcher.process.builders import ALONE, ELECTED, control_plane, until, workload


def test_sigterm_gives_the_lease_back_and_exits_with_0(tmp_path: Path) -> None:
    async def run() -> None:
        async with control_plane(tmp_path) as plane:
            child = await plane.start(*ELECTED)
            plane.submit(one := workload("one"))
            await plane.admitted(one)
            assert plane.holder
            child.signal(signal.SIGTERM)
            assert await child.code == 0, child.last_words()
            assert not plane.holder
            assert "stopped" in child.last_words().splitlines()[-1]

    asyncio.run(run())


def test_sigterm_while_a_write_is_under_way_leaves_the_write_whole(tmp_path: Path) -> None:
    async def run() -> None:
        async with control_plane(tmp_path) as plane:
            child = await plane.start(*ALONE)
            arrived = asyncio.Event()

            def stop(_: object) -> None:
                if not arrived.is_set():
                    arrived.set()
                    child.signal(signal.SIGTERM)

            plane.api.writes.before = stop
            plane.submit(one := workload("one"), workload("two"))
            await until(plane.bindings, arrived.is_set)
            assert await child.code == 0, child.last_words()
            seen = plane.seen(one)
            assert (seen.record is None) == seen.held

    asyncio.run(run())


def test_sigterm_before_anything_has_been_read_exits_with_0(tmp_path: Path) -> None:
    async def run() -> None:
        async with control_plane(tmp_path) as plane:
            plane.api.hang()
            child = await plane.start(*ELECTED)
            await plane.api.until(lambda: bool(plane.api.seen))
            child.signal(signal.SIGTERM)
            assert await child.code == 0, child.last_words()

    asyncio.run(run())
