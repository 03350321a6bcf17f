"""What nvidia-smi says of the devices, as values."""

import csv
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from node_agent.nvml import linux_bus_id

_DEVICE = (
    "index",
    "uuid",
    "name",
    "pci.bus_id",
    "driver_version",
    "memory.total",
    "memory.used",
    "utilization.gpu",
    "power.draw",
    "temperature.gpu",
)
_PROCESS = ("gpu_uuid", "pid", "used_gpu_memory")
MIB = 2**20


class SmiError(RuntimeError):
    """nvidia-smi is not there, or does not say what it was asked for."""


@dataclass(frozen=True, slots=True)
class SmiDevice:
    """One device; None where nvidia-smi says that it is not available or supported."""

    index: int
    uuid: str
    name: str
    bus_id: str
    driver: str
    memory_bytes: int | None
    used_bytes: int | None
    utilization_percent: int | None
    power_milliwatts: int | None
    temperature_celsius: int | None
    processes: Mapping[int, int | None]


def query() -> list[SmiDevice]:
    """Asks it now. Raises SmiError."""
    return parse(_run(f"--query-gpu={','.join(_DEVICE)}"), _run(f"--query-compute-apps={','.join(_PROCESS)}"))


def _run(what: str) -> str:
    command = ["nvidia-smi", what, "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SmiError(f"nvidia-smi does not run: {error}") from None
    if done.returncode != 0:
        raise SmiError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def parse(devices: str, processes: str) -> list[SmiDevice]:
    """From its two answers as CSV without units: memory in MiB, power in W."""
    held: dict[str, dict[int, int | None]] = {}
    for uuid, pid, used in _rows(processes, len(_PROCESS)):
        held.setdefault(uuid, {})[int(pid)] = _scaled(used, MIB)
    found = []
    for index, uuid, name, bus_id, driver, *amounts in _rows(devices, len(_DEVICE)):
        total, used, busy, power, temperature = amounts
        device = SmiDevice(
            int(index),
            uuid,
            name,
            linux_bus_id(bus_id),
            driver,
            _scaled(total, MIB),
            _scaled(used, MIB),
            _scaled(busy, 1),
            _scaled(power, 1000),
            _scaled(temperature, 1),
            held.get(uuid, {}),
        )
        found.append(device)
    return found


def _rows(text: str, columns: int) -> Iterable[list[str]]:
    for row in csv.reader(text.splitlines(), skipinitialspace=True):
        if row and len(row) != columns:
            raise SmiError(f"nvidia-smi said {row}: {columns} columns were asked for")
        if row:
            yield [cell.strip() for cell in row]


def _scaled(cell: str, factor: int) -> int | None:
    try:
        return round(float(cell) * factor)
    except ValueError:
        return None  # [N/A], [Not Supported], [Unknown Error]
