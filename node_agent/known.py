"""What is remembered of the devices from read to read, and what of it is true when nothing can be read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from fairway.kube.node_devices import Health
from node_agent import health, nvml
from node_agent.attributes import Attributes
from node_agent.earlier import Earlier
from node_agent.health import HeldXid, Vitals
from node_agent.reading import DeviceReading, Trouble
from node_agent.xid_events import DeviceXid


@dataclass(frozen=True, slots=True)
class Known:
    """What is remembered between reads, by device id.

    ``session``: how often the driver was connected to, ``connected``: whether it is; ``devices``: the last
    reading of each; ``answered``: the calls that were ever answered; ``seen_us``: up to when per-process
    samples were seen, ``busy_us``: the device's own; ``samples``: GPM's last ones; ``unread``: all calls of
    this session that were not answered.
    """

    connected: bool = False
    session: int = 0
    driver_version: str = ""
    cuda_version: str = ""
    attributes: Mapping[str, Attributes] = field(default_factory=dict)
    devices: Mapping[str, DeviceReading] = field(default_factory=dict)
    vitals: Mapping[str, Vitals] = field(default_factory=dict)
    xids: Mapping[str, tuple[HeldXid, ...]] = field(default_factory=dict)
    answered: Mapping[str, frozenset[str]] = field(default_factory=dict)
    seen_us: Mapping[str, int] = field(default_factory=dict)
    busy_us: Mapping[str, int] = field(default_factory=dict)
    samples: Mapping[str, nvml.Sample] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()

    @property
    def parents(self) -> frozenset[str]:
        """The devices themselves, without their MIG instances."""
        return frozenset(name for name, device in self.devices.items() if not device.parent)

    def abandoned(self) -> "Known":
        """What may still be used after a read that was given up, which may use and free the samples yet."""
        return replace(self, samples={})


def resumed(known: Known, earlier: Earlier, heard_s: float) -> Known:
    """What is known with what an agent before us knew, whose XIDs were last there at ``heard_s``.

    Of a device that has been read already and was reset since, nothing is taken over.
    """
    vitals, xids = dict(known.vitals), dict(known.xids)
    for name, before in earlier.items():
        if name in vitals and health.was_reset(before.vitals, vitals[name]):
            continue
        held = tuple(HeldXid(xid, heard_s, instance) for xid, instance in before.xids)
        xids[name] = (*held, *xids.get(name, ()))
        vitals.setdefault(name, before.vitals)
    devices = {name: before.reading for name, before in earlier.items()}
    return replace(known, devices={**devices, **known.devices}, vitals=vitals, xids=xids)


def hearing(known: Known, events: Iterable[DeviceXid], now_s: float) -> Known:
    """What is known with XIDs that were heard while nothing can be read."""
    heard = list(events)
    devices, xids = dict(known.devices), dict(known.xids)
    for name in known.parents & {each.device for each in heard}:
        vitals = known.vitals.get(name, Vitals())
        xids[name] = health.held(xids.get(name, ()), heard_of(name, heard), vitals, vitals, now_s)
    for name, device in known.devices.items():
        parent = device.parent or name
        if not any(trouble.health is Health.LOST for trouble in device.troubles):
            found = health.troubles(
                known.vitals.get(parent, Vitals()), xids.get(parent, ()), device.gpu_instance
            )
            merged = {trouble.code: trouble for trouble in (*device.troubles, *found)}
            devices[name] = replace(device, troubles=tuple(merged.values()))
    return replace(known, devices=devices, xids=xids)


def at_rest(device: DeviceReading) -> DeviceReading:
    """What is still true of a device while it is not read: what it is and what was wrong with it."""
    return replace(
        device,
        utilization_percent=None,
        memory_used_bytes=None,
        power_milliwatts=None,
        energy_millijoules=None,
        temperature_celsius=None,
        throttled=frozenset(),
        capped=frozenset(),
        processes=(),
    )


def lost(device: DeviceReading, why: str) -> DeviceReading:
    """The same with nothing left of it but what it was."""
    return replace(at_rest(device), troubles=(Trouble("Lost", why, Health.LOST),))


def heard_of(device: str, events: Iterable[DeviceXid]) -> list[HeldXid]:
    """The XIDs among the events that are of this device."""
    return [HeldXid(each.xid, each.at_s, each.gpu_instance) for each in events if each.device == device]
