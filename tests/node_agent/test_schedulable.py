"""Which devices kubelet may give to pods, from what it lists."""

import pytest

from node_agent.allocations import PluginDevice
from node_agent.reading import DeviceReading
from node_agent.schedulable import schedulable

A, B, C = (f"GPU-{n}0000000-aaaa-4bbb-8ccc-000000000000" for n in range(3))
GPUS = [DeviceReading(A, 0, minor=0), DeviceReading(B, 1, minor=1), DeviceReading(C, 2, minor=2)]
CUT = [
    DeviceReading(A, 0, mig_enabled=True),
    DeviceReading("MIG-7", 0, parent=A, gpu_instance=7),
    DeviceReading("MIG-9", 1, parent=A, gpu_instance=9),
]


@pytest.mark.parametrize(
    ("what", "devices", "listed", "expected"),
    [
        ("one is not healthy", GPUS, [A, C], {A: True, B: False, C: True}),
        ("all are", GPUS, [A, B, C], {A: True, B: True, C: True}),
        ("none is, or no plugin is there", GPUS, [], {}),
        ("shared in time", GPUS, [f"{A}::0", f"{A}::1", f"{C}::1"], {A: True, B: False, C: True}),
        ("GKE's names", GPUS, ["nvidia0", "nvidia2"], {A: True, B: False, C: True}),
        ("ids that name no device", GPUS, [f"{A}-0", f"{A}-1"], {}),
        ("network cards", GPUS, ["0000:5e:00.2"], {}),
        ("instances of a device that is cut", CUT, ["MIG-9"], {"MIG-7": False, "MIG-9": True}),
        (
            "a cut device beside a whole one",
            [*CUT, GPUS[1]],
            [B, "MIG-7"],
            {"MIG-7": True, "MIG-9": False, B: True},
        ),
        ("a device that is cut and given whole", CUT, [A], {A: True}),
        ("a device that may be cut and is not", [CUT[0], GPUS[1]], [B], {A: False, B: True}),
    ],
)
def test_what_kubelet_lists(
    what: str, devices: list[DeviceReading], listed: list[str], expected: dict[str, bool]
) -> None:
    found = schedulable(devices, [PluginDevice("nvidia.com/gpu", id) for id in listed])
    assert found == expected, what
