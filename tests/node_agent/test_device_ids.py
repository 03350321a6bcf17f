"""From the ids under which kubelet gives devices to the devices that were read."""

import pytest

from node_agent.device_ids import DeviceIds, Share
from node_agent.reading import DeviceReading

GPU0 = "GPU-00000000-aaaa-4bbb-8ccc-000000000000"
GPU1 = "GPU-11111111-aaaa-4bbb-8ccc-111111111111"
MIG7 = "MIG-77777777-aaaa-4bbb-8ccc-777777777777"
MIG9 = "MIG-99999999-aaaa-4bbb-8ccc-999999999999"
AMD = "0x1a2b3c4d"

# The second device of the bus is the first one of /dev.
DEVICES = (
    DeviceReading(GPU0, 0, bus_id="00000000:3B:00.0", minor=1),
    DeviceReading(GPU1, 1, bus_id="00000000:86:00.0", minor=0, mig_enabled=True),
    DeviceReading(MIG7, 0, parent=GPU1, gpu_instance=7),
    DeviceReading(MIG9, 1, parent=GPU1, gpu_instance=9),
    DeviceReading(AMD, 2, bus_id="0001:c1:00.0"),
)


@pytest.mark.parametrize(
    ("what", "id", "expected"),
    [
        ("NVIDIA's plugin, whole", GPU0, Share(GPU0)),
        ("in capitals", GPU0.upper(), Share(GPU0)),
        ("NVIDIA's plugin, a MIG instance", MIG7, Share(MIG7)),
        ("time-slicing or MPS", f"{GPU0}::3", Share(GPU0, True)),
        ("time-slicing of a MIG instance", f"{MIG9}::0", Share(MIG9, True)),
        ("a replica without a number", f"{GPU0}::", None),
        ("a replica of nothing", "::3", None),
        ("a MIG instance before driver 470", f"MIG-{GPU1}/9/0", Share(MIG9)),
        ("the same, of no instance", f"MIG-{GPU1}/3/0", None),
        ("the same, shared", f"MIG-{GPU1}/9/0::2", Share(MIG9, True)),
        ("GKE: the minor number, not the index", "nvidia0", Share(GPU1)),
        ("GKE, the other", "nvidia1", Share(GPU0)),
        ("GKE, not there", "nvidia7", None),
        ("GKE, an instance", "nvidia0/gi7", Share(MIG7)),
        ("GKE, no such instance", "nvidia0/gi1", None),
        ("GKE, an instance of what has none", "nvidia1/gi7", None),
        ("GKE, shared", "nvidia1/vgpu2", Share(GPU0, True)),
        ("GKE, a shared instance", "nvidia0/gi9/vgpu0", Share(MIG9, True)),
        ("GKE, more after it", "nvidia0/gi9/vgpu0/x", None),
        ("AMD: a PCI address", "0001:C1:00.0", Share(AMD)),
        ("a PCI address with NVML's eight digits", "00000000:3b:00.0", Share(GPU0)),
        ("HAMi, Volcano: kubelet's number says nothing", f"{GPU0}-3", None),
        ("gpushare", f"{GPU0}-_-12", None),
        ("Alnair", f"{GPU0}_4", None),
        ("a device that is not here", "GPU-22222222-aaaa-4bbb-8ccc-222222222222", None),
        ("a network card", "mlx5_0", None),
        ("nothing", "", None),
        ("much", "x" * 100_000, None),
    ],
)
def test_forms(what: str, id: str, expected: Share | None) -> None:
    assert DeviceIds(DEVICES).find(id) == expected, what


def test_the_index_counts_for_the_minor_number_where_none_is_read() -> None:
    ids = DeviceIds([DeviceReading(GPU0, 0), DeviceReading(GPU1, 1)])
    assert ids.find("nvidia1") == Share(GPU1)


@pytest.mark.parametrize(
    ("what", "devices", "id"),
    [
        ("two of one minor", [DeviceReading(GPU0, 0, minor=0), DeviceReading(GPU1, 1, minor=0)], "nvidia0"),
        (
            "two compute instances of one GPU instance",
            [
                DeviceReading(GPU1, 0),
                DeviceReading(MIG7, 0, parent=GPU1, gpu_instance=1),
                DeviceReading(MIG9, 1, parent=GPU1, gpu_instance=1),
            ],
            "nvidia0/gi1",
        ),
        ("no bus id", [DeviceReading(GPU0, 0)], ""),
    ],
)
def test_a_name_of_two_devices_is_none_s(what: str, devices: list[DeviceReading], id: str) -> None:
    assert DeviceIds(devices).find(id) is None, what


def test_relatives() -> None:
    ids = DeviceIds(DEVICES)
    assert ids.relatives(GPU0) == {GPU0}
    assert ids.relatives(GPU1) == {GPU1, MIG7, MIG9}
    assert ids.relatives(MIG7) == {MIG7, GPU1}
    assert ids.relatives("GPU-unknown") == {"GPU-unknown"}
