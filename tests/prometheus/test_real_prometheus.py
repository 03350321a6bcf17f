"""The queries on Prometheus itself, over series of known truth: as it answered once, and as it does here.

The second needs prometheus and promtool in the PATH.
"""

import pytest

from fairway.kube.node_devices import DeviceWindow, NodeDevice, NodeDevices
from fairway.prometheus.devices import node_devices
from fairway.prometheus.exporters import Exporter
from fairway.prometheus.merging import merged
from tests.builders import pod
from tests.prometheus.series import AT_S, cluster
from tests.prometheus.truth import asked, is_here, real, recorded
from tests.usage.agents import ago

PODS = (
    pod("worker", "team").on("g1").requests(gpu=8),
    pod("tpu-worker", "team").on("t1").requests(**{"google.com/tpu": 2}),
    pod("trainer", "team").on("a1").requests(**{"amd.com/gpu": 1}),
    pod("learner", "team").on("n1").requests(**{"aws.amazon.com/neuron": 2}),
    pod("reader", "team").on("h1").requests(**{"habana.ai/gaudi": 1}),
)


@pytest.fixture(scope="module", params=["recorded", "real"])
def devices(request: pytest.FixtureRequest) -> dict[str, NodeDevice]:
    if request.param == "real" and not is_here():
        pytest.skip("no prometheus and promtool in the PATH")
    with real() if request.param == "real" else recorded() as url:
        found = asked(url)
    assert found.problems == ()
    assert [told.exporter for told in found.told] == list(Exporter)
    there = cluster(*PODS, nodes=("g1", "t1", "t2", "a1", "n1", "h1"), cores={"n1": 2})
    reads = [node_devices(told, there) for told in found.told]
    assert [problem for read in reads for problem in read.problems] == []
    nodes: tuple[NodeDevices, ...] = ()
    for read in reads:
        nodes = merged(nodes, read.found, AT_S)
    return {device.id: device for one in nodes for device in one.devices}


def window(devices: dict[str, NodeDevice], uuid: str) -> DeviceWindow:
    found = devices[uuid].window
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("uuid", "p50", "p95", "highest"),
    [
        ("GPU-0", 0, 0, 0),
        ("GPU-2", 40, 90, 90),
        ("GPU-4", 75, 75, 75),
        ("GPU-6/gi1", 63, 63, 63),
        ("GPU-8", 50, 50, 50),
        ("11-0", 80, 80, 80),
        ("11-1", 0, 0, 0),
        ("12-0", 3, 3, 3),
        ("12-1", 45, 45, 45),
        ("a1/0", 70, 70, 70),
        ("i-1/0", 40, 40, 40),
        ("i-1/1", 20, 20, 20),
        ("01P0-HL2", 55, 55, 55),
    ],
)
def test_utilisation(devices: dict[str, NodeDevice], uuid: str, p50: int, p95: int, highest: int) -> None:
    found = window(devices, uuid)
    assert (found.utilization_p50, found.utilization_p95, found.utilization_max) == (p50, p95, highest)
    # The beginning of a range is in it until Prometheus 3.
    assert found.samples in (20, 21)


@pytest.mark.parametrize(
    ("uuid", "since_s"),
    [
        ("GPU-0", 14_400),
        ("GPU-1", 7_200),
        ("GPU-5", 600),
        ("GPU-2", None),
        ("GPU-6/gi1", None),
        ("GPU-8", 0),
        ("11-0", None),
        ("11-1", 14_400),
        ("12-0", 14_400),
        ("i-1/0", None),
    ],
)
def test_idle_time(devices: dict[str, NodeDevice], uuid: str, since_s: int | None) -> None:
    found = window(devices, uuid).idle_since
    # In slots of five minutes.
    near = {ago(since_s - late_s) for late_s in (-300, 0, 300)} if since_s is not None else {None}
    assert found in near


def test_memory_power_and_temperature_of_two_exporters_count_once(devices: dict[str, NodeDevice]) -> None:
    found, mib = window(devices, "GPU-0"), 1024 * 1024
    assert devices["GPU-0"].memory_bytes == 80_000 * mib
    assert (found.memory_used_bytes, found.memory_peak_bytes) == (1000 * mib, 2000 * mib)
    assert (found.power_max_milliwatts, found.temperature_max_celsius) == (70_500, 61)


def test_only_heat_and_power_throttle(devices: dict[str, NodeDevice]) -> None:
    seconds = {uuid: window(devices, uuid).throttled_seconds for uuid in ("GPU-0", "GPU-1", "GPU-2", "GPU-3")}
    assert seconds == {"GPU-0": 0, "GPU-1": 0, "GPU-2": 300, "GPU-3": 300}


def test_a_device_that_changes_hands_is_one_device(devices: dict[str, NodeDevice]) -> None:
    assert window(devices, "GPU-3").utilization_p50 == 20
    assert [one.pod for one in devices["GPU-3"].holders or ()] == ["worker"]


def test_health(devices: dict[str, NodeDevice]) -> None:
    said = {uuid: (one.health, [each.code for each in one.problems or ()]) for uuid, one in devices.items()}
    assert said["GPU-2"] == ("Unhealthy", ["Xid79"])
    assert said["GPU-8"] == ("Degraded", ["Xid63"])
    assert said["GPU-0"] == ("Healthy", [])


def test_what_is_told_no_more_is_not_there(devices: dict[str, NodeDevice]) -> None:
    assert "GPU-7" not in devices


def test_what_is_told_of_one_tpu_by_two_numbers_is_one_chip(devices: dict[str, NodeDevice]) -> None:
    assert [name for name in devices if name.startswith(("11-", "12-", "13-"))] == [
        "11-0",
        "11-1",
        "12-0",
        "12-1",
    ]
    chip = devices["11-0"]
    assert (chip.product, chip.memory_bytes, chip.index) == ("tpu-v6e-slice", 32_000_000_000, 0)
    assert window(devices, "11-0").memory_used_bytes == 16_000_000_000


@pytest.mark.parametrize(
    ("name", "holder", "health"),
    [
        ("11-1", "tpu-worker", "Healthy"),
        ("12-1", None, "Healthy"),
        ("a1/0", "trainer", "Healthy"),
        ("a1/1", "trainer", "Unhealthy"),
        ("i-1/0", "learner", "Healthy"),
        ("i-1/1", "learner", "Degraded"),
        ("01P0-HL2", "reader", "Degraded"),
    ],
)
def test_whose_and_how_well(
    devices: dict[str, NodeDevice], name: str, holder: str | None, health: str
) -> None:
    found = devices[name]
    assert ([one.pod for one in found.holders or ()], found.health) == ([holder] if holder else [], health)


def test_amd_in_its_units(devices: dict[str, NodeDevice]) -> None:
    found, mib = window(devices, "a1/0"), 1024 * 1024
    assert (devices["a1/0"].memory_bytes, found.memory_used_bytes) == (196_592 * mib, 1024 * mib)
    assert (found.power_max_milliwatts, found.temperature_max_celsius) == (500_500, 71)
    assert found.throttled_seconds == 150
    assert (devices["a1/0"].parent, devices["a1/0"].mig_profile) == ("", "")


def test_the_first_part_of_a_cut_gpu_does_not_answer_for_all_of_it(devices: dict[str, NodeDevice]) -> None:
    part = devices["a1/1"]
    assert (part.parent, part.mig_profile) == ("6924-1", "cpx_nps1")
    assert window(devices, "a1/1").utilization_p50 is None


def test_memory_of_a_neuron_chip_is_that_of_its_cores(devices: dict[str, NodeDevice]) -> None:
    assert window(devices, "i-1/1").memory_used_bytes == 1024


def test_gaudi_in_its_units(devices: dict[str, NodeDevice]) -> None:
    assert window(devices, "01P0-HL2").power_max_milliwatts == 250_500
    assert devices["01P0-HL2"].memory_bytes == 96_000_000_000
