"""Alnair: devices in node annotations, pieces of them in pod annotations."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairway.accelerators.devices import Device, DeviceClaim, DeviceUse, Read
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
    the_problem,
)

ALNAIR = SCHEME["alnair"]
MEM, COMPUTE = "alnair/vgpu-memory", "alnair/vgpu-compute"
COUNT, IDS = "ai.centaurus.io/physical-gpu-count", "ai.centaurus.io/physical-gpu-uuids"
MISSPELT, SPELT = "ai.centaurus.io/vitual-gpu-count", "ai.centaurus.io/virtual-gpu-count"
PIECES = "ai.centaurus.io/alnair-gpu-id"


def devices(
    count: str | None, ids: str | None, sizes: str | None, memory: int = 48
) -> Read[tuple[Device, ...]]:
    said = {COUNT: count, IDS: ids, MISSPELT: sizes}
    annotations = {name: value for name, value in said.items() if value is not None}
    return devices_of(ALNAIR, node({MEM: memory} if memory else {}, annotations))


def test_the_key_that_the_device_plugin_misspells() -> None:
    assert devices_of(ALNAIR, node_of("alnair/node.yaml")) == Read(
        (
            Device("GPU-6b2f9c41-0001-4e88-a3d5-8c0e7f1a7701", 16),
            Device("GPU-6b2f9c41-0002-4e88-a3d5-8c0e7f1a7702", 32),
        )
    )


def test_the_key_spelt_right() -> None:
    assert devices_of(ALNAIR, node_of("alnair/node-spelt-right.yaml")) == Read(
        (Device("GPU-6b2f9c41-0003-4e88-a3d5-8c0e7f1a7703", 24),)
    )


def test_the_misspelt_key_is_the_plugins_own_and_wins() -> None:
    facts = node({MEM: 1}, {COUNT: "1", IDS: "a", MISSPELT: "8", SPELT: "9"})
    assert devices_of(ALNAIR, facts) == Read((Device("a", 8),))


def test_a_node_without_the_annotations_takes_no_part() -> None:
    assert ALNAIR.devices(node({MEM: 48, COMPUTE: 200}, {"ai.centaurus.io/other": "1"})) is None


def test_devices_that_kubelet_does_not_advertise_take_no_pods() -> None:
    read = devices("1", "a", "8", memory=0)
    assert read.found == (Device("a", 8, usable=False),)
    assert "allocatable has no alnair/vgpu-memory" in the_problem(read)


def test_a_piece_is_one_gib_of_its_device() -> None:
    read = ALNAIR.uses(pod_of("alnair/pod.yaml"))
    assert read == Read((DeviceUse("GPU-6b2f9c41-0001-4e88-a3d5-8c0e7f1a7701", 3, 40),))


@pytest.mark.parametrize(
    ("pieces", "containers", "uses"),
    [
        ("a_0,a_1,b_7", [{MEM: 3}], [DeviceUse("a", 2), DeviceUse("b", 1)]),
        ("a_0, a_1 ,", [{MEM: 2}], [DeviceUse("a", 2)]),
        ("a_b_0", [{MEM: 1}], [DeviceUse("a_b", 1)]),
        ("a_0,b_0", [{MEM: 2, COMPUTE: 60}], [DeviceUse("a", 1, 60), DeviceUse("b", 1, 60)]),
        ("a_0", [{MEM: 1, COMPUTE: 60}, {COMPUTE: 70}], [DeviceUse("a", 1, 100)]),
        ("a_0,a_1", [{MEM: 2}, {MEM: 3}], [DeviceUse("a", 5)]),
        ("a_0,a_1", [], [DeviceUse("a", 2)]),
        ("", [{MEM: 2}], []),
    ],
)
def test_what_a_pod_holds(pieces: str, containers: list[Mapping[str, int]], uses: list[DeviceUse]) -> None:
    assert ALNAIR.uses(pod({PIECES: pieces}, *containers)) == Read(tuple(uses))


@pytest.mark.parametrize(
    ("containers", "claim"),
    [
        ([{MEM: 4}], DeviceClaim(1, 4)),
        ([{MEM: 4, COMPUTE: 50}], DeviceClaim(1, 4, cores=50)),
        ([{MEM: 4, COMPUTE: 50}, {MEM: 2, COMPUTE: 70}], DeviceClaim(1, 6, cores=100)),
        ([{COMPUTE: 50}], DeviceClaim(1, 0, cores=50)),
    ],
)
def test_a_pod_asks_for_one_device(containers: list[Mapping[str, int]], claim: DeviceClaim) -> None:
    assert claimed(ALNAIR.claims(ask(*containers))) == (claim,)


def test_a_pod_that_asks_for_nothing_or_too_much() -> None:
    assert ALNAIR.claims(ask({"cpu": 1}, {MEM: 0})) is None
    assert "alnair/vgpu-memory is 8589934592" in refused(ALNAIR.claims(ask({MEM: 8 * 2**30})))
    assert "alnair/vgpu-compute is -1" in refused(ALNAIR.claims(ask({COMPUTE: -1})))


@pytest.mark.parametrize(
    ("what", "count", "ids", "sizes", "found", "problem"),
    [
        ("fewer sizes", "2", "a,b", "8", [Device("a", 8)], "do not agree on the number of devices"),
        ("fewer ids", "2", "a", "8,8", [Device("a", 8)], "do not agree"),
        ("another count", "3", "a,b", "8,8", [Device("a", 8), Device("b", 8)], "physical-gpu-count ('3')"),
        ("no ids", "2", None, "8,8", [], "physical-gpu-uuids (0)"),
        ("no sizes", "1", "a", None, [], "vitual-gpu-count (0)"),
        ("no number", "2", "a,b", "8Gi,8", [Device("b", 8)], "'8Gi' is no number of GiB; 'a' takes no pods"),
        ("a negative", "1", "a", "-8", [], "'-8' is no number of GiB"),
        ("huge", "1", "a", "9" * 30, [], "is no number of GiB"),
        ("an id twice", "2", "a,a", "8,9", [Device("a", 8)], "lists 'a' twice; the first one counts"),
        ("a count that is none", "two", "a", "8", [Device("a", 8)], "physical-gpu-count ('two')"),
    ],
)
def test_nodes_that_cannot_be_read_in_full(
    what: str, count: str, ids: str | None, sizes: str | None, found: list[Device], problem: str
) -> None:
    read = devices(count, ids, sizes)
    assert list(read.found) == found, what
    assert problem in the_problem(read)


@pytest.mark.parametrize("piece", ["a", "a_", "_1", "a_x", "a_-1"])
def test_a_piece_that_cannot_be_read_takes_all_of_a_device_of_its_name(piece: str) -> None:
    read = ALNAIR.uses(pod({PIECES: f"b_0,{piece}"}, {MEM: 1}))
    assert read.found == (DeviceUse("b", 1), DeviceUse(piece, 0, exclusive=True))
    assert f"annotation {PIECES}: '{piece}' is no <device id>_<number>" in the_problem(read)


def test_more_devices_than_a_node_has_are_not_read() -> None:
    read = devices("1100", ",".join(map(str, range(1100))), ",".join(["8"] * 1100))
    assert len(read.found) == 1024
    assert "lists 1100 devices; only 1024 are read" in the_problem(read)


def test_garbage_makes_no_device_and_few_short_sentences() -> None:
    for garbage in GARBAGE.values():
        named = check_garbage(devices("1", garbage, "8"))
        assert len(named) <= 1
        assert all(device.memory == 8 for device in named)
        assert check_garbage(devices(garbage, "a", "8")) == (Device("a", 8),)
        assert check_garbage(devices("1", "a", garbage)) == ()
        assert all(use.exclusive for use in check_garbage(ALNAIR.uses(pod({PIECES: garbage}, {MEM: 3}))))


@given(st.text("ab_0129,- ", max_size=40))
def test_pieces_add_up_and_nothing_is_negative(text: str) -> None:
    uses = ALNAIR.uses(pod({PIECES: text})).found
    assert sum(use.memory for use in uses) <= text.count(",") + 1
    assert all(use.memory >= 0 for use in uses)
