"""Requests of fairway.capacity.v1 that are broken, huge, hostile or in a hurry: nobody else notices them."""

import asyncio
import json
import random
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.capacity_requests import MAX_ASSUMED, MAX_CLUSTERS, MAX_JSON_BYTES
from estimator.server import MAX_REQUEST_BYTES
from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.workloads.registry import MAX_POD_SETS
from tests.builders import node
from tests.estimator.capacity_calls import (
    Modes,
    dump,
    gang,
    kinds,
    place,
    placement,
    pod_set,
    template,
    topology,
    tpu_pools,
    workers,
    workload,
)
from tests.estimator.serving import (
    CapacityCaller,
    estimator,
    gpu_node,
    replicas_request,
    snapshot,
    write_dump,
)
from tests.estimator.test_device_answers import hami_node
from tests.fuzz.capacity_answers import flaw
from tests.fuzz.capacity_requests import CAPACITY_RPCS, capacity_request

HOST, RACK = "kubernetes.io/hostname", "example.com/rack"
ONE_GPU = {"nvidia.com/gpu": "1"}
RPCS = {"Place": pb.PlaceRequest, "Explain": pb.ExplainRequest}
WORKER = template(gpu=1)
LARGEST = 2**31 - 1


@pytest.fixture
def nodes(tmp_path: Path) -> Path:
    return write_dump(tmp_path / "m.json", [gpu_node(f"n{number}", 8) for number in range(50)])


def refused(nodes: Path, rpc: str, data: bytes) -> str:
    """The message with which the service refuses the request; what else it serves is untouched."""

    async def scenario() -> str:
        async with estimator(snapshot("m", nodes)) as caller:
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await CapacityCaller(caller.channel).call(rpc, data)
            assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert (await caller.replicas(replicas_request("m", ONE_GPU))).value == 400
            return error.value.details() or ""

    return asyncio.run(scenario())


def sets(*counts: int, template_json: bytes = WORKER) -> pb.Gang:
    return gang(*(pod_set(f"s{index}", count, template_json) for index, count in enumerate(counts)))


def spec(**fields: object) -> bytes:
    return json.dumps({"spec": fields}).encode()


def tied(mode: int, level: str = "rack", slice_size: int = 0) -> pb.Topology:
    # Any number will do on the wire for an enum.
    return pb.Topology.FromString(
        pb.Topology(level=level, slice_size=slice_size).SerializeToString() + bytes((8, mode))
    )


UNREADABLE: list[tuple[str, pb.Gang, str]] = [
    ("no pods", pb.Gang(), "gang: has no pods: expected pod_sets or workload_json"),
    ("sets without pods", sets(0, 0), "gang: has no pods: expected at least one pod set"),
    ("a negative count", sets(1, -1), "gang.pod_sets[1].count: -1: expected a number of pods"),
    ("a negative number of copies", workers(1, -2, gpu=1), "gang.copies: -2: expected a number of gangs"),
    (
        "a name twice",
        gang(pod_set("w", 1, WORKER), pod_set("w", 2, WORKER)),
        "gang.pod_sets[1].name: 'w' is there twice: expected it once",
    ),
    (
        "a name of a length that a placement would repeat for every node",
        gang(pod_set("w" * 254, 1, WORKER)),
        "gang.pod_sets[0].name: 254 characters: expected at most 253",
    ),
    (
        "such a name in a workload",
        workload(
            json.dumps(
                {
                    "kind": "RayCluster",
                    "apiVersion": "ray.io/v1",
                    "spec": {
                        "headGroupSpec": {"template": json.loads(WORKER)},
                        "workerGroupSpecs": [
                            {"groupName": "g" * 300, "replicas": 1, "template": json.loads(WORKER)}
                        ],
                    },
                }
            ).encode()
        ),
        "gang.workload_json: a pod set has a name of 300 characters: expected at most 253",
    ),
    ("too many sets", sets(*[1] * (MAX_POD_SETS + 1)), "gang.pod_sets: 257 pod sets: expected at most 256"),
    ("no template", sets(1, template_json=b""), "gang.pod_sets[0].template_json: "),
    ("no JSON", sets(1, template_json=b'{"spec":'), "gang.pod_sets[0].template_json: "),
    ("no UTF-8", sets(1, template_json=b'{"spec":{"nodeName":"\xff"}}'), "gang.pod_sets[0].template_json: "),
    ("null", sets(1, template_json=b"null"), "gang.pod_sets[0].template_json: "),
    ("no containers", sets(1, template_json=spec(containers=[])), "expected a pod template with containers"),
    (
        "a template of the wrong shape",
        sets(1, template_json=spec(containers={"name": "main"})),
        "gang.pod_sets[0].template_json.spec.containers: expected `array | null`, got `object`",
    ),
    (
        "JSON that is nested too deeply",
        sets(1, template_json=b'{"x":' * 100_000 + b"1" + b"}" * 100_000),
        "gang.pod_sets[0].template_json: nested too deeply to be read",
    ),
    (
        "a huge template",
        sets(1, template_json=b" " * (MAX_JSON_BYTES + 1)),
        "gang.pod_sets[0].template_json: 2097153 bytes: expected at most 2097152",
    ),
    ("a huge workload", workload(b" " * (MAX_JSON_BYTES + 1)), "gang.workload_json: 2097153 bytes: expected"),
    (
        "a workload that is no JSON",
        workload(b"kind: Job"),
        "gang.workload_json: the object: JSON is malformed",
    ),
    ("a workload without a kind", workload(b"{}"), "gang.workload_json: kind, apiVersion: expected both"),
    (
        "an unknown kind",
        workload(json.dumps({"kind": "Sandwich", "apiVersion": "lunch/v1"}).encode()),
        "gang.workload_json: kind Sandwich of group lunch is not known; known are ",
    ),
    (
        "a kind of a length that nobody can read",
        workload(json.dumps({"kind": "\u540d" * 300_000, "apiVersion": "v1"}).encode()),
        "gang.workload_json: kind \u540d",
    ),
    (
        "both ways at once",
        pb.Gang(pod_sets=sets(1).pod_sets, workload_json=b"{}"),
        "gang: has workload_json and pod_sets or topology: expected one or the other",
    ),
    (
        "a topology without a mode",
        workers(1, topology=tied(0), gpu=1),
        "gang.topology.mode: 0: expected REQUIRED, PREFERRED, EXCLUSIVE, SLICED",
    ),
    ("an unknown mode", workers(1, topology=tied(99), gpu=1), "gang.topology.mode: 99: expected REQUIRED"),
    (
        "a topology without a level",
        gang(pod_set("w", 1, WORKER, tied(1, ""))),
        "gang.pod_sets[0].topology.level: is empty: expected a label key",
    ),
    (
        "slices of no size",
        workers(1, topology=topology(Modes.SLICED, "rack"), gpu=1),
        "gang.topology.slice_size: 0: expected how many pods share a domain",
    ),
    (
        "slices where there are none",
        workers(1, topology=topology(Modes.REQUIRED, "rack", 2), gpu=1),
        "gang.topology.slice_size: 2: expected 0 unless SLICED or EXCLUSIVE",
    ),
]


@pytest.mark.parametrize("rpc", RPCS)
@pytest.mark.parametrize(("wanted", "told"), [pytest.param(g, t, id=name) for name, g, t in UNREADABLE])
def test_a_gang_that_cannot_be_read_is_refused_by_its_field(
    nodes: Path, rpc: str, wanted: pb.Gang, told: str
) -> None:
    message = refused(nodes, rpc, RPCS[rpc](gang=wanted).SerializeToString())
    assert message.startswith(told) or f": {told}" in message
    assert len(message) <= 500


@pytest.mark.parametrize("rpc", RPCS)
@pytest.mark.parametrize(
    ("data", "told"),
    [
        pytest.param(b"\xff" * 20, "20 bytes are no {rpc}Request of fairway.capacity.v1", id="no protobuf"),
        pytest.param(b"", "gang: is missing: expected pod_sets or workload_json", id="nothing"),
        pytest.param(b"\x0a\x02\xff\xfe", "4 bytes are no {rpc}Request", id="a name that is no text"),
        pytest.param(
            pb.PlaceRequest(gang=workers(1, gpu=1), search_ms=-1).SerializeToString(),
            "search_ms: -1: expected milliseconds, or 0 for the server's own",
            id="a negative search",
        ),
        pytest.param(
            pb.PlaceRequest(clusters=map(str, range(MAX_CLUSTERS + 1))).SerializeToString(),
            "clusters: 1001 names: expected at most 1000",
            id="too many clusters",
        ),
        pytest.param(
            pb.PlaceRequest(
                gang=workers(1, gpu=1), assumed=[workers(1, gpu=1), sets(1, -1)]
            ).SerializeToString(),
            "assumed[1].pod_sets[1].count: -1: expected a number of pods",
            id="a negative count on its way",
        ),
        pytest.param(
            pb.PlaceRequest(
                gang=workers(1, gpu=1), assumed=[pb.Gang()] * (MAX_ASSUMED + 1)
            ).SerializeToString(),
            "assumed: expected at most 20000 gangs and pod sets of them",
            id="too much on its way",
        ),
    ],
)
def test_a_request_that_cannot_be_read_is_refused_by_its_field(
    nodes: Path, rpc: str, data: bytes, told: str
) -> None:
    assert refused(nodes, rpc, data).startswith(told.format(rpc=rpc))


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"\xff", "1 bytes are no SummaryRequest of fairway.capacity.v1"),
        (
            pb.SummaryRequest(clusters=map(str, range(MAX_CLUSTERS + 1))).SerializeToString(),
            "clusters: 1001 names: expected at most 1000",
        ),
    ],
)
def test_a_summary_that_cannot_be_read_is_refused_by_its_field(nodes: Path, data: bytes, told: str) -> None:
    assert refused(nodes, "Summary", data) == told


def test_truncated_requests_are_answered_or_refused(nodes: Path) -> None:
    data = pb.PlaceRequest(clusters=["m"], gang=workers(2, gpu=1), want_placement=True).SerializeToString()

    async def scenario() -> set[grpc.StatusCode]:
        async with estimator(snapshot("m", nodes)) as caller:
            own = CapacityCaller(caller.channel)
            # One after the other: a client that has not heard of the limit yet may go beyond it.
            return {await own.call("Place", data[:length]).code() for length in range(len(data))}

    assert asyncio.run(scenario()) <= {grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT}


def test_requests_above_the_limit_are_refused_by_grpc(nodes: Path) -> None:
    async def scenario() -> None:
        async with estimator(snapshot("m", nodes)) as caller:
            own = CapacityCaller(caller.channel)
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await own.call("Place", b"\x0a" * (MAX_REQUEST_BYTES + 1))
            assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert (await place(own, workers(1, gpu=1))).fits == 400

    asyncio.run(scenario())


def test_karmada_is_answered_amid_all_of_that(nodes: Path) -> None:
    bad = [pb.PlaceRequest(gang=wanted).SerializeToString() for _, wanted, _ in UNREADABLE]

    async def scenario() -> None:
        async with estimator(snapshot("m", nodes)) as caller:
            own = CapacityCaller(caller.channel)
            calls = [own.call(rpc, data) for data in bad for rpc in (*RPCS, "Summary")]
            for _ in range(20):
                assert (await caller.replicas(replicas_request("m", ONE_GPU))).value == 400
            codes = {await call.code() for call in calls}
            # To Summary, the gang of another request is an unknown field, or no name.
            assert codes <= {grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT}

    asyncio.run(scenario())


class TestLarge:
    def test_gang_of_200_pod_sets(self, nodes: Path) -> None:
        wanted = gang(
            *(pod_set(f"s{n}", 1 + n % 3, template(cpu=f"{1 + n}m", gpu=n % 2)) for n in range(200))
        )

        async def scenario() -> pb.ClusterPlacement:
            async with estimator(snapshot("m", nodes)) as caller:
                return await place(CapacityCaller(caller.channel), wanted)

        found = asyncio.run(scenario())
        # 400 GPUs, 200 a copy.
        assert (found.fits, found.upper_bound, found.proven) == (2, 2, True)
        pods: dict[str, int] = {}
        for (name, _), count in placement(found).items():
            pods[name] = pods.get(name, 0) + count
        assert pods == {one.name: 2 * one.count for one in wanted.pod_sets}

    @pytest.mark.parametrize(
        ("pods", "fits"), [(100_000, 2), (100_001, 1), (200_000, 1), (200_001, 0), (LARGEST, 0)]
    )
    def test_gang_of_100_000_pods(self, tmp_path: Path, pods: int, fits: int) -> None:
        file = dump(tmp_path / "m.json", [node(f"n{n}").cpu(200).pods(100_000) for n in range(2)])

        async def scenario() -> pb.ClusterPlacement:
            async with estimator(snapshot("m", file)) as caller:
                return await place(
                    CapacityCaller(caller.channel), sets(pods, template_json=template(cpu="1m"))
                )

        found = asyncio.run(scenario())
        assert (found.fits, found.upper_bound, found.proven) == (fits, fits, True)
        assert sum(placement(found).values()) == pods * fits

    def test_sums_beyond_any_number_fit_nowhere(self, nodes: Path) -> None:
        containers = [{"resources": {"requests": {"memory": "8E", "nvidia.com/gpu": 10**18}}}] * 100
        huge = [template(cpu="9E", memory="8Ei", gpu=10**18), spec(containers=containers)]
        wanted = gang(*(pod_set(f"s{n}", LARGEST, huge[n % 2]) for n in range(200)))

        async def scenario() -> pb.ClusterPlacement:
            async with estimator(snapshot("m", nodes)) as caller:
                return await place(CapacityCaller(caller.channel), wanted, *[wanted] * 3)

        found = asyncio.run(scenario())
        assert (found.fits, found.proven) == (0, True)

    @pytest.mark.parametrize(
        "rules",
        [
            {"tolerations": [{"key": f"k{n}", "operator": "Exists"} for n in range(2000)]},
            {"containers": [{"resources": {"requests": {f"a/r{n}": "1" for n in range(2000)}}}]},
            {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": f"k{n}"} for n in range(2000)]},
        ],
    )
    def test_a_template_of_more_rules_than_anyone_has_fits_nowhere_and_says_so(
        self, nodes: Path, rules: dict[str, object]
    ) -> None:
        wanted = gang(pod_set("w", 1, template(gpu=1, spec=rules)))

        async def scenario() -> pb.ClusterPlacement:
            async with estimator(snapshot("m", nodes)) as caller:
                return await place(CapacityCaller(caller.channel), wanted)

        found = asyncio.run(scenario())
        assert (found.fits, found.proven) == (0, True)
        (told,) = [reason.text for reason in found.reasons if reason.kind == "template"]
        assert "expected at most 1000; read as a pod that fits nowhere" in told

    def test_annotations_are_told_in_short(self, nodes: Path) -> None:
        long = "x" * 500_000
        worker = template(gpu=1, annotations={"gpu-fraction": long}, labels={long: long})
        wanted = gang(pod_set("worker", 1, worker))

        async def scenario() -> pb.ClusterPlacement:
            async with estimator(snapshot("m", nodes)) as caller:
                return await place(CapacityCaller(caller.channel), wanted)

        found = asyncio.run(scenario())
        assert (found.fits, found.proven) == (0, True)
        # Whatever a request holds, a reason is something to read.
        assert all(len(reason.text) < 2000 for reason in found.reasons)


class TestTime:
    def test_without_a_deadline_there_is_an_answer(self, nodes: Path) -> None:
        async def scenario() -> None:
            async with estimator(snapshot("m", nodes)) as caller:
                own = CapacityCaller(caller.channel)
                request = pb.PlaceRequest(gang=workers(1, gpu=1))
                (placed,) = await own.place(request, timeout_s=None)
                (explained,) = await own.explain(pb.ExplainRequest(gang=request.gang), timeout_s=None)
                (summary,) = await own.summary(timeout_s=None)
                assert (placed.fits, explained.placement.fits, summary.products[0].free) == (400, 400, 400)

        asyncio.run(scenario())

    @pytest.mark.parametrize("timeout_s", [0.0, 0.0005, 0.002, 0.005, 0.02])
    @pytest.mark.parametrize("rpc", [*RPCS, "Summary"])
    def test_a_deadline_too_near_is_missed_or_met_with_the_truth(
        self, nodes: Path, rpc: str, timeout_s: float
    ) -> None:
        request = pb.SummaryRequest() if rpc == "Summary" else RPCS[rpc](gang=sets(1, 2, 3))

        async def scenario() -> None:
            async with estimator(snapshot("m", nodes)) as caller:
                own = CapacityCaller(caller.channel)
                calls = [own.call(rpc, request.SerializeToString(), timeout_s=timeout_s) for _ in range(20)]
                for call in calls:
                    code = await call.code()
                    assert code in {grpc.StatusCode.OK, grpc.StatusCode.DEADLINE_EXCEEDED}
                    if code is grpc.StatusCode.OK and rpc == "Place":
                        (found,) = pb.PlaceResponse.FromString(await call).clusters
                        assert 0 <= found.fits <= 66 <= found.upper_bound
                        assert found.fits or "doubt" in kinds(found)
                assert (await caller.replicas(replicas_request("m", ONE_GPU))).value == 400
                assert (await place(own, workers(1, gpu=1))).fits == 400

        asyncio.run(scenario())

    @pytest.mark.parametrize("search_ms", [0, 1, 1000, LARGEST])
    def test_any_time_for_the_search_gets_a_true_answer(self, nodes: Path, search_ms: int) -> None:
        hard = gang(*(pod_set(f"s{n}", 1 + n, template(cpu=7 + 5 * n, gpu=1 + n)) for n in range(4)))

        async def scenario() -> pb.ClusterPlacement:
            async with estimator(snapshot("m", nodes)) as caller:
                return await place(CapacityCaller(caller.channel), hard, search_ms=search_ms)

        found = asyncio.run(scenario())
        # 400 GPUs, 30 a copy.
        assert 12 <= found.fits <= found.upper_bound <= 13
        assert found.proven == (found.fits == found.upper_bound)
        if search_ms == LARGEST:
            assert found.proven


@pytest.fixture(autouse=True)
def no_defects(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing here may be logged as an error: gRPC logs what a handler raises."""
    yield
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nodes of GPUs, shared GPUs and TPUs, in racks and out of them."""
    racks = [node(f"n{n}").gpus(8).cpu(96).label({RACK: str(n // 4), HOST: f"n{n}"}) for n in range(16)]
    shared = [hami_node(f"h{n}").label({HOST: f"h{n}"}) for n in range(4)]
    return dump(tmp_path_factory.mktemp("mixed") / "m.json", [*racks, *shared, *tpu_pools(2)])


@settings(max_examples=12, derandomize=True, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_whatever_is_asked_is_answered_or_refused_in_words(mixed: Path, seed: int) -> None:
    rng = random.Random(seed)

    async def scenario() -> None:
        async with estimator(snapshot("fuzzed", mixed), snapshot("control", mixed)) as caller:
            own = CapacityCaller(caller.channel)
            for _ in range(30):
                rpc = rng.choice(CAPACITY_RPCS)
                data = capacity_request(rng, rpc)
                assert await flaw(own, rpc, data) is None, f"{rpc} {data.hex()}"
            assert (await place(own, workers(1, gpu=8), cluster="control")).fits == 16

    asyncio.run(scenario())
