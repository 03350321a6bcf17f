"""The comparison with nvidia-smi: its answers read, what agrees and what does not, no GPU at hand."""

import io
import os
import queue
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import pytest

from benchmarks.gpu import __main__ as gpu_main
from benchmarks.gpu import cuda_load
from benchmarks.gpu.__main__ import main
from benchmarks.gpu.checks import Check, compare, phase_checks
from benchmarks.gpu.nvidia_smi import MIB, SmiDevice, SmiError, parse
from node_agent.node_reader import NodeReader
from node_agent.nvml import linux_bus_id
from node_agent.reading import DeviceReading, NodeReading, ProcessReading
from node_agent.xid_events import XidEvents
from tests.node_agent import simulated_nvml as simulated

DEVICES = """\
0, GPU-a, NVIDIA H100 80GB HBM3, 00000000:1A:00.0, 580.95.05, 81559, 2533, 97, 312.45, 61
1, GPU-b, "NVIDIA H100, odd", 00000000:1B:00.0, 580.95.05, 81559, 1, [N/A], [Not Supported], [Unknown Error]
"""
PROCESSES = """\
GPU-a, 4711, 2524
GPU-a, 4712, [N/A]
"""


def smi() -> list[SmiDevice]:
    return parse(DEVICES, PROCESSES)


def test_nvidia_smi_is_read() -> None:
    first, second = smi()
    assert first == SmiDevice(
        0,
        "GPU-a",
        "NVIDIA H100 80GB HBM3",
        "0000:1a:00.0",
        "580.95.05",
        81559 * MIB,
        2533 * MIB,
        97,
        312_450,
        61,
        {4711: 2524 * MIB, 4712: None},
    )
    assert (second.name, second.utilization_percent, second.power_milliwatts, second.temperature_celsius) == (
        "NVIDIA H100, odd",
        None,
        None,
        None,
    )
    assert second.processes == {}


@pytest.mark.parametrize(
    ("devices", "processes"), [("0, GPU-a\n", ""), ("No devices were found\n", ""), (DEVICES, "GPU-a\n")]
)
def test_what_nvidia_smi_should_not_say(devices: str, processes: str) -> None:
    with pytest.raises(SmiError, match="columns were asked for"):
        parse(devices, processes)


def reading(change: Callable[[DeviceReading], DeviceReading] = lambda device: device) -> NodeReading:
    """A reading that agrees with nvidia-smi's but for a change of its first device."""
    first, second = (
        DeviceReading(
            each.uuid,
            each.index,
            each.name,
            each.memory_bytes or 0,
            each.bus_id,
            utilization_percent=each.utilization_percent,
            memory_used_bytes=each.used_bytes,
            power_milliwatts=each.power_milliwatts,
            temperature_celsius=each.temperature_celsius,
            processes=tuple(ProcessReading(pid, used) for pid, used in each.processes.items()),
        )
        for each in smi()
    )
    return NodeReading("580.95.05", "13.0", (change(first), second))


def wrong(checks: list[Check]) -> list[str]:
    return [check.what for check in checks if check.holds is False]


def test_readings_that_agree() -> None:
    checks = compare(reading(), smi())
    assert wrong(checks) == []
    assert {check.what for check in checks if check.device == "GPU-b" and check.holds is None} == {
        "utilisation, %",
        "power, mW",
        "temperature, °C",
    }


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"product": "NVIDIA H200"}, ["product"]),
        ({"bus_id": "0000:1A:00.0"}, ["bus id"]),
        ({"index": 3}, ["index"]),
        ({"memory_used_bytes": 2600 * MIB}, ["used, bytes"]),
        ({"memory_used_bytes": 2590 * MIB}, []),
        ({"utilization_percent": 80}, ["utilisation, %"]),
        ({"utilization_percent": 83}, []),
        ({"utilization_percent": None}, []),
        ({"power_milliwatts": 250_000}, ["power, mW"]),
        ({"power_milliwatts": 270_000}, []),
        ({"temperature_celsius": 65}, ["temperature, °C"]),
        ({"processes": (ProcessReading(4711, 2524 * MIB),)}, ["processes"]),
        ({"processes": (ProcessReading(4711, 2400 * MIB), ProcessReading(4712))}, ["processes"]),
        ({"processes": (ProcessReading(4711), ProcessReading(4712), ProcessReading(9))}, []),
        ({"id": "GPU-z"}, ["device"]),
        ({"mig_enabled": True, "utilization_percent": 3, "processes": ()}, []),
    ],
)
def test_what_does_not_agree_is_named(change: dict[str, object], what: list[str]) -> None:
    assert wrong(compare(reading(lambda device: replace(device, **change)), smi())) == what  # type: ignore[arg-type]  # fields by name


def test_a_device_more_or_less_is_wrong() -> None:
    assert wrong(compare(reading(), smi()[:1])) == ["devices"]


BEFORE = DeviceReading("GPU-a", 0, memory_used_bytes=MIB, utilization_percent=0)
LOADED = replace(
    BEFORE, memory_used_bytes=2500 * MIB, processes=(ProcessReading(7, 2400 * MIB),), utilization_percent=100
)


@pytest.mark.parametrize(
    ("phase", "now", "what"),
    [
        ("allocated", LOADED, []),
        ("allocated", BEFORE, ["memory grown, bytes", "processes more"]),
        ("computing", LOADED, []),
        ("computing", replace(LOADED, utilization_percent=5), ["utilisation, %"]),
        ("idle", replace(LOADED, utilization_percent=0), []),
        ("idle", LOADED, ["utilisation, %"]),
        ("ended", BEFORE, []),
        ("ended", LOADED, ["memory grown, bytes", "processes more", "utilisation, %"]),
    ],
)
def test_how_the_loaded_device_has_to_look(phase: str, now: DeviceReading, what: list[str]) -> None:
    assert wrong(phase_checks(phase, BEFORE, now, 2048 * MIB)) == what


def test_without_a_gpu_it_says_so_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    with simulated.installed(None):
        assert main([]) == 2
    said = " ".join(capsys.readouterr().out.split())
    assert said == (
        "Nothing was measured: no NVIDIA device is here: the NVIDIA driver cannot be asked: nvmlInit: NVML "
        "Shared Library Not Found. Run this on a machine with a GPU"
    )


class Machine:
    """An H100 machine on which the load and nvidia-smi are simulated too."""

    def __init__(self) -> None:
        self.library = simulated.h100x8()
        self.loaded = self.library.gpus[1]
        self.told: list[str] = []

    @contextmanager
    def load(self, device: int) -> Iterator["Machine"]:
        assert device == 1
        self.loaded.processes = [simulated.Process(self.pid, 300 * MIB)]
        yield self
        self.loaded.processes, self.loaded.used, self.loaded.busy = [], 0, 0

    pid = 4711

    def __call__(self, command: str) -> None:
        self.told.append(command)
        name, _, size = command.partition(" ")
        if name == "allocate":
            self.loaded.used = self.loaded.processes[0].memory = int(size) + 300 * MIB
        self.loaded.busy = 100 if name == "compute" else 0

    def query(self) -> list[SmiDevice]:
        return [
            SmiDevice(
                gpu.index,
                gpu.uuid,
                str(gpu.name),
                linux_bus_id(gpu.bus_id),
                self.library.driver,
                gpu.memory,
                gpu.used,
                gpu.busy,
                gpu.power,
                gpu.temperature,
                {process.pid: process.memory for process in gpu.processes},
            )
            for gpu in self.library.gpus
        ]


def measured(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(gpu_main, "query", machine.query)
    monkeypatch.setattr(gpu_main, "_load", machine.load)
    # No process has the load's number here.
    monkeypatch.setattr(gpu_main, "as_container", lambda pid: nullcontext())
    monkeypatch.setattr(gpu_main, "_cost", lambda reader, options: [])
    with simulated.installed(machine.library):
        return main(["--device", "1", "--settle", "0", "--mebibytes", "2048"])


def test_over_a_load_all_agrees(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    machine = Machine()
    assert measured(machine, monkeypatch) == 0
    assert machine.told == [f"allocate {2048 * MIB}", "compute", "idle"]
    said = capsys.readouterr().out
    assert [f"Load: {phase}" in said for phase in ("before", "allocated", "computing", "idle", "ended")] == [
        True
    ] * 5
    assert said.endswith("All hold\n")


def test_over_a_load_what_does_not_agree_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = Machine()
    machine.loaded.errors["nvmlDeviceGetComputeRunningProcesses_v3"] = simulated.UNKNOWN
    assert measured(machine, monkeypatch) == 1
    said = capsys.readouterr().out
    assert "WRONG" in said
    assert said.splitlines()[-1] == "6 of 417 checks do not hold"


def test_the_cost_is_that_of_a_process(capsys: pytest.CaptureFixture[str]) -> None:
    options = gpu_main._options(["--seconds", "0.01", "--agent-pid", str(os.getpid())])
    cost = gpu_main._cost(NodeReader(XidEvents()), options)
    assert [(check.device, check.what) for check in cost] == [
        (f"process {os.getpid()}", "CPU, % of a core"),
        (f"process {os.getpid()}", "memory, MiB"),
    ]


class Cuda:
    """The CUDA driver: notes its calls, all of which work."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Callable[..., int]:
        def call(*arguments: object) -> int:
            self.calls.append(name)
            return 0

        return call


def test_the_load_does_what_it_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cuda, lines = Cuda(), queue.SimpleQueue[str | None]()
    monkeypatch.setattr("ctypes.CDLL", lambda name: cuda)
    for line in ("allocate 4096\n", "compute\n", "idle\n", None):
        lines.put(line)
    cuda_load._serve(cuda_load.Load(0), lines)
    assert capsys.readouterr().out == "ok\nok\nok\n"
    assert [call for call in cuda.calls if call != "cuMemsetD32Async"] == [
        "cuInit",
        "cuDeviceGet",
        "cuCtxCreate_v2",
        "cuMemAlloc_v2",
        "cuCtxSynchronize",
    ]


def test_a_load_without_cuda_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr("ctypes.CDLL", missing)
    monkeypatch.setattr("sys.argv", ["cuda_load", "0"])
    monkeypatch.setattr("sys.stdin", io.StringIO())
    cuda_load.main()
    assert capsys.readouterr().out == (
        "error the CUDA driver is not here: libcuda.so.1: cannot open shared object file\n"
    )
