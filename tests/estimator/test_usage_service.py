"""Who uses what as clients of an estimator meet it: the same as from a dump, in pages."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import grpc
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from admin.sources import DumpSource, EstimatorSource, Source
from admin.top import Chosen, top
from admin.usage import read_usage
from estimator import capacity_answering, shared_usage, usage_wire
from estimator.capacity.usage import UsageAnswer
from estimator.cluster.mirror import ClusterMirror
from estimator.cluster.users import Users
from estimator.demo.fleet import fleet
from estimator.demo.objects import as_list
from estimator.settings import ClusterSource
from estimator.shared_usage import MOST_IN_HAND
from estimator.usage_wire import answers_of, encode_pages
from fairway.accelerators.builtin import builtin_catalogue
from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.kube.member_kinds import Namespace
from fairway.kube.node_devices import Health
from fairway.names import DEFAULT_QUEUE
from fairway.usage.definitions import Finding
from fairway.usage.groups import By
from fairway.usage.measured import Measured
from fairway.usage.owner import Owner
from fairway.usage.summary import summarized
from fairway.usage.use import ClusterUsage, HoldingPod, SickDevice, Use
from sandbox.fakeapi import FakeApi
from tests.builders import node, pod
from tests.estimator.serving import (
    DEFAULTS,
    CapacityCaller,
    gpu_node,
    gpu_pod,
    live,
    running,
    snapshot,
    write_dump,
)
from tests.usage.agents import DeviceBuilder, agent, fill_in_any_order

CHOICES = [Chosen(), Chosen(idle=True), Chosen(product="h100"), Chosen(namespace="research")]


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The sample clusters as files."""
    folder, files = tmp_path_factory.mktemp("fleet"), {}
    for name, objects in fleet(datetime.now(UTC)).items():
        files[name] = folder / f"{name}.json"
        files[name].write_text(json.dumps(as_list(objects)))
    return files


async def read(*sources: Source) -> tuple[ClusterUsage, ...]:
    gathered = await read_usage(sources, builtin_catalogue(), time.time(), Console(quiet=True))
    assert gathered.failures == ()
    return gathered.found


@asynccontextmanager
async def serving(*clusters: ClusterSource, **changes: object) -> AsyncIterator[tuple[CapacityCaller, int]]:
    """A caller to a server of these, and the server's port."""
    settings = replace(DEFAULTS, clusters=clusters, **changes)  # type: ignore[arg-type]  # fields of Settings
    async with running(settings) as (port, _), grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield CapacityCaller(channel), port


def busy(file: Path, nodes: int = 1) -> Path:
    """Nodes of eight GPUs, each GPU held by a pod."""
    pods = [gpu_pod(f"p{number}", f"n{number % nodes}", 1) for number in range(8 * nodes)]
    return write_dump(file, [*(gpu_node(f"n{number}", 8) for number in range(nodes)), *pods])


def held(answer: UsageAnswer) -> int:
    return sum(use.allocated_milli for use in answer.usage.uses) // 1000


def test_an_estimator_tells_the_same_as_dumps_of_its_clusters(dumps: dict[str, Path]) -> None:
    async def scenario() -> tuple[ClusterUsage, ...]:
        async with serving(*(snapshot(name, file) for name, file in dumps.items())) as (_, port):
            return await read(EstimatorSource("", f"127.0.0.1:{port}"))

    there = asyncio.run(scenario())
    here = asyncio.run(read(*(DumpSource(name, file) for name, file in dumps.items())))
    for by in By:
        for chosen in CHOICES:
            left, right = (top(found, (), by, chosen, made_at="", release="") for found in (here, there))
            assert left == right, (by, chosen)
            assert left.lines, (by, chosen)
    assert list(map(summarized, here)) == list(map(summarized, there))


@pytest.mark.parametrize("fails", [0, 403, 404])
def test_of_a_live_cluster_it_tells_what_can_be_read(fails: int) -> None:
    async def scenario() -> UsageAnswer:
        async with FakeApi() as api:
            if fails:
                api.fail(fails, times=99, when=lambda seen: seen.path.endswith("nodedevices"))
            agents = "/apis/fairway.dev/v1alpha1/nodedevices"
            now = datetime.now(UTC).isoformat()
            device = DeviceBuilder("GPU-a").held_by("default/p0").object(0)
            api.create(agents, {"metadata": {"name": "n0"}, "observedAt": now, "devices": [device]})
            api.create("/api/v1/nodes", gpu_node("n0", 8)[1])
            api.create(
                "/api/v1/namespaces", {"metadata": {"name": "default", "labels": {DEFAULT_QUEUE: "q"}}}
            )
            for number in range(2):
                api.create("/api/v1/namespaces/default/pods", gpu_pod(f"p{number}", "n0", 1)[1])
            async with serving(live("m", api.url)) as (caller, _):
                (answer,) = await caller.usage()
                return answer

    answer = asyncio.run(scenario())
    assert {use.pod.queue for use in answer.usage.uses} == {"q"}
    assert [use.is_measured for use in answer.usage.uses] == [not fails, False]
    notes = {
        0: (),
        403: ("NodeDevices: could not be read; no device is measured",),
        404: ("NodeDevices: there are none (does the node agent run here?); no device is measured",),
    }
    assert answer.usage.notes == notes[fails]
    assert answer.doubt == ""


def test_of_what_is_gone_nothing_is_kept() -> None:
    mirror = ClusterMirror(lambda resource, key, message: None)
    labels = {"name": "team", "labels": {DEFAULT_QUEUE: "q"}}
    namespace = msgspec.convert({"metadata": labels}, Namespace)
    held = pod("p").of("team").requests(gpu=1).on("n").build()
    objects = (node("n").gpus(8).build(), held, agent("n", DeviceBuilder("d").held_by("team/p")), namespace)
    nothing = Users.of(mirror)
    fill_in_any_order(mirror, objects)
    assert Users.of(mirror) != nothing
    assert Users.of(mirror).default_queues == {"team": "q"}
    mirror.nodes.delete("n")
    mirror.pods.delete("team/p")
    mirror.node_devices.delete("n")
    mirror.admission.namespaces.delete("team")
    assert Users.of(mirror) == nothing


def test_a_cluster_that_is_not_known_does_not_hold_up_the_others(tmp_path: Path) -> None:
    file = busy(tmp_path / "m.json")

    async def scenario() -> dict[str, UsageAnswer]:
        async with FakeApi() as api:
            api.hang()
            async with serving(snapshot("z", file), live("a", api.url)) as (caller, _):
                answers = await caller.usage("a", "nowhere", "z", timeout_s=3.0)
                return {answer.usage.cluster: answer for answer in answers}

    found = asyncio.run(scenario())
    assert list(found)[-1] == "a", "the others do not wait for it"
    assert {name: held(answer) for name, answer in found.items()} == {"a": 0, "nowhere": 0, "z": 8}
    assert found["z"].doubt == ""
    assert found["nowhere"].doubt.startswith("this estimator serves a, z")
    assert "reading the list" in found["a"].doubt


def test_clients_that_go_away_or_do_not_read_cost_the_others_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # More than a connection takes for a client that does not read.
    file = busy(tmp_path / "m.json", 400)
    monkeypatch.setattr(usage_wire, "PAGE_BYTES", 4096)

    async def scenario() -> None:
        async with serving(snapshot("m", file)) as (caller, port), AsyncExitStack() as stack:
            idle = []
            for _ in range(2 * MOST_IN_HAND):
                options = [("grpc.use_local_subchannel_pool", 1)]
                channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}", options)
                call = CapacityCaller(await stack.enter_async_context(channel)).pages()
                idle.append(call)
            await asyncio.gather(*(call.read() for call in idle[:1]))
            waits = asyncio.create_task(caller.usage())
            for call in idle:
                call.cancel()
            (answer,) = await waits
            assert held(answer) == 3200

    asyncio.run(scenario())
    assert [record for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")] == []


def test_many_calls_at_once_are_answered_by_one_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_usage, "SHARED_S", 1000)
    encoded = []

    def counted(cluster: str, parts: Iterable[ClusterUsage], age_s: float, doubt: str) -> list[bytes]:
        encoded.append(cluster)
        return encode_pages(cluster, parts, age_s, doubt)

    monkeypatch.setattr(capacity_answering, "encode_pages", counted)

    async def scenario() -> None:
        async with serving(snapshot("m", busy(tmp_path / "m.json", 10))) as (caller, _):
            answers = await asyncio.gather(*(caller.usage(*(["m"] * (turn % 2))) for turn in range(100)))
            assert {(held(answer), answer.doubt) for (answer,) in answers} == {(80, "")}

    asyncio.run(scenario())
    assert encoded == ["m"]


def test_a_call_for_which_there_is_no_place_is_refused_before_its_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_usage, "MOST_IN_HAND", 0)

    async def scenario() -> None:
        async with serving(snapshot("m", busy(tmp_path / "m.json"))) as (caller, _):
            with pytest.raises(grpc.aio.AioRpcError, match=r"slow clients.*ask again later") as refused:
                await caller.usage(timeout_s=2.0)
            assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED

    asyncio.run(scenario())


def test_a_request_that_cannot_be_read_is_an_error_that_names_the_field(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(snapshot("m", busy(tmp_path / "m.json"))) as (caller, _):
            call = caller.pages(*(f"c{number}" for number in range(1001)))
            with pytest.raises(grpc.aio.AioRpcError, match="clusters: 1001 names: expected at most 1000"):
                await call.read()

    asyncio.run(scenario())


TEXT = st.text(max_size=3000)
NUMBER = st.integers(-(2**70), 2**70)
MAYBE = st.none() | NUMBER


@st.composite
def uses(draw: st.DrawFn) -> Use:
    device = None
    if draw(st.booleans()):
        texts = draw(TEXT), draw(TEXT), draw(TEXT), draw(TEXT)
        device = Measured(
            texts[0], "n", draw(NUMBER), texts[1], draw(NUMBER), texts[2], texts[3], Health.LOST, (), ()
        )  # fmt: skip
        percent = st.none() | st.integers(0, 100)
        device = msgspec.structs.replace(
            device,
            p50_percent=draw(percent),
            p95_percent=draw(percent),
            memory_peak_bytes=draw(MAYBE),
            idle_s=draw(MAYBE),
            throttled_s=draw(MAYBE),
            window_s=draw(NUMBER),
        )
    pod = HoldingPod(draw(TEXT), draw(TEXT), Owner(draw(TEXT), draw(TEXT)), draw(TEXT), "n", draw(MAYBE))
    found = draw(st.frozensets(st.sampled_from(Finding)))
    return Use(pod, draw(TEXT), draw(st.integers(0, 2**70)), draw(st.integers(0, 2**70)), device, found)


@settings(max_examples=60, deadline=None)
@given(st.lists(uses(), max_size=8), st.lists(TEXT, max_size=300), st.integers(1, 400))
def test_no_page_is_larger_than_a_client_takes_whatever_others_wrote(
    found: list[Use], notes: list[str], times: int
) -> None:
    many = tuple(use for use in found for _ in range(times))
    sick = tuple(
        SickDevice("m", "n", note, -5, note, note, tuple(notes), tuple(notes)) for note in notes[:20]
    )
    pages = encode_pages("m", [ClusterUsage("m", many, sick, tuple(notes))], 1.5, "why")
    assert max(map(len, pages)) < 2 << 20
    (answer,) = answers_of(map(pb.UsagePage.FromString, pages))
    assert (answer.age_s, answer.doubt) == (1.5, "why")
    assert len(answer.usage.uses) == len(many)
    assert len(answer.usage.sick) == len(sick)
    assert len(answer.usage.notes) == len(notes)
    assert [use.findings for use in answer.usage.uses] == [use.findings for use in many]


def test_what_a_newer_server_finds_is_passed_over() -> None:
    use = pb.DeviceUse(
        milli=1000, pieces=1, findings=["idle", "on-fire"], device=pb.MeasuredDevice(health="Odd")
    )
    (answer,) = answers_of([pb.UsagePage(cluster="m", pods=[pb.UsingPod(uses=[use])])])
    (read,) = answer.usage.uses
    assert read.findings == {Finding.IDLE}
    assert read.device is not None
    assert read.device.health is Health.DEGRADED
