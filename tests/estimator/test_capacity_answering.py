"""Fairway's own questions beside Karmada's: who waits for whom, who gets how much time, what is counted."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path
from types import MethodType
from typing import Generic, ParamSpec, TypeVar

import grpc
import pytest
from prometheus_client import CollectorRegistry

from estimator import capacity_answering
from estimator.capacity.answer import Answer, exactly
from estimator.capacity.budget import Budget, Expired
from estimator.capacity.gangs import placing
from estimator.capacity.gangs.gang_replicas import Topology
from estimator.capacity.gangs.placements import ClusterPlacement, Placed
from estimator.capacity.request import GangQuestion
from estimator.capacity.room import Around, Room
from estimator.capacity.survey import survey as surveying
from estimator.capacity_answering import CapacityAnswering
from estimator.capacity_requests import CapacityQuestion, read_place
from estimator.cluster.freshness import Freshness
from estimator.cluster.quotas import Quota
from estimator.member import MemberCluster
from estimator.member_kinds import MEMBER_KINDS
from estimator.pb import estimator_pb2
from fairway.accelerators.builtin import builtin_catalogue
from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.service.certificates import TlsFiles
from tests.builders import cluster, node, requirements
from tests.certs import Authority
from tests.estimator.capacity_calls import place, workers
from tests.estimator.serving import (
    DEFAULTS,
    CapacityCaller,
    estimator,
    gpu_node,
    replicas_request,
    running,
    snapshot,
    write_dump,
)

ONE_GPU = {"nvidia.com/gpu": "1"}
WAIT_S = 20


P = ParamSpec("P")
T = TypeVar("T")


class Gate(Generic[P, T]):
    """Stands in for a piece of work that takes as long as the test likes."""

    def __init__(self, real: Callable[P, T]) -> None:
        self._real = real
        self._open = threading.Event()
        self._lock = threading.Lock()
        self._inside = 0
        self.entered = threading.Event()
        self.most_inside = 0

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> T:
        with self._lock:
            self._inside += 1
            self.most_inside = max(self.most_inside, self._inside)
        self.entered.set()
        assert self._open.wait(WAIT_S)
        with self._lock:
            self._inside -= 1
        return self._real(*arguments, **named)

    def open(self) -> None:
        self._open.set()


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    return write_dump(tmp_path / "m.json", [gpu_node(f"n{number}", 8) for number in range(400)])


def large_sets() -> estimator_pb2.MaxAvailableComponentSetsRequest:
    """More work than Karmada's service does on the event loop."""
    request = estimator_pb2.MaxAvailableComponentSetsRequest(cluster="m")
    for number in range(64):
        wants = requirements(cpu=f"{number + 1}00m", gpu=1 + number % 2)
        request.components.add(name=f"c{number}", replicas=1, replica_requirements=wants)
    return request


def large_request() -> estimator_pb2.MaxAvailableReplicasRequest:
    """More bytes than Karmada's service decodes on the event loop."""
    request = replicas_request("m", ONE_GPU)
    request.replica_requirements.namespace = "n" * (200 << 10)
    return request


def test_storms_of_long_questions_hold_up_neither_karmada_nor_what_is_quick(
    nodes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search, survey = Gate(placing.place), Gate(surveying.survey)
    monkeypatch.setattr(capacity_answering, "place", search)
    monkeypatch.setattr(capacity_answering, "survey", survey)
    wanted = pb.PlaceRequest(gang=workers(1, gpu=1)).SerializeToString()

    async def scenario() -> None:
        async with estimator(snapshot("m", nodes)) as caller:
            own = CapacityCaller(caller.channel)
            calls = [own.call(rpc, wanted) for _ in range(8) for rpc in ("Place", "Explain")]
            calls += [own.call("Summary", b"") for _ in range(8)]
            assert await asyncio.to_thread(search.entered.wait, WAIT_S)
            assert await asyncio.to_thread(survey.entered.wait, WAIT_S)
            for _ in range(10):
                assert (await caller.replicas(replicas_request("m", ONE_GPU))).value == 3200
                assert (await caller.sets(large_sets())).value == 33
                assert (await caller.replicas(large_request())).value == 3200
                assert await own.call("Place", b"\xff").code() is grpc.StatusCode.INVALID_ARGUMENT
            assert not any(call.done() for call in calls)
            search.open()
            survey.open()
            assert {await call.code() for call in calls} == {grpc.StatusCode.OK}

    asyncio.run(scenario())
    assert (search.most_inside, survey.most_inside) == (1, 1)


def test_a_summary_does_not_wait_for_a_search(nodes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    search = Gate(placing.place)
    monkeypatch.setattr(capacity_answering, "place", search)

    async def scenario() -> None:
        async with estimator(snapshot("m", nodes)) as caller:
            own = CapacityCaller(caller.channel)
            call = own.call("Place", pb.PlaceRequest(gang=workers(1, gpu=1)).SerializeToString())
            assert await asyncio.to_thread(search.entered.wait, WAIT_S)
            (found,) = await own.summary()
            assert found.products[0].free == 3200
            assert not call.done()
            search.open()
            await call

    asyncio.run(scenario())


@pytest.mark.parametrize("how", ["cancelled", "late"])
def test_a_search_ends_once_nobody_waits_for_it(
    nodes: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    entered, ended = threading.Event(), threading.Event()
    forever = threading.Event()

    def endless(
        room: Room, question: GangQuestion, topology: Topology, expired: Expired, *_: object, placements: int
    ) -> Placed:
        entered.set()
        while not expired():
            forever.wait(0.001)
        ended.set()
        return Placed(Answer(0, 5, False))

    monkeypatch.setattr(capacity_answering, "place", endless)

    async def scenario() -> None:
        async with estimator(snapshot("m", nodes)) as caller:
            own = CapacityCaller(caller.channel)
            data = pb.PlaceRequest(gang=workers(1, gpu=1)).SerializeToString()
            # The server would go on for half a minute.
            call = own.call("Place", data, timeout_s=3600 if how == "cancelled" else 1)
            assert await asyncio.to_thread(entered.wait, WAIT_S)
            if how == "cancelled":
                call.cancel()
            assert await asyncio.to_thread(ended.wait, 10)

    asyncio.run(scenario())


class Inline(Executor):
    """Does the work at once, on the thread that asks for it."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        done: Future[T] = Future()
        done.set_result(fn(*args, **kwargs))
        return done


class Clock:
    """Stands still but for what a search takes."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


FRESH = Freshness(synced=True, lost_s=None, recovering=False, detail="")


def member(name: str, clock: Clock) -> MemberCluster:
    known = MemberCluster(name, cluster(node("a").gpus(8)), clock)
    known.mirror.admission.limit_ranges.synced = True
    for kind in MEMBER_KINDS:
        known.watch(kind.name, lambda: FRESH)
    return known


Shares = list[tuple[float, float]]
"""The time for the search, and for the whole answer, that each cluster got."""


def shared(
    monkeypatch: pytest.MonkeyPatch, took_s: float, clusters: str, within_s: float, search_ms: int = 0
) -> tuple[Shares, list[ClusterPlacement]]:
    """What each of the clusters, named by a letter, got of the call's time if a search takes so long."""
    clock = Clock()
    shares: Shares = []

    def timed(
        room: Room,
        question: GangQuestion,
        topology: Topology,
        expired: Expired,
        search: Budget,
        quotas: tuple[Quota, ...],
        *,
        placements: int,
    ) -> Placed:
        at_s = clock.now_s
        for_all_s = next(s for s in (n / 8 for n in range(1000)) if _expired_at(clock, expired, at_s + s))
        clock.now_s = at_s
        shares.append((round(search.left_s(), 3), for_all_s))
        clock.now_s += took_s
        return Placed(exactly(1))

    monkeypatch.setattr(capacity_answering, "place", timed)
    request = pb.PlaceRequest(clusters=list(clusters), gang=workers(1, gpu=1), search_ms=search_ms)
    question: CapacityQuestion = read_place(request)

    async def scenario() -> list[ClusterPlacement]:
        members = [member(name, clock) for name in dict.fromkeys(clusters)]
        answering = CapacityAnswering(
            members, builtin_catalogue(), 120.0, Inline(), heeds_quotas=False, clock=clock
        )
        return await answering.place(question, within_s)

    return shares, asyncio.run(scenario())


def _expired_at(clock: Clock, expired: Expired, at_s: float) -> bool:
    clock.now_s = at_s
    return expired()


@pytest.mark.parametrize(
    ("took_s", "clusters", "within_s", "search_ms", "expected"),
    [
        pytest.param(
            0.0, "a", 8.0, 0, [(0.25, 8.0)], id="all of it for one, a quarter of a second to search"
        ),
        pytest.param(0.0, "a", 8.0, 5000, [(5.0, 8.0)], id="a longer search if one is asked for"),
        pytest.param(0.0, "a", 8.0, 60_000, [(7.95, 8.0)], id="no longer than the call"),
        pytest.param(
            0.0, "abcd", 8.0, 60_000, [(1.95, 2.0), (2.617, 2.75), (3.95, 4.0), (7.95, 8.0)], id="x"
        ),
        pytest.param(2.0, "abcd", 8.0, 60_000, [(1.95, 2.0)] * 4, id="an even share for each"),
        pytest.param(4.0, "ab", 4.0, 0, [(0.25, 2.0)], id="nothing is left once the time is up"),
    ],
)
def test_the_time_of_a_call_is_shared_out_to_its_clusters(
    monkeypatch: pytest.MonkeyPatch,
    took_s: float,
    clusters: str,
    within_s: float,
    search_ms: int,
    expected: Shares,
) -> None:
    shares, found = shared(monkeypatch, took_s, clusters, within_s, search_ms)
    assert shares == expected
    assert [one.cluster for one in found] == list(clusters)
    assert [one.fits for one in found] == [1] * len(shares) + [0] * (len(clusters) - len(shares))


def test_a_cluster_whose_turn_comes_too_late_is_in_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    _, (first, second) = shared(monkeypatch, 4.0, "ab", 4.0)
    assert (first.fits, first.reasons) == (1, ())
    (doubt,) = second.reasons
    assert (second.fits, second.proven, doubt.kind) == (0, False, "doubt")
    assert doubt.text.startswith("in doubt (late): the time for the answer was up")


def test_calls_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that asks about many clusters does not make another wait for all of them."""
    clock = Clock()
    asked: list[str] = []
    members = [member(name, clock) for name in "abcdef"]

    def noted(known: MemberCluster, around: Around) -> Room:
        asked.append(known.name)
        return Room(known.mirror.columns.copy(), known._eligible, around)

    for one in members:
        monkeypatch.setattr(one, "snapshot", MethodType(noted, one))

    async def scenario() -> None:
        answering = CapacityAnswering(
            members, builtin_catalogue(), 120.0, Inline(), heeds_quotas=False, clock=clock
        )
        every = read_place(pb.PlaceRequest(clusters=list("abcde"), gang=workers(1, gpu=1)))
        one = read_place(pb.PlaceRequest(clusters=["f"], gang=workers(1, gpu=1)))
        await asyncio.gather(answering.place(every, 10.0), answering.place(one, 10.0))

    asyncio.run(scenario())
    assert sorted(asked) == list("abcdef")
    assert asked.index("f") <= 2


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> CollectorRegistry:
    """The metrics of the server that the test starts."""
    mine = CollectorRegistry()
    monkeypatch.setattr("fairway.service.program.CollectorRegistry", lambda: mine)
    return mine


def test_calls_are_counted_by_how_they_ended(nodes: Path, registry: CollectorRegistry) -> None:
    async def scenario() -> None:
        async with estimator(snapshot("m", nodes)) as caller:
            own = CapacityCaller(caller.channel)
            for _ in range(3):
                await place(own, workers(1, gpu=1))
            await own.explain(pb.ExplainRequest(gang=workers(1, gpu=1)))
            await own.summary()
            await own.usage()
            for rpc in ("Place", "Place", "Explain", "Summary"):
                assert await own.call(rpc, b"\xff").code() is grpc.StatusCode.INVALID_ARGUMENT
            assert await own.pages(*map(str, range(1001))).code() is grpc.StatusCode.INVALID_ARGUMENT

    asyncio.run(scenario())
    counted = {
        (rpc, result): registry.get_sample_value(
            "fairway_capacity_request_duration_seconds_count", {"rpc": rpc, "result": result}
        )
        for rpc in ("Place", "Explain", "Summary", "Usage")
        for result in ("success", "error")
    }
    assert counted == {
        ("Place", "success"): 3,
        ("Place", "error"): 2,
        ("Explain", "success"): 1,
        ("Explain", "error"): 1,
        ("Summary", "success"): 1,
        ("Summary", "error"): 1,
        ("Usage", "success"): 1,
        ("Usage", "error"): 1,
    }


def test_only_the_right_client_is_answered_over_mutual_tls(nodes: Path, tmp_path: Path) -> None:
    ours, theirs = Authority("ours"), Authority("theirs")
    certificate, key = ours.issue("server").write(tmp_path, "server")
    client_ca = tmp_path / "ca.crt"
    client_ca.write_bytes(ours.pem)
    tls = TlsFiles(certificate, key, client_ca, True)
    settings = replace(DEFAULTS, clusters=(snapshot("m", nodes),), tls=tls)

    async def ask(port: int, authority: Authority | None) -> int:
        client = authority.issue("client") if authority else None
        credentials = grpc.ssl_channel_credentials(
            ours.pem, client.key if client else None, client.certificate if client else None
        )
        options = [("grpc.use_local_subchannel_pool", 1)]
        async with grpc.aio.secure_channel(f"localhost:{port}", credentials, options) as channel:
            return (await place(CapacityCaller(channel), workers(1, gpu=1))).fits

    async def scenario() -> None:
        async with running(settings) as (port, _):
            assert await ask(port, ours) == 3200
            for intruder in (None, theirs):
                with pytest.raises(grpc.aio.AioRpcError) as refused:
                    await ask(port, intruder)
                assert refused.value.code() is grpc.StatusCode.UNAVAILABLE

    asyncio.run(scenario())
