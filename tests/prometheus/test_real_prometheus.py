"""The queries on Prometheus itself, over series of known truth: as it answered once, and as it does here.

The second needs prometheus and promtool in the PATH.
"""

import pytest

from fairway.kube.node_devices import DeviceWindow, NodeDevice
from fairway.prometheus.devices import node_devices
from fairway.prometheus.queries import Exporter
from tests.builders import pod
from tests.prometheus.series import cluster
from tests.prometheus.truth import asked, is_here, real, recorded
from tests.usage.agents import ago

WORKER = pod("worker", "team").on("g1").requests(gpu=8)


@pytest.fixture(scope="module", params=["recorded", "real"])
def devices(request: pytest.FixtureRequest) -> dict[str, NodeDevice]:
    if request.param == "real" and not is_here():
        pytest.skip("no prometheus and promtool in the PATH")
    with real() if request.param == "real" else recorded() as url:
        found = asked(url)
    assert found.problems == ()
    assert [told.exporter for told in found.told] == [Exporter.AGENT, Exporter.DCGM]
    reads = [node_devices(told, cluster(WORKER)) for told in found.told]
    assert [problem for read in reads for problem in read.problems] == []
    return {device.id: device for read in reads for one in read.found for device in one.devices}


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
    ],
)
def test_utilisation(devices: dict[str, NodeDevice], uuid: str, p50: int, p95: int, highest: int) -> None:
    found = window(devices, uuid)
    assert (found.utilization_p50, found.utilization_p95, found.utilization_max) == (p50, p95, highest)
    # The beginning of a range is in it until Prometheus 3.
    assert found.samples in (20, 21)


@pytest.mark.parametrize(
    ("uuid", "since_s"),
    [("GPU-0", 14_400), ("GPU-1", 7_200), ("GPU-5", 600), ("GPU-2", None), ("GPU-6/gi1", None), ("GPU-8", 0)],
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
    assert said["GPU-2"] == ("Degraded", ["Xid79"])
    assert said["GPU-8"] == ("Degraded", ["Xid63"])
    assert said["GPU-0"] == ("Healthy", [])


def test_what_is_told_no_more_is_not_there(devices: dict[str, NodeDevice]) -> None:
    assert "GPU-7" not in devices
