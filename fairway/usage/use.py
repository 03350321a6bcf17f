"""What one pod holds of one device, and what is known of that: the rows that everything else sums up."""

from dataclasses import dataclass

import msgspec

from fairway.usage.definitions import Finding
from fairway.usage.measured import Measured
from fairway.usage.owner import Owner

WHOLE_MILLI = 1000
"""A device, in the unit of what is held of it."""


class HoldingPod(msgspec.Struct, frozen=True, gc=False):
    """A pod on a node. ``age_s``: how long it has been there, None where that is not known."""

    namespace: str
    name: str
    owner: Owner
    queue: str
    node: str
    age_s: int | None = None


class Use(msgspec.Struct, frozen=True, gc=False):
    """``pieces`` pieces of devices that one pod holds, each ``milli`` thousandths of a device.

    ``device``: the one device it is, None where nobody tells which.
    """

    pod: HoldingPod
    product: str
    milli: int
    pieces: int = 1
    device: Measured | None = None
    findings: frozenset[Finding] = frozenset()

    @property
    def allocated_milli(self) -> int:
        """All of it, in thousandths of devices."""
        return self.milli * self.pieces

    @property
    def idle_s(self) -> int:
        """For how long the device has done nothing for this pod; 0 while it does something."""
        idle_s = (self.device.idle_s if self.device else None) or 0
        return idle_s if self.pod.age_s is None else min(idle_s, self.pod.age_s)

    @property
    def is_measured(self) -> bool:
        """Whether the utilisation of the device is known."""
        return self.device is not None and self.device.p50_percent is not None


@dataclass(frozen=True, slots=True)
class SickDevice:
    """A device that is not healthy, why, and the pods that hold it, as ``namespace/name``."""

    cluster: str
    node: str
    device: str
    index: int
    product: str
    health: str
    problems: tuple[str, ...]
    pods: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ClusterUsage:
    """One cluster: every use, the devices that are not healthy, and what could not be known."""

    cluster: str
    uses: tuple[Use, ...]
    sick: tuple[SickDevice, ...] = ()
    notes: tuple[str, ...] = ()
