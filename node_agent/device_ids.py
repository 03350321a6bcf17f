"""From the id under which kubelet gave a device to the device that was read, and whether all of it was given.

The form is the device plugin's own: ``GPU-<uuid>`` and ``MIG-<uuid>``, NVIDIA's plugin; ``<id>::<n>``, its
replica n where the device is shared in time or by MPS (``internal/rm/devices.go``);
``MIG-GPU-<uuid>/<gi>/<ci>``, drivers before 470; ``nvidia<minor>``, ``nvidia<minor>/gi<gi>`` and either with
``/vgpu<n>``, GKE (``container-engine-accelerators``, as dcgm-exporter reads them); a PCI address, AMD. HAMi,
Volcano, Aliyun's gpushare and Alnair give kubelet ``<id>-<n>`` and the like, which name no device: which of
them a pod got stands in its annotation.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from fairway.kube.pci_address import pci_address
from node_agent.reading import DeviceReading

_K = TypeVar("_K")

_GKE = re.compile(r"nvidia(\d{1,4})(?:/gi(\d{1,4}))?(/vgpu\d{1,4})?")
_OLD_MIG = re.compile(r"MIG-(GPU-[0-9a-f-]{36})/(\d{1,4})/(\d{1,4})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Share:
    """A device, by the id of its reading; ``is_replica``: one of several shares of it."""

    device: str
    is_replica: bool = False


class DeviceIds:
    """The devices of one reading by every name that they go by. Where a name is no single device's, it is
    none's."""

    def __init__(self, devices: Iterable[DeviceReading]) -> None:
        self._devices = {device.id: device for device in devices}
        whole = [device for device in self._devices.values() if not device.parent]
        has_minors = any(device.minor is not None for device in whole)
        self._ids = _unique((device.id.lower(), device.id) for device in self._devices.values())
        self._minors = _unique(((d.minor if has_minors else d.index), d.id) for d in whole)
        self._buses = _unique((bus, device.id) for device in whole if (bus := pci_address(device.bus_id)))
        self._instances = _unique(
            ((device.parent, device.gpu_instance), device.id)
            for device in self._devices.values()
            if device.parent and device.gpu_instance is not None
        )

    def find(self, id: str) -> Share | None:
        """The device of an id that kubelet names; None where it names none of these."""
        base, is_replica, number = id.partition("::")
        device = self._ids.get(base.lower()) or self._buses.get(pci_address(base))
        if device is not None and (not is_replica or number.isdecimal()):
            return Share(device, bool(is_replica))
        match = _GKE.fullmatch(id)
        if match is not None:
            minor, instance, replica = match.groups()
            found = self._minors.get(int(minor))
            found = (
                found if instance is None or found is None else self._instances.get((found, int(instance)))
            )
            return None if found is None else Share(found, replica is not None)
        match = _OLD_MIG.fullmatch(base)
        if match is not None:
            parent = self._ids.get(match[1].lower(), "")
            found = self._instances.get((parent, int(match[2])))
            return None if found is None else Share(found, bool(is_replica))
        return None

    def noted(self, name: str) -> Share | None:
        """The device that a sharing scheme names: by id or, as gpushare does, by its number in /dev."""
        return self.find(f"nvidia{name}" if name.isdecimal() else name)

    def relatives(self, id: str) -> frozenset[str]:
        """The device itself, what it is a part of, and its parts: a process of one may be shown on
        another."""
        device = self._devices.get(id)
        parent = device.parent if device is not None else ""
        parts = (other.id for other in self._devices.values() if other.parent == id)
        return frozenset((id, *((parent,) if parent else ()), *parts))


def _unique(pairs: Iterable[tuple[_K, str]]) -> dict[_K, str]:
    found: dict[_K, str] = {}
    doubled: set[_K] = set()
    for key, id in pairs:
        if found.setdefault(key, id) != id:
            doubled.add(key)
    return {key: id for key, id in found.items() if key not in doubled}
