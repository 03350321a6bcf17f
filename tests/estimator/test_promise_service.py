"""Promises over the wire: who is told what, what Karmada's questions are answered then, what is refused."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import grpc
import pytest

from estimator.feature_gates import Gates
from estimator.pb import estimator_pb2
from estimator.promise_requests import MAX_PROMISED, MAX_TTL_MS, PromiseReader
from fairway.capacity.v1 import capacity_pb2 as pb
from tests.builders import PodBuilder, node, pod, requirements
from tests.estimator.capacity_calls import dump, gang, pod_set, template
from tests.estimator.serving import Caller, CapacityCaller, estimator, replicas_request, snapshot

GPU = "nvidia.com/gpu"
ONE_GPU = {GPU: "1"}


def promised(
    name: str, pods: int, each: int = 1, where: Sequence[pb.Assignment] = (), waits: bool = False
) -> pb.Promised:
    wanted = gang(pod_set("pod", 1, template({GPU: each})), copies=pods)
    named = pb.WorkloadName(namespace="team", group="batch", kind="Job", name=name)
    wanted.where.extend(where)
    wanted.waits = waits
    return pb.Promised(workload=named, gang=wanted)


def request(
    lists: Mapping[str, Sequence[pb.Promised]],
    holder: str = "leader",
    since_ms: int = 1,
    ttl_ms: int = 10_000,
) -> pb.PromiseRequest:
    clusters = [pb.ClusterPromises(cluster=name, promised=of) for name, of in lists.items()]
    return pb.PromiseRequest(holder=holder, since_ms=since_ms, ttl_ms=ttl_ms, clusters=clusters)


async def promise(caller: Caller, message: pb.PromiseRequest) -> list[pb.ClusterBound]:
    data = await CapacityCaller(caller.channel).call("Promise", message.SerializeToString())
    return list(pb.PromiseResponse.FromString(data).clusters)


async def replicas(caller: Caller, who: str | None = None) -> int:
    text = None if who is None else f"kind=Job, name=team/{who}"
    return (await caller.replicas(replicas_request("m", ONE_GPU), object_text=text)).value


def play(tmp_path: Path, scenario: Callable[[Caller], Awaitable[None]], *pods: PodBuilder) -> None:
    file = dump(tmp_path / "m.json", [node("n1").gpus(8), node("n2").gpus(8), *pods])
    gates = Gates(scheduling_overcommit_protection=True)

    async def played() -> None:
        async with estimator(snapshot("m", file), gates=gates) as caller:
            await scenario(caller)

    asyncio.run(played())


def test_it_is_left_out_of_answers_to_others_until_it_is_withdrawn(tmp_path: Path) -> None:
    async def scenario(caller: Caller) -> None:
        assert await replicas(caller) == 16
        await promise(caller, request({"m": [promised("a", 4), promised("b", 1, each=2)]}))
        assert [await replicas(caller, who) for who in (None, "other", "a", "b")] == [10, 10, 14, 12]
        asked = estimator_pb2.MaxAvailableComponentSetsRequest(cluster="m", namespace="team")
        asked.components.add(name="x", replicas=5, replica_requirements=requirements(ONE_GPU))
        assert [
            (await caller.sets(asked, object_text=f"kind=Job, name=team/{who}")).value for who in "ca"
        ] == [
            2,
            2,
        ]
        await promise(caller, request({"m": []}))
        assert await replicas(caller) == 16

    play(tmp_path, scenario)


def test_what_is_free_of_its_nodes_is_left_out_for_one_that_waits(tmp_path: Path) -> None:
    where = [pb.Assignment(pod_set="pod", node="n1", pods=1)]
    # Five of the eight devices of its node are in use.
    busy = pod("busy").of("team").owned_by("Job", "other", "batch/v1").requests({GPU: 5}).on("n1")

    async def scenario(caller: Caller) -> None:
        assert await replicas(caller) == 11
        await promise(caller, request({"m": [promised("a", 1, each=8, where=where, waits=True)]}))
        assert [await replicas(caller, who) for who in (None, "other", "a")] == [8, 8, 11]
        asked = estimator_pb2.MaxAvailableComponentSetsRequest(cluster="m", namespace="team")
        asked.components.add(name="x", replicas=5, replica_requirements=requirements(ONE_GPU))
        sets = [(await caller.sets(asked, object_text=f"kind=Job, name=team/{who}")).value for who in "ca"]
        assert sets == [1, 2]
        await promise(caller, request({"m": [promised("a", 1, each=8, where=where)]}))
        # On its way it goes where there is room for it.
        assert await replicas(caller) == 3

    play(tmp_path, scenario, busy)


def test_the_reason_says_so(tmp_path: Path) -> None:
    async def scenario(caller: Caller) -> None:
        await promise(caller, request({"m": [promised("a", 4), promised("b", 1)]}))
        told = await caller.replicas(replicas_request("m", ONE_GPU))
        assert "room held for 5 pods of 2 workloads that are promised it" in told.reasons

    play(tmp_path, scenario)


def test_pods_that_have_nodes_are_told_and_not_held_again(tmp_path: Path) -> None:
    pods = [
        pod(f"a-{number}").of("team").owned_by("Job", "a", "batch/v1").requests(ONE_GPU).on("n1")
        for number in range(3)
    ]

    async def scenario(caller: Caller) -> None:
        there, elsewhere = await promise(caller, request({"m": [promised("a", 4)], "x": [promised("b", 1)]}))
        assert [(one.known, one.bound) for one in there.workloads] == [(True, 3)]
        assert "this estimator serves m" in elsewhere.doubt
        assert [await replicas(caller, who) for who in ("other", "a")] == [12, 13]

    play(tmp_path, scenario, *pods)


def test_what_karmada_assumes_as_well_counts_once(tmp_path: Path) -> None:
    async def scenario(caller: Caller) -> None:
        await promise(caller, request({"m": [promised("a", 4)]}))
        asked = replicas_request("m", ONE_GPU)
        for name, count in (("a", 4), ("z", 2)):
            workload = asked.assumed_workloads.add(namespace="team")
            workload.components.add(name=name, replicas=count, replica_requirements=requirements(ONE_GPU))
        answers = [
            (await caller.replicas(asked, object_text=f"kind=Job, name=team/{who}")).value for who in "xa"
        ]
        # For itself Karmada's own list counts, as it did before there were promises.
        assert answers == [16 - 4 - 2, 16 - 4 - 2]

    play(tmp_path, scenario)


def test_the_dispatcher_s_own_questions_say_what_is_on_its_way_themselves(tmp_path: Path) -> None:
    async def scenario(caller: Caller) -> None:
        await promise(caller, request({"m": [promised("a", 4)]}))
        wanted = gang(pod_set("pod", 1, template({GPU: 1})))
        (found,) = await CapacityCaller(caller.channel).place(pb.PlaceRequest(clusters=["m"], gang=wanted))
        assert found.fits == 16

    play(tmp_path, scenario)


def test_of_two_leaders_the_earlier_is_refused_and_told_why(tmp_path: Path) -> None:
    async def scenario(caller: Caller) -> None:
        await promise(caller, request({"m": [promised("a", 4)]}, "new", since_ms=200))
        with pytest.raises(grpc.aio.AioRpcError, match="new leads since 200, later than old") as caught:
            await promise(caller, request({"m": []}, "old", since_ms=100))
        assert caught.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert await replicas(caller) == 12

    play(tmp_path, scenario)


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (request({}, holder=""), "holder: expected a name"),
        (request({}, holder="x" * 254), "holder: expected a name"),
        (request({}, ttl_ms=0), "ttl_ms: 0: expected"),
        (request({}, ttl_ms=MAX_TTL_MS + 1), "ttl_ms: 60001: expected"),
        (
            pb.PromiseRequest(holder="x", ttl_ms=1, clusters=[pb.ClusterPromises()] * 2),
            "a name is there twice",
        ),
        (
            request({str(number): [] for number in range(1001)}),
            "clusters: 1001: expected at most 1000",
        ),
        (request({"m": [pb.Promised()] * (MAX_PROMISED + 1)}), "clusters.promised: 20001: expected at most"),
        (
            request({"m": [promised("a", 1, where=[pb.Assignment()] * 20_001)]}),
            "clusters.promised.gang.where: 20001: expected",
        ),
        (request({"m": [promised("a", 1)] * 2}), r"promised\[1\].workload: is there twice"),
        (request({"m": [pb.Promised()]}), r"promised\[0\].workload: expected the kind and name"),
        (request({"m": [promised("x" * 254, 1)]}), r"workload: 254 characters"),
        (
            request({"m": [pb.Promised(workload=promised("a", 1).workload)]}),
            r"clusters\[0\].promised\[0\].gang: has no pods",
        ),
        (
            request({"m": [promised("a", 1, where=[pb.Assignment(pods=-1)])]}),
            r"where: expected a number of pods",
        ),
    ],
)
def test_what_cannot_be_promised_is_refused_and_changes_nothing(
    message: pb.PromiseRequest, told: str, tmp_path: Path
) -> None:
    async def scenario(caller: Caller) -> None:
        await promise(caller, request({"m": [promised("kept", 1)]}))
        with pytest.raises(grpc.aio.AioRpcError, match=told) as caught:
            await promise(caller, message)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert await replicas(caller) == 15

    play(tmp_path, scenario)


def test_what_was_said_before_is_not_read_again_though_it_comes_in_several_requests() -> None:
    reader = PromiseReader()

    def read(cluster: str) -> object:
        (found,) = reader.read(request({cluster: [promised("train", 4)]})).lists[cluster]
        return found.components

    first = [read("m1"), read("m2")]
    assert [read("m1"), read("m2")] == first
    assert all(again is before for again, before in zip([read("m1"), read("m2")], first, strict=True))
