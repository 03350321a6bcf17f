"""What has to agree between the agent's reading and nvidia-smi's; how a device has to look in each phase."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.gpu.nvidia_smi import MIB, SmiDevice
from node_agent.reading import DeviceReading, NodeReading

MEMORY_TOLERANCE = 64 * MIB
"""nvidia-smi rounds to MiB, and its own process may hold some while it asks."""
BUSY_TOLERANCE = 15
"""Percentage points: each is the share of a window of up to a second, and the windows are not the same."""
POWER_TOLERANCE = 30_000, 0.15
"""mW, or that share of what nvidia-smi says if it is more: power moves between two reads."""
TEMPERATURE_TOLERANCE = 3
BUSY_AT_LEAST, IDLE_AT_MOST = 80, 10


@dataclass(frozen=True, slots=True)
class Check:
    """One thing compared. ``holds`` is None where one of the two does not tell it."""

    device: str
    what: str
    agent: str
    expected: str
    holds: bool | None


def compare(reading: NodeReading, told: Sequence[SmiDevice]) -> list[Check]:
    """Each device of nvidia-smi with the agent's of the same UUID."""
    devices = {device.id: device for device in reading.devices if not device.parent}
    checks = [Check("node", "devices", str(len(devices)), str(len(told)), len(devices) == len(told))]
    for smi in told:
        device = devices.get(smi.uuid)
        if device is None:
            checks.append(Check(smi.uuid, "device", "missing", smi.name, False))
        else:
            checks += _of_device(reading, device, smi)
    return checks


def _of_device(reading: NodeReading, device: DeviceReading, smi: SmiDevice) -> Iterator[Check]:
    for what, agent, expected in (
        ("driver", reading.driver_version, smi.driver),
        ("index", str(device.index), str(smi.index)),
        ("product", device.product, smi.name),
        ("bus id", device.bus_id, smi.bus_id),
    ):
        yield Check(smi.uuid, what, agent, expected, agent == expected)
    milliwatts, share = POWER_TOLERANCE
    power = max(milliwatts, round(share * (smi.power_milliwatts or 0)))
    busy = None if device.mig_enabled else smi.utilization_percent
    for what, found, wanted, tolerance in (
        ("memory, bytes", device.memory_bytes, smi.memory_bytes, MEMORY_TOLERANCE),
        ("used, bytes", device.memory_used_bytes, smi.used_bytes, MEMORY_TOLERANCE),
        ("utilisation, %", device.utilization_percent, busy, BUSY_TOLERANCE),
        ("power, mW", device.power_milliwatts, smi.power_milliwatts, power),
        ("temperature, °C", device.temperature_celsius, smi.temperature_celsius, TEMPERATURE_TOLERANCE),
    ):
        holds = None if found is None or wanted is None else abs(found - wanted) <= tolerance
        yield Check(smi.uuid, what, _said(found), f"{_said(wanted)} ± {tolerance:,}", holds)
    if not device.mig_enabled:
        yield _processes(device, smi)


def _processes(device: DeviceReading, smi: SmiDevice) -> Check:
    """nvidia-smi lists compute processes; the agent those and the ones with graphics."""
    found = {process.pid: process.memory_bytes for process in device.processes}
    holds = found.keys() >= smi.processes.keys() and all(
        abs(known - used) <= MEMORY_TOLERANCE
        for pid, used in smi.processes.items()
        if used is not None and (known := found[pid]) is not None
    )
    agent, expected = (", ".join(map(str, sorted(each))) or "none" for each in (found, smi.processes))
    return Check(smi.uuid, "processes", agent, expected, holds)


def phase_checks(phase: str, before: DeviceReading, now: DeviceReading, allocated_bytes: int) -> list[Check]:
    """How the loaded device has to look in a phase of the load: allocated, computing, idle, ended."""
    ended = phase == "ended"
    grown = (now.memory_used_bytes or 0) - (before.memory_used_bytes or 0)
    more = len({each.pid for each in now.processes} - {each.pid for each in before.processes})
    checks = [
        Check(
            now.id,
            "memory grown, bytes",
            f"{grown:,}",
            f"≤ {MEMORY_TOLERANCE:,}" if ended else f"≥ {allocated_bytes:,}",
            grown <= MEMORY_TOLERANCE if ended else grown >= allocated_bytes,
        ),
        Check(now.id, "processes more", str(more), "0" if ended else "1", more == (0 if ended else 1)),
    ]
    busy = now.utilization_percent
    if phase == "computing":
        holds = None if busy is None else busy >= BUSY_AT_LEAST
        checks.append(Check(now.id, "utilisation, %", _said(busy), f"≥ {BUSY_AT_LEAST}", holds))
    elif phase in ("idle", "ended"):
        holds = None if busy is None else busy <= IDLE_AT_MOST
        checks.append(Check(now.id, "utilisation, %", _said(busy), f"≤ {IDLE_AT_MOST}", holds))
    return checks


def _said(value: int | None) -> str:
    return "not told" if value is None else f"{value:,}"
