"""Idle, wrong-sized, throttled, failing: each side of each threshold."""

import pytest

from fairway.usage.definitions import Finding, sentences
from tests.builders import node, pod
from tests.usage.agents import DeviceBuilder, agent, ago, said, usage

D = DeviceBuilder("d").held_by("p")
NODES = [node("n").gpus(8)]
POD = pod("p").requests(gpu=1).on("n").condition("PodScheduled", "True", "", ago(10_000))


@pytest.mark.parametrize(
    ("device", "expected"),
    [
        (D, set()),
        (D.doing(0, 4, 70, idle_s=3600), {"idle", "idle-with-memory"}),
        (D.doing(0, 4, 1, idle_s=3600), {"idle"}),
        (D.doing(0, 4, 1.6, idle_s=3600), {"idle"}),
        (D.doing(0, 4, 1.7, idle_s=3600), {"idle", "idle-with-memory"}),
        (D.doing(0, 4, idle_s=3599), set()),
        (D.doing(0, 5, idle_s=3600), set()),
        (D.doing(0, 4), set()),
        (D.doing(20, 49, 19.9), {"oversized"}),
        (D.doing(20, 50, 19.9), set()),
        (D.doing(20, 49, 20), set()),
        (D.doing(90, 99, throttledSeconds=30), {"throttled"}),
        (D.doing(90, 99, throttledSeconds=29), set()),
        (D.with_(health="Unhealthy"), {"failing"}),
        (D.with_(health="Lost").unmeasured(), {"failing"}),
        (D.with_(health="Degraded"), set()),
        (D.unmeasured(), set()),
    ],
)
def test_what_is_said_of_a_device(device: DeviceBuilder, expected: set[str]) -> None:
    assert said(usage(NODES, [POD], [agent("n", device)])) == {"d": expected}


def test_a_device_that_idled_before_its_pod_came_is_not_idle() -> None:
    young = pod("p").requests(gpu=1).on("n").condition("PodScheduled", "True", "", ago(600))
    assert said(usage(NODES, [young], [agent("n", D.doing(0, 0, 0, idle_s=90_000))])) == {"d": set()}


@pytest.mark.parametrize(
    ("asks", "busy", "measured", "expected"),
    [
        (8, 2, 8, True),
        (8, 4, 8, True),
        (8, 5, 8, False),
        (8, 0, 8, False),
        (8, 2, 7, False),
        (2, 1, 2, True),
        (1, 0, 1, False),
    ],
)
def test_a_pod_that_uses_few_of_its_devices(asks: int, busy: int, measured: int, expected: bool) -> None:
    devices = [
        DeviceBuilder(f"d{n}").held_by("p").doing(*((90, 99) if n < busy else (0, 1)))
        for n in range(measured)
    ]
    found = usage(NODES, [pod("p").requests(gpu=asks).on("n")], [agent("n", *devices)])
    assert {Finding.UNDER_USED in use.findings for use in found.uses} == {expected}


@pytest.mark.parametrize(
    ("busy", "idle", "expected"), [(2, 1, True), (1, 2, True), (1, 1, True), (3, 0, False)]
)
def test_devices_count_however_many_replicas_of_each_a_pod_holds(
    busy: int, idle: int, expected: bool
) -> None:
    devices = [
        DeviceBuilder("busy").held_by("p", shares=busy).doing(80, 90),
        DeviceBuilder("quiet").doing(0, 0),
    ]
    if idle:
        devices[1] = devices[1].held_by("p", shares=idle)
    nodes = [node("n").gpus(8).label({"nvidia.com/gpu.replicas": "4", "nvidia.com/gpu.count": "2"})]
    found = usage(nodes, [pod("p").requests(gpu=busy + idle).on("n")], [agent("n", *devices)])
    assert {Finding.UNDER_USED in use.findings for use in found.uses} == {expected}


def test_every_finding_has_a_sentence() -> None:
    assert set(sentences()) == set(Finding)
    assert all(text.endswith(".") for text in sentences().values())
