"""kubelet's PodResources API over a real socket: what it says, and all the ways in which it does not."""

import asyncio
import os
import socket as sockets
from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc
import pytest

from node_agent.allocations import Allocation, ClaimedDevice, PluginDevice
from node_agent.pb import podresources_pb2 as pb
from node_agent.pod_resources import Failure, PodResources, PodResourcesError
from tests.node_agent.kubelet import Kubelet

GPU = "nvidia.com/gpu"


@pytest.fixture
def socket(tmp_path: Path) -> Path:
    return tmp_path / "kubelet.sock"


def asking(path: Path, ask: Callable[[PodResources], Awaitable[None]], timeout_s: float = 20.0) -> None:
    async def run() -> None:
        client = PodResources(path, timeout_s=timeout_s)
        try:
            await ask(client)
        finally:
            await client.close()

    asyncio.run(run())


async def failure(client: PodResources) -> PodResourcesError:
    with pytest.raises(PodResourcesError) as caught:
        await client.list()
    return caught.value


def test_what_containers_were_given(socket: Path) -> None:
    kubelet = Kubelet()
    kubelet.give("team/train-0", "main", "GPU-1", "GPU-2")
    kubelet.give("team/train-0", "sidecar")
    kubelet.give("team/train-0", "other", "MIG-3", resource="nvidia.com/mig-1g.10gb")
    kubelet.give("team/claims", "main", claims="gpu.nvidia.com/node-a/gpu-0")
    kubelet.give("kube-system/plain", "main")

    async def ask(client: PodResources) -> None:
        async with kubelet.on(socket):
            assert await client.list() == (
                Allocation(
                    "team", "train-0", "main", (PluginDevice(GPU, "GPU-1"), PluginDevice(GPU, "GPU-2"))
                ),
                Allocation("team", "train-0", "other", (PluginDevice("nvidia.com/mig-1g.10gb", "MIG-3"),)),
                Allocation(
                    "team", "claims", "main", (), (ClaimedDevice("gpu.nvidia.com", "node-a", "gpu-0"),)
                ),
            )

    asking(socket, ask)


def test_a_device_that_is_near_two_numa_nodes_was_given_once(socket: Path) -> None:
    kubelet = Kubelet()
    kubelet.give("team/train-0", "main", "GPU-1::0")
    (pod,) = kubelet.pods.pod_resources
    pod.containers[0].devices.add(resource_name=GPU, device_ids=["GPU-1::0"])

    async def ask(client: PodResources) -> None:
        async with kubelet.on(socket):
            (found,) = await client.list()
            assert found.devices == (PluginDevice(GPU, "GPU-1::0"),)

    asking(socket, ask)


def test_what_there_is_to_be_given(socket: Path) -> None:
    kubelet = Kubelet()
    kubelet.allocatable.devices.add(resource_name=GPU, device_ids=["GPU-1", "GPU-2"])

    async def ask(client: PodResources) -> None:
        async with kubelet.on(socket):
            assert await client.allocatable() == (PluginDevice(GPU, "GPU-1"), PluginDevice(GPU, "GPU-2"))

    asking(socket, ask)


def test_the_wire_is_that_of_kubernetes(socket: Path) -> None:
    """Bytes with every field that k8s.io/kubelet has, by its numbers: those that are left out are skipped."""
    numa = b"\x0a\x02\x08\x01"
    devices = b"\x0a\x01r" + b"\x12\x01d" + b"\x1a\x04" + numa
    claimed = b"\x0a\x03\x0a\x01c" + b"\x12\x01v" + b"\x1a\x01p" + b"\x22\x01n" + b"\x2a\x01s"
    dynamic = b"\x12\x01c" + b"\x1a\x01n" + b"\x22" + bytes([len(claimed)]) + claimed
    memory = b"\x0a\x01m\x10\x07\x1a\x04" + numa
    container = b"\x0a\x01c\x12" + bytes([len(devices)]) + devices + b"\x1a\x02\x01\x02"
    container += b"\x22" + bytes([len(memory)]) + memory + b"\x2a" + bytes([len(dynamic)]) + dynamic
    pod = b"\x0a\x01p\x12\x01n\x1a" + bytes([len(container)]) + container + b"\x22\x01\x03"
    kubelet = Kubelet()
    kubelet.raw = b"\x0a" + bytes([len(pod)]) + pod

    async def ask(client: PodResources) -> None:
        async with kubelet.on(socket):
            expected = Allocation("n", "p", "c", (PluginDevice("r", "d"),), (ClaimedDevice("v", "p", "n"),))
            assert await client.list() == (expected,)

    asking(socket, ask)


def test_ten_thousand_pods(socket: Path) -> None:
    kubelet = Kubelet()
    uid = "GPU-6f0d5d1c-3a52-4c1e-9d80-7a1f3f7c2b11"
    for number in range(10_000):
        pod = kubelet.pods.pod_resources.add(namespace="team", name=f"train-{number}")
        pod.containers.add(name="main").devices.add(
            resource_name=GPU, device_ids=[f"{uid}::{share}" for share in range(8)]
        )

    async def ask(client: PodResources) -> None:
        async with kubelet.on(socket):
            found = await client.list()
            assert len(found) == 10_000
            assert found[-1].pod == "train-9999"

    asking(socket, ask)


@pytest.mark.parametrize(
    ("refusal", "expected", "says"),
    [
        (
            (grpc.StatusCode.RESOURCE_EXHAUSTED, "rejected by rate limit"),
            Failure.LIMITED,
            "100 requests a second",
        ),
        ((grpc.StatusCode.UNIMPLEMENTED, "unknown method"), Failure.UNSUPPORTED, "1.20 or newer"),
        (
            (grpc.StatusCode.UNKNOWN, "Pod Resources API GetAllocatableResources disabled"),
            Failure.UNSUPPORTED,
            "disabled",
        ),
        ((grpc.StatusCode.UNAVAILABLE, "connect: Permission denied (13)"), Failure.DENIED, "run as root"),
        ((grpc.StatusCode.INTERNAL, "x" * 5000), Failure.BROKEN, "xxx)"),
    ],
)
def test_kubelet_refuses_and_is_asked_again(
    socket: Path, refusal: tuple[grpc.StatusCode, str], expected: Failure, says: str
) -> None:
    kubelet = Kubelet()
    kubelet.refuses = refusal

    async def ask(client: PodResources) -> None:
        async with kubelet.on(socket):
            error = await failure(client)
            assert (error.failure, kubelet.asked) == (expected, 1)
            assert says in str(error)
            assert str(socket) in str(error)
            assert len(str(error)) < 500 + len(str(socket))
            kubelet.refuses = None
            assert await client.list() == ()

    asking(socket, ask)


def test_another_service_on_the_socket(socket: Path) -> None:
    async def ask(client: PodResources) -> None:
        async with Kubelet().on(socket, "v1alpha1.PodResourcesLister"):
            assert (await failure(client)).failure is Failure.UNSUPPORTED

    asking(socket, ask)


def test_an_answer_that_is_no_message(socket: Path) -> None:
    kubelet = Kubelet()
    kubelet.raw = b"\xff\xff\xff"

    async def ask(client: PodResources) -> None:
        async with kubelet.on(socket):
            assert (await failure(client)).failure is Failure.BROKEN

    asking(socket, ask)


def test_an_answer_that_is_too_large(socket: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubelet = Kubelet()
    kubelet.raw = pb.ListPodResourcesResponse(
        pod_resources=[pb.PodResources(name="x" * 17 * 2**20)]
    ).SerializeToString()

    async def ask(client: PodResources) -> None:
        async with kubelet.on(socket):
            error = await failure(client)
            assert error.failure is Failure.TOO_LARGE
            assert "16 MiB" in str(error)

    asking(socket, ask)


def test_an_answer_that_does_not_come(socket: Path) -> None:
    kubelet = Kubelet()
    kubelet.hangs = True

    async def ask(client: PodResources) -> None:
        async with kubelet.on(socket):
            assert (await failure(client)).failure is Failure.SLOW

    asking(socket, ask, timeout_s=0.2)


def test_no_socket_then_a_kubelet_that_comes_goes_and_comes_again(socket: Path) -> None:
    kubelet = Kubelet()
    kubelet.give("team/a", "main", "GPU-1")

    async def ask(client: PodResources) -> None:
        assert (await failure(client)).failure is Failure.GONE
        for _ in range(2):
            async with kubelet.on(socket):
                assert len(await client.list()) == 1
            assert (await failure(client)).failure is Failure.GONE

    asking(socket, ask)


def test_a_socket_on_which_nobody_listens_any_more(socket: Path) -> None:
    """As a kubelet that was killed leaves it."""
    with sockets.socket(sockets.AF_UNIX) as left:
        left.bind(str(socket))
    kubelet = Kubelet()

    async def ask(client: PodResources) -> None:
        for _ in range(3):
            error = await failure(client)
            assert error.failure is Failure.UNREACHABLE
            assert "starts just now" in str(error)
        os.unlink(socket)
        async with kubelet.on(socket):
            assert await client.list() == (), "at once, whatever failed before"

    asking(socket, ask)
