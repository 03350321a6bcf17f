"""NodeDevices of one cluster: what the agents of its nodes found, and what it takes away from the columns.

An agent writes every five minutes. One that has not for ten is *stale*: its object is told and hardly heeded
any more, because holders may have ended, and labels changed. That a device is broken stays true, since only a
reset mends it and nobody tells of one, and so does that the plugin had taken one away: both are heeded until
the node was booted anew. The age of an
object counts from when its time was last seen to change, by this program's own clock: clocks of nodes may be
apart. Of an object that has not been seen to change, as after a start, it counts from the time that it
states, and from when it was first seen where that lies in the future. An agent that lives changes it within
five minutes, whatever its clock.

Where no agent writes about a node, or only a stale one has, what a Prometheus tells of it
(`estimator.cluster.measured_devices`) stands in for its object: same rules, and never beside it.

Time comes in with `NodeDevicesMirror.tick` alone; before the first one nothing is stale.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf

from estimator.cluster.broken_devices import broken_devices, filled_labels
from estimator.cluster.columns import NodeColumns
from estimator.cluster.device_reports import BadDevice, DeviceReport, both, device_report, lasting
from estimator.cluster.kind_mirror import KindMirror, discard
from estimator.cluster.measured_devices import STALE_AFTER_S, MeasuredDevices
from estimator.cluster.packed import packed
from estimator.cluster.report import Report
from fairway.kube.node_devices import NodeDevices
from fairway.kube.objects import object_key

_DIGITS = re.compile(r"\d+")

_STALE = f"observedAt has not changed for {STALE_AFTER_S / 60:.0f} minutes: is the agent running? Not heeded"
_OUTLIVING = ", but for broken devices: out until it writes, the node reboots, or the object is deleted"


@dataclass(slots=True)
class _Age:
    observed_s: float
    """By the node's clock; minus infinity where it is no time."""
    alive_s: float
    """When the agent was last known to live, by the clock of `NodeDevicesMirror.tick`."""


class NodeDevicesMirror(KindMirror[DeviceReport]):
    """The NodeDevices of one cluster; the reflector's sink for them. An event costs what its node has.

    ``held_on``: what the pod of a key and uid holds of a node; ``opened_on``: the ids of devices of it that
    the pod holds in a scheme that opens devices for pods (KAI), whose ids are no UUIDs.
    """

    def __init__(
        self,
        columns: NodeColumns,
        held_on: Callable[[str, str, str], Mapping[str, int]],
        opened_on: Callable[[str, str, str], frozenset[str]],
        report: Report,
    ) -> None:
        super().__init__(report)
        self.watched: dict[str, dict[str, None]] = {}
        """Pods on broken devices, with their nodes: `pod_changed` wants to know of them."""
        self._columns = columns
        self._held_on, self._opened_on = held_on, opened_on
        self._ages: dict[str, _Age] = {}
        self._stale: set[str] = set()
        self._told_stale: set[str] = set()
        self._told: dict[str, str] = {}
        self._now_s: float | None = None
        self._boots: dict[str, str] = {}
        self._heeded: dict[str, DeviceReport] = {}
        self.measured = MeasuredDevices(self._apply, report)
        self._written: dict[str, bytes] = {}

    def copy(self) -> Mapping[str, bytes]:
        """All objects by key as they are now, `packed`, for work on another thread."""
        return self._written.copy()

    @property
    def stale(self) -> frozenset[str]:
        """The nodes whose agents have fallen silent."""
        return frozenset(self._stale)

    @property
    def newest_s(self) -> float | None:
        """When the last of the agents wrote, by its node's clock; None where none has that tells a time."""
        newest_s = max((age.observed_s for age in self._ages.values()), default=-inf)
        return None if newest_s == -inf else newest_s

    def upsert(self, devices: NodeDevices) -> None:
        """An agent has written."""
        name = object_key(devices.metadata)
        report, observed_s = device_report(devices)
        was_stale, before = name in self._stale, self.version
        self._written[name] = packed(devices)
        self._see(name, -inf if observed_s is None else observed_s)
        self._set(name, report)
        if self.version == before and was_stale != (name in self._stale):
            self._apply(name)

    def delete(self, key: str) -> None:
        """An object is gone."""
        super().delete(key)
        self._ages.pop(key, None)
        self._written.pop(key, None)
        self._stale.discard(key)
        self._told_stale.discard(key)
        self._apply(key)

    def tick(self, now_s: float) -> None:
        """It is now so late, in seconds since the epoch: agents that have been silent for long are stale."""
        if self._now_s is None:
            for age in self._ages.values():
                age.alive_s = min(age.alive_s, now_s)
        self._now_s = now_s
        self.measured.tick(now_s)
        oldest_s = now_s - STALE_AFTER_S
        silent = {name for name, age in self._ages.items() if age.alive_s < oldest_s}
        changed, self._stale = silent ^ self._stale, silent
        for name in sorted(changed):
            self._apply(name)
        self._tell_stale()

    def tick_by_newest(self) -> None:
        """It is as late as the newest object says: of a dump, whose state is of one moment."""
        if self._ages:
            self.tick(max(0.0, self.newest_s or 0.0))

    def node_changed(self, name: str, boot_id: str) -> None:
        """The node of this name appeared or changed; ``boot_id`` is empty where it does not say it."""
        self._boots[name] = boot_id
        if name in self._values or self.measured.on(name) is not None:
            self._apply(name)

    def node_gone(self, name: str) -> None:
        """The node of this name is there no more."""
        self._boots.pop(name, None)

    def pod_changed(self, key: str) -> None:
        """A pod that is ``watched`` came to its node, changed what it holds, or is gone."""
        for name in tuple(self.watched.get(key, ())):
            self._apply(name)

    def _see(self, name: str, observed_s: float) -> None:
        now_s, age = self._now_s, self._ages.get(name)
        if age is None:
            age = self._ages[name] = _Age(observed_s, observed_s if now_s is None else min(observed_s, now_s))
        elif age.observed_s != observed_s:
            age.observed_s = observed_s
            # What is no time at all is no sign of life.
            age.alive_s = observed_s if now_s is None or observed_s == -inf else now_s
        if now_s is not None and age.alive_s < now_s - STALE_AFTER_S:
            self._stale.add(name)
        else:
            self._stale.discard(name)
            self._told_stale.discard(name)

    def _remember(self, key: str, value: DeviceReport) -> None:
        self._apply(key)

    def _heed(self, name: str, measured: DeviceReport | None) -> DeviceReport | None:
        """Whose word counts now; the pods on broken devices are looked at from now on."""
        report = both(measured, self._outliving(name)) if name in self._stale else self._values.get(name)
        if report is None:
            report = measured
        before = self._heeded.pop(name, None)
        if report is not None and report.bad:
            self._heeded[name] = report
        if before is not report:
            for key in _pods(before):
                discard(self.watched, key, name)
            for key in _pods(report):
                self.watched.setdefault(key, {})[name] = None
        return report

    def _apply(self, name: str) -> None:
        """Put into the columns what is said of the node as it is now."""
        own = self._values.get(name)
        measured = None if own is not None and name not in self._stale else self.measured.on(name)
        report = self._heed(name, measured)
        told = own if measured is None else measured
        problems = [] if told is None else list(told.problems)
        bad = self._bad_ids(name, report) if report is not None else frozenset()
        for table in self._columns.devices:
            table.set_broken(name, bad)
        ids = (one.hardware_ids for one in (report.bad if report else ()))
        self._columns.dra.set_broken(name, frozenset().union(*ids))
        stated = self._columns.stated(name)
        if stated is not None and report is None:
            self._columns.set_found(name, {}, {})
        elif stated is not None and report is not None:
            filled = filled_labels(report, stated)
            broken = broken_devices(report, stated, lambda pod, uid: self._held_on(pod, uid, name))
            self._columns.set_found(name, broken.found, filled.found)
            problems += filled.problems
            # Where a sharing scheme or a slice knows the devices by id, no resource need stand for them.
            if not all(self._is_known(name, one) for one in report.bad):
                problems += broken.problems
        source = "nodedevices" if measured is None else "prometheus"
        self._tell(source, name, "; ".join(problems))

    def _outliving(self, name: str) -> DeviceReport | None:
        """What is still believed of an agent that is silent: as long as its node runs as it did then."""
        report = self._values.get(name)
        is_same = report is not None and report.boot_id != "" and report.boot_id == self._boots.get(name)
        return lasting(report) if report is not None and is_same else None

    def _bad_ids(self, name: str, report: DeviceReport) -> frozenset[str]:
        ids = {device.id for device in report.bad}
        for device in report.bad:
            for holder in device.holders or ():
                opened = self._opened_on(holder.pod, holder.uid, name)
                # Who runs there tells which one it is, unless it holds several.
                if len(opened) == 1:
                    ids |= opened
        return frozenset(ids)

    def _is_known(self, name: str, device: BadDevice) -> bool:
        ids = {device.id, device.gpu}
        in_tables = any(table.has_device(name, id) for table in self._columns.devices for id in ids)
        return in_tables or self._columns.dra.knows(name, device.hardware_ids | {device.gpu})

    def _tell_stale(self) -> None:
        """All that have fallen silent since the last time in one report: they may be all of the cluster's."""
        news = sorted(self._stale - self._told_stale)
        self._told_stale = set(self._stale)
        if news:
            others = f"; the same of {len(news) - 1} others" if len(news) > 1 else ""
            kept = (self._outliving(name) for name in news)
            but = _OUTLIVING if any(one is not None and one.bad for one in kept) else ""
            self._report("nodedevices", news[0], _STALE + but + others)

    def _tell(self, source: str, name: str, told: str) -> None:
        """One report of a node, whatever is wrong with it, and again when something else is."""
        # Another number of the same thing is no news: an agent writes every five minutes.
        news = _DIGITS.sub("", told)
        if news == self._told.get(name, ""):
            return
        if news:
            self._told[name] = news
            self._report(source, name, told)
        else:
            del self._told[name]


def _pods(report: DeviceReport | None) -> frozenset[str]:
    """Those on its broken devices."""
    return frozenset(one.pod for device in (report.bad if report else ()) for one in device.holders or ())
