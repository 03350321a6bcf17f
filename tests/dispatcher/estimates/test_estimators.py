"""Questions to estimators over real gRPC, with canned answers."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.service.certificates import TlsError
from queue_dispatcher.bindings.binding import WorkloadReference
from queue_dispatcher.cache.leaving import Departure
from queue_dispatcher.cycle.earliest import Earliest
from queue_dispatcher.cycle.witness import LEFT_ALONE, Witness
from queue_dispatcher.estimates.cluster_room import ClusterRoom
from queue_dispatcher.estimates.estimators import SERVICE, Estimators
from queue_dispatcher.estimates.placements import room_of
from queue_dispatcher.estimates.promise_requests import name_of
from queue_dispatcher.settings import EstimatorSettings, EstimatorTls
from tests.certs import Authority

if TYPE_CHECKING:
    Context = grpc.aio.ServicerContext[bytes, bytes]

GANG = pb.Gang(pod_sets=[pb.PodSet(name="worker", count=2, template_json=b"{}")])


@dataclass
class Canned:
    """An estimator of these clusters: how many fit, and the reasons."""

    fits: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    asked: list[pb.PlaceRequest] = field(default_factory=list)
    address: str = ""
    fails: grpc.StatusCode | None = None
    garbage: bytes = b""
    promised: list[pb.PromiseRequest] = field(default_factory=list)

    async def promise(self, data: bytes, context: "Context") -> bytes:
        """One pod of each workload has a node."""
        self.promised.append(pb.PromiseRequest.FromString(data))
        if self.fails is not None:
            await context.abort(self.fails, "so it was scripted")
        if self.garbage:
            return self.garbage
        return pb.PromiseResponse(
            clusters=[
                pb.ClusterBound(
                    cluster=of.cluster, workloads=[pb.WorkloadPods(known=True, bound=1) for _ in of.promised]
                )
                for of in self.promised[-1].clusters
            ]
        ).SerializeToString()

    async def place(self, data: bytes, context: "Context") -> bytes:
        request = pb.PlaceRequest.FromString(data)
        self.asked.append(request)
        if self.fails is not None:
            await context.abort(self.fails, "so it was scripted")
        if self.garbage:
            return self.garbage
        return pb.PlaceResponse(
            clusters=[
                pb.ClusterPlacement(
                    cluster=cluster,
                    fits=self.fits[cluster],
                    reasons=[pb.Reason(kind=kind, text=text) for kind, text in self.reasons.get(cluster, [])],
                )
                for cluster in request.clusters
                if cluster in self.fits
            ]
        ).SerializeToString()

    async def bound(self, data: bytes, context: "Context") -> bytes:
        """One pod of each workload, but for those of a kind that nobody knows."""
        if self.fails is not None:
            await context.abort(self.fails, "so it was scripted")
        if self.garbage:
            return self.garbage
        return pb.BoundResponse(
            clusters=[
                pb.ClusterBound(
                    cluster=of.cluster,
                    workloads=[pb.WorkloadPods(known=one.kind == "Job", bound=1) for one in of.workloads],
                )
                if of.cluster in self.fits
                else pb.ClusterBound(cluster=of.cluster, doubt="not read yet")
                for of in pb.BoundRequest.FromString(data).clusters
            ]
        ).SerializeToString()


@asynccontextmanager
async def serving(
    estimator: Canned, credentials: grpc.ServerCredentials | None = None
) -> AsyncIterator[Canned]:
    server = grpc.aio.server()
    methods = {"Place": estimator.place, "Bound": estimator.bound, "Promise": estimator.promise}
    handlers = {rpc: grpc.unary_unary_rpc_method_handler(method) for rpc, method in methods.items()}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    if credentials is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    estimator.address = f"localhost:{port}"
    try:
        yield estimator
    finally:
        await server.stop(None)


def test_clusters_of_one_estimator_are_asked_together() -> None:
    async def scenario() -> None:
        async with serving(Canned({"m1": 3, "m2": 0}, {"m2": [("insufficient", "too few GPUs")]})) as one:
            settings = EstimatorSettings({"m1": one.address, "m2": one.address})
            async with Estimators(settings) as estimators:
                rooms = await estimators.place(["m2", "m1"], GANG, {})
            assert rooms == (ClusterRoom("m2", 0, why="too few GPUs"), ClusterRoom("m1", 3))
            assert [list(request.clusters) for request in one.asked] == [["m2", "m1"]]
            assert one.asked[0].gang == GANG

    asyncio.run(scenario())


def test_a_cluster_with_something_on_its_way_is_asked_with_it() -> None:
    async def scenario() -> None:
        async with serving(Canned({"m1": 3, "m2": 1})) as one:
            settings = EstimatorSettings({"m1": one.address, "m2": one.address})
            async with Estimators(settings) as estimators:
                await estimators.place(["m1", "m2"], GANG, {"m2": [GANG, GANG]})
            burdens = {tuple(request.clusters): len(request.assumed) for request in one.asked}
            assert burdens == {("m1",): 0, ("m2",): 2}

    asyncio.run(scenario())


RUNS = WorkloadReference("batch/v1", "Job", "team", "runs")
LONG = WorkloadReference("kubeflow.org/v1", "PyTorchJob", "team", "long")


def test_it_is_asked_when_it_fits_if_what_runs_there_ends_so() -> None:
    async def scenario() -> None:
        async with serving(Canned({"m1": 0, "m2": 0, "m3": 0})) as one:
            settings = EstimatorSettings(dict.fromkeys(("m1", "m2", "m3"), one.address))
            async with Estimators(settings) as estimators:
                await estimators.place(
                    ["m1", "m2", "m3"], GANG, {}, endings={"m2": (Departure(LONG, 9), Departure(RUNS, 7))}
                )
                await estimators.place(["m1"], GANG, {})
            asked = {tuple(of.clusters): of for of in one.asked}
            assert asked.keys() == {("m1", "m3"), ("m2",), ("m1",)}
            assert [(one.workload.name, one.at_ms) for one in asked[("m2",)].endings.endings] == [
                ("runs", 7),
                ("long", 9),
            ]
            assert asked[("m2",)].endings.endings[1].workload == pb.WorkloadName(
                namespace="team", group="kubeflow.org", kind="PyTorchJob", name="long"
            )
            # Nothing that runs there says when it ends; and that is asked all the same.
            others = asked[("m1", "m3")]
            assert (others.HasField("endings"), len(others.endings.endings)) == (True, 0)
            assert not asked[("m1",)].HasField("endings")

    asyncio.run(scenario())


def test_of_one_turn_or_another_each_question_is_told_its_own_endings() -> None:
    async def scenario() -> None:
        first, second = (Departure(RUNS, 7),), (Departure(RUNS, 8), Departure(LONG, 9))
        async with serving(Canned({"m1": 0, "m2": 0})) as one:
            settings = EstimatorSettings(dict.fromkeys(("m1", "m2"), one.address))
            async with Estimators(settings) as estimators:
                for cluster, ends in (("m1", first), ("m1", first), ("m2", first), ("m1", second)):
                    await estimators.place([cluster], GANG, {}, endings={cluster: ends})
                await estimators.place(["m1"], GANG, {}, endings={"m1": second}, of_choice=True)
            told = [([of.at_ms for of in each.endings.endings], each.endings.of_choice) for each in one.asked]
            assert told == [([7], False)] * 3 + [([8, 9], False), ([8, 9], True)]

    asyncio.run(scenario())


def test_of_what_ends_last_no_more_is_told_than_an_estimator_reads() -> None:
    async def scenario() -> None:
        ends = tuple(Departure(replace(RUNS, name=f"j{number}"), 20_000 - number) for number in range(10_001))
        async with serving(Canned({"m1": 0})) as one:
            async with Estimators(EstimatorSettings({"m1": one.address})) as estimators:
                await estimators.place(["m1"], GANG, {}, endings={"m1": ends})
            told = [of.at_ms for of in one.asked[0].endings.endings]
            assert (len(told), told[0], told[-1]) == (10_000, 10_000, 19_999)

    asyncio.run(scenario())


NODE = pb.Assignment(pod_set="worker", node="n", pods=2)
COMES = pb.EarliestRoom(at_ms=7, pods=3, placement=[NODE])


@pytest.mark.parametrize(
    ("fits", "earliest", "read", "told"),
    [
        pytest.param(0, COMES, Earliest("m1", 7, 3, (("worker", "n", 2),)), "", id="known"),
        pytest.param(
            0,
            pb.EarliestRoom(pods=3, placement=[NODE]),
            Earliest("m1", None, 3, (("worker", "n", 2),)),
            "",
            id="nobody knows when",
        ),
        pytest.param(0, None, None, "", id="never, or by an older estimator"),
        pytest.param(1, COMES, None, "", id="it fits"),
        pytest.param(0, pb.EarliestRoom(at_ms=7), None, "on no nodes", id="no nodes"),
        pytest.param(
            0,
            pb.EarliestRoom(at_ms=7, pods=-1, placement=[NODE]),
            None,
            "-1 pods that have to end",
            id="negative pods",
        ),
        pytest.param(0, pb.EarliestRoom(placement=[NODE, NODE]), None, "one named twice", id="twice"),
        pytest.param(
            0,
            pb.EarliestRoom(placement=[NODE, pb.Assignment(pod_set="worker", node="k", pods=1, nth=1)]),
            None,
            "were not asked for",
            id="several placements",
        ),
    ],
)
def test_when_it_fits_is_read_unless_it_cannot_be_meant(
    fits: int,
    earliest: pb.EarliestRoom | None,
    read: Earliest | None,
    told: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    answer = pb.ClusterPlacement(cluster="m1", fits=fits, earliest=earliest)

    async def scenario() -> None:
        garbage = pb.PlaceResponse(clusters=[answer]).SerializeToString()
        async with (
            serving(Canned(garbage=garbage)) as one,
            Estimators(EstimatorSettings({"m1": one.address})) as estimators,
        ):
            for _ in range(2):
                (room,) = await estimators.place(["m1"], GANG, {}, endings={})
                assert room == ClusterRoom("m1", fits, earliest=read)

    asyncio.run(scenario())
    logged = [line for line in caplog.messages if "none is held there" in line]
    assert len(logged) == bool(told)
    assert all(told in line for line in logged)


ENDS = pb.WorkloadName(namespace="team", group="batch", kind="Job", name="runs")
LONG_ENDS = pb.WorkloadName(namespace="team", group="kubeflow.org", kind="PyTorchJob", name="long")
OTHER = pb.WorkloadName(namespace="team", group="batch", kind="Job", name="other")


@pytest.mark.parametrize(
    ("of_choice", "earliest", "read", "told"),
    [
        pytest.param(
            True,
            pb.EarliestRoom(at_ms=7, pods=3, placement=[NODE], workloads=[ENDS], may_be_fewer=True),
            Earliest("m1", 7, 3, (("worker", "n", 2),), (name_of(RUNS),), may_be_fewer=True),
            "",
            id="who has to end",
        ),
        pytest.param(True, COMES, Earliest("m1", 7, 3, (("worker", "n", 2),)), "", id="nobody has to"),
        pytest.param(
            True,
            pb.EarliestRoom(at_ms=7, pods=3, placement=[NODE], workloads=[ENDS, OTHER]),
            None,
            "were not asked about",
            id="others",
        ),
        pytest.param(
            False,
            pb.EarliestRoom(at_ms=7, pods=3, placement=[NODE], workloads=[ENDS]),
            None,
            "were not asked about",
            id="nobody asked",
        ),
        pytest.param(
            True,
            pb.EarliestRoom(at_ms=7, pods=3, placement=[NODE], workloads=[ENDS, ENDS]),
            None,
            "has to end twice",
            id="twice",
        ),
        pytest.param(True, pb.EarliestRoom(pods=3, placement=[NODE]), None, "no time", id="no time"),
        pytest.param(
            True,
            pb.EarliestRoom(at_ms=7, pods=3, placement=[NODE], workloads=[ENDS], gives=[2]),
            Earliest("m1", 7, 3, (("worker", "n", 2),), (name_of(RUNS),), gives=(2,)),
            "",
            id="how many pods have to go",
        ),
        pytest.param(
            True,
            pb.EarliestRoom(at_ms=7, pods=3, placement=[NODE], workloads=[ENDS], gives=[4]),
            None,
            "more pods that have to go than may",
            id="more pods than may go",
        ),
        pytest.param(
            True,
            pb.EarliestRoom(at_ms=7, pods=3, placement=[NODE], workloads=[ENDS], gives=[-1]),
            None,
            "more pods that have to go than may",
            id="fewer pods than none",
        ),
        pytest.param(
            True,
            pb.EarliestRoom(at_ms=7, pods=3, placement=[NODE], workloads=[LONG_ENDS], gives=[1]),
            None,
            "were not asked about",
            id="pods of what only ends",
        ),
        pytest.param(
            True,
            pb.EarliestRoom(at_ms=7, pods=3, placement=[NODE], workloads=[ENDS], gives=[1, 1]),
            None,
            "pods of 2 workloads, of which 1 have to end",
            id="pods of whom",
        ),
    ],
)
def test_who_has_to_end_is_read_unless_it_cannot_be_meant(
    of_choice: bool,
    earliest: pb.EarliestRoom,
    read: Earliest | None,
    told: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    answer = pb.PlaceResponse(clusters=[pb.ClusterPlacement(cluster="m1", earliest=earliest)])

    async def scenario() -> None:
        async with (
            serving(Canned(garbage=answer.SerializeToString())) as one,
            Estimators(EstimatorSettings({"m1": one.address})) as estimators,
        ):
            may_end = {"m1": (Departure(RUNS, 5), Departure(RUNS, 4, surplus=3, kept=8), Departure(LONG, 5))}
            assert await estimators.place(["m1"], GANG, {}, endings=may_end, of_choice=of_choice) == (
                ClusterRoom("m1", 0, earliest=read),
            )
            asked = one.asked[0].endings
            assert asked.of_choice is of_choice
            assert [(told.workload.name, told.surplus, told.kept) for told in asked.endings] == [
                ("runs", 3, 8),
                ("runs", 0, 0),
                ("long", 0, 0),
            ]

    asyncio.run(scenario())
    logged = [line for line in caplog.messages if "none is held there" in line]
    assert len(logged) == bool(told)
    assert all(told in line for line in logged)


def test_a_cluster_in_doubt_says_nothing_of_when() -> None:
    doubt = pb.Reason(kind="doubt", text="out of contact")
    room = room_of(pb.ClusterPlacement(cluster="m1", earliest=COMES, reasons=[doubt]), 1, ())
    assert (room.unknown, room.earliest) == ("m1: out of contact", None)


JOB = WorkloadReference("batch/v1", "Job", "team", "train")
SWARM = WorkloadReference("example.com/v1", "Swarm", "team", "bees")


@pytest.mark.parametrize(
    ("trouble", "expected"),
    [
        ({}, {"m1": (1, None), "m2": (1,)}),
        # An older one does not know the question.
        ({"fails": grpc.StatusCode.UNIMPLEMENTED}, {}),
        ({"garbage": b"\xff"}, {}),
        ({"fits": {"m2": 0}}, {"m2": (1,)}),
    ],
)
def test_pods_are_counted_where_somebody_can(
    trouble: dict[str, Any], expected: dict[str, tuple[int | None, ...]]
) -> None:
    async def scenario() -> None:
        async with serving(replace(Canned({"m1": 0, "m2": 0}), **trouble)) as one:
            settings = EstimatorSettings({"m1": one.address, "m2": one.address})
            async with Estimators(settings) as estimators:
                counted = await estimators.bound({"m1": [JOB, SWARM], "m2": [JOB], "unknown": [JOB]})
            assert counted == expected

    asyncio.run(scenario())


def test_what_is_not_known_is_told_and_does_not_spoil_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        stale = "in doubt (stale): https://10.0.0.1:6443/api is gone, so is east.svc:443"
        doubtful = Canned({"doubt": 0, "late": 2}, {"doubt": [("doubt", stale)], "late": [("doubt", "late")]})
        failing, garbled = Canned(fails=grpc.StatusCode.UNKNOWN), Canned(garbage=b"\xff\xff\xff")
        async with (
            serving(Canned({"m1": 3})) as good,
            serving(doubtful),
            serving(failing),
            serving(garbled),
        ):
            settings = EstimatorSettings(
                {
                    "m1": good.address,
                    "doubt": doubtful.address,
                    "late": doubtful.address,
                    "silent": good.address,
                    "failing": failing.address,
                    "garbled": garbled.address,
                    "away": "127.0.0.1:1",
                },
                timeout_s=5,
            )
            names = ["m1", "doubt", "late", "silent", "failing", "garbled", "away", "without"]
            async with Estimators(settings) as estimators:
                found = {room.cluster: room for room in await estimators.place(names, GANG, {})}
        assert found["m1"] == ClusterRoom("m1", 3)
        assert found["doubt"] == ClusterRoom(
            "doubt", 0, unknown="doubt: in doubt (stale): (address) is gone, so is (address)"
        )
        assert found["late"] == ClusterRoom("late", 2)
        assert found["silent"].unknown.endswith("says nothing of that cluster")
        assert found["failing"].unknown == "the estimator of failing gives no answer: unknown"
        assert found["garbled"].unknown.endswith("its answer cannot be read")
        assert found["away"].unknown.endswith("it cannot be reached")
        assert found["without"].unknown == "no estimator of it is configured"
        assert not any("127.0.0.1" in room.unknown for room in found.values())

    asyncio.run(scenario())
    logged = [record.getMessage() for record in caplog.records]
    assert any("127.0.0.1:1 of away: unavailable: " in line for line in logged)
    assert any("unknown: so it was scripted; look at its log" in line for line in logged)


def refused(*reasons: tuple[str, str], empty_bound: int | None = None) -> pb.ClusterPlacement:
    told = [pb.Reason(kind=kind, text=text) for kind, text in reasons]
    return pb.ClusterPlacement(cluster="m1", reasons=told, empty_bound=empty_bound)


COMPONENT = ("component", "component main needs 1 pod a set, 0 fit at all")


@pytest.mark.parametrize(
    ("placement", "room"),
    [
        (
            refused(
                ("short", "3 nodes needed, 2 there"), COMPONENT, ("insufficient", "on 4 nodes"), empty_bound=2
            ),
            ClusterRoom("m1", 0, why="3 nodes needed, 2 there", most=2),
        ),
        (
            refused(("short", "3 nodes needed, 2 there"), COMPONENT, ("cordoned", "1 node cordoned")),
            ClusterRoom("m1", 0, why="3 nodes needed, 2 there; 1 node cordoned"),
        ),
        (
            refused(("no_such_node", "0 of 6 nodes"), ("node_selector", "matches none of 6"), empty_bound=0),
            ClusterRoom("m1", 0, why="0 of 6 nodes", most=0),
        ),
        (refused(COMPONENT), ClusterRoom("m1", 0, why=COMPONENT[1])),
        (refused(), ClusterRoom("m1", 0)),
    ],
)
def test_of_the_reasons_those_are_told_that_people_act_on(
    placement: pb.ClusterPlacement, room: ClusterRoom
) -> None:
    assert room_of(placement, 1, ()) == room


def test_the_address_that_karmada_would_use() -> None:
    discovering = EstimatorSettings({"m1": "there:1"}, discovers=True, port=99)
    assert discovering.address("m1") == "there:1"
    assert discovering.address("m2") == "karmada-scheduler-estimator-m2.karmada-system.svc:99"
    assert EstimatorSettings({"m1": "there:1"}).address("m2") is None
    assert discovering.asks
    assert not EstimatorSettings().asks


def mutual(authority: Authority) -> grpc.ServerCredentials:
    """Of a server with a certificate of this authority, which lets in those that have one too."""
    server = authority.issue("estimator")
    credentials: grpc.ServerCredentials = grpc.ssl_server_credentials(
        [(server.key, server.certificate)], authority.pem, require_client_auth=True
    )
    return credentials


def client_of(authority: Authority, directory: Path) -> EstimatorTls:
    """The client's files, written over what was there before."""
    certificate, key = authority.issue("dispatcher").write(directory, "client")
    ca = directory / "ca.crt"
    ca.write_bytes(authority.pem)
    return EstimatorTls(ca, certificate, key)


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        return self.s


def test_mutual_tls(tmp_path: Path) -> None:
    authority = Authority("estimators")

    async def scenario() -> None:
        async with serving(Canned({"m1": 1}), mutual(authority)) as one:
            settings = EstimatorSettings({"m1": one.address}, tls=client_of(authority, tmp_path))
            async with Estimators(settings) as estimators:
                assert await estimators.place(["m1"], GANG, {}) == (ClusterRoom("m1", 1),)

    asyncio.run(scenario())


def test_certificates_follow_their_files_to_a_new_authority(tmp_path: Path) -> None:
    old, new, clock = Authority("old"), Authority("new"), Clock()

    async def scenario() -> None:
        async with (
            serving(Canned({"m1": 1}), mutual(old)) as before,
            serving(Canned({"m2": 2}), mutual(new)) as after,
        ):
            settings = EstimatorSettings(
                {"m1": before.address, "m2": after.address}, tls=client_of(old, tmp_path), timeout_s=10
            )
            async with Estimators(settings, clock=clock) as estimators:
                first, refused = await estimators.place(["m1", "m2"], GANG, {})
                assert first == ClusterRoom("m1", 1)
                assert "cannot be reached" in refused.unknown
                client_of(new, tmp_path)
                # Within a second of the last look the files are not looked at.
                clock.s = 0.9
                assert await estimators.place(["m1"], GANG, {}) == (ClusterRoom("m1", 1),)
                clock.s = 1.0
                refused, second = await estimators.place(["m1", "m2"], GANG, {})
                assert second == ClusterRoom("m2", 2)
                # Also where the old connection still stood, the new certificate is shown, and unknown.
                assert "cannot be reached" in refused.unknown

    asyncio.run(scenario())


def test_a_question_under_way_is_not_cut_by_new_certificates(tmp_path: Path) -> None:
    authority, clock = Authority("estimators"), Clock()

    @dataclass
    class Slow(Canned):
        """Answers its first question when it is told to."""

        may_answer: asyncio.Event = field(default_factory=asyncio.Event)
        has_begun: asyncio.Event = field(default_factory=asyncio.Event)

        async def place(self, data: bytes, context: "Context") -> bytes:
            if not self.has_begun.is_set():
                self.has_begun.set()
                await self.may_answer.wait()
            return await super().place(data, context)

    async def scenario() -> None:
        slow = Slow({"m1": 1})
        async with serving(slow, mutual(authority)):
            settings = EstimatorSettings(
                {"m1": slow.address}, tls=client_of(authority, tmp_path), timeout_s=30
            )
            async with Estimators(settings, clock=clock) as estimators:
                early = asyncio.create_task(estimators.place(["m1"], GANG, {}))
                await slow.has_begun.wait()
                client_of(authority, tmp_path)
                clock.s = 1.0
                assert await estimators.place(["m1"], GANG, {}) == (ClusterRoom("m1", 1),)
                assert not early.done()
                slow.may_answer.set()
                assert await early == (ClusterRoom("m1", 1),)

    asyncio.run(scenario())


@pytest.mark.parametrize("broken", ["client.key", "client.crt", "ca.crt"])
def test_a_broken_file_leaves_the_old_certificates_in_force_and_is_told_once(
    tmp_path: Path, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    authority, clock = Authority("estimators"), Clock()

    async def scenario() -> None:
        async with serving(Canned({"m1": 1}), mutual(authority)) as one:
            settings = EstimatorSettings({"m1": one.address}, tls=client_of(authority, tmp_path))
            async with Estimators(settings, clock=clock) as estimators:
                (tmp_path / broken).write_text("half a fi")
                for clock.s in range(1, 5):
                    assert await estimators.place(["m1"], GANG, {}) == (ClusterRoom("m1", 1),)
                (told,) = caplog.records
                assert str(tmp_path / broken) in told.getMessage()
                assert "the old ones stay in force" in told.getMessage()
                client_of(authority, tmp_path)
                clock.s = 5
                assert await estimators.place(["m1"], GANG, {}) == (ClusterRoom("m1", 1),)
        assert "reloaded: connections are made anew" in caplog.messages[-1]

    with caplog.at_level(logging.INFO, logger="fairway.service.certificates"):
        asyncio.run(scenario())


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "ca.pem"
    with pytest.raises(TlsError, match=f"{missing}: cannot be read: No such file"):
        Estimators(EstimatorSettings(tls=EstimatorTls(missing)))


def test_a_file_that_is_no_authority_is_named(tmp_path: Path) -> None:
    (ca := tmp_path / "ca.pem").write_text("nothing of the kind")
    with pytest.raises(TlsError, match=f"{ca}: holds no certificate"):
        Estimators(EstimatorSettings(tls=EstimatorTls(ca)))


MIXED, ALIKE = ("head", "worker"), ("pod",)
COMING = pb.Gang(name="coming")
WAITING = pb.Gang(name="waiting", waits=True, where=[pb.Assignment(pod_set="pod", node="n", pods=1)])


@pytest.mark.parametrize(
    ("pod_sets", "spread_fits", "packs", "assumed", "is_told", "only_packs"),
    [
        (MIXED, 1, False, [], False, False),
        (MIXED, 1, False, [COMING], True, False),
        (MIXED, 0, False, [], True, False),
        (MIXED, -1, False, [], True, False),
        (MIXED, 1, True, [], True, True),
        (MIXED, 0, True, [], True, False),
        (MIXED, 1, True, [COMING], True, False),
        (ALIKE, 1, False, [COMING], False, False),
        (ALIKE, 1, True, [COMING], True, True),
        (ALIKE, 0, True, [], True, False),
        # The nodes that are held for what waits are free as a kube-scheduler sees them.
        (ALIKE, 1, False, [COMING, WAITING], True, False),
        (ALIKE, 1, True, [WAITING], True, False),
        (MIXED, 1, False, [WAITING], True, False),
        # Nobody knows where it goes: nothing is held.
        (ALIKE, 1, False, [pb.Gang(waits=True)], False, False),
    ],
)
def test_where_pods_go_is_told_unless_they_go_there_anyway(
    pod_sets: tuple[str, ...],
    spread_fits: int,
    packs: bool,
    assumed: list[pb.Gang],
    is_told: bool,
    only_packs: bool,
) -> None:
    where = [pb.Assignment(pod_set=name, node="n", pods=2, spare=True) for name in pod_sets]
    placement = pb.ClusterPlacement(
        cluster="a", fits=1, spread_fits=spread_fits, packs=packs, placement=where
    )
    told = Witness(
        tuple((name, (("n", 2),)) for name in pod_sets),
        spare=frozenset((name, "n") for name in pod_sets),
        only_packs=only_packs,
    )
    assert room_of(placement, 1, assumed).witnesses == (told if is_told else LEFT_ALONE,)


def at(nth: int, node: str, pods: int = 1) -> pb.Assignment:
    return pb.Assignment(nth=nth, node=node, pods=pods)


FIRST = at(0, "n")


@pytest.mark.parametrize(
    ("where", "told"),
    [
        pytest.param([FIRST, at(1, "n")], "", id="sound"),
        pytest.param([at(nth, "n") for nth in range(8)], "", id="as-many-as-asked-for"),
        pytest.param([at(nth, "n") for nth in range(9)], "were not asked for", id="more-than-asked-for"),
        pytest.param([FIRST, at(2, "n")], "were not asked for", id="with-a-gap"),
        pytest.param([at(1, "n")], "were not asked for", id="not-from-0"),
        pytest.param([FIRST, at(-1, "n")], "were not asked for", id="before-0"),
        pytest.param([FIRST, at(0, "m", 0)], "0 pods", id="no-pods"),
        pytest.param([FIRST, at(0, "m", -1)], "-1 pods", id="negative-pods"),
        pytest.param([FIRST, at(0, "")], "a name of 0 characters", id="no-name"),
        pytest.param([FIRST, at(0, "m" * 254)], "a name of 254 characters", id="long-name"),
        pytest.param([FIRST, FIRST], "one named twice", id="twice"),
        pytest.param([at(0, str(n)) for n in range(50_001)], "50001 assignments", id="too-many"),
    ],
)
def test_nodes_that_cannot_be_meant_are_not_told_and_the_room_counts(
    where: list[pb.Assignment], told: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer = pb.ClusterPlacement(cluster="m1", fits=3, placement=where)

    async def scenario() -> None:
        garbage = pb.PlaceResponse(clusters=[answer]).SerializeToString()
        async with (
            serving(Canned(garbage=garbage)) as one,
            Estimators(EstimatorSettings({"m1": one.address})) as estimators,
        ):
            for _ in range(2):
                (room,) = await estimators.place(["m1"], GANG, {}, want_placement=True)
                assert (room.fits, room.unknown) == (3, "")
                assert bool(room.witnesses) is (not told)

    asyncio.run(scenario())
    logged = [line for line in caplog.messages if "no pods are told where to go" in line]
    assert len(logged) == (1 if told else 0)
    assert all(told in line for line in logged)
