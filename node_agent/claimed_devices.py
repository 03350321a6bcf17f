"""Which device a driver of Dynamic Resource Allocation means by a name, as its ResourceSlices say.

kubelet tells of a claim (by default since 1.34) driver, pool and device; what that device is, only the slice
that offers it knows: by the attribute ``uuid`` (NVIDIA's driver, for GPUs and MIG instances), else by its PCI
address.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from fairway.dra.identity import OWN
from fairway.kube.device_kinds import RESOURCE_SLICES
from fairway.kube.objects import object_key
from fairway.kube.resource import ResourceKind
from fairway.kube.resource_slices import ResourceSlice, SliceDevice
from node_agent.allocations import ClaimedDevice


def slices_of(node: str) -> tuple[ResourceKind[ResourceSlice], ...]:
    """The slices of one node, by the versions that a server may have."""
    params = {"fieldSelector": f"spec.nodeName={node}"}
    return tuple(replace(kind, params=params) for kind in RESOURCE_SLICES)


class ClaimedDevices:
    """The sink of a reflector of `slices_of`."""

    def __init__(self) -> None:
        self._slices: dict[str, ResourceSlice] = {}
        self._ids: dict[ClaimedDevice, str] | None = None

    def keys(self) -> Collection[str]:
        """The names of all slices."""
        return self._slices.keys()

    def upsert(self, obj: ResourceSlice) -> None:
        """Take the slice as it is now."""
        self._slices[object_key(obj.metadata)] = obj
        self._ids = None

    def delete(self, key: str) -> None:
        """Forget a slice."""
        self._slices.pop(key, None)
        self._ids = None

    @property
    def ids(self) -> Mapping[ClaimedDevice, str]:
        """What each device is called by who reads it; without those whose slice does not say.

        Of several generations of a pool the newest that offers the device counts.
        """
        if self._ids is None:
            ordered = sorted(self._slices.values(), key=lambda one: one.spec.pool.generation)
            self._ids = {
                ClaimedDevice(spec.driver, spec.pool.name, device.name): id
                for spec in (one.spec for one in ordered)
                for device in spec.devices or ()
                if (id := _id(spec.driver, device))
            }
        return self._ids


def _id(driver: str, device: SliceDevice) -> str:
    attributes = device.attributes or (device.basic.attributes if device.basic is not None else None) or {}
    for name in OWN:
        attribute = attributes.get(name) or attributes.get(f"{driver}/{name}")
        if attribute is not None and attribute.string_value:
            return attribute.string_value
    return ""
