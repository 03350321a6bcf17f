"""What labels and allocatable of a node say together about its devices."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairway.accelerators.builtin import builtin_catalogue
from fairway.accelerators.catalogue import DeviceClass
from fairway.accelerators.neuron import NEURON, NEURON_CORE, NEURON_DEVICE, cores_per_chip, free_neuron
from fairway.accelerators.products import NodeProduct, node_product

CI = settings(max_examples=300, derandomize=True, deadline=None)

GPU = "nvidia.com/gpu"
GI = 1 << 30
WHOLE, PARTITION, SHARED = DeviceClass.WHOLE, DeviceClass.PARTITION, DeviceClass.SHARED


def gfd(
    product: str = "NVIDIA-A100-SXM4-40GB",
    count: str = "8",
    replicas: str = "1",
    memory: str = "40960",
    resource: str = GPU,
    sharing: str = "none",
    **more: str,
) -> dict[str, str]:
    """Labels as GPU feature discovery writes them for a resource."""
    return {
        f"{resource}.product": product,
        f"{resource}.count": count,
        f"{resource}.replicas": replicas,
        f"{resource}.memory": memory,
        f"{resource}.sharing-strategy": sharing,
        **{f"nvidia.com/{key.replace('_', '.')}": value for key, value in more.items()},
    }


def of(
    resource: str, labels: Mapping[str, str], allocatable: int, capacity: int | None = None
) -> tuple[NodeProduct, tuple[str, ...]]:
    entry = builtin_catalogue().device(resource)
    assert entry is not None
    read = node_product(entry, labels, allocatable, capacity)
    return read.found, read.problems


# --- product, piece and memory ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resource", "labels", "device_class", "product", "partition"),
    [
        (GPU, gfd(), WHOLE, "NVIDIA-A100-SXM4-40GB", ""),
        (GPU, gfd("NVIDIA-A100-SXM4-40GB-SHARED", "2", "4"), SHARED, "NVIDIA-A100-SXM4-40GB", ""),
        (GPU, gfd("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"), PARTITION, "NVIDIA-A100-SXM4-40GB", "1g.5gb"),
        (GPU, gfd("A100-SXM4-40GB-MIG-1g.5gb.me"), PARTITION, "A100-SXM4-40GB", "1g.5gb.me"),
        (GPU, gfd("A100-SXM4-40GB-MIG-2g.10gb-SHARED", "2", "4"), SHARED, "A100-SXM4-40GB", "2g.10gb"),
        ("nvidia.com/gpu.shared", gfd(count="2", replicas="4"), SHARED, "NVIDIA-A100-SXM4-40GB", ""),
        (
            "nvidia.com/mig-3g.20gb",
            gfd("NVIDIA-A100-SXM4-40GB-MIG-3g.20gb", resource="nvidia.com/mig-3g.20gb"),
            PARTITION,
            "NVIDIA-A100-SXM4-40GB",
            "3g.20gb",
        ),
        ("nvidia.com/mig-3g.20gb", gfd(), PARTITION, "NVIDIA-A100-SXM4-40GB", "3g.20gb"),
        (
            "nvidia.com/mig-1g.5gb.shared",
            gfd("A100-MIG-1g.5gb", "2", "4", resource="nvidia.com/mig-1g.5gb"),
            SHARED,
            "A100",
            "1g.5gb",
        ),
        ("nvidia.com/GA100_A100_PCIE_40GB", {}, WHOLE, "GA100_A100_PCIE_40GB", ""),
        (GPU, {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}, WHOLE, "nvidia-h100-80gb", ""),
        (
            GPU,
            {
                "cloud.google.com/gke-accelerator": "nvidia-tesla-a100",
                "cloud.google.com/gke-gpu-partition-size": "1g.5gb",
            },
            PARTITION,
            "nvidia-tesla-a100",
            "1g.5gb",
        ),
        (GPU, {"gpu.nvidia.com/model": "H100_NVLINK_80GB"}, WHOLE, "H100_NVLINK_80GB", ""),
        (GPU, {"karpenter.k8s.aws/instance-gpu-name": "h100"}, WHOLE, "h100", ""),
        (GPU, {}, WHOLE, "", ""),
        (GPU, {"nvidia.com/gpu.product": ""}, WHOLE, "", ""),
        (
            "amd.com/gpu",
            {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"},
            WHOLE,
            "AMD_Instinct_MI300X_OAM",
            "",
        ),
        ("amd.com/gpu", {"beta.amd.com/gpu.product-name": "Instinct_MI210"}, WHOLE, "Instinct_MI210", ""),
        (
            "amd.com/gpu",
            {"amd.com/gpu.product-name": "MI300X", "amd.com/gpu.compute-memory-partition": "cpx_nps4"},
            PARTITION,
            "MI300X",
            "cpx_nps4",
        ),
        (
            "amd.com/gpu",
            {"amd.com/gpu.product-name": "MI300X", "amd.com/gpu.compute-memory-partition": "spx_nps1"},
            WHOLE,
            "MI300X",
            "",
        ),
        ("amd.com/cpx_nps4", {"amd.com/gpu.product-name": "MI300X"}, PARTITION, "MI300X", "cpx_nps4"),
        ("gpu.intel.com/i915", {"gpu.intel.com/product": "Max_1550"}, WHOLE, "Max_1550", ""),
        ("gpu.intel.com/xe", {"gpu.intel.com/family": "Max_Series"}, WHOLE, "Max_Series", ""),
        ("habana.ai/gaudi", {}, WHOLE, "Gaudi", ""),
        (NEURON, {"node.kubernetes.io/instance-type": "trn1.32xlarge"}, WHOLE, "trn1.32xlarge", ""),
        (NEURON, {"karpenter.k8s.aws/instance-accelerator-name": "trainium"}, WHOLE, "trainium", ""),
        (
            "google.com/tpu",
            {
                "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
                "cloud.google.com/gke-tpu-topology": "4x4",
            },
            DeviceClass.ATOMIC,
            "tpu-v6e-slice",
            "4x4",
        ),
        ("huawei.com/Ascend910", {"node.kubernetes.io/npu.chip.name": "910B3"}, WHOLE, "910B3", ""),
        ("huawei.com/Ascend910", {}, WHOLE, "Ascend910", ""),
        ("example.com/npu", {"example.com/npu.product": "X1"}, WHOLE, "", ""),
    ],
)
def test_labels_tell_product_and_piece(
    resource: str, labels: dict[str, str], device_class: DeviceClass, product: str, partition: str
) -> None:
    found, problems = of(resource, labels, 8)
    assert problems == ()
    assert (found.device_class, found.product, found.partition) == (device_class, product, partition)
    assert found.resource == resource


@pytest.mark.parametrize(
    ("resource", "labels"),
    [
        (GPU, gfd(memory="40960")),
        (GPU, gfd(memory=str(40 * GI))),
        (GPU, gfd(memory="0")),
        (GPU, {}),
        ("nvidia.com/mig-1g.5gb", gfd(memory="4864", resource="nvidia.com/mig-1g.5gb")),
        ("nvidia.com/mig-1g.5gb", gfd(memory="40960")),
        (GPU, {"karpenter.k8s.aws/instance-gpu-memory": "81920"}),
        ("amd.com/gpu", {"amd.com/gpu.vram": "192G"}),
        ("amd.com/gpu", {"beta.amd.com/gpu.vram": "64G"}),
        ("amd.com/gpu", {"amd.com/gpu.vram": "512MiB"}),
    ],
)
def test_memory_may_be_in_mib_in_bytes_or_with_its_unit(resource: str, labels: dict[str, str]) -> None:
    assert of(resource, labels, 8)[1] == ()


@pytest.mark.parametrize("text", ["much", "-1", "40.5", "40Ti", "1e9", "٤٠"])
def test_memory_that_cannot_be_read_is_a_problem_and_not_used(text: str) -> None:
    _, problems = of(GPU, gfd(memory=text), 8)
    assert problems == (
        f"label nvidia.com/gpu.memory: expected MiB, or a size such as 64G, found {text!r}: not used",
    )


# --- physical and advertised -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resource", "labels", "allocatable", "capacity", "per_device", "devices", "sharing"),
    [
        # Not shared.
        (GPU, gfd(), 8, None, 1, 8, ""),
        (GPU, gfd(), 7, 8, 1, 7, ""),
        (GPU, gfd(), 0, 8, 1, 0, ""),
        (GPU, {}, 8, None, 1, 8, ""),
        # Time-slicing and MPS: replicas is per device.
        (GPU, gfd("A100-SHARED", "2", "4", sharing="time-slicing"), 8, None, 4, 2, "time-slicing"),
        (GPU, gfd("A100-SHARED", "2", "10", sharing="mps"), 20, 20, 10, 2, "mps"),
        (
            "nvidia.com/gpu.shared",
            gfd("A100", "8", "4", sharing="time-slicing"),
            32,
            32,
            4,
            8,
            "time-slicing",
        ),
        # One of two devices is unhealthy: all of its replicas are gone from allocatable.
        (GPU, gfd("A100-SHARED", "2", "4", sharing="time-slicing"), 4, None, 4, 1, "time-slicing"),
        (GPU, gfd("A100-SHARED", "2", "4", sharing="time-slicing"), 4, 8, 4, 1, "time-slicing"),
        # GFD says 0 where sharing does not apply: all GPUs are cut by MIG, strategy mixed.
        (GPU, gfd(replicas="0"), 8, None, 1, 8, ""),
        # Mixed: count is of all GPUs, allocatable of those that are not cut.
        (GPU, gfd(count="8"), 4, 4, 1, 4, ""),
        # Replicas of MIG pieces.
        (
            "nvidia.com/mig-1g.5gb.shared",
            gfd("A100-MIG-1g.5gb", "7", "2", resource="nvidia.com/mig-1g.5gb", sharing="time-slicing"),
            14,
            None,
            2,
            7,
            "time-slicing",
        ),
        (
            GPU,
            gfd("A100-MIG-1g.5gb-SHARED", "7", "2", sharing="time-slicing"),
            14,
            None,
            2,
            7,
            "time-slicing",
        ),
        # Shared by name or product, but only the count is known.
        ("nvidia.com/gpu.shared", {"nvidia.com/gpu.count": "2"}, 8, None, 4, 2, ""),
        (GPU, {"nvidia.com/gpu.product": "A100-SHARED", "nvidia.com/gpu.count": "2"}, 8, None, 4, 2, ""),
        ("nvidia.com/gpu.shared", {}, 8, None, 1, 8, ""),
        # GKE.
        (
            GPU,
            {
                "cloud.google.com/gke-accelerator": "nvidia-l4",
                "cloud.google.com/gke-accelerator-count": "2",
                "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing",
                "cloud.google.com/gke-max-shared-clients-per-gpu": "4",
            },
            8,
            None,
            4,
            2,
            "time-slicing",
        ),
        (
            GPU,
            {
                "cloud.google.com/gke-gpu-sharing-strategy": "mps",
                "cloud.google.com/gke-max-shared-clients-per-gpu": "3",
            },
            6,
            None,
            3,
            2,
            "mps",
        ),
        (
            GPU,
            {
                "cloud.google.com/gke-accelerator": "nvidia-tesla-a100",
                "cloud.google.com/gke-accelerator-count": "2",
                "cloud.google.com/gke-gpu-partition-size": "1g.5gb",
            },
            14,
            None,
            1,
            14,
            "",
        ),
        (
            GPU,
            {
                "cloud.google.com/gke-accelerator": "nvidia-tesla-a100",
                "cloud.google.com/gke-accelerator-count": "1",
                "cloud.google.com/gke-gpu-partition-size": "3g.20gb",
                "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing",
                "cloud.google.com/gke-max-shared-clients-per-gpu": "4",
            },
            8,
            None,
            4,
            2,
            "time-slicing",
        ),
        # Intel's plugin has no label for its shared-dev-num.
        ("gpu.intel.com/i915", {"gpu.intel.com/device.count": "2"}, 20, None, 10, 2, ""),
        ("gpu.intel.com/i915", {"gpu.intel.com/device.count": "2"}, 2, None, 1, 2, ""),
    ],
)
def test_physical_devices_stand_behind_what_is_advertised(
    resource: str,
    labels: dict[str, str],
    allocatable: int,
    capacity: int | None,
    per_device: int,
    devices: int,
    sharing: str,
) -> None:
    found, problems = of(resource, labels, allocatable, capacity)
    assert problems == ()
    assert (found.advertised_per_device, found.sharing) == (per_device, sharing)
    assert -(-allocatable // found.advertised_per_device) == devices
    assert (found.device_class is SHARED) == (per_device > 1 or resource.endswith(".shared"))


@pytest.mark.parametrize(
    ("labels", "allocatable", "capacity", "per_device", "devices", "problem"),
    [
        # Labels of a sharing that is not there any more, or not yet.
        (
            gfd("A100-SHARED", "8", "4", sharing="time-slicing"),
            8,
            None,
            1,
            8,
            "labels nvidia.com/gpu.count and nvidia.com/gpu.replicas: say 8 times 4, "
            "but the node has 8 of nvidia.com/gpu: each counted as one device",
        ),
        (
            gfd("A100-SHARED", "2", "4"),
            7,
            None,
            1,
            7,
            "labels nvidia.com/gpu.count and nvidia.com/gpu.replicas: say 2 times 4, "
            "but the node has 7 of nvidia.com/gpu: each counted as one device",
        ),
        (
            gfd("A100-SHARED", "8", "4"),
            28,
            28,
            4,
            7,
            "labels nvidia.com/gpu.count and nvidia.com/gpu.replicas: say 8 times 4, "
            "but the node has 28 of nvidia.com/gpu: counted as 7 devices",
        ),
        # Two models in the node: the labels are about one of them.
        (
            gfd("A100-SHARED", "4", "4"),
            32,
            32,
            4,
            8,
            "labels nvidia.com/gpu.count and nvidia.com/gpu.replicas: say 4 times 4, "
            "but the node has 32 of nvidia.com/gpu: counted as 8 devices",
        ),
        (
            gfd(count="4"),
            8,
            None,
            1,
            8,
            "label nvidia.com/gpu.count: says 4, but the node has 8 of nvidia.com/gpu: "
            "each counted as one device, and the product may be that of some of them only",
        ),
        # HAMi's split count looks like this; where HAMi registers the devices, its adapter decides.
        (
            gfd(),
            80,
            None,
            1,
            80,
            "label nvidia.com/gpu.count: says 8, but the node has 80 of nvidia.com/gpu: "
            "each counted as one device, and the product may be that of some of them only",
        ),
        (
            {"cloud.google.com/gke-max-shared-clients-per-gpu": "4"},
            6,
            None,
            1,
            6,
            "label cloud.google.com/gke-max-shared-clients-per-gpu: says 4: "
            "expected 6 of nvidia.com/gpu to be a multiple of it",
        ),
        (
            gfd(replicas="many"),
            8,
            None,
            1,
            8,
            "label nvidia.com/gpu.replicas: expected a whole number, found 'many': not used",
        ),
        (
            gfd(count="-8"),
            8,
            None,
            1,
            8,
            "label nvidia.com/gpu.count: expected a whole number, found '-8': not used",
        ),
        (
            gfd("A100-MIG-INVALID", "0", "0", "0", sharing=""),
            8,
            None,
            1,
            8,
            "label nvidia.com/gpu.product: says 'A100-MIG-INVALID': "
            "expected one MIG profile on all GPUs (strategy single)",
        ),
    ],
)
def test_where_labels_contradict_allocatable_it_wins_and_that_is_a_problem(
    labels: dict[str, str],
    allocatable: int,
    capacity: int | None,
    per_device: int,
    devices: int,
    problem: str,
) -> None:
    found, problems = of(GPU, labels, allocatable, capacity)
    assert problems == (problem,)
    assert found.advertised_per_device == per_device
    assert -(-allocatable // found.advertised_per_device) == devices


def test_a_sharing_scheme_decides_on_devices_that_labels_say_nothing_of() -> None:
    found, problems = of("volcano.sh/vgpu-number", gfd(count="2"), 20)
    assert (found.device_class, found.advertised_per_device, problems) == (DeviceClass.FRACTION, 1, ())


# --- any labels -----------------------------------------------------------------------------------------


LABEL_VALUES = (
    st.sampled_from(["", "0", "1", "4", "8", "A100-SHARED", "A100-MIG-1g.5gb", "192G", "-1"]) | st.text()
)
LABELS = st.dictionaries(
    st.sampled_from([*gfd(), "cloud.google.com/gke-gpu-partition-size", "gpu.intel.com/device.count"]),
    LABEL_VALUES,
)
RESOURCES = st.sampled_from(
    [GPU, "nvidia.com/gpu.shared", "nvidia.com/mig-1g.5gb", "gpu.intel.com/i915", "x.com/npu"]
)


@CI
@given(LABELS, RESOURCES, st.integers(-2, 100), st.none() | st.integers(-2, 100))
def test_any_labels_are_read_and_each_device_is_advertised_at_least_once(
    labels: dict[str, str], resource: str, allocatable: int, capacity: int | None
) -> None:
    entry = builtin_catalogue().device(resource)
    assert entry is not None
    found = node_product(entry, labels, allocatable, capacity).found
    assert found.advertised_per_device >= 1


# --- AWS Neuron ------------------------------------------------------------------------------------------

TRN1 = {NEURON: 16, NEURON_DEVICE: 16, NEURON_CORE: 32}
TRN2 = {NEURON: 16, NEURON_CORE: 128}
INSTANCE = "node.kubernetes.io/instance-type"


@pytest.mark.parametrize(
    ("allocatable", "used", "free"),
    [
        (TRN1, {}, TRN1),
        (TRN1, {NEURON: 4}, {NEURON: 12, NEURON_DEVICE: 12, NEURON_CORE: 24}),
        (TRN1, {NEURON_DEVICE: 4}, {NEURON: 12, NEURON_DEVICE: 12, NEURON_CORE: 24}),
        (TRN1, {NEURON: 4, NEURON_DEVICE: 4}, {NEURON: 8, NEURON_DEVICE: 8, NEURON_CORE: 16}),
        (TRN1, {NEURON_CORE: 8}, {NEURON: 12, NEURON_DEVICE: 12, NEURON_CORE: 24}),
        (TRN1, {NEURON_CORE: 7}, {NEURON: 12, NEURON_DEVICE: 12, NEURON_CORE: 25}),
        (TRN1, {NEURON: 15, NEURON_CORE: 1}, {NEURON: 0, NEURON_DEVICE: 0, NEURON_CORE: 1}),
        (TRN1, {NEURON: 16}, {NEURON: 0, NEURON_DEVICE: 0, NEURON_CORE: 0}),
        (TRN1, {NEURON: 20, NEURON_CORE: 40}, {NEURON: 0, NEURON_DEVICE: 0, NEURON_CORE: 0}),
        (TRN2, {NEURON_CORE: 9}, {NEURON: 14, NEURON_CORE: 119}),
        # Logical cores, two physical ones each, as the node advertises them.
        ({NEURON: 16, NEURON_CORE: 64}, {NEURON: 1}, {NEURON: 15, NEURON_CORE: 60}),
        # Names that the node does not advertise are not free there.
        ({NEURON: 16}, {NEURON: 1}, {NEURON: 15}),
        ({NEURON_CORE: 4}, {NEURON_CORE: 1}, {NEURON_CORE: 3}),
        ({}, {}, {}),
    ],
)
def test_using_one_name_of_neuron_takes_from_the_others(
    allocatable: dict[str, int], used: dict[str, int], free: dict[str, int]
) -> None:
    read = free_neuron(allocatable, used, {})
    assert (read.found, read.problems) == (free, ())


@pytest.mark.parametrize(
    ("allocatable", "labels", "cores"),
    [
        ({NEURON: 16, NEURON_CORE: 32}, {INSTANCE: "trn2.48xlarge"}, 2),
        ({NEURON: 16}, {INSTANCE: "trn1.32xlarge"}, 2),
        ({NEURON: 16}, {INSTANCE: "trn1n.32xlarge"}, 2),
        ({NEURON: 16}, {INSTANCE: "ml.trn1.32xlarge"}, 2),
        ({NEURON: 16}, {INSTANCE: "trn2.48xlarge"}, 8),
        ({NEURON: 16}, {INSTANCE: "trn2u.48xlarge"}, 8),
        ({NEURON: 12}, {INSTANCE: "inf2.48xlarge"}, 2),
        ({NEURON: 16}, {"beta.kubernetes.io/instance-type": "inf1.24xlarge"}, 4),
        ({NEURON: 16}, {INSTANCE: "p5.48xlarge"}, 0),
        ({NEURON: 16}, {INSTANCE: "trn12.48xlarge"}, 0),
        ({NEURON: 16}, {}, 0),
    ],
)
def test_cores_of_a_chip_come_from_allocatable_else_from_the_instance(
    allocatable: dict[str, int], labels: dict[str, str], cores: int
) -> None:
    assert cores_per_chip(allocatable, labels).found == cores


def test_cores_that_are_no_multiple_of_the_chips_fall_back_to_the_instance() -> None:
    read = free_neuron({NEURON: 16, NEURON_CORE: 31}, {NEURON: 1}, {INSTANCE: "trn1.32xlarge"})
    assert read.found == {NEURON: 15, NEURON_CORE: 29}
    assert read.problems == (
        "31 of aws.amazon.com/neuroncore on 16 chips: expected a multiple; 2 a chip, as trn1.32xlarge has",
    )


def test_where_nothing_tells_the_cores_of_a_chip_the_answer_is_cautious() -> None:
    read = free_neuron({NEURON: 16, NEURON_CORE: 31}, {NEURON_CORE: 3}, {})
    assert read.found == {NEURON: 13, NEURON_CORE: 28}
    assert read.problems == (
        "31 of aws.amazon.com/neuroncore on 16 chips: expected a multiple; "
        "each chip counted as used by any core in use",
    )
    assert free_neuron({NEURON: 16, NEURON_CORE: 31}, {NEURON: 1}, {}).found == {NEURON: 15, NEURON_CORE: 0}


AMOUNTS = st.dictionaries(st.sampled_from([NEURON, NEURON_DEVICE, NEURON_CORE]), st.integers(0, 40))


@CI
@given(st.integers(1, 16), st.sampled_from([2, 4, 8]), AMOUNTS, AMOUNTS)
def test_more_use_never_frees_neuron_devices(
    chips: int, cores: int, used: dict[str, int], more: dict[str, int]
) -> None:
    allocatable = {NEURON: chips, NEURON_DEVICE: chips, NEURON_CORE: chips * cores}
    before = free_neuron(allocatable, used, {}).found
    both = {name: used.get(name, 0) + more.get(name, 0) for name in allocatable}
    after = free_neuron(allocatable, both, {}).found
    assert all(0 <= after[name] <= before[name] <= allocatable[name] for name in allocatable)
    assert before[NEURON] * cores <= before[NEURON_CORE] or before[NEURON] == 0
