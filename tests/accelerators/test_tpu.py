"""What one GKE node says about its TPU slice."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.accelerators.devices import NodeFacts
from fairway.accelerators.tpu import (
    PartitionState,
    TpuHost,
    TpuPartition,
    hosts_of,
    parse_topology,
    read_tpu_host,
    topology_name,
)

CI = settings(max_examples=200, derandomize=True, deadline=None)
GKE = "cloud.google.com/"


def node(chips: int = 4, **labels: str) -> NodeFacts:
    """A node with so many chips; labels without their domain, dashes as underscores."""
    return NodeFacts(
        "n",
        labels={GKE + key.replace("_", "-"): value for key, value in labels.items()},
        allocatable={"google.com/tpu": chips} if chips else {},
    )


def host(facts: NodeFacts) -> tuple[TpuHost, tuple[str, ...]]:
    read = read_tpu_host(facts)
    assert read is not None
    return read.found, read.problems


@pytest.mark.parametrize(
    ("accelerator", "topology", "chips", "hosts"),
    [
        ("tpu-v6e-slice", "2x4", 4, 2),
        ("tpu-v6e-slice", "2x4", 8, 1),
        ("tpu-v6e-slice", "1x1", 1, 1),
        ("tpu-v5-lite-podslice", "4x4", 4, 4),
        ("tpu-v5-lite-podslice", "4x8", 4, 8),
        ("tpu-v6e-slice", "8x8", 4, 16),
        ("tpu-v6e-slice", "16x16", 4, 64),
        ("tpu-v5-lite-device", "2x2", 4, 1),
        ("tpu-v4-podslice", "2x2x1", 4, 1),
        ("tpu-v4-podslice", "2x2x2", 4, 2),
        ("tpu-v5p-slice", "2x2x4", 4, 4),
        ("tpu-v5p-slice", "4x4x4", 4, 16),
        ("tpu7x", "4x4x4", 4, 16),
    ],
)
def test_a_slice_spans_its_chips_divided_by_those_of_a_host(
    accelerator: str, topology: str, chips: int, hosts: int
) -> None:
    found, problems = host(
        node(
            chips,
            gke_tpu_accelerator=accelerator,
            gke_tpu_topology=topology,
            gke_accelerator_count=str(chips),
            gke_nodepool="pool-1",
        )
    )
    assert problems == ()
    assert (found.accelerator, topology_name(found.topology), found.hosts) == (accelerator, topology, hosts)
    assert (found.chips, found.chips_per_host, found.pool) == (chips, chips, "pool-1")
    assert found.healthy
    assert not found.dynamic


def test_a_node_without_a_tpu_says_nothing() -> None:
    assert read_tpu_host(NodeFacts("n", labels={GKE + "gke-nodepool": "p"}, allocatable={"cpu": 8})) is None


def test_without_the_count_label_allocatable_tells_the_chips() -> None:
    found, problems = host(
        node(4, gke_tpu_accelerator="tpu-v6e-slice", gke_tpu_topology="4x4", gke_nodepool="p")
    )
    assert (found.chips_per_host, found.hosts, problems) == (4, 4, ())


def test_an_unhealthy_chip_does_not_change_the_shape_of_the_slice() -> None:
    found, problems = host(
        node(
            3,
            gke_tpu_accelerator="tpu-v6e-slice",
            gke_tpu_topology="4x4",
            gke_accelerator_count="4",
            gke_nodepool="p",
        )
    )
    assert (found.chips, found.chips_per_host, found.hosts, problems) == (3, 4, 4, ())
    assert not found.healthy


def test_a_host_whose_plugin_is_gone_still_belongs_to_its_slice() -> None:
    found, problems = host(
        node(
            0,
            gke_tpu_accelerator="tpu-v6e-slice",
            gke_tpu_topology="4x4",
            gke_accelerator_count="4",
            gke_nodepool="p",
        )
    )
    assert (found.chips, found.hosts, problems) == (0, 4, ())
    assert not found.healthy


@pytest.mark.parametrize(
    "text", ["4", "4x", "x4", "4x4x4x4", "0x4", "4x-4", "4X4", "4x4 ", "99999x4", "4x4\n", "", "²x4"]
)
def test_a_malformed_topology_is_a_problem_and_no_slice(text: str) -> None:
    found, problems = host(
        node(4, gke_tpu_accelerator="tpu-v6e-slice", gke_tpu_topology=text, gke_nodepool="p")
    )
    assert (found.topology, found.hosts) == ((), 0)
    assert len(problems) == 1
    assert problems[0].startswith(
        "label cloud.google.com/gke-tpu-topology: expected a shape such as 2x4 or 2x2x4, "
    )
    assert parse_topology(text) is None


@pytest.mark.parametrize(
    ("facts", "hosts", "chips", "problem"),
    [
        (
            node(4, gke_tpu_topology="2x2", gke_nodepool="p"),
            1,
            4,
            "label cloud.google.com/gke-tpu-accelerator: is missing on a node with 4 of google.com/tpu",
        ),
        (
            node(4, gke_tpu_accelerator="t", gke_tpu_topology="4x4"),
            0,
            4,
            "label cloud.google.com/gke-nodepool: is missing, so the other hosts of the slice are not known",
        ),
        (
            node(8, gke_tpu_accelerator="t", gke_tpu_topology="2x2", gke_nodepool="p"),
            0,
            8,
            "label cloud.google.com/gke-tpu-topology: 2x2 has 4 chips: "
            "expected a multiple of the 8 of this host",
        ),
        (
            node(
                4,
                gke_tpu_accelerator="t",
                gke_tpu_topology="4x4",
                gke_nodepool="p",
                gke_accelerator_count="four",
            ),
            4,
            4,
            "label cloud.google.com/gke-accelerator-count: expected a number of chips, found 'four'",
        ),
        (
            node(
                8,
                gke_tpu_accelerator="t",
                gke_tpu_topology="4x4",
                gke_nodepool="p",
                gke_accelerator_count="4",
            ),
            2,
            8,
            "label cloud.google.com/gke-accelerator-count: says 4, but the node has 8 of google.com/tpu: "
            "allocatable counts",
        ),
    ],
)
def test_a_label_that_is_missing_or_contradicts_is_a_problem(
    facts: NodeFacts, hosts: int, chips: int, problem: str
) -> None:
    found, problems = host(facts)
    assert (found.hosts, found.chips_per_host, problems) == (hosts, chips, (problem,))


def ironwood(**labels: str) -> NodeFacts:
    return node(
        4,
        gke_tpu_accelerator="tpu7x",
        gke_tpu_topology="4x4x4",
        gke_accelerator_count="4",
        gke_nodepool="sub-block-1",
        **labels,
    )


NESTED = {
    "gke_tpu_partition_2x2x1_id": "e",
    "gke_tpu_partition_2x2x2_id": "d",
    "gke_tpu_partition_2x2x4_id": "c",
    "gke_tpu_partition_2x4x4_id": "b",
    "gke_tpu_partition_4x4x4_id": "a",
}


def test_nested_partitions_come_with_the_largest_first() -> None:
    states = {key.replace("_id", "_state"): "HEALTHY" for key in NESTED}
    found, problems = host(ironwood(gke_accelerator_topology_mode="PROVISION_ONLY", **NESTED, **states))
    assert problems == ()
    assert found.dynamic
    assert [(topology_name(p.topology), p.id) for p in found.partitions] == [
        ("4x4x4", "a"),
        ("2x4x4", "b"),
        ("2x2x4", "c"),
        ("2x2x2", "d"),
        ("2x2x1", "e"),
    ]
    assert found.partition((2, 2, 4)) == TpuPartition((2, 2, 4), "c", PartitionState.HEALTHY, usable=True)
    assert found.partition((8, 8, 8)) is None


@pytest.mark.parametrize(
    ("state", "usable"),
    [("HEALTHY", True), ("DEGRADED", True), ("UNHEALTHY", False), ("INCOMPLETE", False), ("UNSET", False)],
)
def test_the_state_of_a_partition_says_whether_a_slice_can_be_formed_of_it(state: str, usable: bool) -> None:
    found, problems = host(ironwood(gke_tpu_partition_4x4x4_id="a", gke_tpu_partition_4x4x4_state=state))
    assert problems == ()
    assert found.partitions == (TpuPartition((4, 4, 4), "a", PartitionState(state), usable),)


def test_a_state_that_is_not_known_counts_as_unhealthy() -> None:
    found, problems = host(ironwood(gke_tpu_partition_4x4x4_id="a", gke_tpu_partition_4x4x4_state="MOLTEN"))
    assert found.partitions == (TpuPartition((4, 4, 4), "a", PartitionState.UNHEALTHY, usable=False),)
    assert problems == (
        "label cloud.google.com/gke-tpu-partition-4x4x4-state: expected HEALTHY, DEGRADED, UNHEALTHY, "
        "INCOMPLETE, UNSET, found 'MOLTEN': counted as unhealthy",
    )


@pytest.mark.parametrize(("mode", "usable"), [("PROVISION_ONLY", False), ("AUTO_CONNECT", True)])
def test_without_a_state_only_a_pool_that_is_a_slice_already_has_usable_partitions(
    mode: str, usable: bool
) -> None:
    found, problems = host(ironwood(gke_accelerator_topology_mode=mode, gke_tpu_partition_2x2x1_id="e"))
    assert (found.dynamic, problems) == (mode == "PROVISION_ONLY", ())
    assert found.partitions == (TpuPartition((2, 2, 1), "e", PartitionState.ABSENT, usable),)


def test_other_generations_name_their_nested_groups_differently() -> None:
    found, problems = host(
        node(
            4,
            gke_tpu_accelerator="tpu-v6e-slice",
            gke_tpu_topology="4x4",
            gke_nodepool="p",
            gke_tpu_slice_2x4_id="x",
            gke_tpu_slice_topology="2x4",
        )
    )
    assert found.partitions == (TpuPartition((2, 4), "x", PartitionState.ABSENT, usable=True),)
    assert problems == ()


def test_a_pool_that_is_to_be_cut_needs_no_topology_label() -> None:
    found, problems = host(
        node(
            4,
            gke_tpu_accelerator="tpu7x",
            gke_accelerator_count="4",
            gke_accelerator_topology_mode="PROVISION_ONLY",
            gke_nodepool="p",
        )
    )
    assert (found.topology, found.hosts, problems) == ((), 0, ())


def test_a_malformed_partition_label_is_a_problem_and_the_others_count() -> None:
    found, problems = host(
        ironwood(gke_tpu_partition_2x0_id="a", gke_tpu_partition_2x2x1_id="e", gke_tpu_partition_2x2x2_id="")
    )
    assert [p.topology for p in found.partitions] == [(2, 2, 1)]
    assert problems == (
        "label cloud.google.com/gke-tpu-partition-2x0-id: "
        "expected a shape such as 2x2x4 in its name, found '2x0'",
    )


@CI
@given(st.lists(st.integers(1, 64), min_size=2, max_size=3), st.integers(1, 8))
def test_hosts_times_chips_is_the_slice(dims: list[int], chips: int) -> None:
    topology = tuple(dims)
    assert parse_topology(topology_name(topology)) == topology
    total = 1
    for dim in dims:
        total *= dim
    hosts = hosts_of(topology, chips)
    assert hosts * chips == total or (hosts == 0 and total % chips)


@pytest.mark.parametrize("chips", [0, -1])
def test_a_host_without_chips_is_part_of_no_slice(chips: int) -> None:
    assert hosts_of((2, 2), chips) == 0


LABELS = st.dictionaries(
    st.sampled_from(
        [
            GKE + name
            for name in (
                "gke-tpu-accelerator",
                "gke-tpu-topology",
                "gke-accelerator-count",
                "gke-nodepool",
                "gke-accelerator-topology-mode",
                "gke-tpu-partition-2x2x1-id",
                "gke-tpu-partition-2x2x1-state",
                "gke-tpu-partition-xx-id",
                "gke-tpu-slice-2x2-id",
            )
        ]
    ),
    st.sampled_from(["", "tpu7x", "4x4", "2x2x4", "4", "-1", "999999", "HEALTHY", "PROVISION_ONLY", "0x0"])
    | st.text(),
)


@CI
@given(LABELS, st.integers(-5, 20))
def test_any_labels_are_read_without_a_crash_and_never_to_a_slice_without_chips(
    labels: dict[str, str], chips: int
) -> None:
    read = read_tpu_host(NodeFacts("n", labels=labels, allocatable={"google.com/tpu": chips}))
    if read is not None and read.found.hosts:
        assert read.found.topology
        assert read.found.chips_per_host > 0
