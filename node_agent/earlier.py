"""What an agent before us knew of the node's devices, from the object that it wrote, as far as it matters.

An XID is told once. What was held against a device goes on being held unless the node was booted since, or
the device's counters began anew, by which a reset or a reload of the driver shows. Pure; whatever the object
says is bounded, for somebody else may have written it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fairway.kube.node_devices import Health, NodeDevice, NodeDevices
from fairway.kube.plausible_devices import plausible
from node_agent import bounds
from node_agent.bounds import measured
from node_agent.health import Vitals
from node_agent.reading import DeviceReading

_XID = re.compile(r"Xid([0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class EarlierDevice:
    """A device as it was known. ``xids``: number and GPU instance, None for the whole device."""

    reading: DeviceReading
    vitals: Vitals
    xids: tuple[tuple[int, int | None], ...]


Earlier = Mapping[str, EarlierDevice]
"""By id; MIG instances as well, whose XIDs are with their device."""


def earlier_devices(stored: NodeDevices, boot_id: str) -> Earlier:
    """The devices of the object, none where the node was booted since or nobody knows."""
    if not boot_id or stored.driver.boot_id != boot_id:
        return {}
    stored, _ = plausible(stored)
    xids: dict[str, set[tuple[int, int | None]]] = {}
    for device in stored.devices:
        xids.setdefault(device.parent or device.id, set()).update(_xids(device))
    return {
        device.id: EarlierDevice(
            _reading(device),
            _vitals(device),
            () if device.parent else tuple(sorted(xids[device.id], key=lambda one: (one[0], one[1] or -1))),
        )
        for device in stored.devices
        if bounds.ID.within(device.id) == device.id
    }


def _xids(device: NodeDevice) -> Iterator[tuple[int, int | None]]:
    for problem in (device.problems or ())[: bounds.MOST_PROBLEMS]:
        if found := _XID.fullmatch(problem.code):
            yield int(found[1]), measured(problem.gpu_instance, bounds.MOST_GPU_INSTANCE)


def _vitals(device: NodeDevice) -> Vitals:
    asked = any(problem.code == "RecoveryAction" for problem in device.problems or ())
    return Vitals(
        lost="lost before this agent began" if device.health == Health.LOST else "",
        recovery="asked for before this agent began" if asked else None,
        energy_millijoules=measured(device.energy_millijoules, bounds.MOST_MILLIJOULES),
    )


def _reading(device: NodeDevice) -> DeviceReading:
    return DeviceReading(
        id=device.id,
        index=measured(device.index, bounds.MOST_INDEX) or 0,
        product=device.product,
        memory_bytes=measured(device.memory_bytes, bounds.MOST_BYTES) or 0,
        bus_id=device.bus_id,
        numa_node=measured(device.numa_node, bounds.MOST_INDEX),
        parent=device.parent,
        mig_enabled=device.mig_enabled,
        mig_profile=device.mig_profile,
        clique=device.clique,
    )
