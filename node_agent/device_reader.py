"""One read of all devices of the node: from NVML's calls to a `NodeReading`.

Each call is asked by itself, so that one that fails costs one value. What has to be remembered from read to
read is a value (`Known`) that goes in and comes out: a read that hangs and is given up leaves nothing half
written. No thread, no log, no clock in here.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from fairway.kube.node_devices import Health
from node_agent import health, link_health, links, nvml
from node_agent.asking import Asking
from node_agent.attributes import Attributes, mig_profile, read_attributes
from node_agent.earlier import Earlier
from node_agent.health import HeldXid, Vitals
from node_agent.reading import DeviceReading, NodeReading, ProcessReading, Trouble
from node_agent.xid_events import DeviceXid

_ATTRIBUTES_S = 60.0
"""How long what seldom changes is believed: product, place, links, clique."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is remembered between reads, by device id.

    ``session``: how often the driver was connected to, ``connected``: whether it is; ``devices``: the last
    reading of each; ``seen_us``: up to when per-process samples were seen; ``samples``: GPM's last ones;
    ``unread``: all calls of this session that were not answered.
    """

    connected: bool = False
    session: int = 0
    driver_version: str = ""
    cuda_version: str = ""
    attributes: Mapping[str, Attributes] = field(default_factory=dict)
    devices: Mapping[str, DeviceReading] = field(default_factory=dict)
    vitals: Mapping[str, Vitals] = field(default_factory=dict)
    xids: Mapping[str, tuple[HeldXid, ...]] = field(default_factory=dict)
    seen_us: Mapping[str, int] = field(default_factory=dict)
    samples: Mapping[str, nvml.Sample] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()

    @property
    def parents(self) -> frozenset[str]:
        """The devices themselves, without their MIG instances."""
        return frozenset(name for name, device in self.devices.items() if not device.parent)

    def abandoned(self) -> "Known":
        """What may still be used after a read that was given up, which may use and free the samples yet."""
        return replace(self, samples={})


def read(known: Known, events: Iterable[DeviceXid], now_s: float) -> tuple[NodeReading, Known]:
    """Reads all devices, having connected with the driver where that is not so; once more where it went away.

    ``events``: the XIDs heard since the last read; ``now_s``: by the clock that they are timed by.
    """
    heard = list(events)
    try:
        return _connected_read(known, heard, now_s)
    except nvml.NvmlError as error:
        _disconnect()
        if not known.connected:
            return _without_driver(known, heard, error)
    known = replace(known, connected=False, attributes={}, samples={})
    try:
        return _connected_read(known, heard, now_s)
    except nvml.NvmlError as error:
        _disconnect()
        return _without_driver(known, heard, error)


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


def _connected_read(known: Known, events: list[DeviceXid], now_s: float) -> tuple[NodeReading, Known]:
    if not known.connected:
        nvml.init()
        known = replace(known, connected=True, session=known.session + 1, unread=frozenset())
    return _Pass(known, events, now_s).run()


def _disconnect() -> None:
    with suppress(nvml.NvmlError):  # it has said that it is not connected
        nvml.shutdown()


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
        processes=(),
    )


def _lost(device: DeviceReading, why: str) -> DeviceReading:
    return replace(at_rest(device), troubles=(Trouble("Lost", why, Health.LOST),))


def _without_driver(
    known: Known, events: Iterable[DeviceXid], error: nvml.NvmlError
) -> tuple[NodeReading, Known]:
    """Nothing can be read. Without any driver all devices are lost; else their state is not known anew."""
    gone = isinstance(error, nvml.DriverAway) and error.unloaded
    restart = isinstance(error, nvml.DriverAway) and error.mismatch and known.session > 0
    devices = {
        name: _lost(device, "no driver is loaded on the node") if gone else at_rest(device)
        for name, device in known.devices.items()
    }
    vitals = {name: Vitals(lost="no driver") if gone else each for name, each in known.vitals.items()}
    xids = {name: (*known.xids.get(name, ()), *_held(name, events)) for name in known.parents}
    known = replace(
        known, connected=False, attributes={}, samples={}, devices=devices, vitals=vitals, xids=xids
    )
    problem = f"the NVIDIA driver cannot be asked: {error}"
    if restart:
        problem += "; it was replaced while this agent ran, which has to be restarted to load its library"
    reading = NodeReading(
        known.driver_version, known.cuda_version, tuple(devices.values()), problem, restart=restart
    )
    return reading, known


def _held(device: str, events: Iterable[DeviceXid]) -> list[HeldXid]:
    return [HeldXid(each.xid, each.at_s, each.gpu_instance) for each in events if each.device == device]


class _Pass:
    """One pass over the devices. What it finds is kept to itself until it is through."""

    def __init__(self, known: Known, events: Sequence[DeviceXid], now_s: float) -> None:
        self._known = known
        self._events = events
        self._now_s = now_s
        self._asking = Asking()
        self._problems: list[str] = []
        self._silent: set[int] = set()
        self._devices: dict[str, DeviceReading] = {}
        self._attributes: dict[str, Attributes] = {}
        self._vitals: dict[str, Vitals] = {}
        self._xids: dict[str, tuple[HeldXid, ...]] = {}
        self._seen_us: dict[str, int] = {}
        self._samples: dict[str, nvml.Sample] = {}
        self._busy: dict[str, int | None] = {}

    def run(self) -> tuple[NodeReading, Known]:
        """All devices, in the order of their indices, each followed by its instances."""
        driver = self._asking.ask(nvml.driver_version) or self._known.driver_version
        cuda = self._asking.ask(nvml.cuda_version) or self._known.cuda_version
        count = nvml.device_count()
        for index in range(count):
            self._read_index(index)
        self._miss_devices()
        self._link_devices()
        self._free_samples()
        if not count and not self._devices:
            self._problems.append(f"the NVIDIA driver {driver} knows no device on this node")
        ordered = sorted(self._devices.values(), key=self._order)
        unread = self._known.unread | self._asking.unread  # not all calls are made each time
        reading = NodeReading(driver, cuda, tuple(ordered), "; ".join(self._problems), tuple(sorted(unread)))
        known = replace(
            self._known,
            driver_version=driver,
            cuda_version=cuda,
            attributes=self._attributes,
            devices={device.id: device for device in ordered},
            vitals=self._vitals,
            xids=self._xids,
            seen_us=self._seen_us,
            samples=self._samples,
            unread=unread,
        )
        return reading, known

    def _order(self, device: DeviceReading) -> tuple[int, bool, int, str]:
        parent = self._devices.get(device.parent, device)
        return parent.index, device.parent != "", device.index, device.id

    def _read_index(self, index: int) -> None:
        try:
            device = nvml.device(index)
            name = nvml.uuid(device)
        except nvml.DriverAway:
            raise
        except nvml.NvmlError as error:
            self._problems.append(f"device {index} is not reached: {error}")
            if not isinstance(error, nvml.DeviceLost):
                self._silent.add(index)
            return
        try:
            self._read_device(device, name, index)
        except nvml.DeviceLost as error:
            self._lose(name, str(error), DeviceReading(name, index), Vitals(lost=str(error)))

    def _read_device(self, device: nvml.Device, name: str, index: int) -> None:
        attributes = self._attributes_of(device, name)
        cut = self._asking.ask(nvml.mig_enabled, device) or False
        instances = self._read_instances(device, name, attributes) if cut else []
        memory = self._asking.ask(nvml.memory, device)
        vitals = self._read_vitals(device)
        xids = health.held(
            self._known.xids.get(name, ()),
            _held(name, self._events),
            self._known.vitals.get(name, Vitals()),
            vitals,
            self._now_s,
        )
        reading = DeviceReading(
            id=name,
            index=index,
            minor=attributes.minor,
            product=attributes.product,
            memory_bytes=memory.total if memory else self._memory_before(name),
            bus_id=attributes.bus_id,
            numa_node=attributes.numa_node,
            mig_enabled=cut,
            clique=attributes.clique,
            utilization_percent=(
                self._busy_share(device, name, None, attributes)
                if cut
                else self._asking.ask(nvml.utilization_percent, device)
            ),
            memory_used_bytes=memory.used if memory else None,
            power_milliwatts=self._asking.ask(nvml.power_milliwatts, device),
            energy_millijoules=vitals.energy_millijoules,
            temperature_celsius=self._asking.ask(nvml.temperature_celsius, device),
            throttled=vitals.throttled,
            troubles=health.troubles(vitals, xids),
            processes=() if cut else self._processes(device, name),
            source="GPM" if cut and attributes.gpm else "NVML",
        )
        # Nothing is kept of a device that is lost on the way here.
        self._attributes[name], self._vitals[name], self._xids[name] = attributes, vitals, xids
        self._devices[name] = reading
        for instance, gpu_instance in instances:
            troubles = health.troubles(vitals, xids, gpu_instance)
            self._devices[instance.id] = replace(instance, troubles=troubles)

    def _memory_before(self, name: str) -> int:
        """Some drivers tell the memory of a device that is cut to privileged callers only."""
        before = self._known.devices.get(name)
        return before.memory_bytes if before else 0

    def _attributes_of(self, device: nvml.Device, name: str) -> Attributes:
        known = self._known.attributes.get(name)
        if known is not None and self._now_s - known.read_at_s < _ATTRIBUTES_S:
            return known
        return read_attributes(self._asking, device, self._now_s, known)

    def _read_instances(
        self, device: nvml.Device, parent: str, attributes: Attributes
    ) -> list[tuple[DeviceReading, int | None]]:
        found = []
        for slot in range(self._asking.ask(nvml.mig_slots, device) or 0):
            instance = self._asking.ask(nvml.mig_instance, device, slot)
            if instance is None:
                continue
            try:
                found.append(self._read_instance(device, instance, slot, parent, attributes))
            except (nvml.NothingThere, nvml.DeviceLost):
                continue  # re-cut since; where the device itself is lost, its next call says so
            except nvml.NotTold as error:
                self._asking.unread.add(str(error))
        return found

    def _read_instance(
        self, device: nvml.Device, instance: nvml.Device, slot: int, parent: str, attributes: Attributes
    ) -> tuple[DeviceReading, int | None]:
        name = nvml.uuid(instance)
        memory = self._asking.told(nvml.memory, instance)
        gpu_instance = self._asking.ask(nvml.gpu_instance, instance)
        busy = None
        if gpu_instance is not None:
            busy = self._busy_share(device, f"{parent}/{gpu_instance}", gpu_instance, attributes)
        reading = DeviceReading(
            id=name,
            index=slot,
            gpu_instance=gpu_instance,
            product=attributes.product,
            memory_bytes=memory.total if memory else 0,
            bus_id=attributes.bus_id,
            numa_node=attributes.numa_node,
            parent=parent,
            mig_enabled=True,
            mig_profile=mig_profile(self._asking, device, instance),
            utilization_percent=busy,
            memory_used_bytes=memory.used if memory else None,
            processes=self._processes(instance, None),
            source="GPM" if attributes.gpm else "NVML",
        )
        return reading, gpu_instance

    def _busy_share(
        self, device: nvml.Device, key: str, gpu_instance: int | None, attributes: Attributes
    ) -> int | None:
        """By GPM, between the last read and this one; None at the first, and where there is no GPM."""
        if not attributes.gpm:
            return None
        if key not in self._busy:
            self._busy[key] = None
            taken = self._asking.ask(nvml.sample, device, gpu_instance)
            before = self._known.samples.get(key)
            if taken is not None:
                self._samples[key] = taken
                if before is not None:
                    self._busy[key] = self._asking.ask(nvml.utilization_between, before, taken)
        return self._busy[key]

    def _free_samples(self) -> None:
        for sample in self._known.samples.values():
            self._asking.ask(nvml.free_sample, sample)

    def _processes(self, device: nvml.Device, name: str | None) -> tuple[ProcessReading, ...]:
        """All that hold memory there; ``name``: of a device that tells how busy each keeps it."""
        found: dict[int, int | None] = {}
        for call in (nvml.compute_processes, nvml.graphics_processes, nvml.mps_processes):
            for process in self._asking.ask(call, device) or ():
                told = [each for each in (found.get(process.pid), process.memory_bytes) if each is not None]
                found[process.pid] = max(told, default=None)
        use = self._process_use(device, name) if found and name is not None else None
        return tuple(
            ProcessReading(pid, memory, None if use is None else use.get(pid, 0))
            for pid, memory in sorted(found.items())
        )

    def _process_use(self, device: nvml.Device, name: str) -> dict[int, int | None] | None:
        """The last sample of each process since the last read: a process without one did nothing."""
        since_us = self._known.seen_us.get(name, 0)
        self._seen_us[name] = since_us
        try:
            samples = nvml.process_use(device, since_us)
        except nvml.NothingThere:
            return {}
        except nvml.NotTold as error:
            self._asking.unread.add(str(error))
            return None
        self._seen_us[name] = max((since_us, *(sample.at_us for sample in samples)))
        return {sample.pid: sample.percent for sample in sorted(samples, key=lambda sample: sample.at_us)}

    def _read_vitals(self, device: nvml.Device) -> Vitals:
        rows = self._asking.ask(nvml.row_remapping, device)
        return Vitals(
            uncorrected_ecc=self._asking.ask(nvml.uncorrected_ecc, device),
            row_pending=rows[0] if rows else None,
            row_failed=rows[1] if rows else None,
            page_pending=self._asking.ask(nvml.pages_pending, device) if rows is None else None,
            recovery=self._asking.ask(nvml.recovery_action, device),
            energy_millijoules=self._asking.ask(nvml.energy_millijoules, device),
            throttled=self._asking.ask(nvml.throttled, device) or frozenset(),
        )

    def _lose(self, name: str, why: str, unknown: DeviceReading, vitals: Vitals) -> None:
        device = self._known.devices.get(name, unknown)
        self._devices[name] = _lost(device, why)
        self._vitals[name] = vitals
        self._xids[name] = (*self._known.xids.get(name, ()), *_held(name, self._events))
        for instance in self._known.devices.values():
            if instance.parent == name:
                self._devices[instance.id] = _lost(instance, why)

    def _miss_devices(self) -> None:
        """Devices that were there and are not among those that the driver knows, or names, any more.

        One that just does not answer was not reset when it answers again: its vitals stay as they were.
        """
        for name in self._known.parents - self._devices.keys():
            device = self._known.devices[name]
            why = "the driver does not know the device any more, or does not reach it"
            silent = device.index in self._silent and name in self._known.vitals
            self._lose(name, why, device, self._known.vitals[name] if silent else Vitals(lost=why))

    def _link_devices(self) -> None:
        """NVLinks lead to bus ids: whose those are, and which ought to be up, is known when all devices are.

        Devices that are lost, cut into instances, or apart from the fabric have no partners.
        """
        devices = {name: device for name, device in self._devices.items() if not device.parent}
        whole = {name for name in self._attributes if not devices[name].mig_enabled}
        bus_ids = {name: device.bus_id for name, device in devices.items()}
        states = {name: _link_state(self._attributes[name], set(bus_ids.values())) for name in sorted(whole)}
        troubles = link_health.link_troubles(states)
        joined = {
            name for name in whole if not link_health.stands_apart(states[name], troubles.get(name, ()))
        }
        reached = links.reached({name: self._attributes[name].peers for name in joined}, bus_ids)
        for name, device in devices.items():
            others = reached[name] & joined if name in joined else frozenset()
            told = (*device.troubles, *troubles.get(name, ()))
            self._devices[name] = replace(device, links=others, troubles=told)


def _link_state(attributes: Attributes, bus_ids: set[str]) -> link_health.LinkState:
    return link_health.LinkState(
        attributes.product,
        attributes.fabric,
        attributes.links,
        attributes.links_up,
        attributes.links_most_up,
        not attributes.peers <= bus_ids,
    )
