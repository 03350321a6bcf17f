"""Tight placements: where the pods of a gang go so that as many nodes as possible stay whole."""

from collections.abc import Mapping
from dataclasses import replace
from random import Random

import pytest

from estimator.capacity.budget import Budget
from estimator.capacity.request import Component
from estimator.capacity.sets.best_fit import fullest_first
from estimator.capacity.sets.component_sets import Sets
from estimator.capacity.topology.domains import DomainCache
from estimator.capacity.topology.gang_fit import GangFit, place_gang
from estimator.capacity.topology.levels import Levels, levels_of
from estimator.cluster.mirror import ClusterMirror
from fairway.workloads.gang import TopologyMode, TopologyRequest
from tests.builders import NodeBuilder, PodBuilder, cluster, component, never, node, pod, room_of
from tests.estimator.gang_instances import (
    Fleet,
    components,
    flaws,
    gpu_fleet,
    gpu_gang,
    small_fleet,
    small_gang,
)

RACK = "example.com/rack"
Where = Mapping[tuple[str, str], int]
FOREVER = Budget(lambda: 0.0, 1.0)


def host(
    name: str, free: int, of: int = 8, *, cpu: int = 96, rack: str = ""
) -> tuple[NodeBuilder, PodBuilder]:
    """A node with so many of its GPUs free, and the pod that has the others."""
    built = node(name).gpus(of).cpu(cpu)
    return built.label({RACK: rack}) if rack else built, pod(f"on-{name}").on(name).requests(gpu=of - free)


def hosts(**free: int) -> ClusterMirror:
    return cluster(*(thing for name, gpus in free.items() for thing in host(name, gpus)))


def fit(
    mirror: ClusterMirror,
    *asked: Component,
    wanted: int = 1,
    tight: bool = True,
    topology: TopologyRequest | None = None,
) -> GangFit:
    levels = levels_of([RACK]) if topology else Levels()
    room = room_of(mirror)
    return place_gang(room, asked, topology, levels, DomainCache(), never, wanted, FOREVER, tight=tight)


def where(mirror: ClusterMirror, asked: tuple[Component, ...], found: GangFit) -> Where:
    names = {index: row.name for index, row in enumerate(mirror.columns.rows) if row is not None}
    return {(asked[part].name, names[row]): pods for (part, row), pods in (found.placement or {}).items()}


def small(pods: int, gpus: int = 1) -> Component:
    return component("small", pods, gpu=gpus, cpu=1)


def large(pods: int, gpus: int = 8) -> Component:
    return component("large", pods, gpu=gpus, cpu=8)


DRIVER = component("driver", 1, cpu=4)


@pytest.mark.parametrize(
    ("mirror", "asked", "wanted", "expected"),
    [
        # Partly used nodes first, the fullest of them that takes a pod.
        (hosts(a=8, b=3, c=1, d=0), (small(1),), 1, {("small", "c"): 1}),
        (hosts(a=8, b=3, c=1, d=0), (small(1, 2),), 1, {("small", "b"): 1}),
        (hosts(a=8, b=3, c=1, d=0), (small(4),), 1, {("small", "c"): 1, ("small", "b"): 3}),
        (
            hosts(a=8, b=3, c=1, d=8),
            (small(6),),
            1,
            {("small", "c"): 1, ("small", "b"): 3, ("small", "a"): 2},
        ),
        (hosts(a=5, b=4, c=8), (small(2, 4),), 1, {("small", "b"): 1, ("small", "a"): 1}),
        # Of whole nodes no more than must be.
        (hosts(a=8, b=8, c=8), (small(8),), 1, {("small", "a"): 8}),
        (hosts(a=8, b=8, c=8), (small(2, 4),), 1, {("small", "a"): 2}),
        # What needs whole nodes gets them, and the others what is broken up.
        (hosts(a=8, b=8, c=4), (small(4), large(1)), 1, {("large", "a"): 1, ("small", "c"): 4}),
        (hosts(a=8, b=8), (small(4), large(1)), 1, {("large", "a"): 1, ("small", "b"): 4}),
        # The remainder of a node that the gang breaks up itself is taken before another whole one.
        (hosts(a=8, b=8), (small(2), large(1, 6)), 1, {("large", "a"): 1, ("small", "a"): 2}),
        # A node of 16 of which half is used is no whole one.
        (
            cluster(*host("a", 8), *host("b", 8, of=16)),
            (large(1),),
            1,
            {("large", "b"): 1},
        ),
        # Pods without devices go where these are used up, or where there are none.
        (hosts(a=8, b=3, c=0), (DRIVER,), 1, {("driver", "c"): 1}),
        (
            cluster(*host("a", 8), node("b").cpu(96), node("c").cpu(4)),
            (DRIVER,),
            1,
            {("driver", "c"): 1},
        ),
        # Among equals by what is left of cpu.
        (cluster(*host("a", 2), *host("b", 2, cpu=48)), (small(1),), 1, {("small", "b"): 1}),
        # As many copies as are wanted, all where none are said.
        (hosts(a=8, b=3, c=1), (small(1),), 3, {("small", "c"): 1, ("small", "b"): 2}),
        (hosts(a=2, b=1), (small(1),), 0, {("small", "a"): 2, ("small", "b"): 1}),
    ],
)
def test_pods_go_where_they_break_up_the_least(
    mirror: ClusterMirror, asked: tuple[Component, ...], wanted: int, expected: Where
) -> None:
    found = fit(mirror, *asked, wanted=wanted)
    assert where(mirror, asked, found) == expected
    other = fit(mirror, *asked, wanted=wanted, tight=False)
    assert (found.answer, found.level) == (other.answer, other.level)


def test_where_best_fit_finds_no_place_the_proof_stands() -> None:
    """Of 5, 4 and 3 on 6 and 6, with cores so that the largest fits beside none but the smallest."""
    things = (node("a").gpus(6).cpu(10), node("b").gpus(6).cpu(10))
    asked = (
        component("x", 2, gpu=2, cpu=4),
        component("y", 2, gpu=3, cpu=2),
        component("z", 2, gpu=1, cpu=4),
    )
    mirror = cluster(*things)
    assert fit(mirror, *asked).answer.value == 1
    assert sum(where(mirror, asked, fit(mirror, *asked)).values()) == 6


RACKS = cluster(
    *(
        thing
        for name, free, rack in (("a", 8, "1"), ("b", 8, "1"), ("c", 8, "2"), ("d", 2, "2"), ("e", 1, "3"))
        for thing in host(name, free, rack=rack)
    )
)


@pytest.mark.parametrize("mode", [TopologyMode.REQUIRED, TopologyMode.PREFERRED])
@pytest.mark.parametrize(
    ("asked", "wanted", "expected"),
    [
        # The rack that holds the least of those that hold it, and in it the fullest nodes.
        ((small(2),), 1, {("small", "d"): 2}),
        ((small(9),), 1, {("small", "d"): 2, ("small", "c"): 7}),
        ((small(1),), 1, {("small", "e"): 1}),
        ((small(11),), 1, {("small", "a"): 8, ("small", "b"): 3}),
        ((small(2), large(1)), 1, {("large", "c"): 1, ("small", "d"): 2}),
    ],
)
def test_of_domains_the_fullest_that_will_do_is_taken(
    mode: TopologyMode, asked: tuple[Component, ...], wanted: int, expected: Where
) -> None:
    found = fit(RACKS, *asked, wanted=wanted, topology=TopologyRequest(mode, RACK))
    assert where(RACKS, asked, found) == expected


def test_of_alike_copies_that_all_fit_no_more_are_told_than_wanted() -> None:
    request = TopologyRequest(TopologyMode.REQUIRED, RACK)
    all_of_them = fit(RACKS, small(4), wanted=2, tight=False, topology=request)
    found = fit(RACKS, small(4), wanted=2, topology=request)
    assert found.answer == all_of_them.answer
    assert found.answer.value == 6
    assert sum((found.placement or {}).values()) == 8


@pytest.mark.parametrize("tens", range(20))
def test_a_tight_placement_is_right_and_breaks_up_no_more(tens: int) -> None:
    for seed in range(10 * tens, 10 * tens + 10):
        rng = Random(seed)
        is_small = seed % 2 == 0
        fleet, parts = (
            (small_fleet(rng), small_gang(rng)) if is_small else (gpu_fleet(rng, 12), gpu_gang(rng))
        )
        mirror, asked = fleet.mirror(), components(parts)
        for wanted in (1, 3, 0):
            found = fit(mirror, *asked, wanted=wanted)
            other = fit(mirror, *asked, wanted=wanted, tight=False)
            assert found.answer == other.answer, seed
            told = min(found.answer.value, wanted or found.answer.value)
            placed = replace(found.answer, value=told)
            assert flaws(fleet, mirror, parts, Sets(placed, found.placement)) == [], seed
            assert broken_up(fleet, mirror, found) <= broken_up(fleet, mirror, other), seed


def broken_up(fleet: Fleet, mirror: ClusterMirror, found: GangFit) -> int:
    """How many nodes are used of which all GPUs were free, where the gang asks for any."""
    gpus = mirror.columns.allocatable("nvidia.com/gpu"), mirror.columns.free("nvidia.com/gpu")
    rows = {row for _, row in found.placement or {}}
    return sum(bool(gpus[0][row] > 0 and gpus[0][row] == gpus[1][row]) for row in rows)


def test_the_order_names_every_node_once() -> None:
    room = room_of(hosts(a=8, b=0, c=4))
    assert sorted(fullest_first(room, small(1).shape).tolist()) == [0, 1, 2]
