"""A node's pods and slices on an API server, the fake and a real one; a kubelet and a /proc beside it."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairway.kube.client import KubeClient
from fairway.kube.observation import NullReflectorMetrics
from node_agent.attribution import follow
from node_agent.reading import DeviceReading, NodeReading, ProcessReading
from tests.envtest import assets, real_api
from tests.kube.conftest import ApiServer, Fake, Real
from tests.node_agent.cgroup_paths import A, B, C, v2
from tests.node_agent.kubelet import Kubelet
from tests.node_agent.proc_tree import ProcTree

MERGE = "application/merge-patch+json"
GPU = "GPU-00000000-aaaa-4bbb-8ccc-000000000000"
READING = NodeReading(
    devices=(DeviceReading(GPU, 0, processes=(ProcessReading(7), ProcessReading(8), ProcessReading(9))),)
)
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


@pytest.fixture(params=["fake", pytest.param("envtest", marks=pytest.mark.envtest)])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ApiServer]:
    if request.param == "fake":
        yield Fake()
        return
    programs = assets()
    if programs is None:
        pytest.skip("KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")
    with real_api(programs, tmp_path) as api:
        yield Real(api)


async def run_pod(client: KubeClient, name: str, container: str, node: str = "node-a", **status: str) -> str:
    """The uid of a pod whose one container has this id."""
    ids = [{"name": "main", "containerID": f"containerd://{container}", "image": "i", "imageID": "i"}]
    states = [{**one, "ready": True, "restartCount": 0} for one in ids]
    path = "/api/v1/namespaces/team/pods"
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"nodeName": node, "containers": [{"name": "main", "image": "i"}]},
    }
    made = await client.post(path, pod, dict[str, Any])
    patch = {"status": {"phase": "Running", "containerStatuses": states, **status}}
    await client.patch(f"{path}/{name}/status", patch, dict[str, Any], content_type=MERGE)
    return str(made["metadata"]["uid"])


def test_who_holds_what_is_put_together(server: ApiServer, tmp_path: Path) -> None:
    """One pod by its claim, whose device a slice names; one by its process; an ended one by neither."""

    async def run() -> None:
        kubelet, proc, socket = Kubelet(), ProcTree(tmp_path / "proc"), tmp_path / "kubelet.sock"
        proc.path.mkdir()
        async with server.connect() as client, kubelet.on(socket):
            await client.post(
                "/api/v1/namespaces",
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}},
                dict[str, Any],
            )
            await client.post("/apis/resource.k8s.io/v1/resourceslices", SLICE, dict[str, Any])
            given = await run_pod(client, "given", A)
            taken = await run_pod(client, "taken", B)
            await run_pod(client, "ended", C, phase="Succeeded")
            elsewhere = await run_pod(client, "elsewhere", C, "node-b")
            for name in ("given", "ended"):
                kubelet.give(f"team/{name}", "main", claims="gpu.nvidia.com/node-a/gpu-0")
            for pid, uid, container in ((7, given, A), (8, taken, B), (9, elsewhere, C)):
                proc.add(pid, v2(f"/kubepods/pod{uid}/{container}"))
            followed = follow(
                client,
                "node-a",
                NullReflectorMetrics(),
                clock=time.monotonic,
                socket=socket,
                proc=proc.path,
            )
            expected = [
                ("", "", elsewhere, "Cgroup"),
                ("given", "main", given, "PodResources"),
                ("taken", "main", taken, "Cgroup"),
            ]
            async with asyncio.timeout(60), asyncio.TaskGroup() as group:
                tasks = [group.create_task(task, name=name) for name, task in followed.tasks.items()]
                found = await followed.attribution.look(READING)
                while expected != [
                    (one.pod, one.container, one.uid, one.source) for one in found.holders.get(GPU, ())
                ]:
                    # Pods and slices come when they come: there is nothing to await but time.
                    await asyncio.sleep(0.01)
                    found = await followed.attribution.look(READING)
                for task in tasks:
                    task.cancel()
            assert found.problems == (
                f"processes run in pods that the API server does not have on this node (uid {elsewhere})",
            )
            await followed.attribution.close()

    asyncio.run(run())
