import asyncio
import threading

import pytest
from aiohttp import ClientSession
from prometheus_client import CollectorRegistry

from fairway.service.addresses import BindAddress
from fairway.service.common_flags import EndpointSettings
from fairway.service.http import serve_endpoints
from fairway.service.profiling import LoopProfiler, describe_tasks, describe_threads


async def fetch(*paths: str) -> list[tuple[int, str]]:
    """Ask for all paths at once."""
    async with (
        serve_endpoints(
            EndpointSettings(None, None, BindAddress("127.0.0.1", 0)),
            checks=lambda: (),
            registry=CollectorRegistry(),
        ) as at,
        ClientSession() as session,
    ):

        async def one(path: str) -> tuple[int, str]:
            async with session.get(f"http://{at.profiling}{path}") as response:
                return response.status, await response.text()

        return await asyncio.gather(*map(one, paths))


def test_the_index_names_what_there_is() -> None:
    [(status, text)] = asyncio.run(fetch("/debug/pprof/"))
    assert status == 200
    assert "goroutine" in text
    assert "profile?seconds=N" in text


def test_the_dump_shows_tasks_and_threads() -> None:
    [(status, text)] = asyncio.run(fetch("/debug/pprof/goroutine"))
    assert status == 200
    assert "tasks\n" in text
    assert "Thread 'MainThread'" in text


def test_a_waiting_task_is_shown_by_name_and_place() -> None:
    async def wait_for_the_cluster(event: asyncio.Event) -> None:
        await event.wait()

    async def scenario() -> str:
        event = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(wait_for_the_cluster(event), name="mirror m1")
            await asyncio.sleep(0)
            dump = describe_tasks()
            event.set()
        return dump

    dump = asyncio.run(scenario())
    assert "2 tasks" in dump
    assert "mirror m1" in dump
    assert "in wait_for_the_cluster" in dump


def test_a_thread_is_shown_by_name_and_place() -> None:
    release = threading.Event()
    thread = threading.Thread(target=release.wait, name="solver")
    thread.start()
    try:
        assert "Thread 'solver'" in describe_threads()
    finally:
        release.set()
        thread.join()


@pytest.mark.parametrize("seconds", ["0", "61", "-1", "1.5", "x", "", "99999999999", "%D9%A1"])
def test_a_profile_is_bounded(seconds: str) -> None:
    [(status, text)] = asyncio.run(fetch(f"/debug/pprof/profile?seconds={seconds}"))
    assert status == 400
    assert "expected a whole number from 1 to 60" in text


def test_a_profile_shows_what_ran_on_the_loop_meanwhile() -> None:
    def estimate_replicas() -> None:
        sum(range(1000))

    async def scenario() -> str:
        profiler = LoopProfiler()
        task = asyncio.create_task(profiler.profile(0.001))
        while not task.done():
            estimate_replicas()
            await asyncio.sleep(0)
        return task.result()

    text = asyncio.run(scenario())
    assert "estimate_replicas" in text
    assert "function calls" in text


def test_a_second_profile_at_the_same_time_is_told_to_wait_and_the_first_succeeds() -> None:
    path = "/debug/pprof/profile?seconds=1"
    answers = asyncio.run(fetch(path, path))
    assert sorted(status for status, _ in answers) == [200, 409]
