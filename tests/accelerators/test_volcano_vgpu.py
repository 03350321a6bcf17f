"""Volcano: vGPU, and the older sharing by gpu-memory and gpu-number."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.accelerators.devices import PPM, Device, DeviceClaim, DeviceFilter, DeviceUse, Read
from tests.accelerators.facts import (
    GARBAGE,
    SCHEME,
    ask,
    check_garbage,
    claimed,
    devices_of,
    node,
    node_of,
    pod,
    pod_of,
    refused,
    text,
    the_problem,
)

VGPU, GPUS = SCHEME["volcano-vgpu"], SCHEME["volcano-gpu"]
REGISTER, ALLOCATED = "volcano.sh/node-vgpu-register", "volcano.sh/vgpu-ids-new"
NUMBER, MEM, PERCENT, CORES = (
    "volcano.sh/vgpu-number",
    "volcano.sh/vgpu-memory",
    "volcano.sh/vgpu-memory-percentage",
    "volcano.sh/vgpu-cores",
)
ONE = "GPU-1,10,32768,NVIDIA-Tesla V100,true,hami-core:"


def vgpu(
    register: str, allocatable: Mapping[str, int] | None = None, **annotations: str
) -> Read[tuple[Device, ...]]:
    has = {NUMBER: 80} if allocatable is None else allocatable
    return devices_of(VGPU, node(has, {REGISTER: register, **annotations}))


# --- vGPU nodes --------------------------------------------------------------------------------------------

V100, A100 = "NVIDIA-Tesla V100-SXM2-32GB", "NVIDIA-NVIDIA A100-SXM4-80GB"


@pytest.mark.parametrize(
    ("fixture", "devices"),
    [
        (
            "vgpu-node-5-fields.txt",
            (
                Device(
                    "GPU-3e7d1c94-0001-4d52-9c08-7a1b6f0e5501", 32768, 100, 10, V100, 0, "hami-core", True
                ),
                Device(
                    "GPU-3e7d1c94-0002-4d52-9c08-7a1b6f0e5502", 32768, 100, 10, V100, 0, "hami-core", False
                ),
            ),
        ),
        (
            "vgpu-node-6-fields.txt",
            (
                Device("GPU-3e7d1c94-0003-4d52-9c08-7a1b6f0e5503", 81920, 100, 10, A100, 0, "hami-core"),
                Device("GPU-3e7d1c94-0004-4d52-9c08-7a1b6f0e5504", 81920, 100, 10, A100, 0, "hami-core"),
            ),
        ),
        (
            "vgpu-node.json",
            (
                Device(
                    "GPU-3e7d1c94-0006-4d52-9c08-7a1b6f0e5506",
                    24564,
                    100,
                    10,
                    "NVIDIA-NVIDIA L4",
                    0,
                    "hami-core",
                ),
            ),
        ),
    ],
)
def test_old_and_new_registers(fixture: str, devices: tuple[Device, ...]) -> None:
    assert vgpu(text(f"volcano/{fixture}")) == Read(devices)


def test_a_node_in_mig_mode_is_counted_for_one_pod_a_device() -> None:
    read = vgpu(text("volcano/vgpu-node-mig.txt"))
    assert read.found == (Device("GPU-3e7d1c94-0005-4d52-9c08-7a1b6f0e5505", 81920, 99, 1, A100, 0, "mig"),)
    assert "mode mig, where each is counted for one pod" in the_problem(read)


def test_the_mode_of_a_node_is_that_of_its_last_device() -> None:
    read = vgpu(ONE + ONE.replace("GPU-1", "GPU-2").replace("hami-core", "mig"))
    assert [(device.mode, device.slots) for device in read.found] == [("mig", 1), ("mig", 1)]
    read = vgpu(ONE.replace("hami-core", "mig") + ONE.replace("GPU-1", "GPU-2").replace("hami-core", "mps"))
    assert [(device.mode, device.slots) for device in read.found] == [("hami-core", 10), ("hami-core", 10)]


@pytest.mark.parametrize(
    ("what", "allocatable", "handshake", "problem"),
    [
        ("number only, as older plugins", {NUMBER: 10}, "Reported 2024-01-01", ""),
        ("number, memory and cores", {NUMBER: 10, MEM: 32768, CORES: 100}, "", ""),
        ("asked long ago, still advertised", {NUMBER: 10}, "Requesting_2020.01.01 00:00:00", ""),
        ("no number", {}, "", "allocatable has no volcano.sh/vgpu-number"),
        ("no memory", {NUMBER: 10, MEM: 0, CORES: 100}, "", "allocatable has no volcano.sh/vgpu-memory"),
        ("no cores", {NUMBER: 10, MEM: 1, CORES: 0}, "", "allocatable has no volcano.sh/vgpu-cores"),
        ("given up", {NUMBER: 10}, "Deleted_2020.01.01 00:00:00", "has given the devices up"),
    ],
)
def test_devices_that_are_gone_take_no_pods(
    what: str, allocatable: Mapping[str, int], handshake: str, problem: str
) -> None:
    annotations = {"volcano.sh/node-vgpu-handshake": handshake} if handshake else {}
    read = vgpu(ONE, allocatable, **annotations)
    assert [device.usable for device in read.found] == [not problem], what
    assert len(read.problems) == bool(problem)
    assert problem in "".join(read.problems)


def test_only_nvidia_types_are_found() -> None:
    read = vgpu(ONE.replace("NVIDIA-", "") + ONE.replace("GPU-1", "GPU-2"))
    assert [device.usable for device in read.found] == [False, True]
    assert "1 devices have no NVIDIA in their type" in the_problem(read)


# --- vGPU pods ---------------------------------------------------------------------------------------------


def test_what_a_pod_was_given() -> None:
    assert VGPU.uses(pod({ALLOCATED: text("volcano/vgpu-pod.txt")})) == Read(
        (
            DeviceUse("GPU-3e7d1c94-0003-4d52-9c08-7a1b6f0e5503", 20000, 40),
            DeviceUse("GPU-3e7d1c94-0004-4d52-9c08-7a1b6f0e5504", 1000, 0),
        )
    )
    assert VGPU.uses(pod({ALLOCATED: text("volcano/vgpu-pod-mig.txt")})) == Read(
        (DeviceUse("GPU-3e7d1c94-0005-4d52-9c08-7a1b6f0e5505", 9000, 0),)
    )
    assert VGPU.uses(pod({"volcano.sh/vgpu-node": "n"})) == Read(())


@pytest.mark.parametrize(
    ("asked", "claim"),
    [
        ({NUMBER: 1}, DeviceClaim(1, 0, PPM)),
        ({MEM: 3000}, DeviceClaim(1, 3000)),
        ({NUMBER: 2, MEM: 3000, CORES: 20}, DeviceClaim(2, 3000, cores=20)),
        ({NUMBER: 1, MEM: 3000, PERCENT: 50}, DeviceClaim(1, 0, PPM // 2)),
        ({NUMBER: 1, PERCENT: 25}, DeviceClaim(1, 0, PPM // 4)),
        ({NUMBER: 1, PERCENT: 0, MEM: 3000}, DeviceClaim(1)),
        ({NUMBER: 1, MEM: 3000, CORES: 100}, DeviceClaim(1, 3000, cores=100, exclusive=True)),
        ({NUMBER: 1, MEM: 0}, DeviceClaim(1, 0, PPM)),
    ],
)
def test_what_a_container_asks(asked: Mapping[str, int], claim: DeviceClaim) -> None:
    assert claimed(VGPU.claims(ask(asked))) == (claim,)


def test_each_container_that_asks_has_a_claim() -> None:
    read = VGPU.claims(ask({NUMBER: 1, MEM: 1000}, {"cpu": 1}, {NUMBER: 2, CORES: 100}))
    assert claimed(read) == (DeviceClaim(1, 1000), DeviceClaim(2, 0, PPM, cores=100, exclusive=True))


@pytest.mark.parametrize("asked", [{}, {"cpu": 1}, {NUMBER: 0}, {"nvidia.com/gpu": 1}])
def test_containers_that_ask_for_nothing(asked: Mapping[str, int]) -> None:
    assert VGPU.claims(ask(asked)) is None


@pytest.mark.parametrize(
    ("asked", "annotations", "reason"),
    [
        ({NUMBER: 1, CORES: 101}, {}, "volcano.sh/vgpu-cores is 101, expected a plain number from 0 to 100"),
        ({NUMBER: 1, PERCENT: 101}, {}, "volcano.sh/vgpu-memory-percentage is 101"),
        ({NUMBER: 1, MEM: 2**31}, {}, "volcano.sh/vgpu-memory is 2147483648"),
        ({NUMBER: -1}, {}, "volcano.sh/vgpu-number is -1"),
        ({CORES: 10}, {}, "volcano.sh/vgpu-cores is asked for without volcano.sh/vgpu-number"),
        ({PERCENT: 10}, {}, "volcano.sh/vgpu-memory-percentage is asked for without"),
        ({NUMBER: 1}, {"volcano.sh/vgpu-mode": "mps"}, "annotation volcano.sh/vgpu-mode is 'mps'"),
        ({NUMBER: 1}, {"volcano.sh/vgpu-mode": ""}, "annotation volcano.sh/vgpu-mode is ''"),
    ],
)
def test_asks_that_fit_nowhere(asked: Mapping[str, int], annotations: Mapping[str, str], reason: str) -> None:
    assert reason in refused(VGPU.claims(ask(asked, **annotations)))


CHOICE = (
    Device("a", 1, product="NVIDIA-H100", mode="hami-core"),
    Device("b", 1, product="NVIDIA-A100", mode="mig"),
)


@pytest.mark.parametrize(
    ("annotations", "ids"),
    [
        ({}, "ab"),
        ({"volcano.sh/vgpu-mode": "mig"}, "b"),
        ({"volcano.sh/vgpu-use-gpuuuid": "b, z"}, "b"),
        ({"volcano.sh/vgpu-nouse-gpuuuid": "b"}, "a"),
        ({"volcano.sh/vgpu-use-gpuuuid": ","}, "ab"),
        ({"nvidia.com/use-gputype": "h100"}, "a"),
        ({"nvidia.com/use-gputype": ""}, "ab"),
        ({"nvidia.com/nouse-gputype": "A100,L4"}, "a"),
        ({"nvidia.com/nouse-gputype": ""}, ""),
        ({"nvidia.com/use-gputype": "100", "nvidia.com/nouse-gputype": "H100"}, "ab"),
    ],
)
def test_annotations_that_choose_devices(annotations: Mapping[str, str], ids: str) -> None:
    (claim,) = claimed(VGPU.claims(ask({NUMBER: 1}, **annotations)))
    assert "".join(device.id for device in CHOICE if claim.filter.allows(device)) == ids


@pytest.mark.parametrize(("policy", "exclusive"), [("spread", True), ("pack", False)])
def test_a_group_that_spreads_wants_devices_to_itself(policy: str, exclusive: bool) -> None:
    read = VGPU.claims(ask({NUMBER: 1, MEM: 10}, **{"volcano.sh/vgpu-podgroup-policy": policy}))
    assert claimed(read) == (DeviceClaim(1, 10, exclusive=exclusive, filter=DeviceFilter()),)


def test_resources_that_are_decided_on_devices() -> None:
    assert VGPU.managed == {MEM, PERCENT, CORES}


# --- vGPU, bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "register", "ids", "problem"),
    [
        (
            "cut short",
            ONE + "GPU-2,10,32768,NVI",
            ["GPU-1"],
            "device 2 ('GPU-2,10,32768,NVI'): expected id,count",
        ),
        ("four fields", "GPU-2,10,32768,NVIDIA:" + ONE, ["GPU-1"], "device 1 ('GPU-2,10,32768,NVIDIA')"),
        ("negative", ONE.replace("32768", "-1"), [], "with numbers from 0 to 2147483647"),
        ("huge", ONE.replace("32768", "9" * 30), [], "with numbers from 0 to 2147483647"),
        ("no health", ONE.replace("true", ""), [], "it takes no pods"),
        ("no id", ONE.replace("GPU-1", ""), [], "it takes no pods"),
        ("twice", ONE + ONE, ["GPU-1"], "lists device 'GPU-1' twice"),
        ("empty", "", [], "is empty"),
        ("JSON cut short", '[{"id":"GPU-1"', [], "is no JSON list of devices"),
    ],
)
def test_registers_that_cannot_be_read_in_full(
    what: str, register: str, ids: list[str], problem: str
) -> None:
    read = vgpu(register)
    assert [device.id for device in read.found if device.usable] == ids, what
    assert the_problem(read).startswith(f"annotation {REGISTER}")
    assert problem in the_problem(read)


def test_unknown_fields_are_left_alone() -> None:
    read = vgpu("GPU-1,10,32768,NVIDIA,true,hami-core,0,later:")
    assert read == Read((Device("GPU-1", 32768, 100, 10, "NVIDIA", 0, "hami-core"),))


def test_an_allocation_cut_short_takes_all_of_the_device_it_names() -> None:
    read = VGPU.uses(pod({ALLOCATED: "GPU-1,NVIDIA,10,0:GPU-2,NVID"}))
    assert read.found == (DeviceUse("GPU-1", 10), DeviceUse("GPU-2", 0, exclusive=True))
    assert "annotation volcano.sh/vgpu-ids-new, container 1, device 2" in the_problem(read)


def test_garbage_makes_no_device_and_few_short_sentences() -> None:
    for garbage in GARBAGE.values():
        assert check_garbage(vgpu(garbage)) == ()
        assert all(use.exclusive for use in check_garbage(VGPU.uses(pod({ALLOCATED: garbage}))))
        unhealthy = node(
            {"volcano.sh/gpu-memory": 10, "volcano.sh/gpu-number": 1},
            {"volcano.sh/gpu-unhealthy-ids": garbage},
        )
        assert len(check_garbage(devices_of(GPUS, unhealthy))) == 1
        assert all(
            use.memory == 0 for use in check_garbage(GPUS.uses(pod({"volcano.sh/gpu-index": garbage})))
        )


@given(st.text("GPU-1,:;[]true 09", max_size=60))
def test_no_text_raises_or_gives_a_negative_amount(likely: str) -> None:
    for device in vgpu(likely).found:
        assert min(device.memory, device.cores, device.slots) >= 0
    for use in VGPU.uses(pod({ALLOCATED: likely})).found:
        assert min(use.memory, use.cores) >= 0


# --- gpu-memory and gpu-number -----------------------------------------------------------------------------


def test_equal_devices_of_which_one_is_unhealthy() -> None:
    assert devices_of(GPUS, node_of("volcano/gpu-node.yaml")) == Read(
        (
            Device("0", 32561, cores=0),
            Device("1", 32561, cores=0),
            Device("2", 32561, cores=0, usable=False),
        )
    )


@pytest.mark.parametrize(
    "allocatable",
    [{}, {"volcano.sh/gpu-memory": 100}, {"volcano.sh/gpu-number": 1}, {"volcano.sh/gpu-number": 0}],
)
def test_a_node_without_both_resources_takes_no_part(allocatable: Mapping[str, int]) -> None:
    assert GPUS.devices(node(allocatable)) is None


def test_a_pod_is_on_its_device_with_all_its_containers_ask() -> None:
    assert GPUS.uses(pod_of("volcano/gpu-pod-memory.yaml")) == Read((DeviceUse("1", 3072),))


def test_a_pod_by_number_has_its_devices_to_itself() -> None:
    assert GPUS.uses(pod_of("volcano/gpu-pod-number.yaml")) == Read(
        (DeviceUse("0", 0, exclusive=True), DeviceUse("2", 0, exclusive=True))
    )


@pytest.mark.parametrize(
    ("containers", "claims"),
    [
        ([{"volcano.sh/gpu-memory": 100}], (DeviceClaim(1, 100),)),
        ([{"volcano.sh/gpu-memory": 100}, {"volcano.sh/gpu-memory": 50}], (DeviceClaim(1, 150),)),
        ([{"volcano.sh/gpu-number": 2}], (DeviceClaim(2, exclusive=True),)),
        (
            [{"volcano.sh/gpu-memory": 100, "volcano.sh/gpu-number": 1}],
            (DeviceClaim(1, 100), DeviceClaim(1, exclusive=True)),
        ),
    ],
)
def test_what_a_pod_asks(containers: list[Mapping[str, int]], claims: tuple[DeviceClaim, ...]) -> None:
    assert claimed(GPUS.claims(ask(*containers))) == claims


def test_a_pod_that_asks_for_neither_or_too_much() -> None:
    assert GPUS.claims(ask({"cpu": 1}, {"volcano.sh/gpu-memory": 0})) is None
    assert "is 4294967296" in refused(GPUS.claims(ask({"volcano.sh/gpu-memory": 2**32})))


def test_device_numbers_that_cannot_be_read() -> None:
    read = devices_of(
        GPUS,
        node(
            {"volcano.sh/gpu-memory": 20, "volcano.sh/gpu-number": 2},
            {"volcano.sh/gpu-unhealthy-ids": "1,GPU-0,-1,7"},
        ),
    )
    assert [device.usable for device in read.found] == [True, False]
    assert [problem.split(" is no")[0] for problem in read.problems] == [
        "annotation volcano.sh/gpu-unhealthy-ids: 'GPU-0'",
        "annotation volcano.sh/gpu-unhealthy-ids: '-1'",
    ]
    uses = GPUS.uses(pod({"volcano.sh/gpu-index": "1,x,"}, {"volcano.sh/gpu-memory": 5}))
    assert uses.found == (DeviceUse("1", 5),)
    assert len(uses.problems) == 2
    assert "'x' is no device number" in uses.problems[0]


def test_a_number_of_devices_that_no_node_has() -> None:
    read = devices_of(GPUS, node({"volcano.sh/gpu-memory": 2**62, "volcano.sh/gpu-number": 10**9}))
    assert read.found == ()
    assert "volcano.sh/gpu-number is 1000000000, more than the 1024 devices" in the_problem(read)
