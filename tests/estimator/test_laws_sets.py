"""What must hold of MaxAvailableComponentSets on every cluster, and of room held for assumed workloads."""

from dataclasses import replace
from functools import cache
from random import Random
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.capacity.answer import UNBOUNDED
from estimator.capacity.assumed import OutOfTime, hold, outstanding
from estimator.capacity.request import (
    AssumedWorkload,
    Component,
    WorkloadReference,
)
from estimator.capacity.room import Room
from estimator.capacity.sets import first_fit as first_fit_module
from estimator.capacity.sets.component_sets import max_sets
from estimator.capacity.sets.first_fit import first_fit
from estimator.cluster.mirror import ClusterMirror
from estimator.fit.pod_shape import PodShape
from estimator.reasons import held_for_assumed
from tests.builders import (
    NodeBuilder,
    Thing,
    assumed,
    cluster,
    component,
    deployment,
    free_on,
    never,
    node,
    pod,
    replica_set,
    replicas_of,
    room_of,
    sets_of,
    shape,
)
from tests.estimator import packing
from tests.estimator.fleets import seeded

CI = settings(max_examples=100, derandomize=True, deadline=None)
RESOURCES = ("cpu", "memory", "nvidia.com/gpu", "pods")


def bin_of(rng: Random) -> NodeBuilder:
    """A small node of one of two zones, now and then tainted."""
    built = node("n").has(cpu=rng.randint(0, 12), memory=rng.randint(0, 12), gpu=rng.choice([0, 4, 8]))
    built = built.pods(rng.choice([1, 2, 3, 20, 20]))
    built = built.label({"zone": rng.choice("ab"), "topology.kubernetes.io/zone": rng.choice("ab")})
    return built.taint("gpu:NoSchedule") if rng.random() < 0.2 else built


def fleets(most: int) -> st.SearchStrategy[ClusterMirror]:
    bins = st.lists(seeded(bin_of), min_size=most // 3, max_size=most)
    return bins.map(lambda bins: cluster(*(replace(one, name=f"n{index}") for index, one in enumerate(bins))))


@cache
def a_shape(cpu: int, memory: int, gpu: int, zone: str, toleration: str) -> PodShape:
    selector = {"zone": zone} if zone else {}
    return shape(cpu=cpu, memory=memory, gpu=gpu, selector=selector, tolerations=filter(None, [toleration]))


def a_component(rng: Random, most_replicas: int) -> Component:
    return Component(
        f"c{rng.randint(0, 9)}",
        rng.choice([0, 1, 1, *range(1, most_replicas + 1)]),
        a_shape(
            cpu=rng.choice([0, 1, 1, 2, 3]),
            memory=rng.choice([0, 0, 1, 3]),
            gpu=rng.choice([0, 0, 0, 0, 1, 2, 4]),
            zone=rng.choice(["", "", "", "", "a"]),
            toleration=rng.choice(["", "gpu"]),
        ),
    )


def components(most: int, replicas: int) -> st.SearchStrategy[tuple[Component, ...]]:
    return st.lists(seeded(lambda rng: a_component(rng, replicas)), min_size=1, max_size=most).map(tuple)


def needed(asked: tuple[Component, ...]) -> list[tuple[int, Component]]:
    return [(index, c) for index, c in enumerate(asked) if c.replicas > 0]


@CI
@given(fleets(12), components(4, 4), st.sampled_from([0, 1, 6]))
def test_first_fit_places_every_pod_where_the_naive_walk_does(
    mirror: ClusterMirror, asked: tuple[Component, ...], few: int
) -> None:
    if needed(asked):
        with patch.object(first_fit_module, "_FEW", few):
            found = first_fit(room_of(mirror), needed(asked), mirror.columns.first_fit_order(), never)
        assert (found.sets, found.placement()) == packing.first_fit(room_of(mirror), asked)


@CI
@given(fleets(12), components(4, 4))
def test_sets_have_a_witness_and_lie_between_first_fit_and_the_bound(
    mirror: ClusterMirror, asked: tuple[Component, ...]
) -> None:
    found = sets_of(mirror, asked)
    answer = found.answer
    if not needed(asked):
        assert (answer.value, found.placement) == (UNBOUNDED, None)
        return
    assert found.placement is not None
    assert packing.flaws(room_of(mirror), asked, answer.value, found.placement) == []
    assert packing.first_fit(room_of(mirror), asked)[0] <= answer.value <= answer.upper_bound
    assert answer.proven is (answer.value == answer.upper_bound)
    assert answer.reasons


@CI
@given(fleets(3), components(3, 2))
def test_the_best_there_is_lies_between_the_sets_and_the_bound(
    mirror: ClusterMirror, asked: tuple[Component, ...]
) -> None:
    if needed(asked):
        answer = sets_of(mirror, asked).answer
        assert answer.value <= packing.best(room_of(mirror), asked, 4) or answer.value > 4
        assert min(answer.upper_bound, 4) >= packing.best(room_of(mirror), asked, 4)


# Here it matters which nodes a component prefers.
HARD = (1597, 1862, 2461, 2568, 2785, 3685, 3841, 3856, 4796, 4976, 5033, 5233, 5345, 5511, 5949)


def test_small_fleets_are_packed_as_well_as_they_can_be() -> None:
    """No law, since packing is hard, but so it is on each of these; plain first fit misses one in seven."""
    missed = []
    for seed in (*range(200), *HARD):
        rng = Random(seed)
        mirror = cluster(*(replace(bin_of(rng), name=f"n{index}") for index in range(rng.randint(2, 4))))
        asked = tuple(a_component(rng, 2) for _ in range(rng.randint(2, 4)))
        answer = sets_of(mirror, asked).answer
        if 0 < answer.upper_bound <= 4 and answer.value != packing.best(room_of(mirror), asked, 4):
            missed.append(seed)
    assert missed == []


@CI
@given(fleets(6), components(1, 3))
def test_sets_of_one_pod_are_replicas(mirror: ClusterMirror, asked: tuple[Component, ...]) -> None:
    one = (Component("one", 1, asked[0].shape),)
    answer = sets_of(mirror, one).answer
    assert answer.value == replicas_of(mirror, asked[0].shape).value
    assert answer.proven


@CI
@given(fleets(6), components(3, 3), st.integers(0, 40))
def test_an_expired_deadline_cuts_the_search_and_not_the_truth(
    mirror: ClusterMirror, asked: tuple[Component, ...], looks: int
) -> None:
    if not needed(asked):
        return
    clock = iter([False] * looks)
    cut = max_sets(room_of(mirror), asked, lambda: next(clock, True))
    whole = sets_of(mirror, asked).answer
    assert cut.placement is not None
    assert packing.flaws(room_of(mirror), asked, cut.answer.value, cut.placement) == []
    assert cut.answer.value <= whole.upper_bound
    assert cut.answer.upper_bound >= whole.value


def free_vectors(room: Room) -> dict[str, list[int]]:
    return {name: room.free(name).tolist() for name in RESOURCES}


WORKLOADS = st.lists(
    st.builds(
        lambda namespace, parts: AssumedWorkload(namespace, parts),
        st.sampled_from(["a", "b"]),
        components(2, 3),
    ),
    max_size=4,
)


@CI
@given(fleets(5), WORKLOADS.flatmap(lambda given: st.tuples(st.just(given), st.permutations(given))))
def test_assumed_workloads_hold_the_same_room_in_any_order(
    mirror: ClusterMirror, orders: tuple[list[AssumedWorkload], list[AssumedWorkload]]
) -> None:
    rooms = []
    for order in orders:
        room = room_of(mirror)
        hold(room, outstanding(tuple(order), mirror.controllers.bound_pods, None), never)
        rooms.append(free_vectors(room))
    assert rooms[0] == rooms[1]


@CI
@given(fleets(5), WORKLOADS)
def test_each_assumed_workload_takes_its_whole_room_or_none(
    mirror: ClusterMirror, workloads: list[AssumedWorkload]
) -> None:
    room = room_of(mirror)
    before = free_vectors(room)
    for workload in workloads:
        charged = outstanding((workload,), mirror.controllers.bound_pods, None)
        found, _ = packing.first_fit(room, workload.components, most=1)
        held = hold(room, charged, never)
        after = free_vectors(room)
        pods = sum(max(0, c.replicas) for c in workload.components)
        assert bool(held) is (found == 1 and pods > 0)
        assert sum(before["pods"]) - sum(after["pods"]) == (pods if held else 0)
        assert all(min(column, default=0) >= 0 for column in after.values())
        if not held:
            assert after == before
        before = after


@CI
@given(fleets(5), WORKLOADS, components(2, 2))
def test_assumed_workloads_never_raise_replicas(
    mirror: ClusterMirror, workloads: list[AssumedWorkload], asked: tuple[Component, ...]
) -> None:
    wanted = asked[0].shape
    assert replicas_of(mirror, wanted, workloads).value <= replicas_of(mirror, wanted).value


def test_workloads_alike_but_for_where_they_may_go_hold_the_same_room_in_any_order() -> None:
    mirror = cluster(node("a").cpu(4).label(zone="a"), node("b").cpu(4))
    anywhere = assumed("ml", component("worker", 1, cpu=4))
    fussy = assumed("ml", component("worker", 1, cpu=4, selector={"zone": "a"}))
    one, other = ([anywhere, fussy], [fussy, anywhere])
    assert replicas_of(mirror, shape(cpu=1), one) == replicas_of(mirror, shape(cpu=1), other)


def test_a_workload_that_does_not_fit_whole_leaves_no_trace() -> None:
    mirror = cluster(node("a").has(cpu=4, gpu=2), node("b").has(cpu=4))
    gang = assumed("ml", component("launcher", 1, cpu=3), component("worker", 3, cpu=1, gpu=1))
    room = room_of(mirror)
    before = free_vectors(room)
    assert hold(room, (gang,), never) == ()
    assert free_vectors(room) == before


def test_when_the_time_is_up_before_all_are_placed_nothing_is_said() -> None:
    room = room_of(cluster(node("a").cpu(4)))
    one = assumed("d", component("web", 1, cpu=1))
    looks = iter([False])
    with pytest.raises(OutOfTime, match="3 workloads on their way"):
        hold(room, (one, one, one), lambda: next(looks, True))


def test_the_mirror_itself_is_never_charged() -> None:
    mirror = cluster(node("a").cpu(4))
    room = room_of(mirror)
    assert hold(room, (assumed("d", component("web", 3, cpu=1)),), never) == (held_for_assumed(3, 1),)
    assert room.free("cpu").tolist() == [1000]
    assert free_on(mirror, "a") == {"cpu": 4000, "pods": 110}


def test_a_fork_and_its_origin_do_not_share_what_they_take() -> None:
    room = room_of(cluster(node("a").cpu(8)))
    wanted = shape(cpu=1)
    room.take(wanted, np.array([1]))
    fork = room.fork()
    fork.take(wanted, np.array([3]))
    assert (room.free("cpu").tolist(), fork.free("cpu").tolist()) == ([7000], [4000])
    room.take(wanted, np.array([2]))
    assert (room.free("cpu").tolist(), fork.free("cpu").tolist()) == ([5000], [4000])


# --- pods of an assumed workload that are bound already ----------------------------------------------------

WEB = component("web", 5, cpu=1)
PLACED = (assumed("default", WEB),)


def bound(kind: str, owner: str, count: int, namespace: str = "default") -> list[Thing]:
    return [
        pod(f"{owner}-{kind}-{index}", namespace).on("n").requests(cpu=1).owned_by(kind, owner)
        for index in range(count)
    ]


SELF = WorkloadReference("Deployment", "default", "web")
DEPLOYED: list[Thing] = [deployment("web"), replica_set("web-1", "web"), replica_set("web-2", "web")]

# Pods on the node, who asks, replicas of 1 core left on 20 cores when 5 of "web" are assumed.
CHARGES: dict[str, tuple[list[Thing], WorkloadReference | None, int]] = {
    "none is bound: all are charged": ([], SELF, 15),
    "a Deployment's bound pods are its ReplicaSets'": (
        [*DEPLOYED, *bound("ReplicaSet", "web-1", 2)],
        SELF,
        15,
    ),
    "of all its ReplicaSets": (
        [*DEPLOYED, *bound("ReplicaSet", "web-1", 2), *bound("ReplicaSet", "web-2", 3)],
        SELF,
        15,
    ),
    "more bound than assumed charge nothing": ([*DEPLOYED, *bound("ReplicaSet", "web-1", 7)], SELF, 13),
    "whoever asks": ([*DEPLOYED, *bound("ReplicaSet", "web-1", 2)], None, 15),
    "another namespace's pods are not its own": (bound("StatefulSet", "web", 2, "other"), SELF, 13),
    "another name's neither": (bound("StatefulSet", "shop", 2), SELF, 13),
    "the only kind of that name": (bound("StatefulSet", "web", 2), None, 15),
    "of two kinds the smaller count": (
        [*bound("StatefulSet", "web", 2), *bound("Job", "web", 1)],
        None,
        13,
    ),
    "unless one of them asks": (
        [*bound("StatefulSet", "web", 2), *bound("Job", "web", 1)],
        WorkloadReference("StatefulSet", "default", "web"),
        14,
    ),
    "a kind that asks and has none bound is charged whole": (bound("StatefulSet", "web", 2), SELF, 13),
}


@pytest.mark.parametrize(("things", "asking", "left"), CHARGES.values(), ids=CHARGES)
def test_bound_pods_are_not_charged_again(
    things: list[Thing], asking: WorkloadReference | None, left: int
) -> None:
    mirror = cluster(node("n").cpu(20), *things)
    assert replicas_of(mirror, shape(cpu=1), PLACED, asking).value == left


def test_workloads_of_one_name_share_its_bound_pods() -> None:
    """The wire has no kind, so the 4 bound pods of "web" are those of one of the two."""
    mirror = cluster(node("n").cpu(20), *bound("StatefulSet", "web", 4))
    twice = (*PLACED, assumed("default", component("web", 3, cpu=1)))
    assert replicas_of(mirror, shape(cpu=1), twice).value == 20 - 4 - (5 + 3 - 4)


def test_nominated_pods_hold_their_room_already() -> None:
    waiting = pod("web-0").nominated("n").requests(cpu=1).owned_by("StatefulSet", "web")
    mirror = cluster(node("n").cpu(20), waiting)
    assert replicas_of(mirror, shape(cpu=1), PLACED).value == 15


def test_a_workload_of_several_components_is_charged_whole() -> None:
    gang = assumed("default", component("web", 2, cpu=1), component("worker", 3, cpu=1))
    mirror = cluster(node("n").cpu(20), *bound("StatefulSet", "web", 2))
    assert replicas_of(mirror, shape(cpu=1), (gang,)).value == 13


def test_two_workloads_of_one_name_share_its_bound_pods() -> None:
    mirror = cluster(
        node("a").gpus(8),
        *(pod(f"web-{n}").on("a").requests(gpu=1).owned_by("StatefulSet", "web") for n in range(3)),
    )
    twice = [assumed("default", component("web", 3, gpu=1)), assumed("default", component("web", 3, gpu=1))]
    # Three of six pods are bound: of the five GPUs left, three are on their way to the others.
    assert replicas_of(mirror, shape(gpu=1), twice).value == 2
