"""Sets with proof: against brute force, with placements checked from the objects, cut short, and misled."""

import json
from collections.abc import Callable
from itertools import count
from random import Random
from threading import Thread
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.capacity.answer import UNBOUNDED
from estimator.capacity.budget import NO_BUDGET, Budget
from estimator.capacity.replicas import max_replicas
from estimator.capacity.request import Component
from estimator.capacity.sets import exact, integer_program, pattern_program
from estimator.capacity.sets.bins import bins_of
from estimator.capacity.sets.component_sets import Sets, max_sets
from estimator.capacity.sets.exact import most_sets
from estimator.capacity.sets.first_fit import first_fit
from estimator.capacity.sets.integer_program import Outcome, Program, Solved, solve
from estimator.capacity.sets.patterns import patterns_of
from estimator.cluster.mirror import ClusterMirror
from estimator.fit.pod_shape import PodShape
from tests import gang_checker
from tests.builders import NodeBuilder, cluster, component, never, node, room_of, sets_of
from tests.estimator import gang_instances, packing
from tests.estimator.gang_instances import (
    alike_gang,
    components,
    flaws,
    gpu_fleet,
    gpu_gang,
    small_fleet,
    small_gang,
)
from tests.gang_checker import Part

FOREVER = Budget(lambda: 0.0, 1e6)


def shapes(asked: tuple[Component, ...]) -> set[PodShape]:
    return {one.shape for one in asked}


def pods_per_shape(asked: tuple[Component, ...]) -> dict[PodShape, int]:
    pods: dict[PodShape, int] = {}
    for one in asked:
        pods[one.shape] = pods.get(one.shape, 0) + one.replicas
    return pods


def solved(mirror: ClusterMirror, asked: tuple[Component, ...], wanted: int = UNBOUNDED) -> Sets:
    return max_sets(room_of(mirror), asked, never, search=FOREVER, wanted=wanted)


# --- golden vectors -----------------------------------------------------------------------------------------

SEVEN, EIGHT = node("a").gpus(7), node("b").gpus(8)
THREE_EIGHTS = tuple(node(name).gpus(8) for name in "abc")


def devices(*each: int) -> tuple[Component, ...]:
    return tuple(component(f"of-{gpus}-{index}", 1, gpu=gpus) for index, gpus in enumerate(each))


GOLDEN: dict[str, tuple[tuple[NodeBuilder, ...], tuple[Component, ...], int, int]] = {
    "V3: drivers take the cores that the worker needs": (
        (node("a").gpus(8).cpu(64), node("b").cpu(64)),
        (component("driver", 2, cpu=32), component("worker", 1, cpu=64, gpu=8)),
        0,
        1,
    ),
    "V4: seven is four and three, eight is five and three": ((SEVEN, EIGHT), devices(5, 4, 3, 3), 0, 1),
    "V5: five and three fill a node": (THREE_EIGHTS, devices(5, 3), 3, 3),
    "V5: eleven of twenty-four, twice": (THREE_EIGHTS, devices(3, 3, 5), 2, 2),
}


@pytest.mark.parametrize(("nodes", "asked", "by_first_fit", "most"), GOLDEN.values(), ids=GOLDEN)
def test_golden_vectors(
    nodes: tuple[NodeBuilder, ...], asked: tuple[Component, ...], by_first_fit: int, most: int
) -> None:
    mirror = cluster(*nodes)
    assert packing.first_fit(room_of(mirror), asked)[0] == by_first_fit
    answer = solved(mirror, asked).answer
    assert (answer.value, answer.upper_bound, answer.proven) == (most, most, True)


# --- against brute force ------------------------------------------------------------------------------------


@pytest.mark.parametrize("tens", range(30))
def test_small_gangs_get_the_best_there_is_with_proof_and_placement(tens: int) -> None:
    for seed in range(10 * tens, 10 * tens + 10):
        rng = Random(seed)
        fleet, parts = small_fleet(rng), small_gang(rng)
        mirror = fleet.mirror()
        found = solved(mirror, components(parts))
        most = gang_checker.best(fleet.gang(parts))
        assert (found.answer.value, found.answer.proven) == (most, True), seed
        assert flaws(fleet, mirror, parts, found) == [], seed


@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"few_kinds": 1},
        {"most_columns": 4},
        {"most_combinations": 60},
        {"most_combinations": 20},
        {"most_shapes": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("gang", [small_gang, alike_gang])
def test_what_is_found_over_patterns_is_true_however_much_of_it_is_looked_at(
    gang: Callable[[Random], tuple[Part, ...]], limits: dict[str, int]
) -> None:
    """By itself, without what other ways of searching would add."""
    proven = 0
    for seed in range(40):
        rng = Random(seed)
        fleet, parts = small_fleet(rng), gang(rng)
        most = gang_checker.best(fleet.gang(parts))
        asked = components(parts)
        room = room_of(fleet.mirror())
        per_shape = pods_per_shape(asked)
        alone = {shape: max_replicas(room, shape) for shape in per_shape}
        bound = min(alone[shape].value // pods for shape, pods in per_shape.items())
        if len(per_shape) < 2 or bound == 0:
            continue
        with (
            patch.object(pattern_program, "_FEW_KINDS", limits.get("few_kinds", 60)),
            patch.object(pattern_program, "_MOST_COLUMNS", limits.get("most_columns", 20_000)),
            patch.object(exact, "_MOST_COMBINATIONS", limits.get("most_combinations", 2_000_000)),
            patch.object(exact, "_MOST_SHAPES", limits.get("most_shapes", 64)),
        ):
            found = most_sets(room, per_shape, alone, bound, FOREVER)
        assert found.sets <= most <= found.bound, seed
        for shape, (rows, pods) in found.packed.items():
            placed = np.zeros(len(room.nodes.rows), dtype=np.int64)
            placed[rows] = pods
            assert (placed <= room.fits(shape)).all(), seed
            assert placed.sum() == per_shape[shape] * found.sets, seed
            room.take(shape, placed)
        proven += found.sets == found.bound
    assert proven > 4


def test_shapes_that_count_as_one_may_fit_together_where_two_of_a_kind_do_not() -> None:
    mirror = cluster(node("a").cpu(11).memory(11).gpus(2))
    asked = (component("a", 1, cpu=1, memory=10, gpu=1), component("b", 1, cpu=10, memory=1, gpu=1))
    room = room_of(mirror)
    alone = {shape: max_replicas(room, shape) for shape in shapes(asked)}
    with patch.object(exact, "_MOST_COMBINATIONS", 1):
        found = most_sets(room, pods_per_shape(asked), alone, 1, FOREVER)
    assert found.bound == 1


def test_nodes_are_sorted_into_kinds_by_what_they_hold() -> None:
    """Every load that fits on a node is part of one of its patterns, and every pattern fits."""
    for seed in range(60):
        rng = Random(seed)
        fleet, parts = small_fleet(rng), small_gang(rng)
        room = room_of(fleet.mirror())
        per_shape = pods_per_shape(components(parts))
        bins = bins_of(room, list(per_shape)).reduced([4] * len(per_shape))
        assert bins is not None
        patterns = patterns_of(bins, 10**6)
        if patterns is None:
            assert len(bins.rows) == 0
            continue
        assert int(patterns.nodes.sum()) == len(bins.rows)
        for place in range(len(bins.rows)):
            mine = patterns.pods[patterns.kind == patterns.kind_of[place]]
            for load in np.ndindex(*(int(cap) + 2 for cap in bins.caps[place])):
                fits = bool(
                    (np.array(load) <= bins.caps[place]).all()
                    and (np.array(load) @ bins.takes <= bins.free[place]).all()
                )
                assert fits is bool((np.array(load) <= mine).all(axis=1).any()), (seed, load)


# --- larger clusters ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(25))
def test_fifty_nodes_are_never_used_worse_than_by_first_fit(seed: int) -> None:
    rng = Random(seed)
    fleet, parts = gang_instances.mixed_fleet(rng, 50), gang_instances.mixed_gang(rng)
    mirror, asked = fleet.mirror(), components(parts)
    found = solved(mirror, asked)
    assert packing.first_fit(room_of(mirror), asked)[0] <= found.answer.value <= found.answer.upper_bound
    assert found.answer.value >= sets_of(mirror, asked).answer.value
    assert found.answer.upper_bound <= sets_of(mirror, asked).answer.upper_bound
    assert flaws(fleet, mirror, parts, found) == []


@pytest.mark.parametrize("seed", range(12))
def test_gangs_on_gpus_are_proven(seed: int) -> None:
    rng = Random(seed)
    fleet, parts = gpu_fleet(rng, 120), gpu_gang(rng)
    mirror = fleet.mirror()
    found = solved(mirror, components(parts))
    assert found.answer.proven
    assert flaws(fleet, mirror, parts, found) == []


def test_the_order_in_which_nodes_came_changes_neither_answer_nor_placement() -> None:
    rng = Random(7)
    fleet, parts = gpu_fleet(rng, 40), gpu_gang(rng)
    answers = set()
    for nodes in (fleet.nodes, fleet.nodes[::-1], fleet.nodes[17:] + fleet.nodes[:17]):
        mirror = cluster(*nodes, *fleet.pods)
        found = solved(mirror, components(parts))
        answers.add((found.answer, frozenset(gang_instances.by_node(mirror, found).items())))
    assert len(answers) == 1


# --- time ---------------------------------------------------------------------------------------------------


@settings(max_examples=150, derandomize=True, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 60))
def test_a_search_that_is_cut_short_tells_no_untruth(seed: int, looks: int) -> None:
    """The clock moves on by one second at each look, until the budget is spent."""
    rng = Random(seed)
    fleet, parts = small_fleet(rng), small_gang(rng)
    mirror, asked = fleet.mirror(), components(parts)
    clock = count()
    found = max_sets(room_of(mirror), asked, never, search=Budget(lambda: float(next(clock)), float(looks)))
    most = gang_checker.best(fleet.gang(parts))
    assert packing.first_fit(room_of(mirror), asked)[0] <= found.answer.value <= most
    assert most <= found.answer.upper_bound
    assert found.answer.proven is (found.answer.value == found.answer.upper_bound)
    assert flaws(fleet, mirror, parts, found) == []


def test_without_time_to_search_nothing_is_loaded_or_solved() -> None:
    rng = Random(3)
    mirror, parts = gpu_fleet(rng, 30).mirror(), gpu_gang(rng)
    with patch.object(integer_program, "solve", side_effect=AssertionError("nobody gave it time")):
        asked = components(parts)
        assert max_sets(room_of(mirror), asked, never, search=NO_BUDGET) == sets_of(mirror, asked)


def test_a_budget_counts_down_to_zero_and_not_below() -> None:
    assert Budget(lambda: 3.0, 5.0).left_s() == 2.0
    assert not Budget(lambda: 3.0, 5.0).spent
    assert Budget(lambda: 6.0, 5.0).left_s() == 0.0
    assert Budget(lambda: 5.0, 5.0).spent


def test_several_searches_at_once_do_not_disturb_each_other() -> None:
    rng = Random(5)
    mirror = gpu_fleet(rng, 60).mirror()
    gangs = [components(gpu_gang(rng)) for _ in range(4)]
    alone = [solved(mirror, asked) for asked in gangs]
    together: dict[int, Sets] = {}

    def search(index: int) -> None:
        together[index] = solved(mirror, gangs[index])

    threads = [Thread(target=search, args=(index,)) for index in range(len(gangs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [together[index] for index in range(len(gangs))] == alone


# --- how many are wanted ------------------------------------------------------------------------------------


@pytest.mark.parametrize("wanted", [0, 1, 2, 5, 1000])
def test_no_more_sets_are_placed_than_wanted_and_the_bound_is_about_all(wanted: int) -> None:
    rng = Random(11)
    fleet, parts = gang_instances.mixed_fleet(rng, 20), gang_instances.mixed_gang(rng)
    mirror, asked = fleet.mirror(), components(parts)
    most = solved(mirror, asked).answer
    assert most.proven
    found = solved(mirror, asked, wanted)
    assert found.answer.value == min(wanted, most.value)
    assert found.answer.upper_bound >= most.value
    assert len(found.placement or {}) > 0 or wanted == 0
    assert flaws(fleet, mirror, parts, found) == []


# --- when the solver fails ----------------------------------------------------------------------------------

CONTESTED = tuple(node(f"n{index}").gpus(8).cpu(64) for index in range(5))
ODD = (component("a", 2, gpu=3), component("b", 1, gpu=5), component("c", 1, gpu=2, cpu=8))


def stopped(program: Program, within_s: float, *, integral: bool) -> Solved:
    return Solved(Outcome.STOPPED, np.zeros(0), np.inf, np.zeros(len(program.low)))


def beyond_all(program: Program, within_s: float, *, integral: bool) -> Solved:
    """Everything as large as it may be, and called optimal."""
    most = np.where(np.isfinite(program.most), program.most, 1e6)
    return Solved(Outcome.OPTIMAL, most, float(program.gain @ most), -np.ones(len(program.low)))


def half(program: Program, within_s: float, *, integral: bool) -> Solved:
    right = solve(program, within_s, integral=integral)
    return Solved(right.outcome, right.values / 2, right.bound, right.duals)


@pytest.mark.parametrize("broken", [stopped, beyond_all, half])
def test_what_a_failing_solver_proposes_is_not_believed(broken: object) -> None:
    mirror = cluster(*CONTESTED)
    most = solved(mirror, ODD).answer.value
    fleet_free = packing.first_fit(room_of(mirror), ODD)[0]
    with (
        patch("estimator.capacity.sets.prices.solve", broken),
        patch("estimator.capacity.sets.pattern_program.solve", broken),
    ):
        found = solved(mirror, ODD)
    assert fleet_free <= found.answer.value <= most <= found.answer.upper_bound
    assert found.placement is not None
    assert packing.flaws(room_of(mirror), ODD, found.answer.value, found.placement) == []


def test_programs_end_as_they_should() -> None:
    def program(low: float, high: float) -> Program:
        one = np.ones(1)
        return Program(
            gain=one,
            least=np.zeros(1),
            most=np.full(1, 10.0),
            low=np.full(1, low),
            high=np.full(1, high),
            row=np.zeros(1, dtype=np.int64),
            column=np.zeros(1, dtype=np.int64),
            factor=np.full(1, 2.0),
        )

    best = solve(program(-np.inf, 7.0), 5.0, integral=True)
    assert (best.outcome, best.values.tolist(), best.bound) == (Outcome.OPTIMAL, [3.0], 3.0)
    assert solve(program(-np.inf, 7.0), 5.0, integral=False).values.tolist() == [3.5]
    none = solve(program(21.0, np.inf), 5.0, integral=True)
    assert (none.outcome, none.values.tolist()) == (Outcome.INFEASIBLE, [])


# --- hostile and degenerate requests ------------------------------------------------------------------------

HUGE = 2**63 - 1


def test_where_shapes_draw_on_the_same_devices_nothing_is_claimed_that_amounts_do_not_prove() -> None:
    mirror = cluster(*CONTESTED)
    room = room_of(mirror)
    with patch.object(type(room), "separable", return_value=False):
        found = max_sets(room, ODD, never, search=FOREVER)
    assert found.placement is not None
    assert packing.flaws(room_of(mirror), ODD, found.answer.value, found.placement) == []
    assert 0 < found.answer.value <= solved(mirror, ODD).answer.value <= found.answer.upper_bound


def hami_node(name: str, *memory_mib: int) -> NodeBuilder:
    """A node whose GPUs are shared, with so much memory each."""
    gpu = {"count": 10, "devcore": 100, "type": "NVIDIA-A10", "numa": 0, "mode": "hami-core", "health": True}
    register = [
        {**gpu, "id": f"GPU-{name}-{index}", "index": index, "devmem": size}
        for index, size in enumerate(memory_mib)
    ]
    built = node(name).gpus(10 * len(memory_mib)).cpu(64)
    return built.annotated({"hami.io/node-nvidia-register": json.dumps(register)})


def share(name: str, replicas: int, memory_mib: int, cpu: int = 1) -> Component:
    return component(name, replicas, {"nvidia.com/gpu": 1, "nvidia.com/gpumem": memory_mib, "cpu": cpu})


def test_first_fit_takes_no_more_of_a_device_than_there_is() -> None:
    """Two devices a node take one pod each, whatever the node's sums say."""
    mirror = cluster(hami_node("a", 24000, 24000), hami_node("b", 24000, 24000))
    asked = (share("worker", 1, 16000), component("driver", 1, cpu=2))
    order = mirror.columns.first_fit_order()
    found = first_fit(room_of(mirror), tuple(enumerate(asked)), order, never)
    assert found.sets == 4
    assert {key: pods for key, pods in found.placement().items() if key[0] == 0} == {(0, 0): 2, (0, 1): 2}
    assert first_fit(room_of(mirror), tuple(enumerate(asked)), order, never, 3).sets == 3


def test_shares_of_devices_limit_gangs_beside_what_else_they_ask_for() -> None:
    mirror = cluster(hami_node("a", 24000, 24000), hami_node("b", 24000), node("c").cpu(7))
    asked = (share("worker", 2, 16000, cpu=30), component("driver", 1, cpu=5))
    # Three devices take a worker each: one pair.
    assert solved(mirror, asked).answer.value == 1
    single = (share("worker", 1, 16000, cpu=30), component("driver", 1, cpu=5))
    answer = solved(mirror, single).answer
    # Drivers: none beside the two workers on a, six beside that on b, one on c.
    assert (answer.value, answer.proven) == (3, True)


def test_shapes_that_share_devices_with_each_other_get_what_surely_fits() -> None:
    mirror = cluster(hami_node("a", 24000, 24000))
    room = room_of(mirror)
    asked = (share("small", 1, 8000), share("large", 1, 16000))
    assert not room.separable(shapes(asked))
    answer = solved(mirror, asked).answer
    assert 1 <= answer.value <= 2 <= answer.upper_bound
    assert solved(mirror, (share("small", 1, 9000), share("large", 1, 16000))).answer.value == 1


def test_a_gang_of_a_hundred_thousand_pods() -> None:
    nodes = [node(f"n{index}").cpu(96).gpus(8).pods(500) for index in range(300)]
    asked = (component("driver", 1, cpu=4, gpu=3), component("worker", 100_000, cpu="200m"))
    found = solved(cluster(*nodes), asked)
    assert (found.answer.value, found.answer.proven) == (1, True)
    more = (component("driver", 1, cpu=4, gpu=3), component("worker", 200_000, cpu="200m"))
    assert solved(cluster(*nodes), more).answer.value == 0


def test_two_hundred_components() -> None:
    nodes = [node(f"n{index}").cpu(96).memory("512Gi").gpus(8) for index in range(40)]
    asked = tuple(component(f"part-{index}", 1, cpu=f"{500 + index}m", gpu=index % 3) for index in range(200))
    mirror = cluster(*nodes)
    found = solved(mirror, asked)
    assert found.placement is not None
    assert packing.flaws(room_of(mirror), asked, found.answer.value, found.placement) == []
    assert found.answer.value == 1


AMOUNTS: dict[str, tuple[tuple[NodeBuilder, ...], tuple[Component, ...], int]] = {
    "amounts at the end of 64 bits": (
        (node("a").has(memory=str(HUGE), cpu=8), node("b").has(memory=str(HUGE - 7), cpu=8)),
        (component("x", 1, memory=str(HUGE // 3), cpu=3), component("y", 1, memory=str(HUGE // 2), cpu=3)),
        2,
    ),
    "amounts that share no divisor and are too many for floating point": (
        (node("a").has(memory=str(2**60 + 1)), node("b").has(memory=str(2**60 + 3))),
        (component("x", 1, memory=str(2**59 + 1)), component("y", 1, memory=str(2**59))),
        2,
    ),
    "more than any node will ever have": (
        (node("a").cpu(8),),
        (component("x", 1, cpu="100E"), component("y", 1, cpu=1)),
        0,
    ),
    "nothing but pods": ((node("a").pods(7), node("b").pods(4)), (component("x", 3), component("y", 2)), 2),
    "no node at all": ((), (component("x", 1, cpu=1), component("y", 1, gpu=1)), 0),
    "no node that may be used": (
        (node("a").cpu(8).cordoned(),),
        (component("x", 1, cpu=1), component("y", 1, gpu=1)),
        0,
    ),
    "parts that are all alike": ((EIGHT, SEVEN), devices(3, 3, 3), 1),
    "more pods of a part than 32 bits hold": (
        (node("a").pods(str(2**40)), node("b").pods(str(2**40))),
        (component("x", 2**31 - 1), component("y", 1)),
        1,
    ),
}


@pytest.mark.parametrize(("nodes", "asked", "most"), AMOUNTS.values(), ids=AMOUNTS)
def test_extreme_amounts(nodes: tuple[NodeBuilder, ...], asked: tuple[Component, ...], most: int) -> None:
    mirror = cluster(*nodes)
    found = solved(mirror, asked)
    assert (found.answer.value, found.answer.proven) == (most, True)
    assert found.placement is not None
    assert packing.flaws(room_of(mirror), asked, most, found.placement) == []


def test_a_part_says_what_limits_the_gang() -> None:
    found = solved(cluster(*THREE_EIGHTS), devices(3, 3, 5)).answer
    assert str(found.reasons[0]) == "component of-3-0 needs 2 pods a set, 6 fit at all"


def test_parts_may_be_asked_for_in_any_order() -> None:
    parts: list[Part] = []
    rng = Random(2)
    fleet = gpu_fleet(rng, 30)
    while len(shapes(components(parts))) < 3:
        parts = list(gpu_gang(rng))
    values = {solved(fleet.mirror(), components(order)).answer.value for order in (parts, parts[::-1])}
    assert len(values) == 1
