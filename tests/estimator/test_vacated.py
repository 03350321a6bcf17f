"""Nodes without some of their pods: the same as if these had never been there."""

from random import Random

import numpy as np
import pytest

from estimator.capacity.room import Room
from estimator.cluster.mirror import ClusterMirror
from estimator.cluster.vacated import Vacating
from estimator.fit.eligibility import EligibilityCache
from tests.builders import PodBuilder, Thing, cluster, component, node, pod, shape
from tests.estimator.agents import NOW_S, agent
from tests.estimator.sharing import SHARINGS
from tests.estimator.test_device_answers import hami_node, hami_pod

GPU = "nvidia.com/gpu"


def without(mirror: ClusterMirror, *names: str) -> Room:
    """The cluster without these pods."""
    pods = mirror.pods.copy()
    leaving = [pods[f"default/{name}"] for name in names]
    nodes = Vacating(mirror.columns.copy(), pods.values(), leaving).without(np.arange(len(leaving)))
    return Room(nodes, EligibilityCache())


def free(room: Room, resource: str = GPU) -> dict[str, int]:
    rows = enumerate(room.nodes.rows)
    return {
        row.name: int(room.free(resource)[index]) for index, row in rows if row is not None and row.present
    }


P, Q = pod("p").on("a").requests(gpu=3, cpu=1), pod("q").on("a").requests(gpu=4)
FREED: list[tuple[str, tuple[Thing, ...], tuple[str, ...], dict[str, int]]] = [
    # name, what there is, who is gone, what is free then
    ("nobody", (node("a").gpus(8), P, Q), (), {"a": 1}),
    ("one", (node("a").gpus(8), P, Q), ("p",), {"a": 4}),
    ("all", (node("a").gpus(8), P, Q), ("p", "q"), {"a": 8}),
    ("one that is nominated", (node("a").gpus(8), P, Q.nominated("a")), ("q",), {"a": 5}),
    (
        "one whose node is not there",
        (node("a").gpus(8), P, pod("x").on("b").requests(gpu=2)),
        ("x",),
        {"a": 5},
    ),
    # The node has shrunk: seven are held of five.
    ("one of too many", (node("a").gpus(5), P, Q), ("p",), {"a": 1}),
    ("one of far too many", (node("a").gpus(2), P, Q), ("p",), {"a": 0}),
    (
        "one that holds what the node never had",
        (node("a").gpus(8), P, pod("x").on("a").requests(cpu=9)),
        ("x",),
        {"a": 5},
    ),
]


@pytest.mark.parametrize(
    ("things", "gone", "left"), [row[1:] for row in FREED], ids=[row[0] for row in FREED]
)
def test_what_is_free_without(things: tuple[Thing, ...], gone: tuple[str, ...], left: dict[str, int]) -> None:
    mirror = cluster(*things)
    before = mirror.columns.copy()
    assert free(without(mirror, *gone)) == left
    assert (mirror.columns.free(GPU) == before.free(GPU)).all()


@pytest.mark.parametrize("seed", range(60))
def test_it_is_as_if_they_had_never_been_there(seed: int) -> None:
    rng = Random(seed)
    nodes = [
        node(f"n{number}").has(gpu=rng.randint(0, 8), cpu=rng.randint(1, 32), memory=rng.randint(1, 64))
        for number in range(rng.randint(1, 5))
    ]
    pods: list[PodBuilder] = []
    for number in range(rng.randint(1, 20)):
        made = pod(f"p{number}").requests(
            gpu=rng.randint(0, 4), cpu=rng.randint(0, 8), memory=rng.randint(0, 16)
        )
        place = f"n{rng.randint(0, 5)}"
        pods.append(rng.choice((made.on(place), made.on(place), made.nominated(place))))
    gone = rng.sample(pods, rng.randint(0, len(pods)))
    room = without(cluster(*nodes, *pods), *(one.name for one in gone))
    alone = cluster(*nodes, *(one for one in pods if one not in gone)).columns
    for resource in (GPU, "cpu", "memory", "pods"):
        names = {
            row.name: int(alone.free(resource)[index])
            for index, row in enumerate(alone.rows)
            if row is not None
        }
        assert free(room, resource) == {one.name: names[one.name] for one in nodes}


@pytest.mark.parametrize("name", SHARINGS)
def test_shared_devices_are_given_back(name: str) -> None:
    sharing = SHARINGS[name]
    nodes = [sharing.node(f"n{number}", 2) for number in range(3)]
    pods = [
        sharing.pod(f"p{number}-{half}", f"n{number}", half) for number in range(3) for half in range(number)
    ]
    asked = shape(sharing.half)
    every = cluster(*nodes, *pods)
    for gone in ([], ["p1-0"], ["p2-0"], ["p1-0", "p2-0", "p2-1"]):
        left = cluster(*nodes, *(one for one in pods if one.name not in gone))
        expected = Room(left.columns, EligibilityCache()).fits(asked)
        assert without(every, *gone).fits(asked).tolist() == expected.tolist()


def test_devices_of_many_nodes_that_were_alike_are_told_apart() -> None:
    nodes = [hami_node(f"n{number}", 1) for number in range(20)]
    pods = [hami_pod(f"p{number}", f"n{number}", (0, 20000)) for number in range(20)]
    asked = component("x", 1, {GPU: 1, "nvidia.com/gpumem": 8000}).shape
    assert without(cluster(*nodes, *pods), "p7").fits(asked).tolist() == [
        3 if n == 7 else 0 for n in range(20)
    ]


def test_domains_that_they_had_to_themselves_are_given_back() -> None:
    alone = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}
    pods = [pod(f"p{number}").on("a").annotated(alone).requests(gpu=1) for number in range(2)]
    mirror = cluster(node("a").gpus(8), *pods)
    held = [
        without(mirror, *gone).nodes.held_exclusively("rack").tolist() for gone in ((), ("p0",), ("p0", "p1"))
    ]
    assert held == [[True], [True], [False]]


def test_of_devices_that_do_not_work_never_too_much_is_given_back() -> None:
    """Eight of which the first is broken; p is known to be on it, q on four that work."""
    report = agent("a").gpus(8).bad(0).held(0, "default/p")
    p, q = pod("p").on("a").requests(gpu=1), pod("q").on("a").requests(gpu=4)
    mirror = cluster(node("a").gpus(8), p, q, report)
    mirror.node_devices.tick(NOW_S)
    assert free(without(mirror)) == {"a": 3}
    # That p was on the broken one, and q was not, is not known of each: the broken one's share counts first.
    for gone, least, most in ((("p",), 3, 3), (("q",), 6, 7), (("p", "q"), 7, 7)):
        assert least <= free(without(mirror, *gone))["a"] <= most
