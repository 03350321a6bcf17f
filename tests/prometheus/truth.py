"""Series of known truth, and Prometheus's own answers about them.

``python -m tests.prometheus.truth`` asks anew, after a change of the series or of a query, and writes the
answers down: prometheus and promtool have to be in the PATH.
"""

import asyncio
import json
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

from fairway.prometheus.client import Found, ask
from fairway.prometheus.server import Server
from tests.prometheus.fake import Reply, prometheus
from tests.prometheus.series import AT_S

PROGRAMS = ("prometheus", "promtool")
RECORDED = Path(__file__).parent / "recorded.json"
AT = int(AT_S)
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
        **other_series(),
    }
    return "".join(f"# TYPE {name} gauge\n{''.join(text)}" for name, text in families.items()) + "# EOF\n"


def tpu(vm: str, chip: int, node: str, pod: str = "") -> dict[str, str]:
    """Labels of GKE's TPU device plugin; without a pod those of the node's own series."""
    held = {"exported_namespace": "team", "exported_pod": pod, "exported_container": "main"}
    return {
        "accelerator_id": f"{vm}-{chip}",
        "make": "cloud-tpu",
        "model": "tpu-v6e-slice",
        "tpu_topology": "2x4",
        "node": node,
        "namespace": "kube-system",
        "pod": f"tpu-device-plugin-{node}",
        **(held if pod else {}),
    }


def amd(gpu: str, cut: str = "SPX", **more: str) -> dict[str, str]:
    """Labels of AMD's exporter as its own chart lets Prometheus keep them."""
    return {
        "gpu_id": gpu,
        "hostname": "a1",
        "serial_number": f"6924-{gpu}",
        "card_series": "AMD Instinct MI300X",
        "gpu_partition_id": "0",
        "gpu_compute_partition_type": cut,
        "gpu_memory_partition_type": "NPS1",
        "pod": "trainer",
        "namespace": "team",
        "container": "main",
        **more,
    }


def neuron(core: str, **more: str) -> dict[str, str]:
    """Labels of AWS's neuron-monitor."""
    return {
        "instance_id": "i-1",
        "instance_name": "",
        "instance_type": "trn1.32xlarge",
        "runtime_tag": "367",
        "neuroncore": core,
        "node": "n1",
        "namespace": "neuron",
        "pod": "neuron-monitor-x",
        **more,
    }


def gaudi() -> dict[str, str]:
    """Labels of Intel's exporter."""
    return {
        "UUID": "01P0-HL2",
        "id": "3",
        "pod_namespace": "team",
        "pod_name": "reader",
        "namespace": "gaudi",
        "pod": "exporter-x",
        "node": "h1",
    }


def other_series() -> dict[str, list[str]]:
    """Of exporters of other vendors."""

    def steady(name: str, labels: dict[str, str], level: float) -> str:
        return family(name, labels, lambda _: level)

    of_core = {"constants": 0, "model_code": 100, "tensors": 900}
    ecc = {**neuron(""), "event_type": "mem_ecc_uncorrected", "neuron_device_index": "1"}
    families = [
        # Host numbers begin at 0 on each host, and those of the runtime run through the slice.
        ("tensorcore_utilization", tpu("11", 0, "t1", "tpu-worker"), 30),
        ("tensorcore_utilization", tpu("11", 1, "t1", "tpu-worker"), 0),
        ("tensorcore_utilization_node", tpu("11", 0, "t1"), 30),
        ("tensorcore_utilization_node", tpu("11", 1, "t1"), 0),
        ("tensorcore_utilization_node", tpu("12", 0, "t2"), 0),
        ("tensorcore_utilization_node", tpu("12", 1, "t2"), 20),
        ("memory_bandwidth_utilization_node", tpu("12", 0, "t2"), 3),
        ("memory_bandwidth_utilization_node", tpu("12", 1, "t2"), 45),
        ("duty_cycle", tpu("11", 4, "t1", "tpu-worker"), 80),
        ("duty_cycle", tpu("11", 5, "t1", "tpu-worker"), 0),
        # What remained of a workload before.
        ("duty_cycle_node", tpu("11", 0, "t1"), 100),
        ("memory_used", tpu("11", 4, "t1", "tpu-worker"), 16e9),
        ("memory_total", tpu("11", 4, "t1", "tpu-worker"), 32e9),
        # Another device plugin of GKE, with names of its own.
        ("duty_cycle", {**tpu("13", 0, "t2"), "make": "nvidia"}, 100),
        ("amd_gpu_gfx_activity", amd("0"), 0),
        ("amd_gpu_gfx_busy_instantaneous", amd("0", xcc_index="0"), 70),
        ("amd_gpu_gfx_busy_instantaneous", amd("0", xcc_index="1"), 20),
        ("amd_gpu_used_vram", amd("0"), 1024),
        ("amd_gpu_total_vram", amd("0"), 196592),
        ("amd_gpu_package_power", amd("0"), 500.5),
        ("amd_gpu_junction_temperature", amd("0"), 71),
        ("amd_gpu_violation_ppt_residency_percentage", amd("0"), 50),
        ("amd_gpu_violation_hbm_thermal_residency_percentage", amd("0"), 10),
        ("amd_gpu_health", amd("0"), 1),
        ("amd_gpu_gfx_activity", amd("1", "CPX"), 90),
        ("amd_gpu_used_vram", amd("1", "CPX"), 10),
        ("amd_gpu_health", amd("1", "CPX"), 0),
        ("neuroncore_utilization_ratio", neuron("0"), 0.8),
        ("neuroncore_utilization_ratio", neuron("2"), 0.1),
        ("neuroncore_utilization_ratio", neuron("3", instance="b:8000"), 0.3),
        ("neuroncore_utilization_ratio", neuron("3"), 0.3),
        *((f"neuroncore_memory_usage_{kind}", neuron("2"), used) for kind, used in of_core.items()),
        ("neuroncore_memory_usage_tensors", neuron("3"), 24),
        ("hardware_ecc_events_total", ecc, 3),
        ("habanalabs_utilization", gaudi(), 55),
        ("habanalabs_memory_used_bytes", gaudi(), 8e9),
        ("habanalabs_memory_total_bytes", gaudi(), 96e9),
        ("habanalabs_power_mW", gaudi(), 250_500),
        ("habanalabs_pending_rows_state", gaudi(), 1),
    ]
    found: dict[str, list[str]] = {}
    for name, labels, level in families:
        found.setdefault(name, []).append(steady(name, labels, level))
    return found


def is_here() -> bool:
    return all(map(shutil.which, PROGRAMS))


@contextmanager
def real(text: str = "", *flags: str) -> Iterator[str]:
    """The URL of a Prometheus that holds the series, or those of the text, until the block ends."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "series").write_text(text or series())
        (folder / "prometheus.yml").write_text("global: {}\n")
        made = ["promtool", "tsdb", "create-blocks-from", "openmetrics"]
        made += [str(folder / "series"), str(folder / "data")]
        subprocess.run(made, check=True, stdout=subprocess.DEVNULL, timeout=120)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        flags = (
            *flags,
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


@contextmanager
def recorded() -> Iterator[str]:
    """The URL of what answers as it did."""
    answers: dict[str, object] = json.loads(RECORDED.read_text())

    def answer(query: str) -> Reply:
        return Reply(json.dumps(answers[query]).encode()) if query in answers else Reply(_STALE, 500)

    with prometheus(answer) as fake:
        yield fake.url


_STALE = b"not recorded: run python -m tests.prometheus.truth"


def asked(url: str) -> Found:
    return asyncio.run(ask(Server(url), AT_S, lambda _: None))


def _ready(url: str) -> None:
    until_s = time.monotonic() + 60
    while True:
        try:
            urlopen(url, timeout=5).close()
            return
        except (URLError, OSError):
            if time.monotonic() > until_s:
                raise
            time.sleep(0.1)


def _record() -> None:
    answers: dict[str, object] = {}
    with real() as url:

        def answer(query: str) -> Reply:
            with urlopen(
                f"{url}/api/v1/query?{urlencode({'query': query, 'time': AT_S})}", timeout=30
            ) as reply:
                body: bytes = reply.read()
            answers[query] = json.loads(body)
            return Reply(body)

        with prometheus(answer) as between:
            asked(between.url)
    RECORDED.write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    _record()
