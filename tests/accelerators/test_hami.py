"""HAMi: what its nodes and pods say, for every vendor that follows its pattern."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.accelerators.devices import Device, DeviceClaim, DeviceUse, Read
from fairway.accelerators.hami import HAMI
from fairway.accelerators.hami_vendors import VENDORS, Vendor
from tests.accelerators.facts import GARBAGE, SCHEME, ask, check_garbage, claimed, devices_of, node, pod, text

NVIDIA = SCHEME["hami-nvidia"]
REGISTER = "hami.io/node-nvidia-register"
ALLOCATED = "hami.io/vgpu-devices-allocated"
GPU = "nvidia.com/gpu"
ONE = "GPU-1,10,24000,100,NVIDIA A10,0,true:"


def nvidia(register: str, gpus: int = 80, **annotations: str) -> Read[tuple[Device, ...]]:
    return devices_of(NVIDIA, node({GPU: gpus} if gpus else {}, {REGISTER: register, **annotations}))


def usable(read: Read[tuple[Device, ...]]) -> list[str]:
    return [device.id for device in read.found if device.usable]


# --- nodes -------------------------------------------------------------------------------------------------

RTX, H100, L40S = "NVIDIA-NVIDIA GeForce RTX 3090", "NVIDIA-NVIDIA H100 80GB HBM3", "NVIDIA L40S"


@pytest.mark.parametrize(
    ("fixture", "devices"),
    [
        (
            "nvidia-node-7-fields.txt",
            (
                Device("GPU-1f0a6f5e-0001-4c21-9b1e-0a5d3c7e1101", 24268, 100, 10, RTX, 0, "hami-core", True),
                Device(
                    "GPU-1f0a6f5e-0002-4c21-9b1e-0a5d3c7e1102", 24268, 100, 10, RTX, 1, "hami-core", False
                ),
            ),
        ),
        (
            "nvidia-node-9-fields.txt",
            (
                Device("GPU-7c9e2d10-0001-4f7b-8a52-6b1f0d9c2201", 81559, 100, 4, H100, 0, "hami-core", True),
                Device("GPU-7c9e2d10-0002-4f7b-8a52-6b1f0d9c2202", 81559, 100, 4, H100, 63, "mps", True),
            ),
        ),
        (
            "nvidia-node.json",
            (
                Device(
                    "GPU-5d3b8f72-0001-4e0c-b6a9-2f8c1d4e3301", 46068, 100, 10, L40S, 0, "hami-core", True
                ),
                Device(
                    "GPU-5d3b8f72-0002-4e0c-b6a9-2f8c1d4e3302", 46068, 100, 10, L40S, 1, "hami-core", False
                ),
            ),
        ),
    ],
)
def test_old_and_new_registers_of_nvidia_devices(fixture: str, devices: tuple[Device, ...]) -> None:
    assert nvidia(text(f"hami/{fixture}")) == Read(devices)


@pytest.mark.parametrize(
    ("vendor", "register", "fixture", "count", "devices"),
    [
        (
            "amd",
            "hami.io/node-amd-register",
            "amd-node.json",
            "amd.com/gpu",
            (Device("8eff74b5-0000-1000-801b-b56457addd1b", 196288, 304, 10, "AMD Instinct MI300X"),),
        ),
        (
            "dcu",
            "hami.io/node-dcu-register",
            "dcu-node.txt",
            "hygon.com/dcunum",
            (
                Device("DCU-0", 32752, 60, 4, "DCU-K100_AI", 0, "hami-core"),
                Device("DCU-1", 32752, 60, 4, "DCU-K100_AI", 1, "hami-core"),
            ),
        ),
        (
            "biren",
            "hami.io/node-biren-register",
            "biren-node.json",
            "birentech.com/gpu",
            (Device("BR-0001", 32768, 100, 1, "Biren106C"), Device("BR-0002", 32768, 100, 1, "Biren106C")),
        ),
        (
            "vastai",
            "hami.io/node-va-register",
            "vastai-node.json",
            "vastaitech.com/va",
            (Device("VA-0001", 0, 100, 1, "Vastai"), Device("VA-0002", 0, 100, 1, "Vastai")),
        ),
        (
            "xpu",
            "hami.io/node-register-xpu",
            "xpu-node.json",
            "kunlunxin.com/vxpu",
            (
                Device("XPU-0", 98304, 0, 4, "XPU-P800", 0),
                Device("XPU-3", 98304, 0, 4, "XPU-P800", 0),
                Device("XPU-4", 98304, 0, 4, "XPU-P800", 1),
            ),
        ),
        (
            "mr-v100",
            "hami.io/node-MR-V100-register",
            "mr-v100-node.txt",
            "iluvatar.ai/MR-V100-vgpu",
            (Device("IX-0001", 32768, 100, 10, "Iluvatar MR-V100", 0, "hami-core"),),
        ),
        (
            "ascend910b3",
            "hami.io/node-register-Ascend910B3",
            "ascend910b3-node.json",
            "huawei.com/Ascend910B3",
            (
                Device("NPU-B3-0", 65536, 100, 4, "Ascend910B3", 0, "template"),
                Device("NPU-B3-1", 65536, 100, 4, "Ascend910B3", 1, "template"),
            ),
        ),
        (
            "ascend910c",
            "hami.io/node-register-Ascend910C",
            "ascend910c-node.json",
            "huawei.com/Ascend910C",
            tuple(
                Device(f"NPU-C-{i}", 65536, 100, 1, "Ascend910C", numa, "template")
                for i, numa in ((0, 0), (1, 0), (2, 1))
            ),
        ),
    ],
)
def test_registers_of_other_vendors(
    vendor: str, register: str, fixture: str, count: str, devices: tuple[Device, ...]
) -> None:
    facts = node({count: 8}, {register: text(f"hami/{fixture}")})
    assert SCHEME[f"hami-{vendor}"].devices(facts) == Read(devices)
    assert [scheme.name for scheme in HAMI if scheme.devices(facts)] == [f"hami-{vendor}"]


def test_a_node_without_a_register_takes_no_part() -> None:
    assert all(scheme.devices(node({GPU: 8})) is None for scheme in HAMI)


@pytest.mark.parametrize(
    ("what", "gpus", "annotations", "ids", "problem"),
    [
        (
            "the plugin reported",
            20,
            {"hami.io/node-handshake": "Reported 2026-01-02 03:04:05 +0000 UTC"},
            ["GPU-1", "GPU-2"],
            "",
        ),
        (
            "the scheduler asked, kubelet still advertises",
            20,
            {"hami.io/node-handshake": "Requesting_2020-01-02 03:04:05"},
            ["GPU-1", "GPU-2"],
            "",
        ),
        (
            "the scheduler asked, kubelet advertises none",
            0,
            {"hami.io/node-handshake": "Requesting_2020.01.02 03:04:05"},
            [],
            "allocatable has no nvidia.com/gpu",
        ),
        (
            "the scheduler has given them up",
            20,
            {"hami.io/node-handshake": "Deleted_2020.01.02 03:04:05"},
            [],
            "node-handshake is 'Deleted_2020.01.02 03:04:05'",
        ),
        ("kubelet advertises none", 0, {}, [], "allocatable has no nvidia.com/gpu"),
        ("one is cordoned", 20, {"hami.io/device-cordon": " GPU-2 ,,GPU-9"}, ["GPU-1"], ""),
        ("no cordon", 20, {"hami.io/device-cordon": ""}, ["GPU-1", "GPU-2"], ""),
    ],
)
def test_devices_that_take_no_new_pods(
    what: str, gpus: int, annotations: Mapping[str, str], ids: list[str], problem: str
) -> None:
    read = nvidia(ONE + ONE.replace("GPU-1", "GPU-2"), gpus, **annotations)
    assert usable(read) == ids, what
    assert len(read.found) == 2, "pods that are on them stay on them"
    assert len(read.problems) == bool(problem)
    assert problem in "".join(read.problems)


def test_a_device_whose_type_lacks_the_vendor_is_not_found_by_hami() -> None:
    read = nvidia(ONE + "GPU-2,10,24000,100,Tesla,0,true:")
    assert usable(read) == ["GPU-1"]
    assert "'GPU-2'" in read.problems[0]
    assert "no NVIDIA" in read.problems[0]


def test_a_device_in_mig_mode_takes_one_pod_of_its_largest_part() -> None:
    read = nvidia(text("hami/nvidia-node-mig.json"))
    cut, plain = read.found
    assert (cut.memory, cut.cores, cut.slots, cut.mode) == (80384, 99, 1, "mig")
    assert (plain.memory, plain.cores, plain.slots) == (81559, 100, 10)
    assert read.problems == (
        f"annotation {REGISTER}: 1 devices are in mode mig, where each is counted for one pod at a time only",
    )


def test_a_device_in_mig_mode_without_profiles_keeps_its_memory() -> None:
    read = nvidia("GPU-1,7,40960,100,NVIDIA A100,0,true,0,mig:GPU-2,0,40960,100,NVIDIA A100,0,true,1,mig:")
    assert [(device.memory, device.slots) for device in read.found] == [(40960, 1), (40960, 0)]


@pytest.mark.parametrize("said", ["true", "false"])
def test_an_ascend_node_shares_softly_where_it_says_so(said: str) -> None:
    register = text("hami/ascend910b3-node.json")
    annotations = {"hami.io/node-register-Ascend910B3": register, "hami-vnpu-core": said}
    read = devices_of(SCHEME["hami-ascend910b3"], node({"huawei.com/Ascend910B3": 8}, annotations))
    assert {device.mode for device in read.found} == {"hami-core" if said == "true" else "template"}


# --- pods --------------------------------------------------------------------------------------------------


def test_a_pod_with_three_containers_of_which_the_first_has_no_device() -> None:
    first, second = "GPU-5d3b8f72-0001-4e0c-b6a9-2f8c1d4e3301", "GPU-5d3b8f72-0002-4e0c-b6a9-2f8c1d4e3302"
    assert NVIDIA.uses(pod({ALLOCATED: text("hami/nvidia-pod.txt")})) == Read(
        (DeviceUse(first, 8000, 30), DeviceUse(second, 8000, 30), DeviceUse(first, 2000, 0))
    )


def test_a_mig_instance_is_on_its_device() -> None:
    read = NVIDIA.uses(pod({ALLOCATED: text("hami/nvidia-pod-mig.txt")}))
    assert read == Read((DeviceUse("GPU-9a4c6e18-0001-4b3d-a7f5-5e2d8c1b4401", 10240, 14),))


@pytest.mark.parametrize(
    ("annotations", "uses"),
    [
        (
            {ALLOCATED: "GPU-1,NVIDIA,1,2:;", "hami.io/vgpu-devices-to-allocate": ";"},
            [DeviceUse("GPU-1", 1, 2)],
        ),
        ({"hami.io/vgpu-devices-to-allocate": "GPU-1,NVIDIA,1,2:;"}, [DeviceUse("GPU-1", 1, 2)]),
        (
            {ALLOCATED: "", "hami.io/vgpu-devices-to-allocate": "GPU-1,NVIDIA,1,2:;"},
            [DeviceUse("GPU-1", 1, 2)],
        ),
        ({ALLOCATED: ";;"}, []),
        ({ALLOCATED: ""}, []),
        ({"hami.io/vgpu-node": "n"}, []),
        ({ALLOCATED: "GPU-1,NVIDIA,1,2,later,fields:;"}, [DeviceUse("GPU-1", 1, 2)]),
        ({ALLOCATED: "GPU-1,NVIDIA,1,2"}, [DeviceUse("GPU-1", 1, 2)]),
    ],
)
def test_what_a_pod_was_given(annotations: Mapping[str, str], uses: list[DeviceUse]) -> None:
    assert NVIDIA.uses(pod(annotations)) == Read(tuple(uses))


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.name)
def test_each_vendor_reads_its_own_allocation(vendor: Vendor) -> None:
    held = pod({vendor.allocated: "D-1,type,100,5:;"})
    assert [s.name for s in HAMI if s.uses(held) == Read((DeviceUse("D-1", 100, 5),))] == [
        f"hami-{vendor.name}"
    ]


def test_amd_cores_are_compute_units() -> None:
    read = SCHEME["hami-amd"].uses(pod({"hami.io/amd-devices-allocated": text("hami/amd-pod.txt")}))
    assert read == Read((DeviceUse("8eff74b5-0000-1000-801b-b56457addd1b", 65536, 76),))


def test_golden_vector_v6() -> None:
    """Two devices of 24,000 MiB with 10,000 free each; the split leaves one slot on each at the end."""
    read = nvidia(ONE.replace(",10,", ",2,") + ONE.replace("GPU-1,10", "GPU-2,2"))
    assert [(device.memory, device.slots) for device in read.found] == [(24000, 2), (24000, 2)]
    uses = [NVIDIA.uses(pod({ALLOCATED: f"GPU-{n},NVIDIA,14000,0:;"})).found for n in (1, 2)]
    assert uses == [(DeviceUse("GPU-1", 14000),), (DeviceUse("GPU-2", 14000),)]
    for memory in (16000, 10000, 5000):
        asked = ask({GPU: 1, "nvidia.com/gpumem": memory})
        assert claimed(NVIDIA.claims(asked)) == (DeviceClaim(1, memory),)


# --- bad input ---------------------------------------------------------------------------------------------

JSON_ONE = '{"id":"GPU-1","count":10,"devmem":24000,"devcore":100,"type":"NVIDIA A10","health":true}'


@pytest.mark.parametrize(
    ("what", "register", "found", "problem"),
    [
        (
            "cut short in a field",
            ONE + "GPU-2,10,24000,100,NVID",
            ["GPU-1"],
            "device 2 ('GPU-2,10,24000,100,NVID'): it has 5 fields, expected 7 or 9",
        ),
        ("cut short in an id", ONE + "GPU", ["GPU-1"], "device 2 ('GPU'): it has 1 fields"),
        ("eight fields", ONE.replace(":", ",0:"), [], "it has 8 fields"),
        (
            "a negative amount",
            ONE + "GPU-2,10,-1,100,NVIDIA A10,0,true:",
            ["GPU-1"],
            "must be numbers from 0 to 2147483647",
        ),
        ("a huge amount", "GPU-2,10,2147483648,100,NVIDIA A10,0,true:" + ONE, ["GPU-1"], "device 1 ('GPU-2,"),
        ("no health", "GPU-2,10,24000,100,NVIDIA A10,0,:" + ONE, ["GPU-1"], "its health true or false"),
        (
            "no NUMA node",
            "GPU-2,10,24000,100,NVIDIA A10,x,true:" + ONE,
            ["GPU-1"],
            "its NUMA node must be a number",
        ),
        (
            "no id",
            ",10,24000,100,NVIDIA A10,0,true:" + ONE,
            ["GPU-1"],
            "device 1 (',10,24000,100,NVIDIA A10,0,true'): it has no id",
        ),
        (
            "an id twice",
            ONE + ONE.replace("24000", "99000"),
            ["GPU-1"],
            "lists device 'GPU-1' twice; the first one counts",
        ),
        ("JSON cut short", "[" + JSON_ONE + ',{"id"', [], "is no JSON list of devices"),
        ("JSON of an object", JSON_ONE, [], "is no JSON list of devices"),
        ("JSON of numbers", "[1," + JSON_ONE + "]", ["GPU-1"], "device 1: Expected `object`, got `int`"),
        ("JSON with null", "[null," + JSON_ONE + "]", ["GPU-1"], "device 1: Expected `object`, got `null`"),
        (
            "JSON with a wrong type",
            "[" + JSON_ONE.replace("24000", '"24000"') + "," + JSON_ONE + "]",
            ["GPU-1"],
            "device 1: Expected `int`, got `str` - at `$.devmem`",
        ),
        (
            "JSON with a negative",
            "[" + JSON_ONE.replace("24000", "-1") + "]",
            [],
            "device 1: devmem is '-1', expected a number from 0",
        ),
        ("JSON with a huge number", "[" + JSON_ONE.replace("24000", "9" * 40) + "]", [], "device 1: "),
        ("JSON without an id", "[{}]", [], "device 1: it has no id"),
        ("JSON with an id twice", f"[{JSON_ONE},{JSON_ONE}]", ["GPU-1"], "twice"),
        ("empty", "", [], "is empty"),
    ],
)
def test_registers_that_cannot_be_read_in_full(
    what: str, register: str, found: list[str], problem: str
) -> None:
    read = nvidia(register)
    assert usable(read) == found, what
    assert all(device.memory == 24000 for device in read.found)
    assert len(read.problems) == 1
    assert read.problems[0].startswith(f"annotation {REGISTER}")
    assert problem in read.problems[0]


@pytest.mark.parametrize(
    ("register", "ids"),
    [
        (f'[{JSON_ONE[:-1]},"later":{{"a":[1]}}}}]', ["GPU-1"]),
        (JSON_ONE.replace('"health":true', '"index":0').join("[]"), []),
        (JSON_ONE.replace('"count":10,', "").join("[]"), ["GPU-1"]),
        ("[]", []),
        ("null", []),
    ],
)
def test_registers_with_fields_that_are_unknown_or_missing(register: str, ids: list[str]) -> None:
    read = nvidia(register)
    assert not read.problems
    assert usable(read) == ids


@pytest.mark.parametrize(
    ("what", "allocation", "uses", "problem"),
    [
        (
            "cut short in a number's place",
            "GPU-1,NVIDIA,1,2:GPU-2,NV",
            [DeviceUse("GPU-1", 1, 2), DeviceUse("GPU-2", 0, exclusive=True)],
            "container 1, device 2 ('GPU-2,NV')",
        ),
        (
            "cut short in an id",
            "GPU-1,NVIDIA,1,2:GP",
            [DeviceUse("GPU-1", 1, 2), DeviceUse("GP", 0, exclusive=True)],
            "all of that device counts as used",
        ),
        (
            "no number",
            "GPU-1,NVIDIA,lots,2:",
            [DeviceUse("GPU-1", 0, exclusive=True)],
            "with numbers from 0 to 2147483647",
        ),
        (
            "a negative number",
            "GPU-1,NVIDIA,-5,2:",
            [DeviceUse("GPU-1", 0, exclusive=True)],
            "all of that device",
        ),
        (
            "a huge number",
            "GPU-1,NVIDIA,1,99999999999:",
            [DeviceUse("GPU-1", 0, exclusive=True)],
            "all of that device",
        ),
        (
            "no id",
            ";,NVIDIA,1,2:GPU-1,NVIDIA,1,2:",
            [DeviceUse("GPU-1", 1, 2)],
            "container 2, device 1 (',NVIDIA,1,2'): expected id,type,memory,cores",
        ),
    ],
)
def test_allocations_that_cannot_be_read_in_full(
    what: str, allocation: str, uses: list[DeviceUse], problem: str
) -> None:
    read = NVIDIA.uses(pod({ALLOCATED: allocation}))
    assert list(read.found) == uses, what
    assert len(read.problems) == 1
    assert read.problems[0].startswith(f"annotation {ALLOCATED}")
    assert problem in read.problems[0]


def test_devices_that_no_node_has_and_more_than_a_device_has_are_read_as_they_stand() -> None:
    read = NVIDIA.uses(pod({ALLOCATED: "GPU-unknown,NVIDIA,2000000000,100:GPU-1,NVIDIA,2000000000,100:;"}))
    assert read == Read(
        (DeviceUse("GPU-unknown", 2_000_000_000, 100), DeviceUse("GPU-1", 2_000_000_000, 100))
    )


@pytest.mark.parametrize(
    "vendor", [v for v in VENDORS if v.name in ("nvidia", "amd", "ascend910b3")], ids=str
)
def test_garbage_makes_no_device_and_few_short_sentences(vendor: Vendor) -> None:
    for garbage in GARBAGE.values():
        scheme = SCHEME[f"hami-{vendor.name}"]
        found = check_garbage(devices_of(scheme, node({vendor.count: 8}, {vendor.register: garbage})))
        assert found == ()
        uses = check_garbage(scheme.uses(pod({vendor.allocated: garbage})))
        assert all(use.exclusive for use in uses)


def test_more_devices_than_a_node_has_are_not_read() -> None:
    read = nvidia("".join(ONE.replace("GPU-1", f"GPU-{n}") for n in range(1100)))
    assert len(read.found) == 1024
    assert "lists more than 1024 devices" in read.problems[0]
    read = nvidia(",".join(JSON_ONE.replace("GPU-1", f"GPU-{n}") for n in range(1100)).join("[]"))
    assert len(read.found) == 1024
    assert "lists 1100 devices" in read.problems[0]
    uses = NVIDIA.uses(pod({ALLOCATED: "GPU-1,NVIDIA,1,1:" * 1100}))
    assert len(uses.found) == 1024
    assert "more than 1024 entries" in uses.problems[0]


# --- laws --------------------------------------------------------------------------------------------------

IDS = st.text("abcdefGPU-0123456789", min_size=1, max_size=12)
AMOUNTS = st.integers(0, 2**31 - 1)


@given(st.lists(st.tuples(IDS, AMOUNTS, AMOUNTS, AMOUNTS, st.booleans()), unique_by=lambda entry: entry[0]))
def test_what_is_written_is_read_in_both_forms(entries: list[tuple[str, int, int, int, bool]]) -> None:
    written = "".join(
        f"{id},{count},{memory},{cores},NVIDIA,0,{str(healthy).lower()}:"
        for id, count, memory, cores, healthy in entries
    )
    as_json = ",".join(
        f'{{"id":"{id}","count":{count},"devmem":{memory},"devcore":{cores},"type":"NVIDIA",'
        f'"mode":"hami-core","health":{str(healthy).lower()}}}'
        for id, count, memory, cores, healthy in entries
    )
    devices = tuple(
        Device(id, memory, cores, count, "NVIDIA", 0, "hami-core", healthy)
        for id, count, memory, cores, healthy in entries
    )
    assert nvidia(f"[{as_json}]").found == devices
    if entries:
        assert nvidia(written).found == devices


@given(st.text(max_size=60), st.text("GPU-1,:;[]-0 NVIDIA", max_size=60))
def test_no_text_raises_or_gives_a_negative_amount(any_text: str, likely: str) -> None:
    for annotation in (any_text, likely):
        for device in nvidia(annotation).found:
            assert min(device.memory, device.cores, device.slots, device.numa) >= 0
        for use in NVIDIA.uses(pod({ALLOCATED: annotation})).found:
            assert min(use.memory, use.cores) >= 0
