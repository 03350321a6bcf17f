"""From the objects of every sharing scheme, in every form of it, to how many more pods fit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from estimator.capacity.devices.claim_by_claim import MOST_CLAIMS
from estimator.capacity.request import Component
from estimator.cluster.mirror import ClusterMirror
from estimator.fit.pod_shape import PodShape
from fairway.accelerators.schemes import SCHEMES
from tests.accelerators.facts import node_of, pod_of, text
from tests.builders import (
    Complaints,
    NodeBuilder,
    PodBuilder,
    Quantities,
    cluster,
    delete,
    node,
    pod,
    replicas_of,
    sets_of,
    shape,
    upsert,
)
from tests.estimator.sharing import (
    HAMI,
    SHARINGS,
    VOLCANO_VGPU,
    Chip,
    Entry,
    Group,
    Sharing,
    fraction,
    in_json,
    kai_node,
    sharer,
)

REPRESENTATIVES = (
    "hami-nvidia, 7 fields",
    "hami-amd, 9 fields",
    "hami-dcu, JSON",
    "hami-biren, JSON",
    "hami-xpu, JSON",
    "hami-mr-v100, 7 fields",
    "hami-ascend910a, 9 fields",
    "hami-ascend910c, JSON",
    "volcano-vgpu, 6 fields",
    "volcano-gpu",
    "gpushare, allocation",
    "alnair, vitual",
)
"""A sharing for each rule by which pods get devices, and each form in which nodes and pods tell of them."""

each_sharing = pytest.mark.parametrize("sharing", SHARINGS.values(), ids=SHARINGS.keys())
each_rule = pytest.mark.parametrize(
    "sharing", [SHARINGS[one] for one in REPRESENTATIVES], ids=REPRESENTATIVES
)

GPU, MEMORY, CORES = "nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpucores"


def asking(annotations: dict[str, str], asked: Quantities | None = None) -> PodShape:
    return replace(shape(asked), annotations=tuple(annotations.items()))


def halves(mirror: ClusterMirror, sharing: Sharing) -> int:
    answer = replicas_of(mirror, shape(sharing.half))
    assert answer.proven
    return answer.value


def test_every_scheme_is_here() -> None:
    assert {sharing.scheme for sharing in SHARINGS.values()} | {"kai"} == {s.name for s in SCHEMES}


# --- every scheme -----------------------------------------------------------------------------------------


@each_sharing
def test_empty_devices_take_what_they_have_and_pods_take_their_share_of_it(sharing: Sharing) -> None:
    mirror = cluster(sharing.node("a", 2), sharing.node("b", 1))
    assert halves(mirror, sharing) == 3 * sharing.halves
    if sharing.whole:
        assert replicas_of(mirror, shape(sharing.whole)).value == 3
    mirror = cluster(sharing.node("a", 2))
    for held in (1, 2):
        upsert(mirror, sharing.pod(f"x{held}", "a", 0))
        assert halves(mirror, sharing) == sharing.halves_left(held, 0)
        if sharing.whole:
            assert replicas_of(mirror, shape(sharing.whole)).value == 1
    delete(mirror, sharing.pod("x1", "a", 0))
    assert halves(mirror, sharing) == sharing.halves_left(1, 0)
    upsert(mirror, sharing.pod("x2", "a", 0).phase("Succeeded"))
    assert halves(mirror, sharing) == 2 * sharing.halves


@each_rule
def test_pods_that_sum_to_more_than_a_device_leave_nothing_on_it_and_the_others_alone(
    sharing: Sharing,
) -> None:
    too_many = [sharing.pod(f"x{index}", "a", 0) for index in range(sharing.halves + 1)]
    mirror = cluster(sharing.node("a", 2), *too_many)
    assert halves(mirror, sharing) == sharing.halves_left(len(too_many), 0)
    delete(mirror, too_many[0])
    delete(mirror, too_many[1])
    assert halves(mirror, sharing) == sharing.halves_left(len(too_many) - 2, 0)


@pytest.mark.parametrize(
    "sharing", [pytest.param(SHARINGS[one], id=one) for one in REPRESENTATIVES if SHARINGS[one].tells_health]
)
def test_an_unhealthy_device_takes_no_pods_and_keeps_those_it_has(sharing: Sharing) -> None:
    mirror = cluster(sharing.node("a", 2, unhealthy=(0,)), sharing.pod("x", "a", 0))
    assert halves(mirror, sharing) == sharing.halves
    upsert(mirror, sharing.node("a", 2))
    assert halves(mirror, sharing) == sharing.halves_left(1, 0)
    upsert(mirror, sharing.node("a", 2, unhealthy=(0, 1)))
    assert halves(mirror, sharing) == 0


@each_rule
def test_a_pod_on_a_device_that_does_not_exist_counts_once_that_does(sharing: Sharing) -> None:
    mirror = cluster(sharing.node("a", 2), sharing.pod("x", "a", 2))
    there = sharing.halves_left(0, 0)
    assert halves(mirror, sharing) == (there - 1 if sharing.limited_by_sums else there)
    upsert(mirror, sharing.node("a", 3))
    assert halves(mirror, sharing) == sharing.halves_left(0, 0, 1)


@each_rule
def test_a_device_that_is_no_longer_listed_comes_back_with_what_is_held_of_it(sharing: Sharing) -> None:
    held = sharing.pod("x", "a", 1)
    mirror = cluster(sharing.node("a", 2), held)
    upsert(mirror, sharing.node("a", 1))
    there = sharing.halves_left(0)
    assert halves(mirror, sharing) == (there - 1 if sharing.limited_by_sums else there)
    upsert(mirror, sharing.node("a", 2))
    assert halves(mirror, sharing) == sharing.halves_left(0, 1)
    upsert(mirror, sharing.node("a", 1))
    delete(mirror, held)
    upsert(mirror, sharing.node("a", 2))
    assert halves(mirror, sharing) == 2 * sharing.halves


@each_rule
def test_a_node_that_leaves_and_comes_back_has_what_its_pods_have_left(sharing: Sharing) -> None:
    mirror = cluster(sharing.pod("x", "a", 0), sharing.node("a", 2), sharing.node("b", 1))
    assert halves(mirror, sharing) == sharing.halves_left(1, 0) + sharing.halves
    delete(mirror, sharing.node("a", 2))
    assert halves(mirror, sharing) == sharing.halves
    upsert(mirror, node("c").cpu(8))
    upsert(mirror, sharing.pod("y", "a", 1))
    upsert(mirror, sharing.node("a", 2))
    assert halves(mirror, sharing) == sharing.halves_left(1, 1) + sharing.halves


@each_rule
def test_a_node_that_leaves_the_scheme_is_counted_by_its_allocatable_alone(sharing: Sharing) -> None:
    mirror = cluster(sharing.node("a", 2), sharing.node("b", 1))
    upsert(mirror, node("a").cpu(64))
    assert halves(mirror, sharing) == sharing.halves


@each_rule
def test_a_cordoned_node_takes_nothing(sharing: Sharing) -> None:
    mirror = cluster(sharing.node("a", 2).cordoned(), sharing.node("b", 1))
    assert halves(mirror, sharing) == sharing.halves


@each_rule
def test_a_pod_that_moves_holds_devices_where_it_is_now(sharing: Sharing) -> None:
    mirror = cluster(sharing.node("a", 1), sharing.node("b", 1), sharing.pod("x", "a", 0))
    upsert(mirror, sharing.pod("x", "b", 0))
    upsert(mirror, sharing.pod("x", "b", 0))
    only_b = cluster(sharing.node("b", 1), sharing.pod("x", "b", 0))
    assert halves(mirror, sharing) == sharing.halves + halves(only_b, sharing)


@each_rule
def test_sets_of_pods_share_devices_as_their_pods_would(sharing: Sharing) -> None:
    asked = [Component("one", 1, shape(sharing.half)), Component("more", 1, shape(sharing.half, cpu=1))]
    found = sets_of(cluster(sharing.node("a", 2)), asked).answer
    assert found.value == sharing.halves
    if sharing.whole:
        asked = [Component("half", 1, shape(sharing.half)), Component("whole", 1, shape(sharing.whole))]
        assert sets_of(cluster(sharing.node("a", 2)), asked).answer.value == 1
        assert sets_of(cluster(sharing.node("a", 1)), asked).answer.value == 0


@pytest.mark.parametrize("chip", [*HAMI, VOLCANO_VGPU], ids=lambda chip: chip.scheme)
def test_what_kubelet_advertises_bounds_what_is_registered(chip: Chip) -> None:
    sharing, count = SHARINGS[f"{chip.scheme}, JSON"], chip.count
    mirror = cluster(sharing.node("a", 2).has({count: 1}))
    assert halves(mirror, sharing) == 1
    complaints = Complaints()
    mirror = cluster(sharing.node("a", 2).has({count: 0}), report=complaints)
    assert replicas_of(mirror, shape(sharing.half)).value == 0
    assert [key for _, key, _ in complaints] == ["a"]
    assert f"status.allocatable has no {count}" in complaints[0][2]


# --- fixtures ---------------------------------------------------------------------------------------------

HAMI_NVIDIA, HAMI_PODS = "hami.io/node-nvidia-register", "hami.io/vgpu-devices-allocated"
VGPU_NODE, VGPU_PODS = "volcano.sh/node-vgpu-register", "volcano.sh/vgpu-ids-new"
NUMBER, VGPU_MEMORY = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory"


def registered(register: str, fixture: str, count: str) -> NodeBuilder:
    """A node whose annotation is a fixture."""
    return node("n").cpu(64).has({count: 40}).annotated({register: text(fixture)})


def described(fixture: str) -> NodeBuilder:
    """A node that is a fixture."""
    facts = node_of(fixture)
    built = node("n").cpu(64).has(dict(facts.allocatable))
    return built.label(facts.labels).annotated(facts.annotations)


def given(allocated: str, fixture: str, count: str) -> PodBuilder:
    """A pod whose annotation is a fixture."""
    return pod(fixture).on("n").requests({count: 1}).annotated({allocated: text(fixture)})


def bound(fixture: str) -> PodBuilder:
    """A pod that is a fixture."""
    facts = pod_of(fixture)
    built = pod(fixture).on("n").labelled(facts.labels).annotated(facts.annotations)
    for container in facts.containers:
        built = built.requests(dict(container))
    return built


def nvidia(fixture: str) -> NodeBuilder:
    return registered(HAMI_NVIDIA, fixture, GPU)


HAMI_POD = given(HAMI_PODS, "hami/nvidia-pod.txt", GPU)
HAMI_MIG_POD = given(HAMI_PODS, "hami/nvidia-pod-mig.txt", GPU)
AMD = registered("hami.io/node-amd-register", "hami/amd-node.json", "amd.com/gpu")
AMD_POD = given("hami.io/amd-devices-allocated", "hami/amd-pod.txt", "amd.com/gpu")
DCU = registered("hami.io/node-dcu-register", "hami/dcu-node.txt", "hygon.com/dcunum")
BIREN = registered("hami.io/node-biren-register", "hami/biren-node.json", "birentech.com/gpu")
VASTAI = registered("hami.io/node-va-register", "hami/vastai-node.json", "vastaitech.com/va")
XPU = registered("hami.io/node-register-xpu", "hami/xpu-node.json", "kunlunxin.com/vxpu")
MR_V100 = registered("hami.io/node-MR-V100-register", "hami/mr-v100-node.txt", "iluvatar.ai/MR-V100-vgpu")
B3 = registered("hami.io/node-register-Ascend910B3", "hami/ascend910b3-node.json", "huawei.com/Ascend910B3")
C = registered("hami.io/node-register-Ascend910C", "hami/ascend910c-node.json", "huawei.com/Ascend910C")
B3_MEMORY = "huawei.com/Ascend910B3-memory"
SIX = registered(VGPU_NODE, "volcano/vgpu-node-6-fields.txt", NUMBER)
SIX_POD = given(VGPU_PODS, "volcano/vgpu-pod.txt", NUMBER)
MEM, COUNT, OLD = "aliyun.com/gpu-mem", "volcano.sh/gpu-number", "volcano.sh/gpu-memory"

GPU_NODE, GPU_POD = described("volcano/gpu-node.yaml"), bound("volcano/gpu-pod-memory.yaml")
SHARE_NODE, SHARE_POD = described("gpushare/node.yaml"), bound("gpushare/pod-indexed.yaml")

FIXTURES: list[tuple[str, list[NodeBuilder | PodBuilder], Quantities, int]] = [
    # Device 1 is unhealthy.
    ("7 fields, a part", [nvidia("hami/nvidia-node-7-fields.txt")], {GPU: 1, MEMORY: 8000}, 3),
    ("7 fields, too much", [nvidia("hami/nvidia-node-7-fields.txt")], {GPU: 1, MEMORY: 24269}, 0),
    ("7 fields, two", [nvidia("hami/nvidia-node-7-fields.txt")], {GPU: 2, MEMORY: 1}, 0),
    ("9 fields, slots", [nvidia("hami/nvidia-node-9-fields.txt")], {GPU: 1, MEMORY: 10_000}, 4 + 4),
    ("9 fields, on two", [nvidia("hami/nvidia-node-9-fields.txt")], {GPU: 2, MEMORY: 40_000}, 2),
    ("9 fields, whole", [nvidia("hami/nvidia-node-9-fields.txt")], {GPU: 1}, 2),
    # Device 1 has no health; of device 0 are left 36068 MiB, 70 % of its cores and 8 slots.
    ("JSON, memory left", [nvidia("hami/nvidia-node.json"), HAMI_POD], {GPU: 1, MEMORY: 9000}, 4),
    ("JSON, slots left", [nvidia("hami/nvidia-node.json"), HAMI_POD], {GPU: 1, MEMORY: 4000}, 8),
    ("JSON, cores left", [nvidia("hami/nvidia-node.json"), HAMI_POD], {GPU: 1, MEMORY: 1, CORES: 35}, 2),
    ("JSON, in use", [nvidia("hami/nvidia-node.json"), HAMI_POD], {GPU: 1}, 0),
    # Device 0 is cut by MIG: for one pod, and for none that wants all cores.
    ("MIG beside none", [nvidia("hami/nvidia-node-mig.json")], {GPU: 1, MEMORY: 10_000}, 1 + 8),
    ("MIG, whole", [nvidia("hami/nvidia-node-mig.json")], {GPU: 1}, 1),
    ("MIG in use", [nvidia("hami/nvidia-node-mig.json"), HAMI_MIG_POD], {GPU: 1, MEMORY: 10_000}, 8),
    # Left of AMD's: 130752 MiB, 228 of 304 cores, 9 slots.
    ("AMD, whole", [AMD], {"amd.com/gpu": 1}, 1),
    ("AMD, in use", [AMD, AMD_POD], {"amd.com/gpu": 1}, 0),
    (
        "AMD, a quarter of its cores",
        [AMD, AMD_POD],
        {"amd.com/gpu": 1, "amd.com/gpumem": 10_000, "amd.com/gpucores": 25},
        3,
    ),
    ("DCU has 60 % of cores", [DCU], {"hygon.com/dcunum": 1, "hygon.com/dcumem": 2000}, 0),
    (
        "DCU, a third of them",
        [DCU],
        {"hygon.com/dcunum": 1, "hygon.com/dcumem": 2000, "hygon.com/dcucores": 20},
        3 + 3,
    ),
    ("Biren", [BIREN], {"birentech.com/gpu": 1}, 2),
    ("Biren, two", [BIREN], {"birentech.com/gpu": 2}, 1),
    ("Vastai", [VASTAI], {"vastaitech.com/va": 1}, 2),
    ("XPU", [XPU], {"kunlunxin.com/vxpu": 1}, 3),
    ("XPU, linked", [XPU], {"kunlunxin.com/vxpu": 2}, 1),
    ("XPU, four", [XPU], {"kunlunxin.com/vxpu": 4}, 0),
    (
        "Iluvatar in 256 MiB",
        [MR_V100],
        {"iluvatar.ai/MR-V100-vgpu": 1, "iluvatar.ai/MR-V100.vMem": 32, "iluvatar.ai/MR-V100.vCore": 20},
        4,
    ),
    ("Ascend, a quarter", [B3], {"huawei.com/Ascend910B3": 1, B3_MEMORY: 16384}, 4 + 4),
    ("Ascend, rounded up to half", [B3], {"huawei.com/Ascend910B3": 1, B3_MEMORY: 20_000}, 2 + 2),
    ("Ascend, whole", [B3], {"huawei.com/Ascend910B3": 2}, 1),
    ("910C, a module of two", [C], {"huawei.com/Ascend910C": 1}, 1),
    ("910C, more than a module", [C], {"huawei.com/Ascend910C": 4}, 0),
    # Device 1 is unhealthy.
    (
        "5 fields",
        [registered(VGPU_NODE, "volcano/vgpu-node-5-fields.txt", NUMBER)],
        {NUMBER: 1, VGPU_MEMORY: 8000},
        4,
    ),
    # Left: 61920 MiB and 60 % of cores, 80920 MiB and all cores.
    ("6 fields", [SIX, SIX_POD], {NUMBER: 1, VGPU_MEMORY: 20_000, "volcano.sh/vgpu-cores": 30}, 2 + 3),
    ("6 fields, on two", [SIX, SIX_POD], {NUMBER: 2, VGPU_MEMORY: 20_000}, 3),
    ("6 fields, percent", [SIX, SIX_POD], {NUMBER: 1, "volcano.sh/vgpu-memory-percentage": 50}, 1 + 1),
    (
        "Volcano JSON",
        [registered(VGPU_NODE, "volcano/vgpu-node.json", NUMBER)],
        {NUMBER: 1, VGPU_MEMORY: 8000},
        3,
    ),
    (
        "Volcano MIG",
        [registered(VGPU_NODE, "volcano/vgpu-node-mig.txt", NUMBER)],
        {NUMBER: 1, VGPU_MEMORY: 9000},
        1,
    ),
    (
        "Volcano MIG in use",
        [
            registered(VGPU_NODE, "volcano/vgpu-node-mig.txt", NUMBER),
            given(VGPU_PODS, "volcano/vgpu-pod-mig.txt", NUMBER),
        ],
        {NUMBER: 1, VGPU_MEMORY: 9000},
        0,
    ),
    # Three devices of 32561; device 2 is unhealthy, 3072 of device 1 are in use.
    (
        "older Volcano",
        [GPU_NODE, GPU_POD],
        {OLD: 10_000},
        5,
    ),
    (
        "older Volcano, taken by number",
        [
            GPU_NODE,
            GPU_POD,
            bound("volcano/gpu-pod-number.yaml"),
        ],
        {OLD: 10_000},
        2,
    ),
    ("older Volcano, by number", [GPU_NODE], {COUNT: 2}, 1),
    # Four devices of 15.
    (
        "gpushare, one index",
        [SHARE_NODE, SHARE_POD],
        {MEM: 4},
        11,
    ),
    ("gpushare, halves", [SHARE_NODE, SHARE_POD], {MEM: 8}, 4),
    (
        "gpushare, allocation",
        [SHARE_NODE, bound("gpushare/pod-allocation.yaml")],
        {MEM: 4},
        3 + 1 + 3 + 3,
    ),
    (
        "gpushare, cores",
        [described("gpushare/node-with-cores.yaml"), bound("gpushare/pod-allocation.yaml")],
        {MEM: 4, "aliyun.com/gpu-core.percentage": 50},
        2 + 1 + 2 + 1,
    ),
    # Of 16 GiB and 32 GiB are left 13 with 60 % of compute, and all.
    (
        "Alnair",
        [described("alnair/node.yaml"), bound("alnair/pod.yaml")],
        {"alnair/vgpu-memory": 8, "alnair/vgpu-compute": 20},
        1 + 4,
    ),
    ("Alnair, spelt right", [described("alnair/node-spelt-right.yaml")], {"alnair/vgpu-memory": 8}, 3),
]


@pytest.mark.parametrize(
    ("things", "asked", "replicas"),
    [pytest.param(*case[1:], id=case[0]) for case in FIXTURES],
)
def test_answers_about_fixtures(
    things: list[NodeBuilder | PodBuilder], asked: Quantities, replicas: int
) -> None:
    complaints = Complaints()
    for order in (things, things[::-1]):
        assert replicas_of(cluster(*order, report=complaints), shape(asked)).value == replicas
    assert all(("mig" in said) or ("volcano.sh/gpu" in said) for _, _, said in complaints)


FIRST, SECOND, THIRD, FOURTH = (f"0b9d5f3a-6c1e-4a77-9f02-1d8e4c5b660{n}" for n in (1, 2, 3, 4))
KAI_FIXTURES: list[NodeBuilder | PodBuilder] = [
    described("kai/node.yaml"),
    bound("kai/reservation-pod.yaml"),
    bound("kai/half-pod.yaml"),
    bound("kai/quarter-pod.yaml"),
]


@pytest.mark.parametrize(
    ("annotations", "replicas"),
    [
        ({"gpu-fraction": "0.5"}, 2),  # V11
        ({"gpu-fraction": "0.25"}, 5),
        ({"gpu-fraction": "0.251"}, 3),
        ({"gpu-memory": "20375"}, 1 + 4),
        ({"gpu-memory": "20376"}, 3),
        ({"gpu-memory": "81501"}, 0),
        ({"gpu-fraction": "0.25", "gpu-fraction-num-devices": "2"}, 1),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"}, 0),
    ],
)
def test_answers_about_kai_fixtures(annotations: dict[str, str], replicas: int) -> None:
    for things in (KAI_FIXTURES, KAI_FIXTURES[::-1]):
        answer = replicas_of(cluster(*things), asking(annotations))
        assert (answer.value, answer.proven) == (replicas, True)


# --- KAI in the same scenarios ----------------------------------------------------------------------------


def kai_halves(mirror: ClusterMirror) -> int:
    return replicas_of(mirror, asking(fraction("0.5"))).value


def test_kai_a_shared_gpu_opens_and_closes_with_its_pods() -> None:
    mirror = cluster(kai_node("a", 2))
    assert kai_halves(mirror) == 4
    group = Group("g", "a", (fraction("0.5"),))
    for thing in group.pods:
        upsert(mirror, thing)
    assert kai_halves(mirror) == 3
    assert replicas_of(mirror, shape(gpu=1)).value == 1
    for thing in group.pods:
        delete(mirror, thing)
    assert kai_halves(mirror) == 4
    assert replicas_of(mirror, shape(gpu=1)).value == 2


def test_kai_an_unhealthy_gpu_is_one_that_is_no_longer_advertised() -> None:
    mirror = cluster(kai_node("a", 2), *Group("g", "a", (fraction("0.5"),)).pods)
    upsert(mirror, kai_node("a", 1))
    assert kai_halves(mirror) == 1
    upsert(mirror, kai_node("a", 2))
    assert kai_halves(mirror) == 3


def test_kai_fractions_that_sum_to_more_than_a_gpu_leave_nothing_on_it() -> None:
    mirror = cluster(kai_node("a", 2), *Group("g", "a", (fraction("0.9"), fraction("0.9"))).pods)
    assert kai_halves(mirror) == 2
    assert replicas_of(mirror, asking(fraction("0.01"))).value == 100


def test_kai_each_fraction_is_rounded_down_by_itself() -> None:
    """A GPU without a memory label has 100 units, of which 0.015 are one."""
    mirror = cluster(kai_node("a", 1, memory_mib=None))
    assert replicas_of(mirror, asking(fraction("0.015"))).value == 100
    for thing in Group("g", "a", (fraction("0.015"),) * 60).pods:
        upsert(mirror, thing)
    assert replicas_of(mirror, asking(fraction("0.015"))).value == 40


def test_kai_a_pod_on_several_gpus_holds_a_share_of_each() -> None:
    pods = [Group(group, "a").holder for group in ("g", "h")]
    mirror = cluster(kai_node("a", 3), *pods, sharer("x", "a", fraction("0.3"), "g", "h"))
    assert kai_halves(mirror) == 1 + 1 + 2
    assert replicas_of(mirror, asking(fraction("0.7"))).value == 3
    upsert(mirror, sharer("x", "a", fraction("0.3"), "g").phase("Failed"))
    # The pods that hold the GPUs are still there, so nobody else gets them.
    assert kai_halves(mirror) == 2


def test_kai_a_node_that_leaves_and_comes_back_has_the_same_gpus_shared() -> None:
    mirror = cluster(kai_node("a", 2), *Group("g", "a", (fraction("0.25"),)).pods)
    delete(mirror, kai_node("a", 2))
    assert kai_halves(mirror) == 0
    upsert(mirror, kai_node("b", 1))
    assert kai_halves(mirror) == 2
    upsert(mirror, kai_node("a", 2))
    assert kai_halves(mirror) == 2 + 1 + 2


def test_kai_a_node_that_mig_cuts_takes_no_fractions() -> None:
    mirror = cluster(
        kai_node("a", 2), kai_node("b", 2).label({"node-role.kubernetes.io/mig-enabled": "true"})
    )
    assert kai_halves(mirror) == 4


def test_kai_the_number_of_gpus_is_allocatables_whatever_labels_say() -> None:
    labelled = kai_node("a", 2).label({"nvidia.com/gpu.count": "8", "nvidia.com/gpu.replicas": "4"})
    assert kai_halves(cluster(labelled)) == 4


def test_kai_a_new_memory_label_changes_what_shared_gpus_have_left() -> None:
    mirror = cluster(kai_node("a", 1, 40_000), *Group("g", "a", ({"gpu-memory": "10000"},)).pods)
    assert replicas_of(mirror, asking({"gpu-memory": "30000"})).value == 1
    upsert(mirror, kai_node("a", 1, 30_000))
    assert replicas_of(mirror, asking({"gpu-memory": "30000"})).value == 0
    assert replicas_of(mirror, asking({"gpu-memory": "20000"})).value == 1


def test_kai_sets_count_whole_gpus_and_fractions_of_the_same_node() -> None:
    whole, half = Component("whole", 1, shape(gpu=1)), Component("half", 1, asking(fraction("0.5")))
    assert sets_of(cluster(kai_node("a", 3)), [whole, half]).answer.value == 2
    three = replace(half, replicas=3)
    assert sets_of(cluster(kai_node("a", 3)), [whole, three]).answer.value == 1


# --- things that go wrong ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("form", "devices_left"), [("7 fields", 1), ("9 fields", 1), ("JSON", 0)])
def test_a_truncated_annotation_costs_the_device_it_ends_in_or_all_of_a_json_list(
    form: str, devices_left: int
) -> None:
    sharing = SHARINGS[f"hami-nvidia, {form}"]
    whole = sharing.node("a", 2)
    written = whole.annotations[HAMI_NVIDIA]
    complaints = Complaints()
    cut = whole.annotated({HAMI_NVIDIA: written[: written.rindex(",")]})
    mirror = cluster(cut, sharing.node("b", 1), report=complaints)
    assert halves(mirror, sharing) == (devices_left + 1) * sharing.halves
    assert [(resource, key) for resource, key, _ in complaints] == [("nodes", "a")]


def test_a_persistent_problem_of_a_node_is_told_once() -> None:
    """HAMi's plugin writes the handshake every half minute, and each time the whole node comes again."""
    sharing = SHARINGS["hami-nvidia, JSON"]
    complaints = Complaints()
    sick = sharing.node("a", 2).annotated({"hami.io/node-handshake": "Deleted_2026.01.01 00:00:00"})
    mirror = cluster(sick, report=complaints)
    for second in range(1, 9):
        upsert(mirror, sick.annotated({"hami.io/node-handshake": f"Deleted_2026.01.01 00:00:0{second}"}))
    assert len(complaints) == 1
    upsert(mirror, sharing.node("a", 2))
    upsert(mirror, sick)
    assert len(complaints) == 2
    delete(mirror, sick)
    upsert(mirror, sick)
    assert len(complaints) == 3


def test_what_a_pod_holds_and_cannot_be_read_takes_the_whole_device() -> None:
    sharing = SHARINGS["hami-nvidia, JSON"]
    complaints = Complaints()
    broken = sharing.pod("x", "a", 0).annotated({HAMI_PODS: "a-device-0,NVIDIA,much,0:;"})
    mirror = cluster(sharing.node("a", 2), broken, report=complaints)
    assert halves(mirror, sharing) == sharing.halves
    assert complaints[0][:2] == ("pods", "default/x")


def test_a_node_that_advertises_beyond_reason_is_bounded_by_its_slots_for_pods() -> None:
    """Each GPU that is opened takes a slot for the pod that holds it, beside those of two halves."""
    mirror = cluster(kai_node("a", 9 * 10**18))
    assert kai_halves(mirror) == 2 * (110 // 3) + 1
    assert replicas_of(mirror, asking({"gpu-fraction": "0.6", "gpu-fraction-num-devices": "2"})).value == 36


def test_pods_that_claim_twice_are_counted_in_finite_time_where_slots_are_endless() -> None:
    sharing = SHARINGS["hami-nvidia, JSON"]
    entries = [Entry("x", 24_000, "NVIDIA A10", count=2**31 - 1), Entry("y", 24_000, "NVIDIA A10")]
    mirror = cluster(node("a").gpus(2**31 - 1).pods(10**6).annotated({HAMI_NVIDIA: in_json(entries)}))
    containers = (((GPU, 1), (MEMORY, 1)), ((GPU, 1), (MEMORY, 2)))
    answer = replicas_of(mirror, replace(shape({GPU: 2}), containers=containers))
    assert (answer.value, answer.upper_bound, answer.proven) == (MOST_CLAIMS // 2, 12_000 + 8, False)
    assert halves(mirror, sharing) == 4


def test_a_node_with_very_many_devices_costs_the_others_nothing() -> None:
    sharing = SHARINGS["hami-nvidia, JSON"]
    huge = sharing.node("huge", 1000).gpus(8000).pods(10_000)
    mirror = cluster(huge, *(sharing.node(f"n{i}", 2) for i in range(9)))
    assert halves(mirror, sharing) == 2 * (1000 + 18)
    assert replicas_of(mirror, shape({GPU: 2, MEMORY: 12_000})).value == 1000 + 18
    assert replicas_of(mirror, shape({GPU: 999, MEMORY: 12_000})).value == 2


def test_devices_chosen_by_type_and_id_are_those_alone() -> None:
    entries = [Entry(f"g{i}", 24_000, "NVIDIA A10" if i % 2 else "NVIDIA H100", index=i) for i in range(4)]
    mirror = cluster(node("a").gpus(40).annotated({HAMI_NVIDIA: in_json(entries)}))
    asked: Quantities = {GPU: 1, MEMORY: 12_000}
    for chosen, replicas in (
        ({"nvidia.com/use-gputype": "h100"}, 4),
        ({"nvidia.com/nouse-gputype": "A10,L4"}, 4),
        ({"nvidia.com/use-gpuuuid": "g1,g2,g9"}, 4),
        ({"nvidia.com/nouse-gpuuuid": "g1"}, 6),
        ({"nvidia.com/use-gputype": "H100", "nvidia.com/nouse-gpuuuid": "g2"}, 2),
        ({"nvidia.com/use-gputype": "L4"}, 0),
    ):
        assert replicas_of(mirror, asking(chosen, asked)).value == replicas
    upsert(mirror, node("a").gpus(40).annotated({HAMI_NVIDIA: in_json(entries[:2])}))
    assert replicas_of(mirror, asking({"nvidia.com/use-gputype": "h100"}, asked)).value == 2


@pytest.mark.parametrize(
    ("count", "amount"),
    [
        ("metax-tech.com/sgpu", "metax-tech.com/vmemory"),
        ("metax-tech.com/sgpu", "metax-tech.com/vcore"),
        ("enflame.com/gcu", "enflame.com/gcu-memory"),
        ("enflame.com/gcu", "enflame.com/gcu-core"),
        ("enflame.com/vgcu", "enflame.com/vgcu-percentage"),
        ("mthreads.com/vgpu", "mthreads.com/sgpu-memory"),
        ("cambricon.com/vmlu", "cambricon.com/mlu370.smlu.vmemory"),
    ],
)
def test_what_no_adapter_reads_is_counted_by_allocatable_and_fits_nowhere_without_it(
    count: str, amount: str
) -> None:
    asked: Quantities = {count: 1, amount: 4}
    silent = cluster(node("a").has({count: 16}))
    answer = replicas_of(silent, shape(asked))
    assert (answer.value, answer.proven) == (0, True)
    assert amount in str(answer.reasons[0])
    assert replicas_of(silent, shape({count: 1})).value == 16
    telling = cluster(node("a").has({count: 16, amount: 30}))
    assert replicas_of(telling, shape(asked)).value == 7
