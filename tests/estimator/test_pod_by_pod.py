"""What a scheduler that looks at one pod at a time would place, against a plain retelling of its rules."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from estimator.capacity.request import Component
from estimator.capacity.sets.component_sets import max_sets
from estimator.capacity.sets.pod_by_pod import PodByPod, Ties
from estimator.cluster.mirror import ClusterMirror
from tests import oracle
from tests.builders import NodeBuilder, cluster, component, never, node, pod, room_of
from tests.estimator.gang_instances import Fleet, components, small_fleet, small_gang
from tests.gang_checker import Part

MEBI = 1 << 20


def spread(mirror: ClusterMirror, *asked: Component, limit: int = 50, last: bool = False) -> int | None:
    """One component after the other, as they are stated."""
    pods = [part.shape for part in asked for _ in range(part.replicas)]
    scheduler = PodByPod(room_of(mirror), [part.shape for part in asked])
    return scheduler.sets(pods, limit, never, ties=Ties.LAST if last else Ties.FIRST)


def naive(fleet: Fleet, order: list[str], pods: Sequence[Part], limit: int) -> int:
    """Each pod on the best of all nodes where it fits, scored from scratch; of equals the first."""
    nodes = {one.metadata.name: one for one in fleet.nodes}
    free = {
        name: oracle.free_of(one, [p for p in fleet.pods if p.spec.node_name == name])
        for name, one in nodes.items()
    }
    has = {
        name: {key: oracle.amount(key, raw) for key, raw in (one.status.allocatable or {}).items()}
        for name, one in nodes.items()
    }
    extra = {name: {"cpu": 0, "memory": 0} for name in nodes}

    def score(name: str, asks: dict[str, int]) -> int:
        least, before, after = [], [], []
        for key, unasked in (("cpu", 100), ("memory", 200 * MEBI)):
            capacity = has[name].get(key, 0)
            if capacity == 0:
                continue
            used = capacity - free[name][key]
            requested = used + extra[name][key] + (asks.get(key, 0) or unasked)
            least.append(0 if requested > capacity else (capacity - requested) * 100 // capacity)
            before.append(used / capacity)
            after.append(min(1.0, (used + asks.get(key, 0)) / capacity))
        total = sum(least) // len(least) if least else 0
        if asks.get("cpu", 0) or asks.get("memory", 0):
            total += 50 + (50 + balance(after) - balance(before)) // 2
        return total

    def balance(fractions: list[float]) -> int:
        deviation = abs(fractions[0] - fractions[1]) / 2 if len(fractions) == 2 else 0.0
        return int((1 - deviation) * 100)

    for sets in range(limit):
        for part in pods:
            asks = {key: n for key, n in oracle.request_of(part.asked).items() if n > 0}
            fitting = [
                name
                for name in order
                if oracle.eligible(nodes[name], part.asked.node_claim)
                and oracle.fitting(free[name], asks) > 0
            ]
            if not fitting:
                return sets
            chosen = max(fitting, key=lambda name: score(name, asks))
            for key, n in {**asks, "pods": 1}.items():
                free[chosen][key] -= n
            for key, unasked in (("cpu", 100), ("memory", 200 * MEBI)):
                extra[chosen][key] += 0 if asks.get(key, 0) else unasked
    return limit


@pytest.mark.parametrize("tens", range(20))
def test_each_pod_goes_where_the_scheduler_scores_highest(tens: int) -> None:
    for seed in range(10 * tens, 10 * tens + 10):
        rng = Random(seed)
        fleet, parts = small_fleet(rng), small_gang(rng)
        mirror = fleet.mirror()
        rows = mirror.columns.rows
        order = [row.name for row in (rows[index] for index in mirror.columns.first_fit_order()) if row]
        asked = components(parts)
        scheduler = PodByPod(room_of(mirror), dict.fromkeys(part.shape for part in asked))
        pods = [index for index, part in enumerate(parts) for _ in range(part.replicas)]
        bound = max_sets(room_of(mirror), asked, never).answer.upper_bound
        for last in (False, True, False):
            shapes = [asked[index].shape for index in pods]
            found = scheduler.sets(shapes, 12, never, ties=Ties.LAST if last else Ties.FIRST)
            walked = order[::-1] if last else order
            assert found == naive(fleet, walked, [parts[index] for index in pods], 12), seed
            assert found is not None
            assert found <= bound
            rng.shuffle(pods)


EMPTY_GPU_NODES = tuple(node(f"g{index}").cpu(64).memory("256Gi").gpus(8) for index in range(2))
TWO_SINGLES, WHOLE = component("single", 2, cpu=8, gpu=1), component("whole", 1, cpu=8, gpu=8)


def test_spreading_breaks_up_the_devices_that_a_larger_pod_needs() -> None:
    mirror = cluster(*EMPTY_GPU_NODES)
    assert spread(mirror, TWO_SINGLES, WHOLE) == 0
    assert spread(mirror, WHOLE, TWO_SINGLES) == 1
    assert max_sets(room_of(mirror), (TWO_SINGLES, WHOLE), never).answer.value == 1


def test_of_equally_good_nodes_the_first_is_taken() -> None:
    mirror = cluster(*(node(name).cpu(8).gpus(gpus) for name, gpus in (("a", 1), ("b", 2))))
    # The first goes to a, the second to the emptier b, and no node has two devices any more.
    assert spread(mirror, component("one", 2, cpu=1, gpu=1), component("two", 1, cpu=1, gpu=2)) == 0
    assert spread(mirror, component("one", 1, cpu=1, gpu=1), component("two", 1, cpu=1, gpu=2)) == 1


def test_a_balanced_node_is_preferred_to_one_that_is_a_little_emptier() -> None:
    lopsided = node("a").cpu(100).memory(1000)
    even = node("b").cpu(100).memory(1000)
    held = (pod("p").on("a").requests(cpu=60), pod("q").on("b").requests(cpu=30, memory=280))
    mirror = cluster(lopsided, even, *held)
    # It would leave b emptier by a hundredth; but a, of which 60 cores are used and no memory, it evens out.
    wide = component("wide", 1, memory=600, cpu="1m")
    rest = component("rest", 1, cpu=70)
    assert spread(mirror, wide, rest) == 1


def test_sets_beyond_the_limit_are_not_placed() -> None:
    mirror = cluster(node("a").cpu(64))
    assert spread(mirror, component("one", 1, cpu=1), limit=5) == 5
    assert spread(mirror, component("one", 1, cpu=1), limit=0) == 0


def test_pods_that_ask_for_nothing_are_spread_too() -> None:
    nodes: tuple[NodeBuilder, ...] = tuple(node(name).cpu(1).memory("1Gi").gpus(1) for name in "ab")
    quiet = component("quiet", 2)
    assert spread(cluster(*nodes), quiet, component("loud", 2, cpu=1, memory="1Gi", gpu=1)) == 1


@pytest.mark.parametrize(("containers", "expected"), [((), 1), (((),), 1), (((), ()), 0)])
def test_each_container_that_asks_for_nothing_counts(
    containers: tuple[tuple[tuple[str, int], ...], ...], expected: int
) -> None:
    """For 100 milli-cores each: after one pod with one of them a is still the emptier node, with two not."""
    mirror = cluster(
        node("a").cpu(1), node("b").cpu(1).gpus(1).pods(2), pod("p").on("b").requests(cpu="150m")
    )
    quiet = component("quiet", 2)
    quiet = replace(quiet, shape=replace(quiet.shape, containers=containers))
    # With the second one on b there is no room left for the pod that needs b's device.
    assert spread(mirror, quiet, component("loud", 1, gpu=1), limit=1) == expected


def test_of_equally_good_nodes_the_last_is_taken_where_so_asked() -> None:
    mirror = cluster(*(node(name).cpu(8).gpus(gpus) for name, gpus in (("a", 2), ("b", 1))))
    asked = component("one", 1, cpu=1, gpu=1), component("two", 1, cpu=1, gpu=2)
    assert [spread(mirror, *asked, limit=1, last=last) for last in (False, True)] == [0, 1]


def test_nothing_is_told_once_the_time_is_up() -> None:
    mirror = cluster(*(node(f"n{index}").cpu(64) for index in range(10)))
    shape = component("one", 1, cpu=1).shape
    scheduler = PodByPod(room_of(mirror), [shape])
    looks = iter([False, False])
    assert scheduler.sets([shape], 600, lambda: next(looks, True)) is None
    assert scheduler.sets([shape], 600, lambda: True) is None
    assert scheduler.sets([shape], 600, never) == 600


def test_the_room_is_left_as_it_was() -> None:
    room = room_of(cluster(node("a").cpu(64)))
    before = room.free("cpu").tolist()
    shape = component("one", 1, cpu=1).shape
    scheduler = PodByPod(room, [shape])
    assert [scheduler.sets([shape], 100, never) for _ in range(2)] == [64, 64]
    assert room.free("cpu").tolist() == before


def test_a_cluster_without_nodes_takes_nothing() -> None:
    assert spread(cluster(), component("one", 1, cpu=1)) == 0
