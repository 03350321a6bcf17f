"""TPU slices of several hosts in answers: whole slices or nothing, for replicas, sets and gangs alike."""

import pytest

from estimator.capacity.budget import NO_BUDGET
from estimator.capacity.gangs.gang_replicas import Topology
from estimator.capacity.gangs.placing import place
from estimator.capacity.replicas import max_replicas
from estimator.capacity.request import (
    Component,
    GangQuestion,
)
from estimator.capacity.topology.domains import DomainCache
from estimator.capacity.topology.levels import Levels
from estimator.capacity.topology.slices import keep_to_whole_slices
from estimator.fit.pod_shape import PodShape
from tests.builders import NodeBuilder, PodBuilder, cluster, component, never, node, pod, room_of, shape

TPU = "google.com/tpu"
POOL = "cloud.google.com/gke-nodepool"
SELECTOR = {
    "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
    "cloud.google.com/gke-tpu-topology": "4x4",
}


def host(pool: str, index: int, topology: str = "4x4", chips: int = 4) -> NodeBuilder:
    labels = {**SELECTOR, "cloud.google.com/gke-tpu-topology": topology, POOL: pool}
    return node(f"{pool}-{index}").has({TPU: chips}).cpu(100).label(labels)


def slice_of(pool: str, hosts: int = 4) -> list[NodeBuilder]:
    return [host(pool, index) for index in range(hosts)]


def busy(name: str, chips: int = 4) -> PodBuilder:
    return pod(f"on-{name}").on(name).requests({TPU: chips})


def tpu_shape(chips: int = 4) -> PodShape:
    return shape({TPU: chips}, selector=SELECTOR)


@pytest.mark.parametrize(
    ("chips", "things", "replicas"),
    [
        (4, [*slice_of("p"), *slice_of("q")], 8),
        (4, [*slice_of("p"), *slice_of("q"), busy("q-2")], 4),  # V8: a busy host makes its slice useless
        (4, [*slice_of("p"), *slice_of("q", hosts=3)], 4),  # half a pool is no slice
        (1, [*slice_of("p")], 0),  # a pod takes all chips of its host
        (4, [host("single", 0, "2x2"), *slice_of("p")], 4),  # the selector leaves single hosts out
    ],
)
def test_replicas_fit_whole_free_slices_only(
    chips: int, things: list[NodeBuilder | PodBuilder], replicas: int
) -> None:
    room, asked = room_of(cluster(*things)), tpu_shape(chips)
    keep_to_whole_slices(room, (asked,))
    assert max_replicas(room, asked).value == replicas


def gang(*components: Component) -> GangQuestion:
    return GangQuestion("m", components)


@pytest.mark.parametrize(
    ("workers", "things", "copies"),
    [
        (4, [*slice_of("p"), *slice_of("q")], 2),
        (4, [*slice_of("p"), *slice_of("q"), busy("q-2")], 1),
        (8, [*slice_of("p"), *slice_of("q")], 1),  # a gang over two slices
        (8, [*slice_of("p"), *slice_of("q"), busy("p-0")], 0),
        (2, [*slice_of("p"), *slice_of("q")], 2),  # half a slice is nobody else's
    ],
)
def test_gangs_take_whole_slices(workers: int, things: list[NodeBuilder | PodBuilder], copies: int) -> None:
    worker = component("worker", workers, {TPU: 4}, selector=SELECTOR)
    topology = Topology(Levels(), DomainCache())
    placed = place(room_of(cluster(*things)), gang(worker), topology, never, NO_BUDGET)
    assert placed.answer.value == copies


def test_a_driver_beside_the_slice_is_not_bound_to_it() -> None:
    worker = component("worker", 4, {TPU: 4}, selector=SELECTOR)
    driver = component("driver", 1, cpu=50)
    mirror = cluster(*slice_of("p"), node("cpu").cpu(60))
    placed = place(room_of(mirror), gang(driver, worker), Topology(Levels(), DomainCache()), never, NO_BUDGET)
    assert placed.answer.value == 1
    assert {one.pod_set for one in placed.placement} == {"driver", "worker"}
    assert sum(one.pods for one in placed.placement if one.pod_set == "worker") == 4


def test_what_asks_for_no_tpu_is_left_as_it_is() -> None:
    room = room_of(cluster(*slice_of("p"), busy("p-0")))
    asked = shape(cpu=1)
    keep_to_whole_slices(room, (asked,))
    assert max_replicas(room, asked).value == 400
