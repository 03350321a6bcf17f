"""What the stock estimator answers to MaxAvailableComponentSets, case by case, numbered B1 to C11.

Memory is in Gi, cpu in cores. Where the stock answer falls short of the truth, the better number is asserted
and a comment says so.
"""

from dataclasses import dataclass

import pytest

from estimator.capacity.answer import NO_LIMIT, UNBOUNDED, exactly, lowest
from estimator.capacity.request import AssumedWorkload, Component
from estimator.cluster.mirror import ClusterMirror
from tests.builders import (
    NodeBuilder,
    Thing,
    assumed,
    cluster,
    component,
    node,
    pod,
    replicas_of,
    sets_of,
    shape,
    term,
)


def of(cpu: float, memory: float, pods: int, name: str = "n") -> NodeBuilder:
    return node(name).has(cpu=cpu, memory=f"{memory}Gi", pods=pods)


def part(replicas: int, cpu: float | str, memory: float = 0, gpu: int = 0, name: str = "part") -> Component:
    return component(name, replicas, cpu=cpu, memory=f"{memory}Gi", gpu=gpu)


@dataclass(frozen=True)
class Case:
    expected: int
    mirror: ClusterMirror
    components: tuple[Component, ...]
    placed: tuple[AssumedWorkload, ...] = ()
    bound: int = UNBOUNDED
    """A limit that holds beside the nodes'."""


NODE = of(4, 8, 10)
GPUS = tuple(
    node(f"g{index}").has(cpu=96, memory="1024Gi", pods=110, gpu=8).label(zone=f"z{index}")
    for index in range(3)
)
LAUNCHER, WORKER = part(1, 1, 1, name="launcher"), part(2, 8, 64, 8, name="worker")
NOWHERE = component(
    "part", 4, cpu=1, memory="1Gi", affinity=[term(("topology.kubernetes.io/zone", "In", ["us-south"]))]
)
FOUR_AND_FOUR = (node("a").gpus(8), pod("p").on("a").requests(gpu=4), node("b").gpus(4))
FOUR_AND_TWO = (node("a").gpus(4), node("b").gpus(2))

CASES = {
    "B2": Case(4, cluster(NODE), (part(1, 1, 1),)),
    "B3": Case(2, cluster(NODE), (part(2, 1, 1),)),
    "B4": Case(2, cluster(of(10, 10, 10)), (part(1, 2, 2), part(1, 3, 3))),
    "B6": Case(0, cluster(of(2, 2, 10)), (part(1, 3, 3),)),
    "B7": Case(3, cluster(NODE, pod("p").on("n").requests(cpu=1, memory="2Gi")), (part(1, 1, 2),)),
    "B9": Case(0, cluster(NODE, pod("p").on("n").requests(cpu=1, memory="2Gi")), (NOWHERE,)),
    "B10": Case(UNBOUNDED, cluster(NODE), ()),
    "B11": Case(3, cluster(NODE), (part(1, 1, 1),), (assumed("default", part(1, 1, 1)),)),
    "B12": Case(
        3,
        cluster(of(6, 6, 10)),
        (part(1, 1, 1),),
        (assumed("ns1", part(1, 1, 1)), assumed("ns2", part(1, 2, 2))),
    ),
    "B14": Case(4, cluster(of(4, 4, 10)), (part(1, 1, 1),), (assumed("default"),)),
    "B15": Case(1, cluster(of(64, 256, 5)), (part(2, "100m"), part(1, "100m"))),
    "B16": Case(4, cluster(NODE), (part(0, 1), part(1, 1))),
    "B18": Case(1, cluster(*GPUS), (LAUNCHER, WORKER)),
    "B22": Case(1, cluster(*FOUR_AND_FOUR), (part(1, 0, gpu=2), part(1, 0, gpu=4))),
    "B22 in the other order": Case(1, cluster(*FOUR_AND_FOUR), (part(1, 0, gpu=4), part(1, 0, gpu=2))),
    # First fit puts the pair on the first node, has nowhere left for the four, and finds 0.
    "B22 with 4 and 2 free": Case(1, cluster(*FOUR_AND_TWO), (part(1, 0, gpu=2), part(1, 0, gpu=4))),
    "C1": Case(2, cluster(NODE), (part(2, 1, 2, name="web"),), bound=10),
    "C2": Case(2, cluster(of(8, 16, 10)), (part(2, 1, 2, name="web"), part(1, 2, 4, name="db")), bound=10),
    "C3": Case(0, cluster(of(0, 0, 10)), (part(1, 1, name="web"),), bound=10),
    "C4": Case(3, cluster(of(100, 0, 10)), (part(1, 1, name="web"),), bound=3),
    "C5": Case(1, cluster(of(2, 0, 10, "a"), of(2, 0, 10, "b")), (part(3, 1, name="web"),), bound=10),
    "C7": Case(0, cluster(*(of(1, 0, 5, name) for name in "abcd")), (part(1, 2),), bound=10),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_component_sets(case: Case) -> None:
    answer = sets_of(case.mirror, case.components, case.placed).answer
    assert lowest(answer, exactly(case.bound)).value == case.expected


def test_without_any_limit_in_force_sets_are_unbounded() -> None:
    """B1: the stock plugin can be switched off; ours cannot, but it may have nothing to say."""
    assert lowest(NO_LIMIT).value == UNBOUNDED


def test_room_held_for_an_assumed_device_pod_is_not_offered_again() -> None:
    """B19: 8 GPUs, a pod of 4 on its way."""
    mirror = cluster(node("n").has(cpu=8, memory="32Gi", gpu=8))
    placed = assumed("default", component("trainer", 1, gpu=4))
    assert replicas_of(mirror, shape(gpu=1), (placed,)).value == 4


@pytest.mark.parametrize(
    ("zone", "expected"), [(None, 1), ("us-west", 1), ("us-east", 0)], ids=["C9", "C10", "C11"]
)
def test_a_zone_selects_its_nodes(zone: str | None, expected: int) -> None:
    mirror = cluster(node("n").pods(1).label(zone="us-west"))
    affinity = None if zone is None else [term(("zone", "In", [zone]))]
    assert replicas_of(mirror, shape(affinity=affinity)).value == expected


def test_a_node_that_is_not_there_matches_nothing() -> None:
    """C8: the stock check lets a node without an object through; here it has no room."""
    mirror = cluster(pod("p").on("ghost").requests(cpu=1))
    assert replicas_of(mirror, shape()).value == 0


def test_the_order_in_which_nodes_and_pods_came_changes_no_answer() -> None:
    nodes: list[Thing] = [node(f"n{row}").cpu(5 + row % 3).gpus(row % 5).pods(6) for row in range(9)]
    bound: list[Thing] = [pod(f"p{row}").on(f"n{row}").requests(cpu=row % 2) for row in range(9)]
    asked = (component("launcher", 1, cpu=1, gpu=2), component("worker", 3, cpu=2))
    orders = (nodes + bound, bound + nodes, nodes[::-1] + bound, bound[4:] + nodes + bound[:4])
    assert len({sets_of(cluster(*order), asked).answer for order in orders}) == 1


def test_sets_that_only_another_order_of_nodes_would_show_are_found() -> None:
    asked = (component("launcher", 1, cpu=1, gpu=2), component("worker", 3, cpu=2))
    large, small = node("a").cpu(10).gpus(8).pods(5), node("b").cpu(4).gpus(4).pods(5)
    for nodes in ((large, small), (small, large)):
        assert sets_of(cluster(*nodes), asked).answer.value == 2
