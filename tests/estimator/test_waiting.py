"""Room kept for gangs that wait for more of it: how much, for whom, and what others are answered then."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from estimator.capacity.assumed import hold
from estimator.capacity.budget import Budget
from estimator.capacity.gangs.gang_replicas import Topology
from estimator.capacity.gangs.placing import place
from estimator.capacity.request import AssumedWorkload, Component, GangQuestion
from estimator.capacity.room import Room
from estimator.capacity.topology.domains import DomainCache
from estimator.capacity.topology.levels import Levels
from estimator.cluster.mirror import ClusterMirror
from fairway.resources import PODS
from tests.builders import Thing, cluster, component, never, node, pod, quota, room_of, shape
from tests.estimator.gang_instances import components, small_fleet, small_gang
from tests.estimator.test_device_answers import hami_node, hami_pod

GPU = "nvidia.com/gpu"
NOWHERE = Topology(Levels(), DomainCache())
STILL = Budget(lambda: 0.0, 1.0)
Where = tuple[tuple[str, int], ...]


def waiting(asked: Component, *where: tuple[str, int]) -> AssumedWorkload:
    places = tuple((asked.name, name, pods) for name, pods in where)
    return AssumedWorkload("team", (asked,), places, waits=True)


def free(room: Room, resource: str = GPU) -> dict[str, int]:
    rows = enumerate(room.nodes.rows)
    return {row.name: int(room.free(resource)[index]) for index, row in rows if row is not None}


A, B = node("a").gpus(8).cpu(16), node("b").gpus(8).cpu(16)
FIVE_ON_A = pod("p").on("a").requests(gpu=5, cpu=4)
WHOLE = component("w", 1, gpu=8, cpu=8)
KEPT: list[tuple[str, Sequence[Thing], AssumedWorkload, dict[str, int], dict[str, int]]] = [
    # name, what there is, who waits and where, devices free, cores free
    (
        "what is free of a node",
        (A, B, FIVE_ON_A),
        waiting(WHOLE, ("a", 1)),
        {"a": 0, "b": 8},
        {"a": 4, "b": 16},
    ),
    ("no more than is asked", (A, B), waiting(WHOLE, ("b", 1)), {"a": 8, "b": 0}, {"a": 16, "b": 8}),
    (
        "a part of each of several pods",
        (A, B, FIVE_ON_A),
        waiting(component("w", 2, gpu=2, cpu=1), ("a", 2)),
        {"a": 0, "b": 8},
        {"a": 10, "b": 16},
    ),
    (
        "on several nodes",
        (A, B, FIVE_ON_A),
        waiting(replace(WHOLE, replicas=2), ("a", 1), ("b", 1)),
        {"a": 0, "b": 0},
        {"a": 4, "b": 8},
    ),
    ("nothing where nobody says where", (A, B), waiting(WHOLE), {"a": 8, "b": 8}, {"a": 16, "b": 16}),
    ("nothing on nodes that are gone", (A,), waiting(WHOLE, ("gone", 1)), {"a": 8}, {"a": 16}),
    ("on a cordoned node as well", (A.cordoned(),), waiting(WHOLE, ("a", 1)), {"a": 0}, {"a": 8}),
    (
        "where pods have nodes already, the places that are left",
        (A, B, pod("own").on("a").requests(gpu=8)),
        waiting(WHOLE, ("a", 1), ("b", 1)),
        {"a": 0, "b": 0},
        {"a": 16, "b": 8},
    ),
    (
        "of these the ones with the most for them",
        (A, B, pod("own").on("a").requests(gpu=8), pod("p").on("b").requests(gpu=5)),
        waiting(WHOLE, ("a", 1), ("b", 1)),
        {"a": 0, "b": 0},
        {"a": 16, "b": 8},
    ),
    (
        "of absurd numbers what there is",
        (A,),
        waiting(component("w", 2**31 - 1, gpu=2**40, cpu="1E"), *[("a", 2**31 - 1)] * 4),
        {"a": 0},
        {"a": 0},
    ),
]


@pytest.mark.parametrize(
    ("things", "who", "devices", "cores"), [row[1:] for row in KEPT], ids=[row[0] for row in KEPT]
)
def test_what_is_kept(
    things: Sequence[Thing], who: AssumedWorkload, devices: dict[str, int], cores: dict[str, int]
) -> None:
    room = room_of(cluster(*things))
    (reason,) = hold(room, (who,), never)
    assert free(room) == devices
    assert free(room, "cpu") == {name: 1000 * count for name, count in cores.items()}
    assert str(reason) == "room kept on the nodes of 1 workload that waits for more"


def test_it_comes_after_all_others_that_are_on_their_way() -> None:
    other = AssumedWorkload("team", (component("o", 1, gpu=6),))
    for order in ((waiting(WHOLE, ("a", 1)), other), (other, waiting(WHOLE, ("a", 1)))):
        room = room_of(cluster(A, node("b").gpus(1)))
        hold(room, order, never)
        assert free(room) == {"a": 0, "b": 1}


def test_shared_devices_are_kept_for_whole_pods() -> None:
    third = component("w", 1, {GPU: 1, "nvidia.com/gpumem": 8000})
    mirror = cluster(hami_node("a"), hami_node("b"), hami_pod("p", "a", (0, 24000), (1, 20000)))
    for where, left in (("b", 5), ("a", 6)):
        room = room_of(mirror)
        hold(room, (waiting(third, (where, 1)),), never)
        assert int(room.fits(third.shape).sum()) == left


@pytest.mark.parametrize("memory", ["8Gi", "16G"])
def test_of_devices_that_cannot_be_read_nothing_is_kept(memory: str) -> None:
    third = component("w", 1, {GPU: 1, "nvidia.com/gpumem": 8000})
    unread = component("bad", 1, {GPU: 1, "nvidia.com/gpumem": memory})
    room = room_of(cluster(hami_node("a")))
    before = room.fits(third.shape).tolist()
    hold(room, (waiting(unread, ("a", 1)),), never)
    assert room.fits(third.shape).tolist() == before


def test_its_pods_count_in_no_quota_before_they_come() -> None:
    team = quota("team", "team").hard({"requests.nvidia.com/gpu": 8})
    mirror = cluster(team, A, B)
    question = GangQuestion("m", (component("x", 1, gpu=8),), "team", assumed=(waiting(WHOLE, ("a", 1)),))
    found = place(room_of(mirror), question, NOWHERE, never, STILL, tuple(mirror.quotas.of("team")))
    assert found.answer.value == 1


PACKS: list[tuple[str, Sequence[Thing], Component, Where, bool]] = [
    # name, what there is, what comes, which node is kept, whether it has to be told where to go
    ("a kept node would take it", (A, B), component("x", 1, gpu=8), (("a", 1),), True),
    ("a part of it is there", (A, B, FIVE_ON_A), component("x", 1, gpu=2), (("a", 1),), True),
    ("no part that would do", (A, B, FIVE_ON_A), component("x", 1, gpu=8), (("a", 1),), False),
    ("it may not go there", (A.taint("x:NoSchedule"), B), component("x", 1, gpu=8), (("a", 1),), False),
    ("nothing is kept", (A, B), component("x", 1, gpu=8), (), False),
]


@pytest.mark.parametrize(
    ("things", "asked", "where", "packs"), [row[1:] for row in PACKS], ids=[row[0] for row in PACKS]
)
def test_pods_are_told_where_to_go_if_they_might_go_where_room_is_kept(
    things: Sequence[Thing], asked: Component, where: Where, packs: bool
) -> None:
    question = GangQuestion("m", (asked,), wanted=1, assumed=(waiting(WHOLE, *where),))
    found = place(room_of(cluster(*things)), question, NOWHERE, never, STILL, placements=1)
    assert found.answer.value >= 1
    assert found.packs is packs
    assert [one.node for one in found.placement] == ["b" if where else "a"]
    assert not place(room_of(cluster(*things)), question, NOWHERE, never, STILL).packs


def drawn(rng: Random) -> tuple[ClusterMirror, tuple[AssumedWorkload, ...]]:
    """A small cluster, and gangs that wait for some of its nodes."""
    fleet = small_fleet(rng)
    names = [one.metadata.name for one in fleet.nodes]
    waits = []
    for _ in range(rng.randint(1, 2)):
        parts = components(small_gang(rng))
        where = tuple((part.name, rng.choice(names), rng.randint(1, part.replicas)) for part in parts)
        waits.append(AssumedWorkload("team", parts, where, waits=True))
    return fleet.mirror(), tuple(waits)


@pytest.mark.parametrize("seed", range(60))
def test_of_each_of_its_nodes_exactly_the_lesser_of_what_is_free_and_what_is_asked_is_kept(seed: int) -> None:
    mirror, waits = drawn(Random(seed))
    room = room_of(mirror)
    hold(room, waits, never)
    asked: dict[tuple[str, str], int] = {}
    for one in waits:
        for name, where, pods in one.where:
            (part,) = (part for part in one.components if part.name == name)
            for resource, amount in (*part.shape.requests, (PODS, 1)):
                asked[where, resource] = asked.get((where, resource), 0) + amount * pods
    for resource in (GPU, "cpu", "memory", PODS):
        before = free(room_of(mirror), resource)
        kept = {name: before[name] - left for name, left in free(room, resource).items()}
        assert kept == {name: min(had, asked.get((name, resource), 0)) for name, had in before.items()}


@pytest.mark.parametrize("seed", range(60))
def test_others_are_never_promised_more_nor_any_of_what_is_kept(seed: int) -> None:
    rng = Random(1000 + seed)
    mirror, waits = drawn(rng)
    parts, wanted = components(small_gang(rng)), rng.choice((0, 1, 2))
    ended = Budget(lambda: 0.0, 1.0)
    question = GangQuestion("m", parts, wanted=wanted)
    alone = place(room_of(mirror), question, NOWHERE, never, ended, placements=1)
    beside = place(room_of(mirror), replace(question, assumed=waits), NOWHERE, never, ended, placements=1)
    assert beside.answer.value <= alone.answer.upper_bound
    assert not alone.answer.proven or beside.answer.value <= alone.answer.value
    room = room_of(mirror)
    hold(room, waits, never)
    by_name = {part.name: part for part in parts}
    for resource in (GPU, "cpu", "memory", PODS):
        used: dict[str, int] = {}
        for one in beside.placement:
            takes = dict((*by_name[one.pod_set].shape.requests, (PODS, 1))).get(resource, 0)
            used[one.node] = used.get(one.node, 0) + one.pods * takes
        left = free(room, resource)
        assert all(amount <= left[name] for name, amount in used.items())


def test_one_that_waits_for_a_node_is_in_nobody_s_way_elsewhere() -> None:
    room = room_of(cluster(A, B))
    hold(room, (waiting(WHOLE, ("a", 1)),), never)
    assert room.fits(shape(gpu=8)).tolist() == [0, 1]
