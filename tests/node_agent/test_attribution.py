"""Everything together: a kubelet on a socket, a /proc, the pods of the API server."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc
import pytest

from fairway.kube.client import KubeClient
from fairway.kube.node_devices import HolderSource
from fairway.kube.objects import ApiObject
from fairway.kube.observation import NullReflectorMetrics
from node_agent.attribution import Attribution, follow
from node_agent.claimed_devices import ClaimedDevices
from node_agent.holders import Holdings
from node_agent.pod_resources import PodResources
from node_agent.processes import ProcessTable
from node_agent.reading import DeviceReading, NodeReading, ProcessReading
from sandbox.fakeapi import FakeApi
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
            assert node.kubelet.asked == 2
            await node.look(after_s=60, reading=NodeReading())
            assert node.kubelet.asked == 2, "there is nothing to attribute"

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


@pytest.mark.parametrize("pods_are_read", [True, False])
def test_pods_are_matched_once_they_are_read(tmp_path: Path, pods_are_read: bool) -> None:
    async def scenario(node: Node) -> None:
        node.pods_are_read = pods_are_read
        node.kubelet.give("team/a", "main", GPU)
        async with node.kubelet.on(node.socket):
            found = await node.look()
            assert sources(found) == (BOTH if pods_are_read else {"a": "POD_RESOURCES"})

    on(tmp_path, scenario)


def test_all_of_it_against_an_api_server(tmp_path: Path) -> None:
    """One pod by its claim, whose device a slice names; one by its process, whose pod the server names."""

    async def run() -> None:
        node = Node(tmp_path)
        node.kubelet.give("team/a", "main", claims="gpu.nvidia.com/node-a/gpu-0")
        async with FakeApi() as api, node.kubelet.on(node.socket), KubeClient.from_url(api.url) as client:
            api.load("/api/v1/pods", [running("a", A), running("b", B)])
            uids = [
                (await client.get_json(f"/api/v1/namespaces/team/pods/{name}", ApiObject)) for name in "ab"
            ]
            for pid, one, container in zip((7, 8), uids, (A, B), strict=True):
                node.proc.add(pid, v2(f"/kubepods/pod{one.metadata.uid}/{container}"))
            api.load("/apis/resource.k8s.io/v1/resourceslices", [SLICE])
            followed = follow(
                client,
                "node-a",
                NullReflectorMetrics(),
                clock=time.monotonic,
                socket=node.socket,
                proc=node.proc.path,
            )
            async with asyncio.timeout(30), asyncio.TaskGroup() as group:
                tasks = [group.create_task(task, name=name) for name, task in followed.tasks.items()]
                await api.until(lambda: api.watches == 2)
                found = await followed.attribution.look(BUSY)
                while sources(found) != BOTH:
                    await asyncio.sleep(0)
                    found = await followed.attribution.look(BUSY)
                for task in tasks:
                    task.cancel()
            assert [(one.container, one.uid) for one in found.holders[GPU]] == [
                ("main", one.metadata.uid) for one in uids
            ]
            assert found.problems == ()
            await followed.attribution.close()

    asyncio.run(run())


def running(name: str, container: str) -> dict[str, object]:
    status = {"containerStatuses": [{"name": "main", "containerID": f"containerd://{container}"}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"nodeName": "node-a", "containers": []},
        "status": {"phase": "Running", **status},
    }


SLICE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "node-a-gpus"},
    "spec": {
        "driver": "gpu.nvidia.com",
        "nodeName": "node-a",
        "pool": {"name": "node-a", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0", "attributes": {"uuid": {"string": GPU}}}],
    },
}
