"""NodeDevices from files and from API servers: how they get into an answer, and nobody waits for them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import yaml

from admin.live import read_live
from admin.mirrors import mirror_of
from estimator.cluster.mirror import ClusterMirror
from estimator.live_source import LiveSource
from estimator.member import NODE_DEVICES, NODES, PODS, MemberCluster
from fairway.kube.client import KubeClient
from fairway.kube.dumps import read_dump
from fairway.kube.node_devices import NodeDevices
from fairway.kube.observation import NullReflectorMetrics
from sandbox.fakeapi import FakeApi, virtual_time
from tests.builders import Complaints, node, replicas_of, shape
from tests.estimator.agents import NOW_S, agent, at
from tests.estimator.serving import gpu_node

COLLECTION = "/apis/fairway.dev/v1alpha1/nodedevices"
STALE_S, WITHIN_S = 120.0, 2.5
ONE_GPU = {"nvidia.com/gpu": 1}
ONE_BAD = agent("a").gpus(8).bad(0)


def fits(mirror: ClusterMirror) -> int:
    return replicas_of(mirror, shape(ONE_GPU)).value


@pytest.mark.parametrize("written", [json.dumps, yaml.safe_dump])
def test_a_dump_brings_them_in_and_says_how_late_it_is(
    tmp_path: Path, written: Callable[[object], str]
) -> None:
    file = tmp_path / "m"
    nodes = [
        {"apiVersion": "v1", "kind": "Node", **node(name).cpu(8).gpus(8).object()} for name in ("a", "b")
    ]
    stale = agent("b").gpus(8).bad(0).observed(at(-700))
    items = [*nodes, ONE_BAD.object(), stale.object()]
    file.write_text(written({"apiVersion": "v1", "kind": "List", "items": items}))
    dump = read_dump(file)
    assert [one.metadata.name for one in dump.of(NodeDevices)] == ["a", "b"]
    mirror, problems = mirror_of(dump)
    assert fits(mirror) == 15
    assert [problem for problem in problems if "nodedevices" in problem] == [
        "nodedevices b: observedAt has not changed for 10 minutes: is the agent running? Not heeded"
    ]


def play(scenario: Callable[[FakeApi], Coroutine[None, None, None]]) -> None:
    async def scene() -> None:
        async with FakeApi() as api:
            api.create("/api/v1/nodes", gpu_node("a", 8)[1])
            await scenario(api)

    virtual_time.run(scene())


@asynccontextmanager
async def followed(api: FakeApi, complaints: Complaints) -> AsyncIterator[MemberCluster]:
    clock = asyncio.get_running_loop().time
    member = MemberCluster("m", ClusterMirror(complaints), clock)
    source = LiveSource(
        member,
        KubeClient.from_url(api.url, qps=-1),
        NullReflectorMetrics(),
        clock=clock,
        wall_clock=lambda: NOW_S,
    )
    task = asyncio.create_task(source.run())
    try:
        yield member
    finally:
        task.cancel()
        await asyncio.wait((task,))


def _with_devices(devices: list[dict[str, object]], obj: dict[str, object]) -> None:
    obj["devices"] = devices


def test_a_device_that_fails_is_out_of_the_answer_as_soon_as_the_agent_writes() -> None:
    async def scenario(api: FakeApi) -> None:
        api.create(COLLECTION, agent("a").gpus(8).object())
        async with followed(api, Complaints()) as member:
            assert await member.settle((NODES, PODS, NODE_DEVICES), STALE_S, WITHIN_S) is None
            assert fits(member.mirror) == 8
            for sick, left in ((ONE_BAD, 7), (ONE_BAD.bad(1), 6), (agent("a").gpus(8), 8)):
                devices = list(sick.devices)
                api.update(f"{COLLECTION}/a", partial(_with_devices, devices))
                await asyncio.sleep(0.1)
                assert fits(member.mirror) == left

    play(scenario)


def test_an_agent_that_falls_silent_is_told_and_ignored() -> None:
    async def scenario(api: FakeApi) -> None:
        api.create(COLLECTION, ONE_BAD.object())
        complaints = Complaints()
        async with followed(api, complaints) as member:
            assert await member.settle((NODES, PODS, NODE_DEVICES), STALE_S, WITHIN_S) is None
            await asyncio.sleep(590)
            assert (fits(member.mirror), complaints) == (7, [])
            await asyncio.sleep(30)
            assert fits(member.mirror) == 8
            assert [(resource, key) for resource, key, _ in complaints] == [("nodedevices", "a")]

    play(scenario)


@pytest.mark.parametrize("status", [403, 404])
def test_nobody_waits_where_they_are_not_served_or_not_allowed(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(api: FakeApi) -> None:
        api.fail(status, 10**6, when=lambda seen: seen.path.startswith(COLLECTION))
        async with followed(api, Complaints()) as member:
            assert await member.settle((NODES, PODS, NODE_DEVICES), STALE_S, WITHIN_S) is None
            assert fits(member.mirror) == 8
            why = member.left_out(NODE_DEVICES)
            assert ("403" if status == 403 else "nodedevices.fairway.dev are not served") in why

    with caplog.at_level(logging.WARNING):
        play(scenario)
    told = [record.getMessage() for record in caplog.records if "nodedevices" in record.getMessage()]
    assert len(told) == (1 if status == 403 else 0)


def test_a_cluster_that_is_read_once_knows_how_late_it_is() -> None:
    """Objects of agents that were taken away long ago say nothing, however many there are."""

    async def scenario(api: FakeApi) -> None:
        api.create(COLLECTION, ONE_BAD.observed("2020-01-01T00:00:00Z").object())
        async with KubeClient.from_url(api.url, qps=-1) as client:
            mirror, _ = mirror_of(await read_live(client, lambda what: None))
        assert fits(mirror) == 8
        assert mirror.node_devices.stale == {"a"}

    play(scenario)
