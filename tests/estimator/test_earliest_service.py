"""Over the wire: what is free without some workloads, when a gang fits, what is kept for gangs that wait."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from fairway.capacity.v1 import capacity_pb2 as pb
from tests.builders import NodeBuilder, PodBuilder, node, pod, selecting
from tests.estimator.capacity_calls import gang, kinds, placement, pod_set, template, workers
from tests.estimator.serving import CapacityCaller, estimator, snapshot, write_dump

HOST = "kubernetes.io/hostname"
Things = Sequence[NodeBuilder | PodBuilder]


def nodes(count: int) -> list[NodeBuilder]:
    return [node(f"n{n}").gpus(8).cpu(96).label({HOST: f"n{n}"}) for n in range(count)]


def running(owner: str, on: str, gpus: int, kind: str = "Job", group: str = "batch") -> PodBuilder:
    made = pod(f"{owner}-{on}").of("team").on(on).requests(gpu=gpus)
    return made.owned_by(kind, owner, f"{group}/v1")


def named(name: str, kind: str = "Job", group: str = "batch") -> pb.WorkloadName:
    return pb.WorkloadName(namespace="team", group=group, kind=kind, name=name)


OWNER = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "controller": True}
REPLICA_SET: dict[str, object] = {
    "apiVersion": "apps/v1",
    "metadata": {
        "name": "web-1",
        "namespace": "team",
        "ownerReferences": [OWNER],
    },
    "spec": {"template": {}},
}


def play(
    tmp_path: Path,
    things: Things,
    scenario: Callable[[CapacityCaller], Awaitable[None]],
) -> None:
    items = [("Pod" if isinstance(one, PodBuilder) else "Node", one.object()) for one in things]
    file = write_dump(tmp_path / "m.json", [*items, ("ReplicaSet", REPLICA_SET)])

    async def played() -> None:
        async with estimator(snapshot("m", file)) as caller:
            await scenario(CapacityCaller(caller.channel))

    asyncio.run(played())


async def place(caller: CapacityCaller, request: pb.PlaceRequest) -> pb.ClusterPlacement:
    request.clusters.append("m")
    request.want_placement = True
    (found,) = await caller.place(request)
    return found


BUSY: Things = [
    *nodes(3),
    running("train", "n0", 8),
    running("web-1", "n1", 4, "ReplicaSet", "apps"),
    running("other", "n1", 4),
    running("last", "n2", 8),
]


@pytest.mark.parametrize(
    ("gone", "fits"),
    [
        ((), 0),
        ((named("train"),), 1),
        ((named("train"), named("train"), named("last")), 2),
        ((named("web", "Deployment", "apps"), named("other")), 1),
        ((named("web-1", "ReplicaSet", "apps"), named("other"), named("train")), 2),
        # Nobody by that name, in that namespace, of that group, or of a kind that is known by its pods.
        ((named("nobody"), pb.WorkloadName(kind="Job", name="train", group="batch")), 0),
        ((named("train", "Job", "batch.volcano.sh"), named("train", "RayJob", "ray.io")), 0),
    ],
)
def test_pods_of_workloads_that_are_taken_to_be_gone_are_not_there(
    gone: tuple[pb.WorkloadName, ...], fits: int, tmp_path: Path
) -> None:
    async def scenario(caller: CapacityCaller) -> None:
        found = await place(caller, pb.PlaceRequest(gang=workers(1, gpu=8), without=gone))
        assert (found.fits, found.proven) == (fits, True)
        # The cluster itself has not changed.
        assert (await place(caller, pb.PlaceRequest(gang=workers(1, gpu=8)))).fits == 0

    play(tmp_path, BUSY, scenario)


def test_when_there_will_be_room_is_told_to_who_asks_and_has_none(tmp_path: Path) -> None:
    ends = pb.Endings(
        endings=[
            pb.Ending(workload=named("train"), at_ms=7000),
            pb.Ending(workload=named("web", "Deployment", "apps"), at_ms=5000),
            pb.Ending(workload=named("other"), at_ms=6000),
            pb.Ending(workload=named("other"), at_ms=9000),
        ]
    )

    async def scenario(caller: CapacityCaller) -> None:
        asked = pb.PlaceRequest(gang=workers(1, 1, gpu=8), endings=ends)
        found = await place(caller, asked)
        assert found.fits == 0
        assert (found.earliest.at_ms, found.earliest.pods) == (6000, 2)
        assert [(one.pod_set, one.node, one.pods) for one in found.earliest.placement] == [
            ("worker", "n1", 1)
        ]
        two = await place(caller, pb.PlaceRequest(gang=workers(1, 2, gpu=8), endings=ends))
        assert two.earliest.at_ms == 7000
        three = await place(caller, pb.PlaceRequest(gang=workers(1, 3, gpu=8), endings=ends))
        assert three.HasField("earliest")
        assert (three.earliest.HasField("at_ms"), three.earliest.pods) == (False, 4)
        for request in (
            pb.PlaceRequest(gang=workers(1, 1, gpu=8)),
            pb.PlaceRequest(gang=workers(1, 1, cpu=1), endings=ends),
            pb.PlaceRequest(gang=workers(1, 4, gpu=8), endings=ends),
        ):
            assert not (await place(caller, request)).HasField("earliest")
        # Without the one that ends first there is room on its node already.
        asked = pb.PlaceRequest(gang=workers(1, 2, gpu=8), endings=ends, without=[named("train")])
        found = await place(caller, asked)
        assert (found.fits, found.earliest.at_ms, found.earliest.pods) == (1, 6000, 2)

    play(tmp_path, BUSY, scenario)


A_THEN_B = pb.Endings(
    endings=[pb.Ending(workload=named(name), at_ms=at_ms) for name, at_ms in (("a", 1), ("b", 2))]
)


def test_who_has_to_end_is_told_to_who_can_end_them(tmp_path: Path) -> None:
    rather = ("last", "Job", "batch"), ("web", "Deployment", "apps"), ("other", "Job", "batch")

    async def scenario(caller: CapacityCaller) -> None:
        told = []
        for copies in (1, 2, 3):
            asked = pb.PlaceRequest(gang=workers(1, copies, gpu=8))
            asked.endings.of_choice = True
            for at_ms, one in enumerate(rather):
                asked.endings.endings.add(workload=named(*one), at_ms=at_ms)
            found = await place(caller, asked)
            told.append(
                (found.HasField("earliest"), [(one.kind, one.name) for one in found.earliest.workloads])
            )
            asked = pb.PlaceRequest(gang=workers(1, copies, gpu=8), without=found.earliest.workloads)
            assert (await place(caller, asked)).fits == (copies if told[-1][0] else 0)
        deployment = ("Deployment", "web")
        assert told == [
            (True, [("Job", "last")]),
            (True, [("Job", "last"), deployment, ("Job", "other")]),
            (False, []),
        ]

    play(tmp_path, BUSY, scenario)


def waiting(name: str, *where: str) -> pb.Gang:
    made = gang(pod_set("worker", len(where), template(gpu=8)))
    made.waits, made.name, made.namespace = True, name, "team"
    made.where.extend(pb.Assignment(pod_set="worker", node=at, pods=1) for at in where)
    return made


def test_what_is_kept_for_one_that_waits_is_left_out_and_pods_are_told_to_keep_off_it(tmp_path: Path) -> None:
    things: Things = [*nodes(3), running("busy", "n0", 5), running("w", "n2", 8)]

    async def scenario(caller: CapacityCaller) -> None:
        small = workers(1, 1, gpu=1)
        left = [(), (waiting("x", "n0"),), (waiting("x", "n0", "n1"),)]
        fits = [(await place(caller, pb.PlaceRequest(gang=small, assumed=others))).fits for others in left]
        assert fits == [11, 8, 0]
        found = await place(caller, pb.PlaceRequest(gang=small, assumed=left[1]))
        assert (found.packs, placement(found)) == (True, {("worker", "n1"): 1})
        assert "assumed" in kinds(found)
        # One of its two pods has a node already; the other one's is kept.
        found = await place(caller, pb.PlaceRequest(gang=small, assumed=[waiting("w", "n2", "n1")]))
        assert (found.fits, placement(found)) == (3, {("worker", "n0"): 1})
        (told,) = await caller.explain(pb.ExplainRequest(clusters=["m"], gang=small, assumed=left[1]))
        assert told.placement.fits == 8

    play(tmp_path, things, scenario)


def test_two_that_wait_are_told_different_nodes(tmp_path: Path) -> None:
    things: Things = [*nodes(2), running("a", "n0", 8), running("b", "n1", 8)]

    async def scenario(caller: CapacityCaller) -> None:
        told = []
        for others in ([], [waiting("x", "n0")], [waiting("x", "n0"), waiting("y", "n1")]):
            asked = pb.PlaceRequest(gang=workers(1, 1, gpu=8), endings=A_THEN_B, assumed=others)
            earliest = (await place(caller, asked)).earliest
            told.append((earliest.at_ms, [one.node for one in earliest.placement]))
        assert told == [(1, ["n0"]), (2, ["n1"]), (0, [])]

    play(tmp_path, things, scenario)


def test_where_others_decide_by_more_than_room_nothing_is_said_of_later(tmp_path: Path) -> None:
    near = pod("x").near(HOST, selecting(app="db")).spec["affinity"]
    apart = pod("x").apart(HOST, selecting(app="db")).spec["affinity"]
    things: Things = [*nodes(2), running("a", "n0", 8).labelled({"app": "db"}), running("b", "n1", 8)]

    async def scenario(caller: CapacityCaller) -> None:
        told = []
        for affinity in (near, apart):
            asked = gang(pod_set("worker", 1, template(gpu=8, spec={"affinity": affinity})), copies=1)
            asked.namespace = "team"
            found = await place(caller, pb.PlaceRequest(gang=asked, endings=A_THEN_B))
            told.append((found.HasField("earliest"), found.earliest.at_ms))
            # What the one that is gone is to others is not known to be gone, so nothing is proven.
            found = await place(caller, pb.PlaceRequest(gang=asked, without=[named("a")]))
            assert (found.fits, found.proven) == (int(affinity is near), False)
            assert "either_way" in kinds(found)
        # The node of the one that they keep away from is taken to be barred even later.
        assert told == [(False, 0), (True, 2)]

    play(tmp_path, things, scenario)
