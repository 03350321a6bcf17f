"""Which device the names of Dynamic Resource Allocation mean, by the slices of the node."""

import msgspec
import pytest

from fairway.kube.resource_slices import ResourceSlice
from node_agent.allocations import ClaimedDevice
from node_agent.claimed_devices import ClaimedDevices, slices_of

GPU = "gpu.nvidia.com"
NAME = ClaimedDevice(GPU, "node-a", "gpu-0")


def slice_(
    name: str = "a", *, generation: int = 1, driver: str = GPU, pool: str = "node-a", **devices: object
) -> ResourceSlice:
    """``devices``: by name (with _ for -) what stands in the device beside its name."""
    spec = {
        "driver": driver,
        "pool": {"name": pool, "generation": generation},
        "nodeName": "node-a",
        "devices": [
            {"name": name.replace("_", "-"), **of} for name, of in devices.items() if isinstance(of, dict)
        ],
    }
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, ResourceSlice)


def attributes(**texts: str) -> dict[str, object]:
    return {"attributes": {name: {"string": text} for name, text in texts.items()}}


UUID = attributes(uuid="GPU-1")


@pytest.mark.parametrize(
    ("what", "device", "expected"),
    [
        ("a uuid", UUID, "GPU-1"),
        ("under the driver's domain", {"attributes": {f"{GPU}/uuid": {"string": "GPU-1"}}}, "GPU-1"),
        ("as v1beta1 has it", {"basic": UUID}, "GPU-1"),
        (
            "a PCI address",
            {"attributes": {"resource.kubernetes.io/pciBusID": {"string": "0000:3b:00.0"}}},
            "0000:3b:00.0",
        ),
        ("a uuid that is no text", {"attributes": {"uuid": {"int": 3}}}, None),
        ("an empty one", attributes(uuid=""), None),
        ("nothing", {}, None),
    ],
)
def test_what_a_slice_says_of_a_device(what: str, device: object, expected: str | None) -> None:
    devices = ClaimedDevices()
    devices.upsert(slice_(gpu_0=device))
    assert devices.ids.get(NAME) == expected, what


def test_slices_come_change_and_go() -> None:
    devices = ClaimedDevices()
    devices.upsert(slice_(gpu_0=UUID, gpu_1=attributes(uuid="GPU-2")))
    devices.upsert(slice_("b", pool="node-b", gpu_0=attributes(uuid="GPU-3")))
    assert devices.ids == {
        NAME: "GPU-1",
        ClaimedDevice(GPU, "node-a", "gpu-1"): "GPU-2",
        ClaimedDevice(GPU, "node-b", "gpu-0"): "GPU-3",
    }
    devices.upsert(slice_(gpu_0=attributes(uuid="GPU-9")))
    assert devices.ids[NAME] == "GPU-9"
    assert len(devices.ids) == 2
    devices.delete("a")
    devices.delete("a")
    assert NAME not in devices.ids
    assert set(devices.keys()) == {"b"}


@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_the_newest_generation_of_a_pool_counts(names: tuple[str, str]) -> None:
    devices = ClaimedDevices()
    for name, generation in zip(names, (1, 2), strict=True):
        devices.upsert(slice_(name, generation=generation, gpu_0=attributes(uuid=f"GPU-{generation}")))
    assert devices.ids[NAME] == "GPU-2"


def test_the_slices_of_one_node_are_read_whatever_the_version() -> None:
    kinds = slices_of("node-a")
    assert [kind.path.split("/")[3] for kind in kinds] == ["v1", "v1beta2", "v1beta1"]
    assert {kind.params["fieldSelector"] for kind in kinds} == {"spec.nodeName=node-a"}
