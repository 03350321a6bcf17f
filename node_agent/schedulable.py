"""Which devices kubelet has to give to pods: those that a device plugin offers and calls healthy.

kubelet lists no other (``GetAllocatableDevices`` in ``pkg/kubelet/cm/devicemanager/manager.go``: all devices
filtered by the healthy ones), and the node's allocatable counts the same. So a device that is not listed is
one that the scheduler does not count, provided that the plugin names devices by ids that are known here: it
does when another device of its kind, whole or MIG instance, is listed. Where none is, as while plugins
register anew with a kubelet that was restarted, and under schemes whose ids name no device, nothing is said.
"""

from collections.abc import Iterable

from node_agent.allocations import PluginDevice
from node_agent.device_ids import DeviceIds
from node_agent.reading import DeviceReading


def schedulable(devices: Iterable[DeviceReading], listed: Iterable[PluginDevice]) -> dict[str, bool]:
    """Of each device by id whether kubelet lists it, or a share of it; without those of which nobody knows.

    A device that is cut and not listed itself is left out: its instances say it.
    """
    devices = tuple(devices)
    ids = DeviceIds(devices)
    found = {share.device for one in listed if (share := ids.find(one.id)) is not None}
    cut = {device.parent for device in devices}
    kinds = {bool(device.parent) for device in devices if device.id in found}
    return {
        device.id: device.id in found
        for device in devices
        if device.id in found or (bool(device.parent) in kinds and device.id not in cut)
    }
