"""Requests that are broken, huge or hostile: each gets an answer, and nobody else notices."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.capacity.doubt import NO_OPINION
from estimator.capacity.request import Question
from estimator.feature_gates import Gates
from estimator.pb import estimator_pb2 as pb
from estimator.server import MAX_REQUEST_BYTES
from estimator.wire import WireError, decode_replicas, decode_sets, decode_unschedulable
from tests.builders import requirements
from tests.estimator.serving import Caller, estimator, gpu_node, replicas_request, snapshot, write_dump

RPCS = ("MaxAvailableReplicas", "MaxAvailableComponentSets", "GetUnschedulableReplicas")
ONE_GPU = {"nvidia.com/gpu": "1"}


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    return write_dump(tmp_path / "m.json", [gpu_node(f"n{number}", 8) for number in range(50)])


async def assert_untouched(caller: Caller) -> None:
    assert (await caller.replicas(replicas_request("m", ONE_GPU))).value == 400


def valid(rpc: str) -> bytes:
    match rpc:
        case "MaxAvailableReplicas":
            return replicas_request("m", {"cpu": "1", **ONE_GPU}).SerializeToString()
        case "MaxAvailableComponentSets":
            request = pb.MaxAvailableComponentSetsRequest(cluster="m", namespace="d")
            request.components.add(name="c", replicas=2, replica_requirements=requirements(cpu="1", gpu=1))
            return request.SerializeToString()
        case _:
            resource = pb.ObjectReference(api_version="apps/v1", kind="Deployment", namespace="d", name="web")
            return pb.UnschedulableReplicasRequest(cluster="m", resource=resource).SerializeToString()


@pytest.mark.parametrize("rpc", RPCS)
def test_truncated_protobuf_is_answered(dump: Path, rpc: str) -> None:
    data = valid(rpc)

    async def scenario() -> None:
        async with estimator(snapshot("m", dump)) as caller:
            for length in range(len(data)):
                await caller.raw(rpc, data[:length])
            await assert_untouched(caller)

    asyncio.run(scenario())


@pytest.mark.parametrize("rpc", RPCS)
def test_noise_is_answered_with_no_opinion(dump: Path, rpc: str) -> None:
    async def scenario() -> None:
        async with estimator(snapshot("m", dump)) as caller:
            _, trailing = await caller.raw(rpc, b"\xff\xfe\xfd" * 50, explain=True)
            assert "malformed" in trailing["fairway-reasons"]
            await assert_untouched(caller)

    asyncio.run(scenario())


def is_read_or_refused_clearly(rpc: str, data: bytes) -> bool:
    decode: dict[str, Callable[[], Question]] = {
        "MaxAvailableReplicas": lambda: decode_replicas(data, None),
        "MaxAvailableComponentSets": lambda: decode_sets(data, None),
        "GetUnschedulableReplicas": lambda: decode_unschedulable(data),
    }
    try:
        decode[rpc]()
    except WireError as error:
        return str(error) != ""
    return True


@given(st.binary(max_size=300), st.sampled_from(RPCS))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_any_bytes_are_either_a_question_or_an_error_with_a_message(data: bytes, rpc: str) -> None:
    assert is_read_or_refused_clearly(rpc, data)


@given(st.data(), st.sampled_from(RPCS))
@settings(max_examples=300, deadline=None, derandomize=True)
def test_a_valid_request_with_some_bytes_changed_is_a_question_or_an_error(
    draw: st.DataObject, rpc: str
) -> None:
    data = bytearray(valid(rpc))
    for _ in range(draw.draw(st.integers(1, 4))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    assert is_read_or_refused_clearly(rpc, bytes(data))


def test_a_garbage_quantity_keeps_a_cluster_out_of_gpu_work_only(dump: Path) -> None:
    async def scenario() -> None:
        async with estimator(snapshot("m", dump)) as caller:
            reply = await caller.replicas(replicas_request("m", {"nvidia.com/gpu": "one"}))
            assert reply.value == 0
            assert (
                "resourceRequestBytes[nvidia.com/gpu]: 'one' is not a Kubernetes quantity" in reply.reasons[0]
            )
            assert (await caller.replicas(replicas_request("m", {"cpu": "1 core"}))).value == NO_OPINION
            await assert_untouched(caller)

    asyncio.run(scenario())


def test_a_request_of_ten_megabytes_is_answered_and_blocks_nobody(dump: Path) -> None:
    request = pb.MaxAvailableComponentSetsRequest(cluster="m")
    for number in range(9000):
        wants = requirements(gpu=1, cpu=f"{number % 977 + 1}m", selector={f"key-{number}": "v" * 1000})
        request.components.add(name=f"c{number}", replicas=1, replica_requirements=wants)
    data = request.SerializeToString()
    assert 9_000_000 < len(data) < MAX_REQUEST_BYTES

    async def scenario() -> None:
        async with estimator(snapshot("m", dump)) as caller:
            big = asyncio.create_task(caller.raw("MaxAvailableComponentSets", data, timeout_s=30))
            served = 0
            while not big.done():
                await assert_untouched(caller)
                served += 1
            answer, _ = await big
            assert pb.MaxAvailableComponentSetsResponse.FromString(answer).max_sets == 0
            assert served > 1

    asyncio.run(scenario())


def test_ten_thousand_components_are_answered_within_the_deadline(dump: Path) -> None:
    request = pb.MaxAvailableComponentSetsRequest(cluster="m")
    for number in range(10_000):
        wants = requirements(cpu=f"{number + 1}m")
        request.components.add(name=f"c{number}", replicas=1, replica_requirements=wants)

    async def scenario() -> int:
        async with estimator(snapshot("m", dump)) as caller:
            answer, _ = await caller.raw(
                "MaxAvailableComponentSets", request.SerializeToString(), timeout_s=6
            )
            await assert_untouched(caller)
            return pb.MaxAvailableComponentSetsResponse.FromString(answer).max_sets

    # 50 nodes of 110 pods hold 5,500 pods.
    assert asyncio.run(scenario()) == 0


def test_a_request_above_the_size_limit_is_refused_alone(dump: Path) -> None:
    async def scenario() -> None:
        async with estimator(snapshot("m", dump)) as caller:
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await caller.raw("MaxAvailableReplicas", b"\x00" * (MAX_REQUEST_BYTES + 1))
            assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            await assert_untouched(caller)

    asyncio.run(scenario())


@pytest.mark.parametrize("replicas", [0, -1, -(2**31)])
def test_sets_without_pods_fit_without_limit_and_without_a_loop(dump: Path, replicas: int) -> None:
    request = pb.MaxAvailableComponentSetsRequest(cluster="m")
    request.components.add(name="c", replicas=replicas, replica_requirements=requirements(gpu=1))

    async def scenario() -> int:
        async with estimator(snapshot("m", dump)) as caller:
            return (await caller.sets(request)).value

    assert asyncio.run(scenario()) == 2**31 - 2


def test_two_billion_replicas_do_not_fit(dump: Path) -> None:
    request = pb.MaxAvailableComponentSetsRequest(cluster="m")
    request.components.add(name="c", replicas=2**31 - 1, replica_requirements=requirements(gpu=1))

    async def scenario() -> int:
        async with estimator(snapshot("m", dump)) as caller:
            return (await caller.sets(request)).value

    assert asyncio.run(scenario()) == 0


@pytest.mark.parametrize(
    "name", ["../../x", "x" * 1_000_000, "", "nvidia.com/" + "g" * 100, "requests.nvidia.com/gpu"]
)
def test_a_resource_name_that_is_none_is_ignored_as_kube_scheduler_does(dump: Path, name: str) -> None:
    async def scenario() -> None:
        async with estimator(snapshot("m", dump)) as caller:
            assert (await caller.replicas(replicas_request("m", {name: "1", **ONE_GPU}))).value == 400

    asyncio.run(scenario())


def test_callers_that_hang_up_leave_the_server_as_it_was(dump: Path) -> None:
    data = valid("MaxAvailableComponentSets")

    async def scenario() -> None:
        async with estimator(snapshot("m", dump)) as caller:
            for _ in range(50):
                call = asyncio.create_task(caller.raw("MaxAvailableComponentSets", data))
                await asyncio.sleep(0)
                call.cancel()
            await assert_untouched(caller)

    asyncio.run(scenario())


def test_more_assumed_workloads_than_can_be_are_refused_clearly(dump: Path) -> None:
    request = replicas_request("m", ONE_GPU)
    for _ in range(20_001):
        request.assumed_workloads.add()

    async def scenario() -> None:
        async with estimator(snapshot("m", dump)) as caller:
            reply = await caller.replicas(request)
            assert reply.value == 0
            assert "assumedWorkloads: more than 20000" in reply.reasons[0]
            await assert_untouched(caller)

    asyncio.run(scenario())


def test_thousands_of_assumed_workloads_block_nobody(dump: Path) -> None:
    request = replicas_request("m", ONE_GPU)
    for number in range(10_000):
        workload = request.assumed_workloads.add(namespace="d")
        workload.components.add(name=f"w{number}", replicas=1, replica_requirements=requirements(cpu="1m"))
    gates = Gates(scheduling_overcommit_protection=True)

    async def scenario() -> None:
        async with estimator(snapshot("m", dump), gates=gates) as caller:
            many = asyncio.create_task(caller.replicas(request, timeout_s=30))
            served = 0
            while not many.done():
                await assert_untouched(caller)
                served += 1
            # 5,500 pods fit in all, so nothing is left.
            assert (await many).value == 0
            assert served > 1

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "text", ["\x7f", "\x00\n\r\t", "\u00fc\u20ac\U0001f600", '"\\', "x" * 20_000, "\x7f" * 20_000]
)
def test_reasons_that_quote_any_text_are_valid_metadata(dump: Path, text: str) -> None:
    async def scenario() -> None:
        async with estimator(snapshot("m", dump)) as caller:
            reply = await caller.replicas(replicas_request("m", {"cpu": text}))
            assert "is not a Kubernetes quantity" in reply.reasons[0]
            reply = await caller.replicas(replicas_request(text, ONE_GPU))
            assert "unknown_cluster" in reply.reasons[0]

    asyncio.run(scenario())
