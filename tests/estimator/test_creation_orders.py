"""What a scheduler that looks at one pod at a time places for sure, in whatever order the pods come."""

from itertools import permutations
from random import Random

import pytest

from estimator.capacity.request import Component
from estimator.capacity.sets.component_sets import max_sets
from estimator.capacity.sets.creation_orders import Spreading, creation_orders
from estimator.capacity.sets.pod_by_pod import PodByPod, Ties
from estimator.cluster.mirror import ClusterMirror
from tests.builders import cluster, component, never, node, pod, room_of
from tests.estimator.gang_instances import components, small_fleet, small_gang


def spread(mirror: ClusterMirror, *asked: Component, limit: int = 50) -> int | None:
    return Spreading(room_of(mirror), asked).sets(limit, never)


def hosts(number: int, gpus: int = 8) -> ClusterMirror:
    return cluster(*(node(f"n{index}").cpu(64).memory("256Gi").gpus(gpus) for index in range(number)))


SINGLES, WHOLE = component("single", 2, cpu=8, gpu=1), component("whole", 1, cpu=8, gpu=8)
PAIR, FOUR = component("pair", 2, cpu=8, gpu=2), component("four", 2, cpu=8, gpu=4)


@pytest.mark.parametrize(
    ("mirror", "asked", "sets"),
    [
        # Small pods first leave no whole node, whichever way they are stated.
        (hosts(2), (SINGLES, WHOLE), 0),
        (hosts(2), (WHOLE, SINGLES), 0),
        (hosts(3), (WHOLE, SINGLES), 1),
        (hosts(3), (PAIR, FOUR), 1),
        # Eight singles and then four pairs fill both nodes; mixed, two nodes are left with one device each.
        (hosts(2), (component("one", 8, cpu=1, gpu=1), component("two", 4, cpu=1, gpu=2)), 0),
        # Where only one order of equally good nodes leaves room for the larger pod.
        (
            cluster(*(node(name).cpu(8).gpus(gpus) for name, gpus in (("a", 2), ("b", 1)))),
            (component("one", 1, cpu=1, gpu=1), component("two", 1, cpu=1, gpu=2)),
            0,
        ),
        # Pods that are alike become whole in every order, also where they are of several components.
        (hosts(2), (component("a", 3, cpu=1, gpu=2), component("b", 1, cpu=1, gpu=2)), 2),
        (hosts(2), (component("a", 3, cpu=1, gpu=3),), 1),
        (cluster(), (SINGLES, WHOLE), 0),
        (cluster(), (SINGLES,), 0),
    ],
)
def test_the_least_of_all_orders_counts(
    mirror: ClusterMirror, asked: tuple[Component, ...], sets: int
) -> None:
    assert spread(mirror, *asked) == sets


@pytest.mark.parametrize("tens", range(10))
def test_no_order_that_is_tried_places_fewer_and_some_places_no_more(tens: int) -> None:
    for seed in range(10 * tens, 10 * tens + 10):
        rng = Random(seed)
        fleet, parts = small_fleet(rng), small_gang(rng)
        mirror, asked = fleet.mirror(), components(parts)
        scheduler = PodByPod(room_of(mirror), dict.fromkeys(part.shape for part in asked))
        tried = [
            scheduler.sets(order, 12, never, ties=ties)
            for order, ties in creation_orders(room_of(mirror), asked)
        ]
        found = spread(mirror, *asked, limit=12)
        assert found == min(each for each in tried if each is not None), seed
        assert found is not None
        assert found <= max_sets(room_of(mirror), asked, never).answer.upper_bound


def test_alike_pods_are_exact_in_every_order_that_there_is() -> None:
    mirror = cluster(
        *(node(name).cpu(8).gpus(gpus) for name, gpus in (("a", 3), ("b", 5))),
        pod("p").on("b").requests(cpu=2),
    )
    asked = component("x", 2, cpu=2, gpu=1), component("y", 2, cpu=2, gpu=1)
    scheduler = PodByPod(room_of(mirror), [asked[0].shape])
    orders = set(permutations([part.shape for part in asked for _ in range(part.replicas)]))
    assert {scheduler.sets(order, 9, never) for order in orders} == {spread(mirror, *asked)} == {1}


def test_orders_are_the_same_each_time_and_hold_every_pod() -> None:
    room = room_of(hosts(2))
    tried = list(creation_orders(room, (WHOLE, SINGLES)))
    assert tried == list(creation_orders(room, (WHOLE, SINGLES)))
    stated = [WHOLE.shape, SINGLES.shape, SINGLES.shape]
    assert tried[:3] == [(tuple(stated), ties) for ties in Ties]
    assert tried[3] == (tuple(stated[::-1]), Ties.EVENLY)
    assert all(sorted(map(stated.index, order)) == [0, 1, 1] for order, _ in tried)
    assert len(tried) == 7
    assert len(list(creation_orders(room, (SINGLES, WHOLE)))) == 6


def test_pods_that_ask_for_no_more_than_devices_go_to_any_node() -> None:
    """Eight that one node could take may be on two, so that the large one is not placed."""
    assert spread(hosts(2, 8), component("large", 1, gpu=8), component("small", 8, gpu=1)) == 0


@pytest.mark.parametrize(
    ("small", "limit", "known"), [(1, 10_000, True), (1, 10_001, False), (100_000, 1, False)]
)
def test_too_many_pods_of_several_kinds_are_not_told(small: int, limit: int, known: bool) -> None:
    mirror = cluster(node("a").cpu(64))
    found = spread(mirror, component("one", small, cpu=1), component("two", 1, cpu=2), limit=limit)
    assert (found is not None) is known
    assert spread(mirror, component("one", small, cpu=1), limit=limit) == 64 // small


def test_sets_beyond_the_limit_are_not_placed() -> None:
    mirror = hosts(1, 64)
    mixed = component("one", 1, gpu=1), component("two", 1, gpu=2)
    for asked in (mixed, mixed[:1]):
        assert spread(mirror, *asked, limit=5) == 5
        assert spread(mirror, *asked, limit=0) == 0
    assert spread(mirror, component("one", 0, cpu=1), limit=7) == 7
    assert spread(mirror, limit=7) == 7


@pytest.mark.parametrize("calls", [0, 1, 2, 4])
def test_nothing_is_told_once_the_time_is_up(calls: int) -> None:
    looks = iter([False] * calls)
    room = room_of(hosts(4))
    assert Spreading(room, (PAIR, FOUR)).sets(1, lambda: next(looks, True)) is None
