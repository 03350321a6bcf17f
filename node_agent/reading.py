"""What the agent reads of a node's devices at one moment: small values, whatever library they come from."""

from dataclasses import dataclass, field

from fairway.kube.node_devices import Health


@dataclass(frozen=True, slots=True)
class ProcessReading:
    """A process on a device. ``memory_bytes`` and ``utilization_percent``: None where nobody tells."""

    pid: int
    memory_bytes: int | None = None
    utilization_percent: int | None = None


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something wrong with a device: one word, a sentence, and what it makes of the device's health.

    ``gpu_instance``: the one that it is about, None for the whole device.
    """

    code: str
    message: str
    health: Health
    gpu_instance: int | None = None


@dataclass(frozen=True, slots=True)
class DeviceReading:
    """One device, or one MIG instance of the device ``parent``, at one moment.

    None is what could not be read or does not exist there. ``links``: UUIDs of the devices that an NVLink
    leads to, directly or by a switch. ``minor``: the number in /dev/nvidia<minor>, which need not be the
    index; ``gpu_instance``: of a MIG instance, its GPU instance id. ``throttled``: why the clocks are held
    down, none for plain idling. ``source``: where the utilisation comes from: ``NVML``, ``GPM`` or ``DCGM``.
    """

    id: str
    index: int
    product: str = ""
    memory_bytes: int = 0
    bus_id: str = ""
    numa_node: int | None = None
    parent: str = ""
    mig_enabled: bool = False
    mig_profile: str = ""
    links: frozenset[str] = frozenset()
    clique: str = ""
    utilization_percent: int | None = None
    memory_used_bytes: int | None = None
    power_milliwatts: int | None = None
    energy_millijoules: int | None = None
    temperature_celsius: int | None = None
    throttled: frozenset[str] = frozenset()
    troubles: tuple[Trouble, ...] = ()
    processes: tuple[ProcessReading, ...] = ()
    source: str = "NVML"
    minor: int | None = None
    gpu_instance: int | None = None


@dataclass(frozen=True, slots=True)
class NodeReading:
    """All devices of the node. ``problem``: why nothing, or not all, could be read; empty where all was.

    Devices that were there and cannot be reached any more stay, with a `Trouble` that says `Health.LOST`.
    """

    driver_version: str = ""
    cuda_version: str = ""
    devices: tuple[DeviceReading, ...] = ()
    problem: str = ""
    unread: tuple[str, ...] = field(default=())
    """Calls that this driver or device does not support, each told once by whoever logs."""
    restart: bool = False
    """Whether only a new process can read again: this one holds the library of a driver that was replaced."""
    hung: bool = False
    """Whether the driver did not answer in time: the devices are those of an earlier read."""
