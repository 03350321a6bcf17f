"""Aliyun gpushare: devices known by number, and where pods are, in the older and the newer form."""

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

GPUSHARE = SCHEME["gpushare"]
MEM, COUNT, CORES = "aliyun.com/gpu-mem", "aliyun.com/gpu-count", "aliyun.com/gpu-core.percentage"
INDEX, POD = "ALIYUN_COM_GPU_MEM_IDX", "ALIYUN_COM_GPU_MEM_POD"
ALLOCATION = "scheduler.framework.gpushare.allocation"
CORE_ALLOCATION = "gpushare.alibabacloud.com/core-percentage"


@pytest.mark.parametrize(
    ("fixture", "memory", "cores"), [("node.yaml", 15, 0), ("node-with-cores.yaml", 16, 100)]
)
def test_devices_divide_what_the_node_has_equally(fixture: str, memory: int, cores: int) -> None:
    assert devices_of(GPUSHARE, node_of(f"gpushare/{fixture}")) == Read(
        tuple(Device(str(id), memory, cores) for id in range(4))
    )


@pytest.mark.parametrize("allocatable", [{}, {MEM: 64}, {COUNT: 4}, {MEM: 64, COUNT: 0}])
def test_a_node_without_both_resources_takes_no_part(allocatable: Mapping[str, int]) -> None:
    assert GPUSHARE.devices(node(allocatable)) is None


def test_a_node_whose_plugin_is_gone_keeps_its_devices_without_memory() -> None:
    assert devices_of(GPUSHARE, node({MEM: 0, COUNT: 1})) == Read((Device("0", 0, 0),))


def test_the_older_form_names_one_device() -> None:
    assert GPUSHARE.uses(pod_of("gpushare/pod-indexed.yaml")) == Read((DeviceUse("1", 4),))


def test_the_newer_form_sums_over_containers() -> None:
    assert GPUSHARE.uses(pod_of("gpushare/pod-allocation.yaml")) == Read(
        (DeviceUse("1", 8, 50), DeviceUse("3", 2, 50))
    )


@pytest.mark.parametrize(
    ("annotations", "uses"),
    [
        ({}, []),
        ({POD: "4"}, []),
        ({INDEX: "0", POD: "4"}, [DeviceUse("0", 4)]),
        ({INDEX: "01", POD: "4"}, [DeviceUse("1", 4)]),
        ({INDEX: "0"}, [DeviceUse("0", 3)]),
        ({INDEX: "9", POD: "400"}, [DeviceUse("9", 400)]),
        ({ALLOCATION: "{}", INDEX: "0", POD: "4"}, []),
        ({ALLOCATION: '{"0":{"2":5}}', INDEX: "0", POD: "4"}, [DeviceUse("2", 5)]),
        ({ALLOCATION: '{"0":{"2":5}}', CORE_ALLOCATION: '{"0":{"2":30}}'}, [DeviceUse("2", 5, 30)]),
    ],
)
def test_where_a_pod_is(annotations: Mapping[str, str], uses: list[DeviceUse]) -> None:
    assert GPUSHARE.uses(pod(annotations, {MEM: 1}, {MEM: 2})) == Read(tuple(uses))


def test_a_pod_that_does_not_say_how_much_and_asks_for_nothing_has_all() -> None:
    assert GPUSHARE.uses(pod({INDEX: "0"})) == Read((DeviceUse("0", 0, exclusive=True),))


@pytest.mark.parametrize(
    ("containers", "claim"),
    [
        ([{MEM: 3}], DeviceClaim(1, 3)),
        ([{MEM: 3}, {MEM: 4}], DeviceClaim(1, 7)),
        ([{MEM: 3, CORES: 30}], DeviceClaim(1, 3, cores=30)),
        ([{CORES: 30}], DeviceClaim(1, 0, cores=30)),
    ],
)
def test_a_pod_asks_for_one_device(containers: list[Mapping[str, int]], claim: DeviceClaim) -> None:
    assert claimed(GPUSHARE.claims(ask(*containers))) == (claim,)


def test_a_pod_that_asks_for_nothing_or_too_much() -> None:
    assert GPUSHARE.claims(ask({"cpu": 1}, {MEM: 0})) is None
    assert "aliyun.com/gpu-mem is 8589934592" in refused(GPUSHARE.claims(ask({MEM: 2**33})))
    assert "aliyun.com/gpu-mem is -1" in refused(GPUSHARE.claims(ask({MEM: -1})))


@pytest.mark.parametrize(
    ("annotations", "uses", "problem"),
    [
        ({INDEX: "-1", POD: "4"}, [], "ALIYUN_COM_GPU_MEM_IDX is '-1', expected a device number"),
        ({INDEX: "0,1", POD: "4"}, [], "ALIYUN_COM_GPU_MEM_IDX is '0,1'"),
        ({INDEX: "", POD: "4"}, [], "ALIYUN_COM_GPU_MEM_IDX is ''"),
        ({INDEX: "0", POD: "4Gi"}, [DeviceUse("0", 0, exclusive=True)], "ALIYUN_COM_GPU_MEM_POD is '4Gi'"),
        ({INDEX: "0", POD: "-4"}, [DeviceUse("0", 0, exclusive=True)], "all of device 0 counts as used"),
        ({INDEX: "0", POD: "9" * 30}, [DeviceUse("0", 0, exclusive=True)], "ALIYUN_COM_GPU_MEM_POD is '999"),
        ({ALLOCATION: '{"0":{"1":'}, [], "expected JSON of container to device to amount"),
        ({ALLOCATION: '{"0":[1]}'}, [], "Expected `object`, got `array`"),
        (
            {ALLOCATION: '{"0":{"1":4,"x":1}}'},
            [DeviceUse("1", 4)],
            "'x' is no device number and is not counted",
        ),
        (
            {ALLOCATION: '{"0":{"1":"4","2":1}}'},
            [DeviceUse("1", 0, exclusive=True), DeviceUse("2", 1)],
            "device 1: '\"4\"' is no number from 0 to 2147483647",
        ),
        (
            {ALLOCATION: '{"0":{"1":-4},"1":{"1":3}}'},
            [DeviceUse("1", 0, exclusive=True)],
            "all of that device counts as used",
        ),
        (
            {ALLOCATION: '{"0":{"1":4}}', CORE_ALLOCATION: '{"0":{"1":1.5}}'},
            [DeviceUse("1", 4, exclusive=True)],
            "annotation gpushare.alibabacloud.com/core-percentage, device 1: '1.5'",
        ),
        (
            {ALLOCATION: '{"0":{"1":4}}', CORE_ALLOCATION: "30"},
            [DeviceUse("1", 4, exclusive=True)],
            "annotation gpushare.alibabacloud.com/core-percentage: Expected `object`",
        ),
    ],
)
def test_what_a_pod_says_that_cannot_be_read(
    annotations: Mapping[str, str], uses: list[DeviceUse], problem: str
) -> None:
    read = GPUSHARE.uses(pod(annotations))
    assert list(read.found) == uses
    assert problem in the_problem(read)


def test_more_than_a_node_can_have() -> None:
    read = devices_of(GPUSHARE, node({MEM: 2**62, COUNT: 2**40}))
    assert read.found == ()
    assert "aliyun.com/gpu-count is 1099511627776, more than the 1024 devices" in the_problem(read)
    entries = ",".join(f'"{id}":1' for id in range(1100))
    uses = GPUSHARE.uses(pod({ALLOCATION: f'{{"0":{{{entries}}}}}'}))
    assert len(uses.found) == 1024
    assert "more than 1024 entries" in the_problem(uses)


@pytest.mark.parametrize("name", [INDEX, ALLOCATION])
def test_garbage_is_on_no_device(name: str) -> None:
    for garbage in GARBAGE.values():
        assert check_garbage(GPUSHARE.uses(pod({name: garbage}))) == ()
        assert all(use.exclusive for use in check_garbage(GPUSHARE.uses(pod({INDEX: "1", POD: garbage}))))


@given(
    st.dictionaries(st.text("0123x", max_size=3), st.dictionaries(st.text("01-x", max_size=2), st.integers()))
)
def test_no_allocation_raises_or_gives_a_negative_amount(containers: dict[str, dict[str, int]]) -> None:
    text = str(containers).replace("'", '"')
    for use in GPUSHARE.uses(pod({ALLOCATION: text, CORE_ALLOCATION: text})).found:
        assert min(use.memory, use.cores) >= 0
