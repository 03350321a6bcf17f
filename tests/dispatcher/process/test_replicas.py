import asyncio
import signal
import socket
from datetime import datetime, timedelta
from pathlib import Path

import aiohttp
import msgspec

from fairway.visibility import WorkloadList
from sandbox.fakeapi.store import Obj
from tests.crash.fleet import LEASE_FLAGS
from tests.crash.objects import binding, template
from tests.crash.processes import Child
from tests.crash.schedule import CLUSTERS, Workload
from tests.crash.views import GPU
from tests.dispatcher.process.builders import (
    ELECTED,
    LOOK_S,
    QUOTA,
    WITHIN_S,
    Plane,
    control_plane,
    free_port,
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


async def reason_of(port: int, one: Workload) -> tuple[str, str]:
    """What the replica at the port says why the workload waits: kind and text; empty for nothing (yet)."""
    namespace, _, name = one.key.partition("/")
    url = f"http://127.0.0.1:{port}/visibility/v1/workloads/{namespace}/{name}"
    try:
        async with aiohttp.ClientSession() as session, session.get(url) as response:
            found = msgspec.json.decode(await response.read(), type=WorkloadList).workloads
    except (aiohttp.ClientError, msgspec.DecodeError):
        return "", ""
    waiting = found[0].waiting if found else None
    return ("", "") if waiting is None else (waiting.kind, waiting.text)


async def comes_to_say(port: int, one: Workload, kind: str, text: str) -> None:
    """Wait until the replica at the port tells this reason."""
    found = "", ""
    for _ in range(int(WITHIN_S / LOOK_S)):
        found = await reason_of(port, one)
        if found[0] == kind and text in found[1]:
            return
        await asyncio.sleep(LOOK_S)
    raise TimeoutError(f"{kind} with {text!r}; the last was {found}")


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
            # It writes from now on: its term has begun, and it has caught up.
            plane.submit(zero := workload("zero"))
            await plane.admitted(zero)
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
            plane.submit(three := workload("three", gpus=QUOTA - 3))
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


def test_a_follower_names_the_leader_for_what_only_that_one_is_told(tmp_path: Path) -> None:
    async def run() -> None:
        async with control_plane(tmp_path) as plane:
            first, second = free_port(), free_port()
            nobody = free_port()
            flags = (
                *LEASE_FLAGS,
                "--health-probe-bind-address=0",
                "--metrics-bind-address=0",
                "--visibility-authorization=none",
                *(f"--estimator={cluster}=127.0.0.1:{nobody}" for cluster in CLUSTERS),
            )
            await plane.start(*flags, f"--visibility-bind-address=127.0.0.1:{first}", name="first")
            await until(plane.leases, lambda: bool(plane.holder))
            await plane.start(*flags, f"--visibility-bind-address=127.0.0.1:{second}", name="second")
            one = workload("one")
            for path, obj in (template(one), binding(one)):
                if path.endswith("deployments"):
                    # Of a workload without pods nobody is asked.
                    container = {"name": "main", "resources": {"limits": {GPU: 1}}}
                    obj["spec"] = {"replicas": 1, "template": {"spec": {"containers": [container]}}}
                plane.api.create(path, obj)
            await comes_to_say(first, one, "WaitingForEstimate", "whether it fits is not known")
            leader = socket.gethostname()
            await comes_to_say(second, one, "WaitingForEstimate", f"asked by the leader {leader}")

    asyncio.run(run())
