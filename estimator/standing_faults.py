"""What Prometheus last told to be wrong with a device stands until the same number is told to be well.

Not answered, partial, or a number that cannot be: none of it says that a device works. What was broken gives
way to a server that tells that very number of that very device, or to ten minutes in which none does.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from estimator.cluster.measured_devices import STALE_AFTER_S
from fairway.accelerators.devices import Read
from fairway.kube.node_devices import Health, NodeDevice, NodeDevices
from fairway.prometheus.devices import Fault, Judged, with_faults
from fairway.prometheus.exporters import Exporter, Value
from fairway.prometheus.merging import merged

_BROKEN = (Health.UNHEALTHY, Health.LOST)
_ORDER = list(Value)
_MINUTES = STALE_AFTER_S / 60


@dataclass(frozen=True, slots=True)
class _Standing:
    """A fault as it was last told, at a moment of a clock that only goes on."""

    device: NodeDevice
    fault: Fault
    at_s: float


_Faults = dict[tuple[str, Value], _Standing]
"""Of a node, by device and number."""


@dataclass(slots=True)
class Heard:
    """What all servers say of health in one look. ``asked``: by node the faults that stand from before."""

    asked: dict[str, _Faults]
    broken: dict[str, dict[tuple[str, Value], tuple[NodeDevice, Fault]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    well: set[tuple[str, str, Value]] = field(default_factory=set)
    by_agent: set[tuple[str, str]] = field(default_factory=set)

    def hear(self, said: Judged) -> None:
        """What one exporter says of a device; the nearest comes first, an agent's verdict is about all."""
        name = said.device.id
        if (said.node, name) in self.by_agent:
            return
        if said.exporter is Exporter.AGENT and said.told:
            self.by_agent.add((said.node, name))
        for fault in said.faults:
            if fault.health in _BROKEN:
                self.broken[said.node].setdefault((name, fault.value), (said.device, fault))
        for device, value in self.asked.get(said.node, ()):
            if device == name and value in said.told:
                self.well.add((said.node, name, value))


class StandingFaults:
    """What is broken, by the last word on it. One look at a time."""

    def __init__(self) -> None:
        self._faults: dict[str, _Faults] = {}

    def listen(self) -> Heard:
        """To be told of every device of a look."""
        return Heard(self._faults)

    def names(self) -> dict[Value, frozenset[str]]:
        """The devices that faults stand of, by what tells of it."""
        found: dict[Value, set[str]] = defaultdict(set)
        for faults in self._faults.values():
            for name, value in faults:
                found[value].add(name)
        return {value: frozenset(names) for value, names in found.items()}

    def applied(
        self, told: Iterable[NodeDevices], heard: Heard, at_s: float, now_s: float
    ) -> Read[tuple[NodeDevices, ...]]:
        """The objects of a look with what stands, and what of it nobody told of this time.

        ``at_s``: the moment of the look since the epoch, ``now_s``: now, by a clock that only goes on.
        """
        objects = tuple(told)
        there = {one.metadata.name for one in objects}
        faults: dict[str, _Faults] = {}
        silent: list[str] = []
        stale: list[str] = []
        for node, known in self._faults.items():
            for (name, value), last in known.items():
                if (node, name, value) in heard.well or (name, value) in heard.broken.get(node, ()):
                    continue
                is_stale = now_s - last.at_s > STALE_AFTER_S
                if node in there:
                    (stale if is_stale else silent).append(f"{name} on {node} ({value})")
                if not is_stale:
                    faults.setdefault(node, {})[name, value] = last
        for node, found in heard.broken.items():
            for key, (device, fault) in found.items():
                faults.setdefault(node, {})[key] = _Standing(device, fault, now_s)
        self._faults = faults
        # Tens of thousands of names, freed here and not where the loop would wait for it.
        heard.by_agent.clear()
        standing = [
            one if one.metadata.name not in faults else _with(one, faults[one.metadata.name], at_s)
            for one in objects
        ]
        return Read(tuple(standing), tuple(_problems(silent, stale)))


def _with(one: NodeDevices, faults: _Faults, at_s: float) -> NodeDevices:
    """The node's devices with what stands. One that is not told of any more stands too; who holds it is not
    known.
    """
    by_device: dict[str, list[_Standing]] = defaultdict(list)
    for name, value in sorted(faults, key=lambda key: (key[0], _ORDER.index(key[1]))):
        by_device[name].append(faults[name, value])
    known = [msgspec.structs.replace(found[0].device, holders=None) for found in by_device.values()]
    (every,) = merged((one,), (msgspec.structs.replace(one, devices=known),), at_s)
    devices = [_sick(device, by_device.get(device.id, ())) for device in every.devices]
    return msgspec.structs.replace(one, devices=devices)


def _sick(device: NodeDevice, standing: Sequence[_Standing]) -> NodeDevice:
    if not standing:
        return device
    faults = [one.fault for one in standing]
    codes = {problem.code for fault in faults for problem in fault.problems}
    others = tuple(problem for problem in device.problems or () if problem.code not in codes)
    return with_faults(device, (*faults, Fault(Value.CALLED_UNHEALTHY, Health(device.health), others)))


def _problems(silent: Sequence[str], stale: Sequence[str]) -> Iterator[str]:
    if silent:
        yield (
            f"{min(silent)}{_others(silent)}: was broken when last told of, and now nobody tells a number "
            f"that can be; expected one of that device. It stands until it is {_MINUTES:.0f} minutes old"
        )
    if stale:
        yield f"{min(stale)}{_others(stale)}: not told of for {_MINUTES:.0f} minutes, not heeded any more"


def _others(found: Sequence[str]) -> str:
    return f" and {len(found) - 1} others" if len(found) > 1 else ""
