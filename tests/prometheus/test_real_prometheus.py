"""The queries on Prometheus itself, over series of known truth: needs prometheus and promtool in PATH."""

import asyncio
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from fairway.kube.node_devices import DeviceWindow, NodeDevice
from fairway.prometheus.client import ask
from fairway.prometheus.devices import node_devices
from fairway.prometheus.queries import Exporter
from fairway.prometheus.server import Server
from tests.builders import pod
from tests.prometheus.series import AT_S, cluster
from tests.usage.agents import ago

PROGRAMS = ("prometheus", "promtool")
pytestmark = pytest.mark.skipif(
    not all(map(shutil.which, PROGRAMS)), reason="no prometheus and promtool on the PATH"
)

AT = int(AT_S)
WORKER = pod("worker", "team").on("g1").requests(gpu=8)
Level = Callable[[int], float | None]
"""What is read so many seconds ago; None for a gap."""


def family(name: str, labels: dict[str, str], level: Level, every_s: int = 30, span_s: int = 5 * 3600) -> str:
    """One series of a gauge in the OpenMetrics text that promtool reads."""
    text = ",".join(f'{label}="{value}"' for label, value in labels.items())
    moments = ((AT - ago_s, level(ago_s)) for ago_s in range(span_s, -1, -every_s))
    return "".join(f"{name}{{{text}}} {value} {at_s}\n" for at_s, value in moments if value is not None)


def dcgm(gpu: str, exporter: str = "a", **more: str) -> dict[str, str]:
    """Labels as Prometheus stores them of DCGM's exporter when it keeps its own."""
    return {
        "gpu": gpu,
        "UUID": f"GPU-{gpu}",
        "device": f"nvidia{gpu}",
        "modelName": "NVIDIA H100 80GB HBM3",
        "Hostname": "g1",
        "instance": f"10.0.0.{exporter}:9400",
        "pod": f"dcgm-exporter-{exporter}",
        "namespace": "gpu-operator",
        "exported_pod": "worker",
        "exported_namespace": "team",
        "exported_container": "main",
        **more,
    }


def new_names(gpu: str) -> dict[str, str]:
    """Those of DCGM's exporter since 4.8.3."""
    labels = dcgm(gpu)
    return {**{name: labels[name] for name in labels if name != "Hostname"}, "hostname": "g1"}


def series() -> str:
    util, used, free = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"
    mig = {"GPU_I_ID": "1", "GPU_I_PROFILE": "3g.40gb"}
    agent = {"uuid": "GPU-8", "index": "8", "product": "NVIDIA A100", "mig_profile": "", "node": "g1"}
    families: dict[str, list[str]] = {
        util: [
            family(util, dcgm("0"), lambda _: 0),
            family(util, dcgm("1"), lambda ago_s: 0 if ago_s < 7200 else 80),
            family(util, dcgm("2"), lambda ago_s: 90 if ago_s // 30 % 10 < 3 else 40),
            # A pod ends, another begins.
            family(util, dcgm("3", exported_pod="gone"), lambda ago_s: 100 if ago_s > 600 else None),
            family(util, dcgm("3"), lambda ago_s: 20 if ago_s <= 200 else None),
            family(util, dcgm("5"), lambda ago_s: 0 if ago_s <= 600 else None),
            # The device of the instance: it is no measure of it.
            family(util, dcgm("6", **mig), lambda _: 0),
            family(util, dcgm("7", "b"), lambda ago_s: 30 if ago_s > 1000 else None),
        ],
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE": [
            family("DCGM_FI_PROF_GR_ENGINE_ACTIVE", dcgm("6", **mig), lambda _: 0.625)
        ],
        "DCGM_FI_DEV_GPU_UTIL_RATIO": [family("DCGM_FI_DEV_GPU_UTIL_RATIO", new_names("4"), lambda _: 0.75)],
        used: [
            # Two exporters, or two replicas.
            family(used, dcgm("0", "a"), lambda ago_s: 2000 if ago_s == 120 else 1000),
            family(used, dcgm("0", "b"), lambda _: 900),
        ],
        free: [family(free, dcgm("0"), lambda _: 79000)],
        "DCGM_FI_DEV_POWER_USAGE": [family("DCGM_FI_DEV_POWER_USAGE", dcgm("0"), lambda _: 70.5)],
        "DCGM_FI_DEV_GPU_TEMP": [family("DCGM_FI_DEV_GPU_TEMP", dcgm("0"), lambda _: 61)],
        "DCGM_FI_DEV_XID_ERRORS": [family("DCGM_FI_DEV_XID_ERRORS", dcgm("2"), lambda _: 79)],
        "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": [
            family("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", dcgm("0"), lambda _: 1),
            family("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", dcgm("1"), lambda _: 0x10 + 0x100),
            family("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", dcgm("2"), lambda _: 0x40 + 0x8),
            family("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", dcgm("3"), lambda _: 0x4),
        ],
        "fairway_node_device_info": [
            family("fairway_node_device_info", {**agent, "parent": ""}, lambda _: 1)
        ],
        "fairway_node_device_utilization_ratio": [
            family("fairway_node_device_utilization_ratio", agent, lambda _: 0.5)
        ],
        "fairway_node_device_idle_seconds": [family("fairway_node_device_idle_seconds", agent, lambda _: 0)],
        "fairway_node_device_health": [
            family("fairway_node_device_health", {**agent, "health": "Healthy"}, lambda _: 0),
            family("fairway_node_device_health", {**agent, "health": "Degraded"}, lambda _: 1),
            family("fairway_node_device_health", {**agent, "health": "Unhealthy"}, lambda _: 0),
        ],
        "fairway_node_device_problem": [
            family("fairway_node_device_problem", {**agent, "code": "Xid63"}, lambda _: 1)
        ],
        "fairway_node_device_holder": [
            family("fairway_node_device_holder", {**agent, "namespace": "team", "pod": "worker"}, lambda _: 1)
        ],
    }
    return "".join(f"# TYPE {name} gauge\n{''.join(text)}" for name, text in families.items()) + "# EOF\n"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prometheus that holds the series."""
    folder = tmp_path_factory.mktemp("prometheus")
    (folder / "series").write_text(series())
    (folder / "prometheus.yml").write_text("global: {}\n")
    made = [
        "promtool",
        "tsdb",
        "create-blocks-from",
        "openmetrics",
        str(folder / "series"),
        str(folder / "data"),
    ]
    subprocess.run(made, check=True, stdout=subprocess.DEVNULL, timeout=120)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    flags = (
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        "--storage.tsdb.retention.time=100y",
        f"--web.listen-address={address}",
    )
    with subprocess.Popen(["prometheus", *flags], stderr=subprocess.DEVNULL) as process:
        try:
            _ready(f"http://{address}/-/ready")
            yield f"http://{address}"
        finally:
            process.terminate()


def _ready(url: str) -> None:
    until_s = time.monotonic() + 60
    while True:
        try:
            urlopen(url, timeout=5).close()  # http alone
            return
        except (URLError, OSError):
            if time.monotonic() > until_s:
                raise
            time.sleep(0.1)


@pytest.fixture(scope="module")
def devices(url: str) -> dict[str, NodeDevice]:
    found = asyncio.run(ask(Server(url), AT_S, lambda _: None))
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
