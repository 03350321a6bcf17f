"""Held, released, placed, ended, grown and shrunk on a real API server, by processes that may be killed."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import Path

import pytest

from tests.dispatcher.real.karmada import CLUSTER, Karmada
from tests.dispatcher.real.observer import Binding
from tests.dispatcher.real.plane import Plane, install, plane, policies, webhook
from tests.dispatcher.scenarios.objects import GPU
from tests.envtest import RealApi, assets, real_api

pytestmark = pytest.mark.envtest

Hold = Callable[[RealApi, Path], AbstractAsyncContextManager[None]]
WITHIN_S = 180.0
QUOTA = 4


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealApi]:
    programs = assets()
    if programs is None:
        pytest.skip("KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")
    with real_api(programs, tmp_path_factory.mktemp("dispatcher")) as started:
        asyncio.run(install(started))
        yield started


def run(
    api: RealApi,
    folder: Path,
    hold: Hold,
    namespace: str,
    scenario: Callable[[Plane], Coroutine[object, object, None]],
    *,
    quota: int = QUOTA,
) -> None:
    async def bounded() -> None:
        async with (
            asyncio.timeout(WITHIN_S),
            hold(api, folder),
            plane(api, folder, namespace, quota) as made,
        ):
            await scenario(made)

    asyncio.run(bounded())


async def submit(karmada: Karmada, count: int, *, kind: str = "Job", first: int = 0) -> list[str]:
    """So many of one GPU each; the names of their bindings."""
    return [await karmada.submit(kind, f"w{number:02d}") for number in range(first, first + count)]


async def drain(plane: Plane, jobs: list[str]) -> dict[str, float]:
    """Each ends as soon as it is placed, until all have; when at the earliest, in seconds since the epoch."""
    ended_s: dict[str, float] = {}
    while len(ended_s) < len(jobs):
        await plane.observer.until(lambda: set(plane.observer.placed(jobs)) - ended_s.keys())
        for name in set(plane.observer.placed(jobs)) - ended_s.keys():
            ended_s[name] = time.time()
            await plane.karmada.finish(name)
    return ended_s


def admitted_at_s(binding: Binding) -> float:
    assert binding.record is not None
    return datetime.fromisoformat(binding.record["admittedAt"]).timestamp()


@pytest.mark.parametrize("hold", [webhook, policies])
def test_life(api: RealApi, tmp_path: Path, hold: Hold) -> None:
    """Everything that happens to workloads, and no write more than it takes."""

    async def scenario(plane: Plane) -> None:
        karmada, seen = plane.karmada, plane.observer
        jobs = await submit(karmada, 8)
        server = await karmada.submit("Deployment", "server", 2)
        everything = [*jobs, server]
        await seen.until(lambda: len(seen.held(everything)) == 9)
        before = await plane.patches() - karmada.patches
        dispatcher = await plane.dispatcher()

        # Four fit; the others wait, and nothing is written on them.
        await seen.until(lambda: len(seen.placed(everything)) == 4 or server in seen.placed(everything))
        ended: list[str] = []
        while len(seen.placed(everything)) < 9 or len(ended) < 8:
            # One ends, well or badly, and the next starts.
            running = [name for name in seen.placed(jobs) if name not in ended]
            if running:
                await karmada.finish(running[0], ("Complete", "Failed")[len(ended) % 2])
                ended.append(running[0])
            await seen.until(lambda: set(seen.placed(jobs)) - set(ended) or len(ended) == 8)
            if len(ended) == 8:
                await seen.until(lambda: len(seen.placed(everything)) == 9)
        assert seen.most_charged <= QUOTA
        assert [seen.admissions(name) for name in everything] == [1] * 9
        assert await plane.patches() - karmada.patches - before == 9
        for name in jobs:
            # Made, admitted, placed, judged, ended.
            assert len({version.metadata.resource_version for version in seen.versions[name]}) <= 5

        # Growth is held in the write that asks for it, and admitted where there is room.
        await karmada.scale(server, 4)
        grown = await seen.until_of(server, lambda b: b.placed == 4)
        assert any(version.is_held and version.placed == 2 for version in seen.versions[server])
        assert grown.record is not None
        assert (grown.record["replicas"], grown.record["requests"]) == (4, {GPU: 4})

        # Beyond the quota it waits, while what runs stays, and people are told why.
        await karmada.scale(server, 6)
        await seen.until_of(server, lambda b: b.is_held and b.spec.replicas == 6)
        late = await karmada.submit("Job", "late")
        await seen.until(lambda: seen.held([late]))
        await plane.until_reason(dispatcher, "server", "WaitingForQuota")
        assert seen[server].clusters == ((CLUSTER, 4),)

        # Taken back to what it has, it is let go at once; below that, quota returns to those who wait.
        await karmada.scale(server, 4)
        await seen.until_of(server, lambda b: not b.is_held)
        assert seen.held([late]) == [late]
        await karmada.scale(server, 3)
        await seen.until(lambda: seen.placed([late]))
        shrunk = seen[server].record
        assert shrunk is not None
        assert (shrunk["replicas"], shrunk["requests"]) == (3, {GPU: 3})
        assert seen.most_charged <= QUOTA
        assert len(seen.versions[late]) <= 4
        assert await dispatcher.stop() == 0

    run(api, tmp_path, hold, f"life-{hold.__name__}", scenario)
    for log in tmp_path.glob("*.log"):
        assert " ERROR " not in log.read_text("utf-8")


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_kill_loses_nothing_and_releases_nothing_twice(api: RealApi, tmp_path: Path, replicas: int) -> None:
    """With one replica it is started again; with two the other goes on."""

    async def scenario(plane: Plane) -> None:
        karmada, seen = plane.karmada, plane.observer
        leader = await plane.dispatcher("leader")
        warm = await submit(karmada, 1)
        await seen.until(lambda: seen.placed(warm))
        if replicas == 2:
            await plane.dispatcher("follower")
        jobs = warm + await submit(karmada, 15, first=1)
        await seen.until(lambda: len(seen.placed(jobs)) >= 3)
        leader.kill()
        if replicas == 1:
            await plane.dispatcher("successor")
        await drain(plane, jobs)
        assert [seen.admissions(name) for name in jobs] == [1] * len(jobs)
        assert seen.most_charged <= QUOTA

    run(api, tmp_path, policies, f"killed-{replicas}", scenario)


def test_the_api_server_may_be_killed(api: RealApi, tmp_path: Path) -> None:
    """Nothing is lost, nothing is released twice, and it goes on by itself."""

    async def scenario(plane: Plane) -> None:
        karmada, seen = plane.karmada, plane.observer
        await plane.dispatcher()
        jobs = await submit(karmada, 12)
        await seen.until(lambda: len(seen.placed(jobs)) >= 3)
        await asyncio.to_thread(api.kill)
        await asyncio.to_thread(api.start)
        ended_s = await drain(plane, jobs)
        assert [seen.admissions(name) for name in jobs] == [1] * len(jobs)
        # What was seen after an outage says little of the order in which it happened.
        admitted_s = {name: admitted_at_s(seen[name]) for name in jobs}
        for at_s in admitted_s.values():
            assert sum(admitted_s[name] <= at_s < ended_s[name] for name in jobs) <= QUOTA

    run(api, tmp_path, policies, "outage", scenario)


def test_the_flag_may_be_set_and_cleared_by_hand(api: RealApi, tmp_path: Path) -> None:
    """Who clears it is charged and left alone; what was admitted is let go again at once."""

    async def scenario(plane: Plane) -> None:
        karmada, seen = plane.karmada, plane.observer
        dispatcher = await plane.dispatcher()
        (first, second) = await submit(karmada, 2)
        await seen.until(lambda: len(seen.placed([first, second])) == 1)
        placed, waits = (first, second) if seen.placed([first]) else (second, first)
        await plane.until_reason(dispatcher, waits.removesuffix("-job"), "WaitingForQuota")
        before = len(seen.versions[placed])
        await karmada.set_by_hand(placed, held=True)
        await seen.until(
            lambda: any(b.is_held for b in seen.versions[placed][before:]) and not seen[placed].is_held
        )
        await karmada.set_by_hand(waits, held=False)
        await seen.until_of(waits, lambda b: b.placed)
        await karmada.finish(placed)
        # Its quota is that of the one that helped itself.
        (third,) = await submit(karmada, 1, first=2)
        await plane.until_reason(dispatcher, third.removesuffix("-job"), "WaitingForQuota")
        await karmada.finish(waits)
        await seen.until_of(third, lambda b: b.placed)
        assert [seen.admissions(name) for name in (placed, waits, third)] == [1, 0, 1]

    run(api, tmp_path, policies, "by-hand", scenario, quota=1)
