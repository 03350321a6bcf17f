import asyncio
import signal
from datetime import datetime, timedelta
from pathlib import Path

from sandbox.fakeapi.store import Obj
from tests.crash.processes import Child
from tests.dispatcher.process.builders import (
    ELECTED,
    QUOTA,
    Plane,
    control_plane,
    said,
    until,
    workload,
)

LEASE_S = 2
SLACK_S = 6.0
"""Two retries of the follower, and a machine with other things to do."""


async def leader_and_follower(plane: Plane) -> tuple[Child, Child]:
    """Two replicas, of which the first leads and the second has read everything."""
    first = await plane.start(*ELECTED, name="first")
    await until(plane.leases, lambda: bool(plane.holder))
    second = await plane.start(*ELECTED, name="second")
    await plane.api.until(
        lambda: any(
            seen.user == "second" and seen.is_watch and "/resourcebindings" in seen.path
            for seen in plane.api.seen
        )
    )
    return first, second


def lease(plane: Plane) -> Obj:
    (record,) = plane.leases.records.values()
    spec: Obj = record.decode()["spec"]
    return spec


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_the_follower_takes_over_once_the_lease_of_a_killed_leader_has_run_out(tmp_path: Path) -> None:
    async def run() -> None:
        async with control_plane(tmp_path) as plane:
            first, _ = await leader_and_follower(plane)
            plane.submit(one := workload("one"))
            await plane.admitted(one)
            former = plane.holder
            first.signal(signal.SIGKILL)
            await first.code
            renewed = moment(lease(plane)["renewTime"])
            plane.submit(two := workload("two"))
            await plane.admitted(two)
            assert plane.written == [("first", "one-deployment"), ("second", "two-deployment")]
            assert plane.holder not in ("", former)
            waited = moment(lease(plane)["acquireTime"]) - renewed
            assert timedelta(seconds=LEASE_S) <= waited <= timedelta(seconds=LEASE_S + SLACK_S)

    asyncio.run(run())


def test_a_leader_that_is_told_to_stop_hands_over_at_once(tmp_path: Path) -> None:
    async def run() -> None:
        async with control_plane(tmp_path) as plane:
            first, _ = await leader_and_follower(plane)
            former = plane.holder
            first.signal(signal.SIGTERM)
            assert await first.code == 0, first.last_words()
            plane.submit(one := workload("one"))
            await plane.admitted(one)
            assert plane.written == [("second", "one-deployment")]
            assert plane.holder not in ("", former)

    asyncio.run(run())


def test_a_leader_that_was_cut_off_goes_on_with_what_it_had_begun(tmp_path: Path) -> None:
    async def run() -> None:
        async with control_plane(tmp_path) as plane:
            child = await plane.start(*ELECTED)
            await until(plane.leases, lambda: bool(plane.holder))
            asked = len(plane.api.seen)
            plane.api.part(lambda seen: seen.is_write)
            plane.submit(one := workload("one"), two := workload("two"))
            await plane.api.until(
                lambda: any("/resourcebindings/" in seen.path for seen in plane.api.seen[asked:])
            )
            await said(child, "no longer leading")
            plane.api.heal()
            await plane.admitted(one, two)
            # Nothing of before may stand in the way of what comes now.
            plane.submit(three := workload("three", gpus=QUOTA - 2))
            await plane.admitted(three)

    asyncio.run(run())


def test_a_leader_that_slept_through_its_lease_writes_nothing_when_it_wakes(tmp_path: Path) -> None:
    async def run() -> None:
        async with control_plane(tmp_path) as plane:
            first, _ = await leader_and_follower(plane)
            former = plane.holder
            first.signal(signal.SIGSTOP)
            # It finds this one on its watch when it wakes, held as it was here.
            plane.submit(one := workload("one"))
            await plane.admitted(one)
            assert plane.holder != former
            asked = len(plane.api.seen)
            first.signal(signal.SIGCONT)
            await plane.api.until(
                lambda: any(
                    seen.user == "first" and "/leases" in seen.path for seen in plane.api.seen[asked:]
                )
            )
            plane.submit(two := workload("two"))
            await plane.admitted(two)
            patches = {
                seen.user
                for seen in plane.api.seen
                if seen.method == "PATCH" and "/resourcebindings" in seen.path
            }
            assert patches == {"second"}
            assert not first.code.done()

    asyncio.run(run())
