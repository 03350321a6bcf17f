"""What the administrator's summary says of clusters small enough to count by hand, and laws for all."""

import json
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from estimator.capacity.summary import (
    Chunk,
    Domain,
    Fractions,
    LargestGang,
    Partition,
    Product,
    SliceShape,
    StrandedNode,
    Summary,
)
from estimator.capacity.survey.stock import overdrawn
from estimator.capacity.survey.survey import MOST_PROBLEMS, MOST_STRANDED, survey
from estimator.capacity.topology.levels import Levels, levels_of
from estimator.cluster.mirror import ClusterMirror
from estimator.fit.device_tolerations import NOTHING_ADDED, TolerationPolicy
from fairway.accelerators.builtin import builtin_catalogue
from fairway.accelerators.catalogue import parse_catalogue
from fairway.taints import Toleration
from tests.builders import NodeBuilder, PodBuilder, cluster, node, pod, room_of, shape

GPU = "nvidia.com/gpu"
A100, H100 = "NVIDIA-A100-SXM4-40GB", "NVIDIA-H100-80GB-HBM3"
PRODUCT = "nvidia.com/gpu.product"


def gpu_node(name: str, gpus: int = 8, product: str = H100) -> NodeBuilder:
    return node(name).gpus(gpus).cpu("96").memory("960Gi").label({PRODUCT: product})


def gpu_pods(name: str, *gpus: int) -> list[PodBuilder]:
    """Running pods on the node, of so many GPUs each."""
    return [pod(f"{name}-{index}").on(name).requests(gpu=count) for index, count in enumerate(gpus)]


def hami_node(name: str, *, devices: int = 2, memory: int = 24000, sick: int = 0) -> NodeBuilder:
    """Devices that HAMi registers, each advertised ten times; the last ``sick`` of them unhealthy."""
    register = [
        {
            "id": f"GPU-{index}",
            "index": index,
            "count": 10,
            "devmem": memory,
            "devcore": 100,
            "type": "NVIDIA-NVIDIA A10",
            "mode": "hami-core",
            "health": index < devices - sick,
        }
        for index in range(devices)
    ]
    return (
        node(name)
        .has({GPU: 10 * devices})
        .cpu("96")
        .annotated({"hami.io/node-nvidia-register": json.dumps(register)})
    )


def hami_pod(name: str, on: str, device: int, memory: int, cores: int = 0) -> PodBuilder:
    given = {"hami.io/vgpu-devices-allocated": f"GPU-{device},NVIDIA,{memory},{cores}:;"}
    return pod(name).on(on).requests({GPU: 1, "nvidia.com/gpumem": memory}).annotated(given)


def surveyed(
    mirror: ClusterMirror,
    *levels: str,
    tolerations: Iterable[Toleration] = (),
    policy: TolerationPolicy | None = None,
    catalogue: str = "",
) -> Summary:
    """The summary of a snapshot, as a thread would make it."""
    known = builtin_catalogue()
    if catalogue:
        known = known.extended_by(parse_catalogue(catalogue, "catalogue.yaml"))
    return survey(
        mirror.columns.copy(),
        known,
        levels_of(levels) if levels else Levels(),
        cluster="alpha",
        pods=len(mirror.pods.keys()),
        overdrawn=overdrawn(mirror.columns),
        tolerations=tolerations,
        policy=policy,
    )


def only(summary: Summary) -> Product:
    assert len(summary.products) == 1, [product.product for product in summary.products]
    return summary.products[0]


def by_name(summary: Summary) -> dict[str, Product]:
    return {product.product: product for product in summary.products}


def counts(product: Product) -> dict[str, int]:
    """The head line of a product, what is 0 left out."""
    names = ("nodes", "total", "unhealthy", "cordoned", "allocated", "free", "stranded")
    return {name: getattr(product, name) for name in names if getattr(product, name)}


def placeable(product: Product) -> dict[int, int]:
    return {place.devices: place.pods for place in product.placeable}


# --- whole devices ---------------------------------------------------------------------------------------


def test_pods_that_no_node_has_room_for_are_not_placeable_however_much_is_free_in_all() -> None:
    # Golden vector V1: four nodes with three free GPUs each; the sum says six pods of two, and three of four.
    names = ("a", "b", "c", "d")
    nodes = [gpu_node(name) for name in names]
    product = only(surveyed(cluster(*nodes, *(p for name in names for p in gpu_pods(name, 5)))))
    assert counts(product) == {"nodes": 4, "total": 32, "allocated": 20, "free": 12}
    assert placeable(product) == {8: 0, 4: 0, 2: 4, 1: 12}
    assert product.chunks == (Chunk(3, 4),)


def test_nothing_is_free_where_a_device_failed_under_its_pod() -> None:
    # Golden vector V9: eight GPUs, one unhealthy, eight held.
    sick = gpu_node("a", 7).capacity_of(gpu=8)
    product = only(surveyed(cluster(sick, *gpu_pods("a", 4, 4))))
    assert counts(product) == {"nodes": 1, "total": 8, "unhealthy": 1, "allocated": 8}
    assert placeable(product) == {8: 0, 4: 0, 2: 0, 1: 0}


def test_an_unhealthy_device_is_counted_and_not_free() -> None:
    product = only(surveyed(cluster(gpu_node("a", 7).capacity_of(gpu=8), *gpu_pods("a", 2))))
    assert counts(product) == {"nodes": 1, "total": 8, "unhealthy": 1, "allocated": 2, "free": 5}


def test_a_pod_that_has_ended_holds_nothing_and_one_that_is_ending_still_does() -> None:
    ended = pod("x").on("a").requests(gpu=2).phase("Succeeded")
    ending = pod("y").on("a").requests(gpu=1).terminating()
    assert counts(only(surveyed(cluster(gpu_node("a"), ended, ending)))) == {
        "nodes": 1,
        "total": 8,
        "allocated": 1,
        "free": 7,
    }


def test_idle_devices_of_a_cordoned_node_are_cordoned_and_held_ones_are_allocated() -> None:
    product = only(surveyed(cluster(gpu_node("a"), gpu_node("b").cordoned(), *gpu_pods("b", 3))))
    assert counts(product) == {"nodes": 2, "total": 16, "cordoned": 5, "allocated": 3, "free": 8}
    assert placeable(product)[8] == 1
    assert product.chunks == (Chunk(0, 1), Chunk(8, 1))


def test_products_are_told_apart_by_their_labels_and_nodes_without_a_label_are_a_product_of_their_own() -> (
    None
):
    summary = surveyed(
        cluster(gpu_node("a"), gpu_node("b", 4, A100), node("c").gpus(2), gpu_node("d", 4, A100))
    )
    assert [(p.product, p.resource, p.nodes, p.total) for p in summary.products] == [
        ("", GPU, 1, 2),
        (A100, GPU, 2, 8),
        (H100, GPU, 1, 8),
    ]
    assert (summary.cluster, summary.nodes, summary.pods, summary.problems) == ("alpha", 4, 0, ())


def test_a_cluster_without_devices_has_no_products() -> None:
    assert surveyed(cluster(node("a").cpu("8"), pod("x").on("a").requests(cpu="1")), "rack") == Summary(
        "alpha", nodes=1, pods=1
    )


def test_an_empty_cluster_has_an_empty_summary() -> None:
    assert surveyed(cluster(), "rack") == Summary("alpha", nodes=0, pods=0)


def test_pods_of_a_node_that_is_not_there_count_for_nothing() -> None:
    summary = surveyed(cluster(gpu_node("a"), *gpu_pods("b", 8)))
    assert counts(only(summary)) == {"nodes": 1, "total": 8, "free": 8}


def test_a_full_list_of_pods_leaves_no_slot_to_place_one_in() -> None:
    full = gpu_node("a").pods(2)
    summary = surveyed(cluster(full, *gpu_pods("a", 1, 1)))
    assert placeable(only(summary)) == {8: 0, 4: 0, 2: 0, 1: 0}
    assert summary.stranded == (
        StrandedNode("a", H100, 6, "pods", "0 of 2 pod slots are free: 6 pods must end or move."),
    )


def test_an_absurd_number_of_devices_is_told_and_spoils_no_sum() -> None:
    summary = surveyed(cluster(gpu_node("a"), *(gpu_node(f"b{i}").has({GPU: 2**62}) for i in range(3))))
    product = only(summary)
    assert product.free == 8 + 3 * (2**31 - 1)
    assert summary.problems[0] == f"node b0: status.allocatable.{GPU} is {2**62}: counted as {2**31 - 1}"


# --- taints ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("taint", "usable"),
    [
        (f"{GPU}:NoSchedule", True),
        (f"{GPU}=present:NoSchedule", True),
        ("google.com/tpu=present:NoSchedule", True),
        ("dedicated=ml:NoSchedule", False),
        ("example.com/dedicated:NoSchedule", False),
        # Tolerations that Kubernetes adds are for NoSchedule alone.
        (f"{GPU}:NoExecute", False),
        ("node.kubernetes.io/not-ready:NoExecute", False),
        ("example.com/soft:PreferNoSchedule", True),
    ],
)
def test_only_taints_named_after_devices_leave_a_node_usable(taint: str, usable: bool) -> None:
    summary = surveyed(cluster(gpu_node("a").taint(taint)))
    product = only(summary)
    assert product.free == 8
    assert placeable(product)[8] == int(usable)
    assert product.stranded == (0 if usable else 8)
    assert [node.cause for node in summary.stranded] == ([] if usable else ["taint"])


def test_taints_that_pods_of_devices_are_known_to_tolerate_do_not_strand_anything() -> None:
    mirror = cluster(gpu_node("a").taint("dedicated=ml:NoSchedule"))
    summary = surveyed(mirror, tolerations=[Toleration("dedicated", "Equal", "ml")])
    assert placeable(only(summary))[8] == 1
    assert summary.stranded == ()


@pytest.mark.parametrize(("policy", "usable"), [(TolerationPolicy(frozenset({GPU})), 1), (NOTHING_ADDED, 0)])
def test_taints_named_after_devices_are_tolerated_where_admission_lets_pods(
    policy: TolerationPolicy, usable: int
) -> None:
    summary = surveyed(cluster(gpu_node("a").taint(f"{GPU}:NoSchedule")), policy=policy)
    assert placeable(only(summary))[8] == usable
    assert [node.cause for node in summary.stranded] == ([] if usable else ["taint"])


def test_a_taint_named_after_an_uncatalogued_device_is_one_that_its_pods_tolerate() -> None:
    fpga = node("a").has({"example.com/fpga": 2}).taint("example.com/fpga:NoSchedule")
    assert placeable(only(surveyed(cluster(fpga))))[2] == 1


@pytest.mark.parametrize(
    ("taint", "remedy"),
    [
        ("team=x:NoSchedule", "Lift the taint team=x:NoSchedule, or let pods tolerate it."),
        (
            "node.kubernetes.io/unreachable:NoExecute",
            "Kubernetes lifts node.kubernetes.io/unreachable:NoExecute once the node has recovered.",
        ),
    ],
)
def test_the_remedy_for_a_taint_says_who_lifts_it(taint: str, remedy: str) -> None:
    summary = surveyed(cluster(gpu_node("a").taint(taint)))
    assert summary.stranded == (StrandedNode("a", H100, 8, "taint", remedy),)


# --- stranded devices ------------------------------------------------------------------------------------


def test_devices_are_stranded_where_half_of_their_share_of_cpu_is_not_to_be_had() -> None:
    # Half a share of 96 cpu and 8 GPUs is 6 cpu.
    mirror = cluster(gpu_node("a"), pod("x").on("a").requests(cpu="77"))
    summary = surveyed(mirror)
    assert counts(only(summary)) == {"nodes": 1, "total": 8, "free": 8, "stranded": 5}
    assert summary.stranded == (
        StrandedNode(
            "a",
            H100,
            5,
            "cpu",
            "Free 29 of cpu: 19 of 96 are free, and half a fair share for one device is 6.",
        ),
    )


def test_what_fits_now_counts_pods_of_the_same_share_as_what_is_stranded() -> None:
    mirror = cluster(gpu_node("a").cpu("96").label(rack="r"), pod("busy").on("a").requests(cpu=78))
    product = only(surveyed(mirror, "rack"))
    assert (product.free, product.stranded) == (8, 5)
    assert placeable(product) == {8: 0, 4: 0, 2: 1, 1: 3}
    assert {(gang.level, gang.devices, gang.pods) for gang in product.gangs if gang.devices <= 2} == {
        ("", 2, 1), ("", 1, 3), ("rack", 2, 1), ("rack", 1, 3),
    }  # fmt: skip


def test_the_scarcest_of_cpu_and_memory_is_the_cause() -> None:
    mirror = cluster(gpu_node("a"), pod("x").on("a").requests(cpu="90", memory="930Gi"))
    (stranded,) = surveyed(mirror).stranded
    assert (stranded.free, stranded.cause) == (8, "memory")
    assert stranded.remedy == (
        "Free 450Gi of memory: 30Gi of 960Gi are free, and half a fair share for one device is 60Gi."
    )


def test_a_node_that_has_no_cpu_to_share_is_not_judged_by_it() -> None:
    assert surveyed(cluster(node("a").gpus(8))).stranded == ()


def test_the_share_of_a_device_is_that_of_all_devices_of_its_node() -> None:
    # Two products share 96 cpu among 4 + 4 devices: half a share is 6, and 12 free serve two of the four.
    mixed = gpu_node("a", 4).has({"habana.ai/gaudi": 4})
    summary = surveyed(cluster(mixed, pod("x").on("a").requests(cpu="84")))
    assert {p.resource: p.stranded for p in summary.products} == {GPU: 2, "habana.ai/gaudi": 2}


def test_the_nodes_with_most_stranded_devices_are_told_first_and_no_more_than_a_thousand() -> None:
    # One pod slot, one cpu: half a share fits nowhere.
    nodes = [gpu_node(f"n{i:04}", 1 + (i == 700)).taint("x:NoSchedule") for i in range(MOST_STRANDED + 100)]
    summary = surveyed(cluster(*nodes))
    assert len(summary.stranded) == MOST_STRANDED
    assert [node.node for node in summary.stranded[:3]] == ["n0700", "n0000", "n0001"]
    assert only(summary).stranded == MOST_STRANDED + 101


# --- shared devices --------------------------------------------------------------------------------------


def sliced_node(name: str, **labels: str) -> NodeBuilder:
    """Eight GPUs that are advertised four times each."""
    stated = {"count": "8", "replicas": "4", "sharing-strategy": "time-slicing", "product": f"{H100}-SHARED"}
    stated |= {key.replace("_", "-"): value for key, value in labels.items()}
    return node(name).gpus(32).label({f"nvidia.com/gpu.{key}": value for key, value in stated.items()})


def test_time_sliced_devices_count_once_however_often_they_are_advertised() -> None:
    product = only(surveyed(cluster(sliced_node("a"), *gpu_pods("a", 1, 1, 1, 1, 1))))
    assert (product.product, product.device_class) == (f"{H100}-SHARED", "shared")
    assert product.advertised_per_device == 4
    # 27 replicas are free: six devices' worth, and on three devices surely nothing runs.
    assert counts(product) == {"nodes": 1, "total": 8, "allocated": 2, "free": 6}
    assert product.fractions == (Fractions("time-slicing", 8, 6750, 250, 0, 3),)


def test_mps_devices_under_a_name_of_their_own_count_once_too() -> None:
    labels = {"count": "2", "replicas": "5", "sharing-strategy": "mps", "product": H100}
    renamed = (
        node("a")
        .has({"nvidia.com/gpu.shared": 10})
        .label({f"nvidia.com/gpu.{k}": v for k, v in labels.items()})
    )
    product = only(surveyed(cluster(renamed)))
    assert (product.product, product.resource) == (H100, "nvidia.com/gpu.shared")
    assert counts(product) == {"nodes": 1, "total": 2, "free": 2}
    assert product.fractions == (Fractions("mps", 2, 2000, 200, 0, 2),)


def test_labels_that_contradict_allocatable_are_told_and_allocatable_counts() -> None:
    summary = surveyed(
        cluster(sliced_node("a", replicas="5"), sliced_node("b", replicas="5"), sliced_node("c"))
    )
    told = [p for p in summary.problems if "replicas" in p]
    assert len(told) == 1
    assert told[0].startswith("node a and 1 more like it: label")
    assert sum(p.total for p in summary.products) == 8 + 32 + 32


def test_devices_that_hami_shares_are_counted_one_by_one() -> None:
    mirror = cluster(hami_node("a", devices=8), hami_pod("x", "a", 3, 6000, 40))
    product = only(surveyed(mirror))
    assert (product.resource, product.device_class, product.advertised_per_device) == (GPU, "fraction", 10)
    assert counts(product) == {"nodes": 1, "total": 8, "allocated": 1, "free": 7}
    assert placeable(product) == {8: 0, 4: 1, 2: 3, 1: 7}
    # Of the touched device 75 % of memory and 60 % of cores are free.
    assert product.fractions == (Fractions("hami-nvidia", 8, 7600, 1000, 24000, 7),)


def test_the_largest_free_piece_is_that_of_a_device_that_pods_can_use() -> None:
    full = [hami_pod(f"x{i}", "a", 0, 1000, 10) for i in range(10)]
    mirror = cluster(hami_node("a", sick=0), *full, hami_pod("y", "a", 1, 20000, 10))
    product = only(surveyed(mirror))
    # The first device has memory left but all its cores are taken.
    assert product.fractions == (Fractions("hami-nvidia", 2, 166, 166, 4000, 0),)
    assert counts(product) == {"nodes": 1, "total": 2, "allocated": 2}


def test_unhealthy_devices_of_a_scheme_are_unhealthy_and_have_no_free_piece() -> None:
    product = only(surveyed(cluster(hami_node("a", devices=4, sick=1))))
    assert counts(product) == {"nodes": 1, "total": 4, "unhealthy": 1, "free": 3}
    assert product.fractions[0].free_milli == 3000


def test_nodes_of_one_product_are_one_product_whether_hami_shares_them_or_not() -> None:
    mirror = cluster(hami_node("a", devices=8).label({PRODUCT: H100}), gpu_node("b"))
    product = only(surveyed(mirror))
    assert (product.product, product.device_class) == (H100, "fraction, whole")
    assert counts(product) == {"nodes": 2, "total": 16, "free": 16}


def test_pieces_on_cordoned_nodes_are_not_free() -> None:
    product = only(surveyed(cluster(hami_node("a").cordoned(), hami_node("b"))))
    assert counts(product) == {"nodes": 2, "total": 4, "cordoned": 2, "free": 2}
    assert product.fractions == (Fractions("hami-nvidia", 4, 2000, 1000, 24000, 2),)


def test_a_device_that_kai_has_opened_is_allocated_and_its_rest_is_a_piece() -> None:
    reservation = (
        pod("gpu-reservation", "kai-resource-reservation")
        .on("a")
        .requests(gpu=1)
        .labelled({"app": "kai-resource-reservation", "runai-gpu-group": "g1"})
    )
    user = pod("x").on("a").annotated({"gpu-fraction": "0.25"}).labelled({"runai-gpu-group": "g1"})
    product = only(
        surveyed(cluster(gpu_node("a", 2).label({"nvidia.com/gpu.memory": "81559"}), reservation, user))
    )
    assert counts(product) == {"nodes": 1, "total": 2, "allocated": 1, "free": 1}
    (pieces,) = product.fractions
    assert (pieces.scheme, pieces.devices, pieces.free_milli, pieces.untouched) == ("kai", 2, 1750, 1)


def test_a_scheme_that_nobody_uses_is_not_mentioned() -> None:
    assert only(surveyed(cluster(gpu_node("a")))).fractions == ()


def test_parts_of_devices_that_nobody_describes_are_told_instead_of_counted() -> None:
    summary = surveyed(cluster(gpu_node("a").has({"volcano.sh/vgpu-number": 80})))
    assert only(summary).resource == GPU
    assert [p for p in summary.problems if "volcano.sh/vgpu-number" in p]


# --- partitions ------------------------------------------------------------------------------------------


def mig_node(name: str, gpus: int = 1, whole: int = 0, **pieces: int) -> NodeBuilder:
    """``pieces``: ``g1_5`` stands for 1g.5gb."""
    has = {f"nvidia.com/mig-{key[1:].replace('_', 'g.')}gb": count for key, count in pieces.items()}
    labels = {PRODUCT: A100, "nvidia.com/gpu.count": str(gpus), "nvidia.com/mig.strategy": "mixed"}
    return node(name).has({GPU: whole, **has}).label(labels)


def free_and_potential(product: Product) -> dict[str, tuple[int, int, int]]:
    return {p.profile: (p.total, p.free, p.potential) for p in product.partitions}


def test_mig_pieces_are_counted_by_profile_and_their_devices_behind_them() -> None:
    held = pod("x").on("a").requests({"nvidia.com/mig-1g.5gb": 1})
    product = only(surveyed(cluster(mig_node("a", 2, g1_5=8, g3_20=2), held)))
    assert (product.product, product.resource, product.device_class) == (f"{A100}-MIG", GPU, "partition")
    assert counts(product) == {"nodes": 1, "total": 2, "allocated": 1, "free": 1}
    assert product.placeable == ()
    assert product.partitions[0] == Partition("1g.5gb", "nvidia.com/mig-1g.5gb", 8, 7, 0)
    assert free_and_potential(product) == {
        "1g.5gb": (8, 7, 0),
        "3g.20gb": (2, 2, 0),
        "1g.5gb+me": (0, 0, 1),
        "1g.10gb": (0, 0, 4),
        "2g.10gb": (0, 0, 3),
        "4g.20gb": (0, 0, 1),
        "7g.40gb": (0, 0, 1),
    }


def test_idle_devices_that_can_be_cut_add_to_what_could_be_cut() -> None:
    capable = {"nvidia.com/mig.capable": "true"}
    mirror = cluster(mig_node("a", 1, g7_40=1), gpu_node("b", 2, A100).label(capable), gpu_node("c", 4, A100))
    found = free_and_potential(by_name(surveyed(mirror))[f"{A100}-MIG"])
    # One idle cut device and two whole ones: three more of 3g on each side of the first, and 7g only anew.
    assert found["7g.40gb"] == (1, 1, 2)
    assert found["3g.20gb"] == (0, 0, 6)


def test_a_node_that_is_partly_cut_has_whole_devices_and_cut_ones() -> None:
    summary = by_name(surveyed(cluster(mig_node("a", 8, whole=6, g3_20=4))))
    assert counts(summary[A100]) == {"nodes": 1, "total": 6, "free": 6}
    assert counts(summary[f"{A100}-MIG"]) == {"nodes": 1, "total": 2, "free": 2}


def test_with_strategy_single_the_plain_name_means_pieces() -> None:
    single = node("a").gpus(14).label({PRODUCT: f"{A100}-MIG-1g.5gb", "nvidia.com/gpu.count": "14"})
    held = pod("x").on("a").requests(gpu=1)
    product = only(surveyed(cluster(single, held)))
    assert counts(product) == {"nodes": 1, "total": 2, "allocated": 1, "free": 1}
    assert product.partitions[0] == Partition("1g.5gb", GPU, 14, 13, 0)


def test_the_devices_behind_pieces_follow_from_the_pieces_where_no_label_counts_them() -> None:
    unlabelled = node("a").has({"nvidia.com/mig-1g.5gb": 56}).label({PRODUCT: A100})
    assert counts(only(surveyed(cluster(unlabelled)))) == {"nodes": 1, "total": 8, "free": 8}


def test_pieces_that_the_table_does_not_know_count_as_a_device_each_and_spoil_no_others() -> None:
    summary = surveyed(cluster(mig_node("a", 1, g1_5=7).has({"nvidia.com/mig-9g.99gb": 3})))
    found = {(p.product, p.resource): p for p in summary.products}
    assert counts(found[A100, "nvidia.com/mig-9g.99gb"]) == {"nodes": 1, "total": 3, "free": 3}
    assert found[A100, "nvidia.com/mig-9g.99gb"].partitions == (
        Partition("9g.99gb", "nvidia.com/mig-9g.99gb", 3, 3, 0),
    )
    assert counts(found[f"{A100}-MIG", GPU]) == {"nodes": 1, "total": 1, "free": 1}


# --- TPU slices, Neuron, uncatalogued names --------------------------------------------------------------


def tpu_node(name: str, pool: str, topology: str = "4x4") -> NodeBuilder:
    labels = {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
        "cloud.google.com/gke-tpu-topology": topology,
        "cloud.google.com/gke-nodepool": pool,
        "cloud.google.com/gke-accelerator-count": "4",
    }
    return node(name).has({"google.com/tpu": 4}).label(labels).taint("google.com/tpu=present:NoSchedule")


def test_a_tpu_slice_with_a_busy_host_is_no_slice_and_its_free_chips_are_stranded() -> None:
    # Golden vector V8: two pools of four hosts, one host busy in one of them.
    hosts = [tpu_node(f"{pool}{i}", pool) for pool in ("p", "q") for i in range(4)]
    busy = pod("x").on("q2").requests({"google.com/tpu": 4})
    summary = surveyed(cluster(*hosts, busy))
    assert summary.slices == (SliceShape("tpu-v6e-slice", "4x4", 4, 2, 1, 1, 0),)
    product = only(summary)
    assert (product.product, product.device_class) == ("tpu-v6e-slice", "atomic")
    assert counts(product) == {"nodes": 8, "total": 32, "allocated": 4, "free": 28, "stranded": 12}
    # A pod takes all chips of its host, of a slice that is free.
    assert placeable(product) == {8: 0, 4: 4, 2: 0, 1: 0}
    assert {(node.node, node.free, node.cause) for node in summary.stranded} == {
        ("q0", 4, "fragments"),
        ("q1", 4, "fragments"),
        ("q3", 4, "fragments"),
    }


def test_the_chips_beside_a_sick_host_are_stranded_because_it_is_not_well() -> None:
    sick = tpu_node("p3", "p").has({"google.com/tpu": 3}).capacity_of({"google.com/tpu": 4})
    summary = surveyed(cluster(*(tpu_node(f"p{i}", "p") for i in range(3)), sick))
    assert [shape.incomplete for shape in summary.slices] == [1]
    assert {node.cause for node in summary.stranded} == {"unhealthy"}
    assert only(summary).stranded == 15


def test_single_host_tpus_are_like_any_other_device() -> None:
    summary = surveyed(cluster(tpu_node("a", "p", "2x2"), tpu_node("b", "p", "2x2")))
    assert placeable(only(summary)) == {8: 0, 4: 2, 2: 4, 1: 8}
    assert summary.stranded == ()


def test_neuron_devices_are_one_product_under_whatever_names_they_are_asked_for() -> None:
    trainium = (
        node("a")
        .has({"aws.amazon.com/neuron": 16, "aws.amazon.com/neuroncore": 32})
        .label({"node.kubernetes.io/instance-type": "trn1.32xlarge"})
    )
    held = [
        pod("x").on("a").requests({"aws.amazon.com/neuroncore": 3}),
        pod("y").on("a").requests({"aws.amazon.com/neuron": 4}),
    ]
    product = only(surveyed(cluster(trainium, *held)))
    assert (product.product, product.resource) == ("trn1.32xlarge", "aws.amazon.com/neuron")
    assert counts(product) == {"nodes": 1, "total": 16, "allocated": 6, "free": 10}


def test_unknown_names_count_as_whole_devices_and_are_listed() -> None:
    summary = surveyed(cluster(node("a").has({"example.com/fpga": 2, "rdma/hca": 8})))
    product = only(summary)
    assert summary.uncatalogued == ("example.com/fpga",)
    assert (product.product, product.resource, product.total) == ("", "example.com/fpga", 2)


def test_a_name_that_the_administrator_catalogues_is_unknown_no_more() -> None:
    extra = "- pattern: example.com/fpga\n  class: whole\n  product: Alveo\n"
    summary = surveyed(cluster(node("a").has({"example.com/fpga": 2})), catalogue=extra)
    assert (summary.uncatalogued, only(summary).product) == ((), "Alveo")


def test_labels_that_name_nodes_instead_of_products_do_not_make_a_report_of_nodes() -> None:
    summary = surveyed(cluster(*(gpu_node(f"n{i}", product=f"gpu-{i}") for i in range(600))))
    assert len(summary.products) == 513
    assert sum(product.total for product in summary.products) == 4800
    assert "nodes are of 600 kinds by label" in summary.problems[0]


def test_problems_beyond_a_hundred_are_counted() -> None:
    nodes = [sliced_node(f"n{i:03}", count=f"{9 + i}") for i in range(MOST_PROBLEMS + 20)]
    summary = surveyed(cluster(*nodes))
    assert len(summary.problems) == MOST_PROBLEMS + 1
    assert summary.problems[-1] == "20 more problems"


# --- topology --------------------------------------------------------------------------------------------


def test_gangs_and_free_devices_are_told_by_domain_of_each_level() -> None:
    mirror = cluster(
        gpu_node("a").label(block="b1", rack="r1"),
        gpu_node("b").label(block="b1", rack="r1"),
        gpu_node("c").label(block="b1", rack="r2"),
        gpu_node("d").label(block="b2", rack="r1"),
        gpu_node("e").label(block="b2"),
        *gpu_pods("b", 2),
    )
    summary = surveyed(mirror, "block", "rack")
    product = only(summary)
    assert {g.level: g for g in product.gangs if g.devices == 8} == {
        "": LargestGang(8, "", "", 4),
        "block": LargestGang(8, "block", "b1", 2),
        "rack": LargestGang(8, "rack", "b1/r1", 1),
    }
    assert {g.level: g for g in product.gangs if g.devices == 2}["rack"] == LargestGang(2, "rack", "b1/r1", 7)
    blocks, racks = summary.levels
    assert (blocks.level, blocks.product, blocks.unlabelled_nodes) == ("block", H100, 0)
    assert blocks.domains == (Domain(("b1",), 3, 24, 22, 2), Domain(("b2",), 2, 16, 16, 2))
    assert (racks.level, racks.unlabelled_nodes) == ("rack", 1)
    assert racks.domains == (
        Domain(("b1", "r1"), 2, 16, 14, 1),
        Domain(("b1", "r2"), 1, 8, 8, 1),
        Domain(("b2", "r1"), 1, 8, 8, 1),
    )


def test_domains_without_devices_of_a_product_are_not_among_its_domains() -> None:
    mirror = cluster(gpu_node("a").label(rack="r1"), node("b").cpu("8").label(rack="r2"))
    (racks,) = surveyed(mirror, "rack").levels
    assert [domain.path for domain in racks.domains] == [("r1",)]


def test_hosts_are_a_level_for_gangs_but_are_not_listed() -> None:
    key = "kubernetes.io/hostname"
    summary = surveyed(cluster(gpu_node("a").label({key: "a"}), gpu_node("b").label({key: "b"})), key)
    assert LargestGang(4, key, "a", 2) in only(summary).gangs
    assert summary.levels == ()


# --- laws ------------------------------------------------------------------------------------------------


@st.composite
def fleets(draw: st.DrawFn) -> list[NodeBuilder | PodBuilder]:
    things: list[NodeBuilder | PodBuilder] = []
    for index in range(draw(st.integers(0, 6))):
        name = f"n{index}"
        healthy, sick = draw(st.integers(0, 8)), draw(st.integers(0, 2))
        built = node(name).gpus(healthy).capacity_of(gpu=healthy + sick).pods(draw(st.integers(0, 5)))
        built = built.cpu(draw(st.sampled_from(("0", "4", "96")))).memory("64Gi")
        if draw(st.booleans()):
            built = built.label({PRODUCT: draw(st.sampled_from((A100, H100)))})
        if draw(st.integers(0, 3)) == 0:
            built = built.cordoned()
        taint = draw(st.sampled_from(("", "", f"{GPU}:NoSchedule", "team=x:NoSchedule")))
        things.append(built.taint(taint) if taint else built.label(rack=f"r{draw(st.integers(0, 2))}"))
        for number in range(draw(st.integers(0, 3))):
            held = pod(f"{name}-{number}").on(name)
            things.append(held.requests(gpu=draw(st.integers(0, 9)), cpu=draw(st.integers(0, 40))))
    return things


@given(fleets())
def test_what_is_placeable_is_what_the_estimator_would_place(things: list[NodeBuilder | PodBuilder]) -> None:
    mirror = cluster(*things)
    summary = surveyed(mirror, "rack")
    room = room_of(mirror)
    columns = mirror.columns
    devices = columns.allocatable(GPU) + columns.unhealthy(GPU)
    for size in (8, 4, 2, 1):
        fits = np.zeros(len(columns.rows), dtype=np.int64)
        for at in range(len(columns.rows)):
            # Half of what each device would get if the node's amounts were dealt out evenly.
            cpu_milli, memory = (
                size * (int(columns.allocatable(name)[at]) // (2 * max(1, int(devices[at]))))
                for name in ("cpu", "memory")
            )
            asked = shape(
                {"cpu": f"{cpu_milli}m", "memory": memory, GPU: size}, tolerations=[f"{GPU}:NoSchedule"]
            )
            fits[at] = room.fits(asked)[at]
        assert sum(placeable(product)[size] for product in summary.products) == int(fits.sum())
        racks = {
            row.labels["rack"]: 0 for row in mirror.columns.rows if row is not None and "rack" in row.labels
        }
        for product in summary.products:
            mine = "" if not product.product else product.product
            of_racks = dict.fromkeys(racks, 0)
            for held, pods in zip(mirror.columns.rows, fits.tolist(), strict=True):
                if held is not None and "rack" in held.labels and held.labels.get(PRODUCT, "") == mine:
                    of_racks[held.labels["rack"]] += pods
            largest = [g.pods for g in product.gangs if (g.devices, g.level) == (size, "rack")]
            assert largest in ([], [max(of_racks.values(), default=0)])


@given(fleets())
def test_every_device_is_in_one_column_and_every_node_in_one_chunk(
    things: list[NodeBuilder | PodBuilder],
) -> None:
    mirror = cluster(*things)
    summary = surveyed(mirror, "rack")
    beyond = {name: int(column.sum()) for name, column in overdrawn(mirror.columns).items()}
    for product in summary.products:
        parts = product.unhealthy + product.allocated + product.cordoned + product.free
        assert 0 <= parts - product.total <= beyond.get(product.resource, 0)
        assert min(product.unhealthy, product.allocated, product.cordoned, product.free) >= 0
        assert product.stranded <= product.free
        assert sum(chunk.nodes for chunk in product.chunks) == product.nodes
        assert sum(chunk.free * chunk.nodes for chunk in product.chunks) == product.free
        assert placeable(product)[1] == product.free - product.stranded
        assert product.stranded == sum(n.free for n in summary.stranded if n.product == product.product)
    everything = sum(
        product.unhealthy + product.allocated + product.cordoned + product.free
        for product in summary.products
    )
    assert everything == sum(product.total for product in summary.products) + beyond.get(GPU, 0)
    for level in summary.levels:
        (product,) = [product for product in summary.products if product.product == level.product]
        assert sum(domain.nodes for domain in level.domains) + level.unlabelled_nodes == product.nodes
        assert sum(domain.free for domain in level.domains) <= product.free
