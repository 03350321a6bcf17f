"""What kubelet gave to a container: devices of device plugins, and devices of claims."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PluginDevice:
    """A device, or a share of one, under the id that its device plugin gave it."""

    resource: str
    id: str


@dataclass(frozen=True, slots=True)
class ClaimedDevice:
    """A device of Dynamic Resource Allocation, by its full name."""

    driver: str
    pool: str
    device: str


@dataclass(frozen=True, slots=True)
class Allocation:
    """What one container was given; at least one device."""

    namespace: str
    pod: str
    container: str
    devices: tuple[PluginDevice, ...] = ()
    claimed: tuple[ClaimedDevice, ...] = ()
