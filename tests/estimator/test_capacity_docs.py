"""The page for people who write clients: its examples work, and it names whatever an answer may say."""

import asyncio
import inspect
import re
from dataclasses import replace
from pathlib import Path

import pytest
from google.protobuf import json_format
from google.protobuf.message import Message

from estimator import reasons
from estimator.capacity_requests import MAX_ASSUMED, MAX_CLUSTERS
from estimator.capacity_service import DEFAULT_WITHIN_S, MAX_WITHIN_S
from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.workloads.registry import MAX_POD_SETS
from tests.builders import node
from tests.estimator.capacity_calls import dump
from tests.estimator.serving import DEFAULTS, running, snapshot

PAGE = (Path(__file__).parents[2] / "docs" / "capacity-api.md").read_text()
REQUESTS: dict[str, type[Message]] = {
    "Place": pb.PlaceRequest,
    "Explain": pb.ExplainRequest,
    "Summary": pb.SummaryRequest,
    "Usage": pb.UsageRequest,
    "Bound": pb.BoundRequest,
    "Promise": pb.PromiseRequest,
}
KINDS = sorted(
    {
        reasons.DOUBT,
        reasons.NOT_KNOWN,
        reasons.TOPOLOGY_CONFLICT,
        *re.findall(r'Reason\(\s*"(\w+)"', inspect.getsource(reasons)),
    }
)
CALLS = re.findall(r"-d '(\{.*?\})' localhost:10352 fairway\.capacity\.v1\.Capacity/(\w+)", PAGE, re.DOTALL)


def test_the_python_client_prints_what_fits_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    tainted = [node(f"n{number}").gpus(8).taint("nvidia.com/gpu:NoSchedule") for number in range(4)]
    clusters = (
        snapshot("large", dump(tmp_path / "large.json", tainted)),
        snapshot("small", dump(tmp_path / "small.json", tainted[:1])),
    )

    async def scenario() -> None:
        async with running(replace(DEFAULTS, clusters=clusters)) as (port, _):
            here = example.replace("localhost:10352", f"127.0.0.1:{port}")
            assert here != example
            await asyncio.to_thread(exec, here, {})

    asyncio.run(scenario())
    large, small = capsys.readouterr().out.splitlines()
    assert large == "large: 2 fit, at most 2"
    assert small.startswith("small: none fits: 2 pods of 8 nvidia.com/gpu each needed at once")


def test_the_page_has_calls_of_all_kinds() -> None:
    assert {rpc for _, rpc in CALLS} == set(REQUESTS)


@pytest.mark.parametrize(("body", "rpc"), CALLS)
def test_a_call_on_the_page_is_a_request(body: str, rpc: str) -> None:
    filled = re.sub(r"'\$\(base64 -w0 \w+\.json\)'", "e30=", body)
    json_format.Parse(filled, REQUESTS[rpc]())


def test_the_page_is_compared_with_all_kinds() -> None:
    assert len(KINDS) == 38


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_has_every_kind_of_reason(kind: str) -> None:
    assert f"`{kind}`" in PAGE


@pytest.mark.parametrize(
    "message",
    [
        pb.PlaceRequest,
        pb.ExplainRequest,
        pb.PromiseRequest,
        pb.Promised,
        pb.Gang,
        pb.PodSet,
        pb.Topology,
        pb.ClusterPlacement,
    ],
)
def test_the_page_has_every_field_of_requests_and_verdicts(message: type[Message]) -> None:
    told = re.findall(r"`(?:pod_sets\[\]\.)?(\w+)(?:\[\])?`", PAGE)
    assert [name for name in message.DESCRIPTOR.fields_by_name if name not in told] == []


def test_the_page_states_the_limits() -> None:
    for limit in (f"{MAX_ASSUMED:,}", f"{MAX_CLUSTERS:,}", f"{MAX_POD_SETS} |", "16 MiB", "2 MiB"):
        assert f"| {limit}" in PAGE
    assert f"{MAX_WITHIN_S:.0f} s at most, and without one for {DEFAULT_WITHIN_S:.0f} s" in PAGE
