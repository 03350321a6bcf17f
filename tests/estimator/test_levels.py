"""Topology levels: which labels they are, what they may be called, and the domains that nodes are in."""

import numpy as np
import pytest

from estimator.capacity.topology.domains import DomainCache, domains_of, sums
from estimator.capacity.topology.levels import Level, Levels, LevelsError, detected, levels_of
from estimator.reasons import ambiguous_level, outside_level, unknown_level
from tests.builders import NodeBuilder, cluster, delete, node, pod

BLOCK, RACK, HOST = "example.com/topology-block", "example.com/topology-rack", "kubernetes.io/hostname"
CLIQUE, POOL = "nvidia.com/gpu.clique", "cloud.google.com/gke-nodepool"
LEVELS = levels_of([BLOCK, RACK, HOST])


def at(name: str, gpus: int, block: str = "", rack: str = "") -> NodeBuilder:
    labels = {key: value for key, value in ((BLOCK, block), (RACK, rack)) if value}
    return node(name).gpus(gpus).label({**labels, HOST: name})


# --- which levels there are, and what a level may be called ----------------------------------------------

GKE = {"cloud.google.com/gce-topology-block", "cloud.google.com/gce-topology-subblock", HOST}
GKE_HOST = "cloud.google.com/gce-topology-host"

CARRIED: dict[str, tuple[set[str], tuple[Level, ...]]] = {
    "nothing known": ({"example.com/rack"}, ()),
    "GKE": (
        GKE | {GKE_HOST, "topology.kubernetes.io/zone"},
        (
            Level("topology.kubernetes.io/zone"),
            Level("cloud.google.com/gce-topology-block"),
            Level("cloud.google.com/gce-topology-subblock", ("cloud.google.com/gce-topology-block",)),
            Level(
                GKE_HOST, ("cloud.google.com/gce-topology-block", "cloud.google.com/gce-topology-subblock")
            ),
            Level(HOST),
        ),
    ),
    "AWS": (
        {f"topology.k8s.aws/network-node-layer-{n}" for n in (1, 2, 3)},
        (
            Level("topology.k8s.aws/network-node-layer-1"),
            Level("topology.k8s.aws/network-node-layer-2", ("topology.k8s.aws/network-node-layer-1",)),
            Level(
                "topology.k8s.aws/network-node-layer-3",
                ("topology.k8s.aws/network-node-layer-1", "topology.k8s.aws/network-node-layer-2"),
            ),
        ),
    ),
    "Topograph: tier 0 is the closest switch": (
        {"fabric.topograph.run/tier-0", "fabric.topograph.run/tier-1", "accelerator.topograph.run/domain"},
        (
            Level("fabric.topograph.run/tier-1"),
            Level("fabric.topograph.run/tier-0", ("fabric.topograph.run/tier-1",)),
            Level("accelerator.topograph.run/domain"),
        ),
    ),
    "Topograph, older": (
        {f"network.topology.nvidia.com/{name}" for name in ("accelerator", "block", "spine", "datacenter")},
        (
            Level("network.topology.nvidia.com/datacenter"),
            Level("network.topology.nvidia.com/spine", ("network.topology.nvidia.com/datacenter",)),
            Level(
                "network.topology.nvidia.com/block",
                ("network.topology.nvidia.com/datacenter", "network.topology.nvidia.com/spine"),
            ),
            Level("network.topology.nvidia.com/accelerator"),
        ),
    ),
    "a coarser label that no node has is not asked for": (
        {"cloud.google.com/gce-topology-subblock"},
        (Level("cloud.google.com/gce-topology-subblock"),),
    ),
    "TPU partitions, the largest first": (
        {
            "cloud.google.com/gke-tpu-partition-2x2x2-id",
            "cloud.google.com/gke-tpu-partition-2x4x4-id",
            "cloud.google.com/gke-tpu-partition-2x2x2-state",
        },
        (
            Level("cloud.google.com/gke-tpu-partition-2x4x4-id"),
            Level("cloud.google.com/gke-tpu-partition-2x2x2-id"),
        ),
    ),
    "cliques": ({CLIQUE}, (Level(CLIQUE),)),
}


@pytest.mark.parametrize(("carried", "levels"), CARRIED.values(), ids=CARRIED)
def test_known_labels_are_levels(carried: set[str], levels: tuple[Level, ...]) -> None:
    assert detected(carried).ordered == levels


def test_each_level_of_a_list_lies_within_those_before_it() -> None:
    assert LEVELS.ordered == (Level(BLOCK), Level(RACK, (BLOCK,)), Level(HOST, (BLOCK, RACK)))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ([], "no topology levels: expected at least one label key, the coarsest first"),
        ([BLOCK, "not a key"], "topology level 2: 'not a key' is not a label key: expected [domain/]name"),
        ([BLOCK, BLOCK], f"topology level 2: '{BLOCK}' is there twice: name each key once"),
        (["x" * 1000], f"topology level 1: '{'x' * 60}...' is not a label key: expected [domain/]name"),
    ],
)
def test_a_list_that_is_no_hierarchy_is_refused(keys: list[str], message: str) -> None:
    with pytest.raises(LevelsError) as error:
        levels_of(keys)
    assert str(error.value) == message


# Levels, what is asked for, the key that is meant; a list where it may be several, None where nothing.
NAMED: dict[str, tuple[Levels, str, str | list[str] | None]] = {
    "by its key": (LEVELS, RACK, RACK),
    "by its last word": (LEVELS, "rack", RACK),
    "by its name": (LEVELS, "topology-rack", RACK),
    "host": (LEVELS, "host", HOST),
    "node": (LEVELS, "node", HOST),
    "GKE's rack": (detected(GKE), "rack", "cloud.google.com/gce-topology-subblock"),
    "GKE's block": (detected(GKE), "block", "cloud.google.com/gce-topology-block"),
    "a name that people use goes before a last word": (detected(GKE | {GKE_HOST}), "host", HOST),
    "without hostnames": (detected({GKE_HOST}), "host", GKE_HOST),
    "zone": (detected({"topology.kubernetes.io/zone"}), "zone", "topology.kubernetes.io/zone"),
    "clique": (detected({CLIQUE}), "clique", CLIQUE),
    "AWS's rack": (detected(CARRIED["AWS"][0]), "rack", "topology.k8s.aws/network-node-layer-3"),
    "two racks": (
        levels_of(["example.com/rack", "example.org/rack"]),
        "rack",
        ["example.com/rack", "example.org/rack"],
    ),
    "an exact key is never ambiguous": (levels_of(["rack", "example.org/rack"]), "rack", "rack"),
    "a number is no word": (detected(CARRIED["AWS"][0]), "3", None),
    "unknown": (LEVELS, "row", None),
    "empty": (LEVELS, "", None),
    "no levels at all": (Levels(), "rack", None),
    "another label key": (LEVELS, POOL, POOL),
    "hostile": (LEVELS, "/" * 1000, None),
}


@pytest.mark.parametrize(("levels", "name", "meant"), NAMED.values(), ids=NAMED)
def test_what_a_level_may_be_called(levels: Levels, name: str, meant: str | list[str] | None) -> None:
    found = levels.resolve(name)
    match meant:
        case str():
            assert isinstance(found, Level)
            assert found.key == meant
        case list():
            assert found == ambiguous_level(name, tuple(meant))
        case None:
            assert found == unknown_level(name, tuple(level.key for level in levels.ordered))


def test_the_way_up_from_a_level() -> None:
    assert [level.key for level in LEVELS.upward(LEVELS.ordered[1])] == [RACK, BLOCK]
    assert list(LEVELS.upward(Level(POOL))) == [Level(POOL)]


# --- domains ---------------------------------------------------------------------------------------------


def test_a_rack_name_repeated_in_two_blocks_is_two_racks() -> None:
    mirror = cluster(at("a", 8, "b1", "r1"), at("b", 8, "b2", "r1"), at("c", 8, "b2", "r1"))
    domains = domains_of(mirror.columns, LEVELS.ordered[1])
    assert set(domains.paths) == {("b1", "r1"), ("b2", "r1")}


def test_nodes_without_a_label_are_in_no_domain_and_are_counted() -> None:
    mirror = cluster(
        at("a", 8, "b1", "r1"), at("b", 8, "b1"), at("c", 8, "", "r1"), at("d", 8), at("e", 8, "b1", "r1")
    )
    domains = domains_of(mirror.columns, LEVELS.ordered[1])
    assert domains.number.tolist() == [1, 0, 0, 0, 1]
    assert domains.outside == outside_level(RACK, 3)


@pytest.mark.parametrize("value", ["", " r1", "r\n1", "r" * 64])
def test_a_malformed_label_names_no_domain(value: str) -> None:
    mirror = cluster(at("a", 8, "b1").label({RACK: value}), at("b", 8, "b1", "r1"))
    domains = domains_of(mirror.columns, LEVELS.ordered[1])
    assert domains.paths == (("b1", "r1"),)
    assert domains.outside == outside_level(RACK, 1, 1, value)


@pytest.mark.parametrize("value", ["no-dot", ".3", "uuid.", "uuid.x"])
def test_a_clique_is_a_cluster_and_a_number(value: str) -> None:
    mirror = cluster(node("a").gpus(4).label({CLIQUE: value}), node("b").gpus(4).label({CLIQUE: "uuid.3"}))
    assert domains_of(mirror.columns, Level(CLIQUE)).paths == (("uuid.3",),)


def test_nodes_that_went_are_in_no_domain() -> None:
    mirror = cluster(at("a", 8, "b1", "r1"), at("b", 8, "b1", "r2"), pod("p").on("b").requests(gpu=1))
    cache = DomainCache()
    assert cache.of(mirror.columns, LEVELS.ordered[1]).count == 2
    delete(mirror, at("b", 8, "b1", "r2"))
    domains = cache.of(mirror.columns, LEVELS.ordered[1])
    assert (domains.paths, domains.outside) == ((("b1", "r1"),), None)


def test_domains_are_remembered_until_labels_change() -> None:
    mirror, cache = cluster(at("a", 8, "b1", "r1")), DomainCache()
    first = cache.of(mirror.columns, LEVELS.ordered[1])
    mirror.pods.upsert(pod("p").on("a").requests(gpu=1).build())
    assert cache.of(mirror.columns, LEVELS.ordered[1]) is first
    mirror.nodes.upsert(at("a", 8, "b1", "r2").build())
    assert cache.of(mirror.columns, LEVELS.ordered[1]).paths == (("b1", "r2"),)


def test_sums_are_exact_and_never_wrap() -> None:
    number = np.array([1, 1, 2], dtype=np.int64)
    assert sums(number, np.array([2**60 + 1, 1, 5], dtype=np.int64), 3).tolist() == [0, 2**60 + 2, 5]
    assert sums(number, np.array([2**63 - 1, 2**63 - 1, 5], dtype=np.int64), 3).min() >= 0
