"""Everything together: a kubelet on a socket, a /proc, the pods of the API server."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc
import pytest

from fairway.kube.node_devices import HolderSource
from node_agent.attribution import Attribution
from node_agent.claimed_devices import ClaimedDevices
from node_agent.holders import Holdings
from node_agent.pod_resources import PodResources
from node_agent.processes import ProcessTable
from node_agent.reading import DeviceReading, NodeReading, ProcessReading
from tests.node_agent.cgroup_paths import A, B, v2
from tests.node_agent.kubelet import Kubelet
from tests.node_agent.pods import pod, pods
from tests.node_agent.proc_tree import ProcTree

GPU = "GPU-00000000-aaaa-4bbb-8ccc-000000000000"
UIDS = ("6f0d5d1c-3a52-4c1e-9d80-7a1f3f7c2b11", "82a2a707-2fe8-4feb-9fea-43ad1530dbf2")
BUSY = NodeReading(devices=(DeviceReading(GPU, 0, processes=(ProcessReading(7), ProcessReading(8))),))


class Node:
    """A node with one device, two pods with a process each, and a clock that is told."""

    def __init__(self, path: Path) -> None:
        self.kubelet, self.now_s, self.pods_are_read = Kubelet(), 0.0, True
        self.socket = path / "kubelet.sock"
        self.proc = ProcTree(path / "proc")
        self.proc.path.mkdir()
        self.proc.add(7, v2(f"/kubepods/pod{UIDS[0]}/{A}"))
        self.proc.add(8, v2(f"/kubepods/pod{UIDS[1]}/{B}"))
        self.client = PodResources(self.socket, timeout_s=20)
        self.pods = pods(
            pod("team/a", UIDS[0], {"main": f"containerd://{A}"}),
            pod("team/b", UIDS[1], {"main": f"containerd://{B}"}),
        )
        self.attribution = Attribution(
            self.client,
            ProcessTable(self.proc.path),
            self.pods,
            ClaimedDevices(),
            pods_are_read=lambda: self.pods_are_read,
            is_listed=lambda: self.pods_are_read,
            clock=lambda: self.now_s,
        )

    async def look(self, after_s: float = 0.0, reading: NodeReading = BUSY) -> Holdings:
        self.now_s += after_s
        return await self.attribution.look(reading)


def on(path: Path, scenario: Callable[[Node], Awaitable[None]]) -> None:
    async def run() -> None:
        node = Node(path)
        try:
            await scenario(node)
        finally:
            await node.client.close()

    asyncio.run(run())


def sources(found: Holdings) -> dict[str, str]:
    return {one.pod: HolderSource(one.source).name for one in found.holders.get(GPU, ())}


BOTH = {"a": "POD_RESOURCES", "b": "CGROUP"}


def test_who_was_given_a_device_and_who_runs_on_it(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        node.kubelet.give("team/a", "main", GPU)
        async with node.kubelet.on(node.socket):
            found = await node.look()
            assert sources(found) == BOTH
            assert [one.container for one in found.holders[GPU]] == ["main", "main"]
            assert found.problems == ()

    on(tmp_path, scenario)


def test_kubelet_is_asked_now_and_then(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        async with node.kubelet.on(node.socket):
            for _ in range(4):
                await node.look(after_s=5)
            assert node.kubelet.asked == 2 * 2
            await node.look(after_s=60, reading=NodeReading())
            assert node.kubelet.asked == 2 * 2, "there is nothing to attribute"

    on(tmp_path, scenario)


def test_what_kubelet_said_stays_for_a_while(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        node.kubelet.give("team/a", "main", GPU)
        async with node.kubelet.on(node.socket):
            await node.look()
        found = await node.look(after_s=200)
        assert sources(found) == BOTH
        assert len(found.problems) == 1
        assert "kubelet.sock is not there" in found.problems[0]
        assert (await node.look(after_s=5)).problems == found.problems, "until it is asked again"
        node.pods.delete("team/a")
        assert "a" not in sources(await node.look()), "a pod that has ended holds nothing"
        node.pods.upsert(pod("team/a", UIDS[0], {"main": f"containerd://{A}"}))
        assert sources(await node.look(after_s=100)) == {"a": "CGROUP", "b": "CGROUP"}
        async with node.kubelet.on(node.socket):
            found = await node.look(after_s=10)
            assert (sources(found), found.problems) == (BOTH, ())

    on(tmp_path, scenario)


def test_processes_tell_alone_what_a_limited_kubelet_does_not(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        node.kubelet.refuses = (grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit")
        async with node.kubelet.on(node.socket):
            found = await node.look()
            assert sources(found) == {"a": "CGROUP", "b": "CGROUP"}
            assert "rate limit" in found.problems[0]

    on(tmp_path, scenario)


def test_what_kubelet_may_give_is_asked_with_it_and_not_missed(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        node.kubelet.allocatable.devices.add(resource_name="nvidia.com/gpu", device_ids=[GPU])
        async with node.kubelet.on(node.socket):
            assert (await node.look()).schedulable == {GPU: True}
            node.kubelet.knows_allocatable = False
            found = await node.look(after_s=10)
            assert (found.schedulable, found.problems) == ({}, ())

    on(tmp_path, scenario)


@pytest.mark.parametrize("pods_are_read", [True, False])
def test_pods_are_matched_once_they_are_read(tmp_path: Path, pods_are_read: bool) -> None:
    async def scenario(node: Node) -> None:
        node.pods_are_read = pods_are_read
        node.kubelet.give("team/a", "main", GPU)
        async with node.kubelet.on(node.socket):
            found = await node.look()
            assert sources(found) == (BOTH if pods_are_read else {"a": "POD_RESOURCES"})
            assert [text[:21] for text in found.problems] == (
                [] if pods_are_read else ["the pods of this node"]
            )

    on(tmp_path, scenario)


@pytest.mark.parametrize("missing", ["nothing", "pods", "kubelet"])
def test_who_holds_what_is_settled_once_all_have_answered_or_a_minute_has_passed(
    tmp_path: Path, missing: str
) -> None:
    async def scenario(node: Node) -> None:
        node.pods_are_read = missing != "pods"
        async with node.kubelet.on(tmp_path / "elsewhere" if missing == "kubelet" else node.socket):
            assert (await node.look()).settled == (missing == "nothing")
            assert (await node.look(after_s=59)).settled == (missing == "nothing")
            found = await node.look(after_s=1)
            assert found.settled
            assert bool(found.problems) == (missing != "nothing")

    on(tmp_path, scenario)
