"""Two that tell of the same devices: which counts."""

import pytest

from fairway.kube.node_devices import NodeDevices
from fairway.prometheus.merging import merged
from tests.usage.agents import NOW, DeviceBuilder, agent

OWN = DeviceBuilder("GPU-1").doing(10, 20)
FAR = DeviceBuilder("GPU-1").doing(80, 90)
INSTANCE = DeviceBuilder("GPU-1/gi1").with_(parent="GPU-1")


def p50s(found: tuple[NodeDevices, ...]) -> dict[str, dict[str, int | None]]:
    return {
        one.metadata.name: {
            device.id: device.window.utilization_p50 if device.window else None for device in one.devices
        }
        for one in found
    }


@pytest.mark.parametrize(
    ("near", "far", "expected"),
    [
        ([], [agent("g1", FAR)], {"g1": {"GPU-1": 80}}),
        ([agent("g1", OWN)], [agent("g1", FAR)], {"g1": {"GPU-1": 10}}),
        ([agent("g1", OWN)], [agent("g2", FAR)], {"g1": {"GPU-1": 10}, "g2": {"GPU-1": 80}}),
        ([agent("g1", OWN.unmeasured())], [agent("g1", FAR)], {"g1": {"GPU-1": 80}}),
        (
            [agent("g1", OWN)],
            [agent("g1", DeviceBuilder("GPU-2").doing(5, 6))],
            {"g1": {"GPU-1": 10, "GPU-2": 5}},
        ),
        ([agent("g1", OWN, age_s=700)], [agent("g1", FAR)], {"g1": {"GPU-1": 80}}),
        ([agent("g1", OWN, age_s=700)], [], {"g1": {"GPU-1": 10}}),
        ([agent("g1", OWN)], [agent("g1", INSTANCE)], {"g1": {"GPU-1": 10}}),
        (
            [agent("g1", DeviceBuilder("MIG-1").with_(parent="GPU-1"))],
            [agent("g1", INSTANCE)],
            {"g1": {"MIG-1": 90}},
        ),
    ],
    ids=["far", "near", "nodes", "unmeasured", "another", "stale", "stale-alone", "instance", "instances"],
)
def test_the_nearer_one_counts_and_the_other_fills_in(
    near: list[NodeDevices], far: list[NodeDevices], expected: dict[str, dict[str, int | None]]
) -> None:
    assert p50s(merged(near, far, NOW.timestamp())) == expected
