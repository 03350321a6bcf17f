"""One read of all devices of the node: from NVML's calls to a `NodeReading`.

Each call is asked by itself, so that one that fails costs one value. What has to be remembered from read to
read is a value (`Known`) that goes in and comes out: a read that hangs and is given up leaves nothing half
written. No thread, no log, no clock in here.
"""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace

from node_agent import health, link_health, links, nvml
from node_agent.asking import Asking
from node_agent.attributes import Attributes, mig_profile, read_attributes
from node_agent.device_use import DeviceUse
from node_agent.health import HeldXid, Vitals
from node_agent.known import Known, at_rest, heard_of, hearing, lost
from node_agent.reading import DeviceReading, NodeReading
from node_agent.xid_events import DeviceXid

_ATTRIBUTES_S = 60.0
"""How long what seldom changes is believed: product, place, links, clique."""


class Progress:
    """Where a read is: ``index`` of the device that is asked now, None between devices.

    The one thing that a read tells before it is through, for whoever gives it up.
    """

    def __init__(self) -> None:
        self.index: int | None = None


def read(
    known: Known,
    events: Iterable[DeviceXid],
    now_s: float,
    progress: Progress | None = None,
    avoid: AbstractSet[int] = frozenset(),
) -> tuple[NodeReading, Known]:
    """Reads all devices, having connected with the driver where that is not so; once more where it went away.

    ``events``: the XIDs heard since the last read; ``now_s``: by the clock that they are timed by. ``avoid``:
    indices of devices that are not asked, for a call about them has not returned.
    """
    heard, progress = list(events), progress or Progress()
    try:
        return _connected_read(known, heard, now_s, progress, avoid)
    except nvml.NvmlError as error:
        _disconnect()
        if not known.connected:
            return _without_driver(known, heard, error, now_s)
    known = replace(known, connected=False, attributes={}, samples={}, busy_us={})
    try:
        return _connected_read(known, heard, now_s, progress, avoid)
    except nvml.NvmlError as error:
        _disconnect()
        return _without_driver(known, heard, error, now_s)


def _connected_read(
    known: Known, events: list[DeviceXid], now_s: float, progress: Progress, avoid: AbstractSet[int]
) -> tuple[NodeReading, Known]:
    if not known.connected:
        nvml.init()
        known = replace(known, connected=True, session=known.session + 1, unread=frozenset())
    return _Pass(known, events, now_s, progress, avoid).run()


def _disconnect() -> None:
    with suppress(nvml.NvmlError):  # it has said that it is not connected
        nvml.shutdown()


def _without_driver(
    known: Known, events: Iterable[DeviceXid], error: nvml.NvmlError, now_s: float
) -> tuple[NodeReading, Known]:
    """Nothing can be read. Without any driver all devices are lost; else their state is not known anew."""
    known = hearing(known, events, now_s)
    gone = isinstance(error, nvml.DriverAway) and error.unloaded
    restart = isinstance(error, nvml.DriverAway) and error.mismatch and known.session > 0
    devices = {
        name: lost(device, "no driver is loaded on the node") if gone else at_rest(device)
        for name, device in known.devices.items()
    }
    vitals = {name: Vitals(lost="no driver") if gone else each for name, each in known.vitals.items()}
    known = replace(
        known, connected=False, attributes={}, samples={}, busy_us={}, devices=devices, vitals=vitals
    )
    problem = f"the NVIDIA driver cannot be asked: {error}"
    if restart:
        problem += "; it was replaced while this agent ran, which has to be restarted to load its library"
    reading = NodeReading(
        known.driver_version,
        known.cuda_version,
        tuple(devices.values()),
        problem,
        incomplete=not devices,
        restart=restart,
    )
    return reading, known


class _Pass:
    """One pass over the devices. What it finds is kept to itself until it is through."""

    def __init__(
        self,
        known: Known,
        events: Sequence[DeviceXid],
        now_s: float,
        progress: Progress,
        avoid: AbstractSet[int],
    ) -> None:
        self._progress, self._avoid = progress, avoid
        self._known = known
        self._events = events
        self._now_s = now_s
        self._common = self._asking = Asking()
        self._answered: dict[str, frozenset[str]] = {}
        self._unread: set[str] = set()
        self._problems: list[str] = []
        self._silent: set[int] = set()
        self._devices: dict[str, DeviceReading] = {}
        self._attributes: dict[str, Attributes] = {}
        self._vitals: dict[str, Vitals] = {}
        self._xids: dict[str, tuple[HeldXid, ...]] = {}
        self._use = DeviceUse(known, self._common)

    def run(self) -> tuple[NodeReading, Known]:
        """All devices, in the order of their indices, each followed by its instances."""
        driver = self._common.ask(nvml.driver_version) or self._known.driver_version
        cuda = self._common.ask(nvml.cuda_version) or self._known.cuda_version
        count = nvml.device_count()
        before = {device.index: device for device in self._known.devices.values() if not device.parent}
        for index in range(count):
            if index in self._avoid and index in before:
                self._pass_over(before[index])
                continue
            self._progress.index = index
            self._read_index(index)
        self._progress.index = None
        self._miss_devices()
        self._link_devices()
        self._use.free_samples()
        if not count and not self._devices:
            self._problems.append(f"the NVIDIA driver {driver} knows no device on this node")
        ordered = sorted(self._devices.values(), key=self._order)
        unread = self._known.unread | self._unread | self._common.unread  # not all calls are made each time
        reading = NodeReading(
            driver,
            cuda,
            tuple(ordered),
            "; ".join(self._problems),
            tuple(sorted(unread)),
            incomplete=sum(not device.parent for device in ordered) < count,
        )
        known = replace(
            self._known,
            driver_version=driver,
            cuda_version=cuda,
            attributes=self._attributes,
            devices={device.id: device for device in ordered},
            vitals=self._vitals,
            xids=self._xids,
            answered={**self._known.answered, **self._answered},
            seen_us=self._use.seen_us,
            busy_us=self._use.busy_us,
            samples=self._use.samples,
            unread=unread,
        )
        return reading, known

    def _order(self, device: DeviceReading) -> tuple[int, bool, int, str]:
        parent = self._devices.get(device.parent, device)
        return parent.index, device.parent != "", device.index, device.id

    def _pass_over(self, device: DeviceReading) -> None:
        """What is known of a device that is not asked, for it does not answer."""
        name, before = device.id, self._known.vitals.get(device.id, Vitals())
        vitals = health.with_last_known(before, Vitals(failures=("a call has not returned",), is_silent=True))
        heard = heard_of(name, self._events)
        xids = health.held(self._known.xids.get(name, ()), heard, before, vitals, self._now_s)
        self._vitals[name], self._xids[name] = vitals, xids
        if name in self._known.attributes:
            self._attributes[name] = self._known.attributes[name]
        for each in self._known.devices.values():
            if name in (each.id, each.parent):
                found = health.troubles(vitals, xids, each.gpu_instance)
                self._devices[each.id] = replace(at_rest(each), troubles=found)
        self._problems.append(f"device {device.index} is not asked: a call about it has not returned")

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
        self._asking = Asking(self._known.answered.get(name, frozenset()))
        attributes = self._attributes_of(device, name)
        before = self._known.devices.get(name)
        cut = self._asking.ask(nvml.mig_enabled, device)
        if cut is None:
            cut = before is not None and before.mig_enabled and self._asking.is_failing(nvml.mig_enabled)
        instances = self._read_instances(device, name, attributes) if cut else []
        memory = self._asking.ask(nvml.memory, device)
        told = self._read_vitals(device)
        power = self._asking.ask(nvml.power_milliwatts, device)
        temperature = self._asking.ask(nvml.temperature_celsius, device)
        if not cut:
            busy = self._use.since_last(self._asking, device, name)
        else:
            busy = self._use.share(device, name, None) if attributes.gpm else None
        processes = () if cut else self._use.processes(self._asking, device, name)
        vitals, xids = self._health(name, index, told)
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
            utilization_percent=busy,
            memory_used_bytes=memory.used if memory else None,
            power_milliwatts=power,
            energy_millijoules=told.energy_millijoules,
            temperature_celsius=temperature,
            throttled=vitals.throttled,
            capped=vitals.clock_reasons - vitals.throttled,
            troubles=health.troubles(vitals, xids),
            processes=processes,
            source="GPM" if cut and attributes.gpm else "NVML",
        )
        # Nothing is kept of a device that is lost on the way here.
        self._attributes[name], self._vitals[name], self._xids[name] = attributes, vitals, xids
        self._devices[name] = reading
        for instance, gpu_instance in instances:
            troubles = health.troubles(vitals, xids, gpu_instance)
            self._devices[instance.id] = replace(instance, troubles=troubles)

    def _health(self, name: str, index: int, told: Vitals) -> tuple[Vitals, tuple[HeldXid, ...]]:
        """What is known of it now, once all was asked: which calls failed is part of it."""
        asking = self._asking
        self._unread |= asking.unread
        self._answered[name] = frozenset(asking.answered)
        before = self._known.vitals.get(name, Vitals())
        failures = tuple(str(error) for error in asking.failures)
        told = replace(told, failures=failures, is_silent=asking.is_silent, needs_reset=asking.needs_reset)
        vitals = health.with_last_known(before, told)
        self._problems += [
            f"device {index}: {trouble.message}"
            for trouble in health.troubles(replace(vitals, lost=""))
            if failures and trouble.code in health.SILENCES
        ]
        heard = heard_of(name, self._events)
        return vitals, health.held(self._known.xids.get(name, ()), heard, before, vitals, self._now_s)

    def _memory_before(self, name: str) -> int:
        """Some drivers tell the memory of a device that is cut to privileged callers only."""
        before = self._known.devices.get(name)
        return before.memory_bytes if before else 0

    def _attributes_of(self, device: nvml.Device, name: str) -> Attributes:
        known = self._known.attributes.get(name)
        if known is not None and self._now_s - known.read_at_s < _ATTRIBUTES_S:
            return known
        asking = Asking()
        read = read_attributes(asking, device, self._now_s, known)
        self._unread |= asking.unread
        return known if known is not None and asking.is_failing(nvml.bus_id) else read

    def _read_instances(
        self, device: nvml.Device, parent: str, attributes: Attributes
    ) -> list[tuple[DeviceReading, int | None]]:
        found = []
        before = {each.index: each for each in self._known.devices.values() if each.parent == parent}
        slots = self._asking.ask(nvml.mig_slots, device)
        for slot in range(slots) if slots is not None else sorted(before):
            instance = self._asking.ask(nvml.mig_instance, device, slot)
            if instance is None:
                if slot in before and self._asking.is_failing(nvml.mig_instance, nvml.mig_slots):
                    found.append((at_rest(before[slot]), before[slot].gpu_instance))
                continue
            try:
                found.append(self._read_instance(device, instance, slot, parent, attributes))
            except (nvml.NothingThere, nvml.DeviceLost):
                continue  # re-cut since; where the device itself is lost, its next call says so
            except nvml.NotTold as error:
                self._common.unread.add(str(error))
        return found

    def _read_instance(
        self, device: nvml.Device, instance: nvml.Device, slot: int, parent: str, attributes: Attributes
    ) -> tuple[DeviceReading, int | None]:
        name = nvml.uuid(instance)
        memory = self._common.told(nvml.memory, instance)
        gpu_instance = self._common.ask(nvml.gpu_instance, instance)
        busy = None
        if gpu_instance is not None and attributes.gpm:
            busy = self._use.share(device, f"{parent}/{gpu_instance}", gpu_instance)
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
            mig_profile=mig_profile(self._common, device, instance),
            utilization_percent=busy,
            memory_used_bytes=memory.used if memory else None,
            processes=self._use.processes(self._common, instance, None),
            source="GPM" if attributes.gpm else "NVML",
        )
        return reading, gpu_instance

    def _read_vitals(self, device: nvml.Device) -> Vitals:
        rows = self._asking.ask(nvml.row_remapping, device)
        return Vitals(
            uncorrected_ecc=self._asking.ask(nvml.uncorrected_ecc, device),
            row_pending=rows[0] if rows else None,
            row_failed=rows[1] if rows else None,
            page_pending=self._asking.ask(nvml.pages_pending, device) if rows is None else None,
            recovery=self._asking.ask(nvml.recovery_action, device),
            energy_millijoules=self._asking.ask(nvml.energy_millijoules, device),
            clock_reasons=self._asking.ask(nvml.clock_reasons, device) or frozenset(),
        )

    def _lose(self, name: str, why: str, unknown: DeviceReading, vitals: Vitals) -> None:
        device = self._known.devices.get(name, unknown)
        self._devices[name] = lost(device, why)
        self._vitals[name] = vitals
        self._xids[name] = (*self._known.xids.get(name, ()), *heard_of(name, self._events))
        for instance in self._known.devices.values():
            if instance.parent == name:
                self._devices[instance.id] = lost(instance, why)

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
