"""TPU slices and NVLink cliques: units of nodes that are free whole or not at all."""

from collections.abc import Iterable
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator.capacity.replicas import max_replicas
from estimator.capacity.request import Component
from estimator.capacity.summary import SliceShape
from estimator.capacity.topology.domains import DomainCache
from estimator.capacity.topology.gang_fit import GangFit, place_gang
from estimator.capacity.topology.levels import detected, levels_of
from estimator.capacity.topology.slices import UsableSlices, cliques, tpu_slices, usable_slices
from estimator.cluster.mirror import ClusterMirror
from estimator.fit.pod_shape import PodShape
from estimator.reasons import broken_slices, part_of_host, slices_in_use
from fairway.workloads.gang import TopologyMode, TopologyRequest
from tests.builders import NodeBuilder, PodBuilder, Thing, cluster, never, node, pod, room_of, shape

CI = settings(max_examples=100, derandomize=True, deadline=None)
PREFIX = "cloud.google.com/gke-"
POOL, TPU = f"{PREFIX}nodepool", "google.com/tpu"
TAINT, TOLERATED = f"{TPU}=present:NoSchedule", [f"{TPU}:NoSchedule"]
CLIQUE = "nvidia.com/gpu.clique"


def host(
    name: str, pool: str, topology: str = "4x4", chips: int = 4, accelerator: str = "tpu-v6e-slice"
) -> NodeBuilder:
    labels = {
        f"{PREFIX}tpu-accelerator": accelerator,
        f"{PREFIX}tpu-topology": topology,
        f"{PREFIX}accelerator-count": str(chips),
        POOL: pool,
    }
    return node(name).has({TPU: chips}, cpu=64).label(labels).taint(TAINT)


def pool(name: str, hosts: int, topology: str = "4x4", chips: int = 4) -> list[NodeBuilder]:
    return [host(f"{name}-{index}", name, topology, chips) for index in range(hosts)]


def busy(node_name: str, chips: int = 4) -> PodBuilder:
    return pod(f"on-{node_name}").on(node_name).requests({TPU: chips})


def asks(chips: int = 4, slice_topology: str = "", **selector: str) -> PodShape:
    labels = {f"{PREFIX}tpu-{key}": value for key, value in selector.items()}
    asked = shape({TPU: chips}, cpu=1, selector=labels, tolerations=TOLERATED)
    return replace(
        asked, annotations=((f"{PREFIX}tpu-slice-topology", slice_topology),) if slice_topology else ()
    )


def usable(mirror: ClusterMirror, asked: PodShape) -> tuple[int, UsableSlices]:
    """How many pods fit on the rows that slices leave, and what is said of them."""
    room = room_of(mirror)
    slices = usable_slices(room, asked)
    return max_replicas(room.within(slices.rows), asked).value, slices


def placed(mirror: ClusterMirror, *parts: Component, topology: TopologyRequest | None = None) -> GangFit:
    return place_gang(room_of(mirror), parts, topology, detected(()), DomainCache(), never)


def gangs(mirror: ClusterMirror, asked: PodShape, pods: int) -> int:
    """How many gangs of so many pods fit that say nothing of slices."""
    return placed(mirror, Component("worker", pods, asked)).answer.value


def test_v8_a_pool_with_a_busy_host_is_no_free_slice() -> None:
    """V8: v6e 4x4 on hosts of 4 chips, two pools of 4 nodes, one host busy in one of them: 1 slice."""
    mirror = cluster(*pool("p", 4), *pool("q", 4), busy("q-2"))
    pods, slices = usable(mirror, asks())
    assert (pods, slices.copies(4), gangs(mirror, asks(), 4)) == (4, 1, 1)
    assert slices.reasons == (slices_in_use("tpu-v6e-slice", "4x4", 1),)
    assert tpu_slices(room_of(mirror)) == (SliceShape("tpu-v6e-slice", "4x4", 4, 2, 1, 1, 0),)


# What the cluster is made of, what a pod asks, pods that fit, kinds of reasons.
CASES: dict[str, tuple[Iterable[Thing], PodShape, int, tuple[str, ...]]] = {
    "four chips free on each of four slices are no slice": (
        [*(n for p in "pqrs" for n in pool(p, 4)), *(busy(f"{p}-{i}") for p in "pqrs" for i in (1, 2, 3))],
        asks(),
        0,
        ("slices_in_use",),
    ),
    "half a pool": (pool("p", 2), asks(), 0, ("broken_slices",)),
    "a pool with too many nodes": (pool("p", 5), asks(), 0, ("broken_slices",)),
    "a part of a host": (pool("p", 4), asks(2), 0, ("tpu_chips", "slices_in_use")),
    "more than a host has": (pool("p", 4), asks(8), 0, ("slices_in_use",)),
    "one chip of a host in use": ([*pool("p", 4), busy("p-0", 1)], asks(), 0, ("slices_in_use",)),
    "one host without cpu": (
        [*pool("p", 3), host("p-3", "p").cpu("500m")],
        asks(),
        0,
        ("slices_in_use",),
    ),
    "a cordoned host": ([*pool("p", 3), host("p-3", "p").cordoned()], asks(), 0, ("slices_in_use",)),
    "a host with a sick chip": (
        [*pool("p", 3), host("p-3", "p").has({TPU: 3})],
        asks(),
        0,
        ("broken_slices",),
    ),
    "a node too many, of which one is sick": (
        [*pool("p", 4), host("p-4", "p").has({TPU: 3})],
        asks(),
        0,
        ("broken_slices",),
    ),
    "a host that claims another topology": (
        [*pool("p", 3), host("p-3", "p", "8x8")],
        asks(),
        0,
        ("broken_slices",),
    ),
    "a host without its topology label": (
        [*pool("p", 3), host("p-3", "p", "")],
        asks(),
        0,
        ("broken_slices", "tpu_labels"),
    ),
    "a malformed topology": (pool("p", 4, "4xx4"), asks(), 0, ("tpu_labels",)),
    "a huge topology": (pool("p", 4, "9996x9999x9999"), asks(), 0, ("broken_slices",)),
    "a topology that hosts do not make up": (pool("p", 4, "3x3"), asks(), 0, ("tpu_labels",)),
    "no pool label": (
        [replace(n, labels={k: v for k, v in n.labels.items() if k != POOL}) for n in pool("p", 4)],
        asks(),
        0,
        ("tpu_labels",),
    ),
    "single-host pools are plain nodes": (pool("p", 3, "2x2"), asks(2), 6, ()),
    "a single host, partly busy": ([*pool("p", 2, "2x4", 8), busy("p-0", 4)], asks(4), 3, ()),
    "nodes that say nothing of slices are plain": ([node("a").has({TPU: 8}, cpu=8)], asks(4), 2, ()),
    "no TPU at all": ([node("a").cpu(8)], asks(), 0, ()),
    "only slices that the selector allows": (
        [*pool("p", 4), *pool("q", 2, "2x4")],
        asks(topology="2x4"),
        2,
        (),
    ),
    "slices of several hosts beside single hosts": (
        [*pool("p", 4), busy("p-0"), *pool("q", 2, "2x2")],
        asks(),
        2,
        ("slices_in_use",),
    ),
}


@pytest.mark.parametrize(("things", "asked", "pods", "why"), CASES.values(), ids=CASES)
def test_pods_fit_in_whole_free_slices_only(
    things: Iterable[Thing], asked: PodShape, pods: int, why: tuple[str, ...]
) -> None:
    found, slices = usable(cluster(*things), asked)
    assert (found, tuple(reason.kind for reason in slices.reasons)) == (pods, why)


def test_chips_are_what_label_and_allocatable_agree_on() -> None:
    """A label that says less than allocatable is wrong; without one, allocatable is the machine."""
    for label in ("1", "x", None):
        nodes = [n.label({f"{PREFIX}accelerator-count": label} if label else {}) for n in pool("p", 4)]
        if label is None:
            key = f"{PREFIX}accelerator-count"
            nodes = [replace(n, labels={k: v for k, v in n.labels.items() if k != key}) for n in nodes]
        assert usable(cluster(*nodes), asks())[0] == 4


def test_shapes_that_ask_for_no_tpu_may_use_every_row() -> None:
    mirror = cluster(*pool("p", 2), node("a").cpu(8))
    slices = usable_slices(room_of(mirror), shape(cpu=1, tolerations=TOLERATED))
    assert slices.rows.all()
    assert (slices.plain, slices.reasons) == (True, ())


def test_sentences() -> None:
    assert str(part_of_host(2, 4, 8)) == (
        "never fits on 8 nodes of multi-host TPU slices: asks for 2 google.com/tpu, expected all 4 of a host"
    )
    assert str(slices_in_use("tpu-v6e-slice", "4x4", 1)) == "1 slice of tpu-v6e-slice 4x4 not wholly free"
    assert str(broken_slices("tpu-v6e-slice", "4x4", 2, 4)) == (
        "2 slices of tpu-v6e-slice 4x4 without all of 4 healthy hosts"
    )
    reason = usable(cluster(*pool("p", 4, "4xx4")), asks())[1].reasons[0]
    assert str(reason) == (
        "TPU slice of 4 nodes unknown: label cloud.google.com/gke-tpu-topology: expected a shape such as 2x4 "
        "or 2x2x4, found '4xx4'"
    )


# Pods of a gang, copies by whole slices of 4 hosts of which 4 are free, the topology imposed.
GANGS = {
    "fewer than a slice": (3, 4, TopologyRequest(TopologyMode.EXCLUSIVE, POOL)),
    "one slice": (4, 4, TopologyRequest(TopologyMode.SLICED, POOL, 4)),
    "not a whole number of slices": (6, 2, TopologyRequest(TopologyMode.SLICED, POOL, 4)),
    "two slices": (8, 2, TopologyRequest(TopologyMode.SLICED, POOL, 4)),
    "too many": (20, 0, TopologyRequest(TopologyMode.SLICED, POOL, 4)),
}


@pytest.mark.parametrize(("pods", "copies", "topology"), GANGS.values(), ids=GANGS)
def test_gangs_take_whole_slices(pods: int, copies: int, topology: TopologyRequest) -> None:
    mirror = cluster(*(n for p in "pqrs" for n in pool(p, 4)))
    slices = usable_slices(room_of(mirror), asks())
    assert (slices.copies(pods), slices.topology(Component("w", pods, asks()))) == (copies, topology)
    # Slices that are not filled would leave a TPU program waiting for the missing hosts.
    assert gangs(mirror, asks(), pods) == (copies if pods < 4 or pods % 4 == 0 else 0)


def test_slices_of_several_sizes_impose_no_single_topology() -> None:
    mirror = cluster(*pool("p", 4), *pool("q", 2, "2x4"))
    slices = usable_slices(room_of(mirror), asks())
    assert (slices.copies(2), slices.copies(4), slices.topology(Component("w", 2, asks()))) == (2, 1, None)


def test_pods_that_fit_beside_slices_are_not_bound_to_them() -> None:
    mirror = cluster(*pool("p", 4), *pool("q", 1, "2x2"))
    slices = usable_slices(room_of(mirror), asks())
    assert (slices.plain, slices.copies(4), slices.topology(Component("w", 4, asks()))) == (True, None, None)


def test_a_job_with_a_pool_for_itself() -> None:
    mirror = cluster(*pool("p", 4), *pool("q", 4), busy("q-2"), *pool("r", 4))
    fit = placed(mirror, Component("w", 4, asks()), topology=TopologyRequest(TopologyMode.EXCLUSIVE, POOL))
    assert (fit.answer.value, fit.level, fit.domains) == (2, POOL, (("p",), ("r",)))
    assert slices_in_use("tpu-v6e-slice", "4x4", 1) in fit.answer.reasons


def test_a_gang_that_says_nothing_of_slices_is_told_which_it_gets() -> None:
    mirror = cluster(*pool("p", 4), busy("p-0"), *pool("q", 4))
    fit = placed(mirror, Component("w", 4, asks()))
    assert (fit.answer.value, fit.answer.proven, fit.level, fit.domains) == (1, True, POOL, (("q",),))


def test_a_driver_without_tpu_goes_elsewhere() -> None:
    mirror = cluster(*pool("p", 4), busy("p-0"), *pool("q", 4), node("cpu").cpu(4))
    fit = placed(mirror, Component("driver", 1, shape(cpu=4)), Component("w", 4, asks()))
    assert (fit.answer.value, fit.answer.proven) == (1, True)
    used = ["cpu", "q-0", "q-1", "q-2", "q-3"]
    assert {row for _, row in fit.placement or ()} == {mirror.columns.row_of(name) for name in used}


def test_a_leader_and_its_workers_share_a_slice() -> None:
    mirror = cluster(*pool("p", 4), *pool("q", 4))
    parts = (Component("leader", 1, asks()), Component("worker", 3, asks()))
    fit = placed(mirror, *parts)
    assert (fit.answer.value, fit.answer.proven, fit.domains) == (2, True, (("p",), ("q",)))
    assert placed(mirror, *(replace(part, replicas=3) for part in parts)).answer.value <= 1


def test_slices_within_a_block() -> None:
    blocks = [
        n.label({"block": f"b{i // 8}"}) for i, n in enumerate((*pool("p", 4), *pool("q", 4), *pool("r", 4)))
    ]
    within = TopologyRequest(TopologyMode.REQUIRED, "block")
    levels = levels_of(["block"])
    part = Component("w", 8, asks())
    fit = place_gang(room_of(cluster(*blocks)), (part,), within, levels, DomainCache(), never)
    assert (fit.answer.value, fit.answer.proven, fit.domains) == (1, True, (("b0",),))
    small = replace(part, replicas=3)
    fit = place_gang(room_of(cluster(*blocks)), (small,), within, levels, DomainCache(), never)
    assert (fit.answer.value, fit.answer.proven) == (3, True)


def test_copies_are_bounded_where_slices_have_several_sizes() -> None:
    mirror = cluster(*pool("p", 4), *pool("q", 2, "2x4"))
    fit = placed(mirror, Component("w", 3, asks()))
    assert (fit.answer.value, fit.answer.upper_bound) == (1, 1)


# --- partitions that slices are formed of ----------------------------------------------------------------

SHAPES = {"4x4x4": 16, "2x4x4": 8, "2x2x4": 4, "2x2x2": 2, "2x2x1": 1}


def cube(name: str, state: str = "HEALTHY", hosts: int = 16) -> list[NodeBuilder]:
    """A pool of tpu7x without links, whose nodes are parts of nested partitions."""
    built = []
    for index in range(hosts):
        labels = {f"{PREFIX}accelerator-topology-mode": "PROVISION_ONLY"}
        for topology, size in SHAPES.items():
            labels[f"{PREFIX}tpu-partition-{topology}-id"] = f"{name}-{topology}-{index // size}"
            labels[f"{PREFIX}tpu-partition-{topology}-state"] = state
        built.append(host(f"{name}-{index}", name, "4x4x4", 4, "tpu7x").label(labels))
    return built


def unhealthy(built: NodeBuilder, *topologies: str) -> NodeBuilder:
    return built.label({f"{PREFIX}tpu-partition-{topology}-state": "UNHEALTHY" for topology in topologies})


@pytest.mark.parametrize(("topology", "slices"), [("4x4x4", 0), ("2x4x4", 1), ("2x2x4", 3), ("2x2x2", 7)])
def test_partitions_of_each_shape_are_free_or_not_by_themselves(topology: str, slices: int) -> None:
    mirror = cluster(*cube("c"), busy("c-0"))
    hosts = SHAPES[topology]
    pods, found = usable(mirror, asks(slice_topology=topology))
    assert (pods, found.copies(hosts), gangs(mirror, asks(slice_topology=topology), hosts)) == (
        slices * hosts,
        slices,
        slices,
    )


def test_summaries_count_partitions_of_every_shape_the_largest_first() -> None:
    mirror = cluster(*cube("c"), *cube("d"), busy("c-0"))
    assert tpu_slices(room_of(mirror)) == (
        SliceShape("tpu7x", "4x4x4", 16, 2, 1, 1, 0),
        SliceShape("tpu7x", "2x4x4", 8, 4, 3, 1, 0),
        SliceShape("tpu7x", "2x2x4", 4, 8, 7, 1, 0),
        SliceShape("tpu7x", "2x2x2", 2, 16, 15, 1, 0),
        SliceShape("tpu7x", "2x2x1", 1, 32, 31, 0, 0),
    )


def test_a_partition_is_usable_in_the_states_that_slices_are_formed_in() -> None:
    for state, pods in (("HEALTHY", 16), ("DEGRADED", 16), ("UNHEALTHY", 0), ("INCOMPLETE", 0), ("?", 0)):
        assert usable(cluster(*cube("c", state)), asks(slice_topology="4x4x4"))[0] == pods


def test_one_unhealthy_partition_spares_the_others() -> None:
    nodes = cube("c")
    nodes[3] = unhealthy(nodes[3], "4x4x4", "2x4x4", "2x2x4")
    pods, slices = usable(cluster(*nodes), asks(slice_topology="2x2x4"))
    assert (pods, slices.reasons) == (12, (broken_slices("tpu7x", "2x2x4", 1, 4),))


def test_larger_slices_are_formed_of_whole_cubes() -> None:
    mirror = cluster(*cube("c"), *cube("d"), *cube("e"), busy("e-9"))
    asked = asks(slice_topology="4x4x8")
    assert usable(mirror, asked)[0] == 32
    assert (usable(mirror, asked)[1].copies(32), gangs(mirror, asked, 32)) == (1, 1)


@pytest.mark.parametrize("annotation", ["", "4x", "huge", "9x9x9x9"])
def test_unlinked_pools_are_of_no_use_without_a_shape_to_form(annotation: str) -> None:
    pods, slices = usable(cluster(*cube("c")), asks(slice_topology=annotation))
    assert pods == 0
    assert slices.reasons[0].kind == "tpu_labels"
    assert f"expected annotation {PREFIX}tpu-slice-topology" in str(slices.reasons[0])


def test_a_pool_that_is_a_slice_as_it_is_serves_its_own_shape_only() -> None:
    mirror = cluster(*pool("p", 4, "2x2x4"))
    assert usable(mirror, asks(slice_topology="2x2x4"))[0] == 4
    assert usable(mirror, asks(slice_topology="2x2x2"))[0] == 0


# --- against counting pool by pool -----------------------------------------------------------------------


def a_pool(name: str, rng: Random) -> list[Thing]:
    hosts, topology = rng.choice([(1, "2x2"), (2, "2x4"), (2, "2x4"), (4, "4x4")])
    things: list[Thing] = []
    for index in range(max(1, hosts + rng.choice([0, 0, 0, 0, -1, 1]))):
        built = host(f"{name}-{index}", name, topology)
        if rng.random() < 0.08:
            built = built.cordoned()
        if rng.random() < 0.05:
            built = built.has({TPU: 3})
        if rng.random() < 0.05:
            built = built.cpu("500m")
        if rng.random() < 0.05:
            built = built.label({f"{PREFIX}tpu-topology": "8x8"})
        things.append(built)
        if rng.random() < 0.15:
            things.append(busy(f"{name}-{index}", rng.choice([1, 2, 4])))
    return things


def naive(things: list[list[Thing]], chips: int) -> tuple[int, int, int]:
    """Pods that fit, slices of several hosts in all and wholly free, looking at one pool after the other."""
    pods = slices = free = 0
    for things_of_pool in things:
        nodes = {n.name: n for n in things_of_pool if isinstance(n, NodeBuilder)}
        used = {
            p.spec["nodeName"]: p.containers[0].requests for p in things_of_pool if isinstance(p, PodBuilder)
        }
        left = {}
        for name, n in nodes.items():
            taken = used.get(name)
            has, takes = n.allocatable[TPU], taken[TPU] if taken else 0
            assert isinstance(has, int)
            assert isinstance(takes, int)
            left[name] = 0 if n.unschedulable or n.allocatable["cpu"] == "500m" else max(0, has - takes)
        topologies = {n.labels[f"{PREFIX}tpu-topology"] for n in nodes.values()}
        if topologies == {"2x2"}:
            pods += sum(room // chips for room in left.values())
            continue
        sides = [int(side) for side in min(topologies).split("x")]
        hosts = sides[0] * sides[1] // 4
        whole = len(topologies) == 1 and len(nodes) == hosts
        # A single host among labels of a larger slice is a plain node.
        pods += sum(
            left[name] // chips for name, n in nodes.items() if n.labels[f"{PREFIX}tpu-topology"] == "2x2"
        )
        slices += 1
        if whole and chips == 4 and all(room == 4 for room in left.values()):
            free += 1
            pods += hosts
    return pods, slices, free


@CI
@given(st.randoms(use_true_random=False), st.sampled_from([2, 4, 4]))
def test_slices_are_counted_as_pool_by_pool(rng: Random, chips: int) -> None:
    pools = [a_pool(f"p{index}", rng) for index in range(rng.randint(1, 4))]
    mirror = cluster(*(thing for things in pools for thing in things))
    pods, slices, free = naive(pools, chips)
    found, usable_ones = usable(mirror, asks(chips))
    assert found == pods
    assert sum(count for _, count in usable_ones.free) == free
    in_all = tpu_slices(room_of(mirror))
    assert sum(shape.slices for shape in in_all) == slices
    assert all(s.free + s.partly_busy + s.incomplete <= s.slices for s in in_all)


# --- NVLink cliques --------------------------------------------------------------------------------------


def tray(name: str, clique: str, gpus: int = 4, product: str = "GB200") -> NodeBuilder:
    return node(name).gpus(gpus).label({CLIQUE: clique, "nvidia.com/gpu.product": product})


def test_cliques_are_counted_by_product_and_size() -> None:
    mirror = cluster(
        *(tray(f"a{i}", "u.1") for i in range(3)),
        *(tray(f"b{i}", "u.2") for i in range(3)),
        pod("p").on("b0").requests(gpu=1),
        *(tray(f"c{i}", "u.3") for i in range(2)),
        tray("d0", "u.4").cordoned(),
        tray("d1", "u.4"),
        *(tray(f"e{i}", "u.5", product="GB300").taint("nvidia.com/gpu:NoSchedule") for i in range(3)),
        tray("f", "malformed"),
        node("g").gpus(8),
    )
    assert cliques(room_of(mirror), DomainCache()) == (
        SliceShape("GB200", "clique", 2, 2, 1, 1, 0),
        SliceShape("GB200", "clique", 3, 2, 1, 1, 0),
        SliceShape("GB300", "clique", 3, 1, 1, 0, 0),
    )


def test_a_clique_in_full_use_is_neither_free_nor_partly_busy() -> None:
    mirror = cluster(tray("a", "u.1"), pod("p").on("a").requests(gpu=4))
    assert cliques(room_of(mirror), DomainCache()) == (SliceShape("GB200", "clique", 1, 1, 0, 0, 0),)


def test_a_clique_with_a_sick_gpu_is_broken() -> None:
    mirror = cluster(tray("a", "u.1"), tray("b", "u.1"))
    mirror.columns.set_node(
        "b", {"nvidia.com/gpu": 3, "pods": 110}, tray("b", "u.1").labels, (), {"nvidia.com/gpu": 1}
    )
    assert cliques(room_of(mirror), DomainCache()) == (SliceShape("GB200", "clique", 2, 1, 0, 0, 1),)


def test_a_cluster_without_cliques_or_tpus_has_none() -> None:
    mirror = cluster(node("a").gpus(8))
    assert (cliques(room_of(mirror), DomainCache()), tpu_slices(room_of(mirror))) == ((), ())


@CI
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4), st.booleans()), max_size=8))
def test_free_cliques_are_those_of_which_every_node_is_free(trays: list[tuple[int, int, bool]]) -> None:
    things: list[Thing] = []
    members: dict[int, list[bool]] = {}
    for index, (clique, used, cordoned) in enumerate(trays):
        built = tray(f"n{index}", f"u.{clique}")
        things.append(built.cordoned() if cordoned else built)
        if used:
            things.append(pod(f"p{index}").on(f"n{index}").requests(gpu=used))
        members.setdefault(clique, []).append(used == 0 and not cordoned)
    found = cliques(room_of(cluster(*things)), DomainCache())
    assert sum(shape.slices for shape in found) == len(members)
    assert sum(shape.free for shape in found) == sum(all(idle) for idle in members.values())
