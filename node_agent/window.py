"""What each device did in the last five minutes: samples in, sums out, in bounded memory.

The one idea: time is the caller's monotonic clock, so that a wall clock that jumps moves nothing; the wall
clock only names, at the end, the moment since when a device is idle. What is not measured stays None, and a
value that no device can have (utilisation above 100, negative amounts) counts as not measured.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from fairway.kube.node_devices import DeviceWindow
from fairway.usage.definitions import THRESHOLDS
from node_agent.bounds import MOST_BYTES, MOST_CELSIUS, MOST_MILLIWATTS, MOST_PERCENT, measured
from node_agent.reading import DeviceReading
from node_agent.times import rfc3339

WINDOW_S: Final = 300
_MOST_MILLIJOULES: Final = 2**63 - 1
_MISSED: Final = 3
"""Of so many looks that follow one another all but one may be missed."""


@dataclass(frozen=True, slots=True)
class IdleRule:
    """When a device does nothing, as data.

    ``below_percent``: where utilisation is measured, a sample below this is idle; others end it once they are
    more than one in twenty of the window. Elsewhere energy tells, once it has been seen to: a sample is idle
    whose power is at most ``floor_percent`` of the lowest ever seen, if the highest was at least
    ``contrast_percent`` of it; before that nothing is said. With the same contrast, no sample is idle whose
    power is more than ``work_percent`` of the way from the lowest to the highest, whatever utilisation says:
    it may have been measured at the wrong moments. A device that waits with a program loaded stays below.
    ``gap_s``: after so long without a sample nobody knows what the device did, and idling begins anew.
    """

    below_percent: int = THRESHOLDS.quiet_percent
    floor_percent: int = 120
    contrast_percent: int = 200
    work_percent: int = 50
    gap_s: float = 60


IDLE: Final = IdleRule()


@dataclass(frozen=True, slots=True)
class _Sample:
    """``covers_s``: the time since the sample before, as far as this one speaks for it. ``is_idle``: see
    `IdleRule`."""

    at_s: float
    covers_s: float
    utilization_percent: int | None
    memory_used_bytes: int | None
    power_milliwatts: int | None
    temperature_celsius: int | None
    is_throttled: bool
    is_idle: bool


class DeviceSamples:
    """The samples of one device. ``most``: how many are kept, whatever the clock says."""

    def __init__(self, most: int, rule: IdleRule = IDLE) -> None:
        self._samples: deque[_Sample] = deque(maxlen=most)
        self._rule = rule
        self._energy: tuple[float, int] | None = None
        self._power_before: int | None = None
        self._lowest_milliwatts = MOST_MILLIWATTS
        self._highest_milliwatts = 0
        self._idle_since_s: float | None = None
        self._source = ""
        self._first_s: float | None = None
        self.last_s: float | None = None

    def add(self, reading: DeviceReading, now_s: float) -> None:
        """One more sample. One that is not later than the one before is passed over."""
        since_s = None if self.last_s is None else now_s - self.last_s
        if since_s is not None and since_s <= 0:
            return
        known = since_s is not None and since_s <= self._rule.gap_s
        by_energy = self._power_by_energy(reading, now_s)
        utilization = measured(reading.utilization_percent, MOST_PERCENT)
        power = measured(reading.power_milliwatts, MOST_MILLIWATTS)
        idle = self._is_idle(utilization, by_energy)
        self._samples.append(
            _Sample(
                now_s,
                since_s if since_s is not None and known else 0.0,
                utilization,
                measured(reading.memory_used_bytes, MOST_BYTES),
                by_energy if power is None else power,
                measured(reading.temperature_celsius, MOST_CELSIUS),
                bool(reading.throttled),
                idle,
            )
        )
        self._source = reading.source
        if not idle:
            if not (known and self._was_a_blip(utilization)):
                self._idle_since_s = None
        elif self._idle_since_s is None or not known:
            self._idle_since_s = now_s
        self._first_s = now_s if self._first_s is None else self._first_s
        self.last_s = now_s

    def resume(self, idle_since_s: float) -> None:
        """An agent before us knew it idle since then: true if we have never seen it do anything."""
        if self._idle_since_s is not None and self._idle_since_s == self._first_s:
            self._idle_since_s = min(self._idle_since_s, idle_since_s)

    def summary(self, now_s: float, wall_s: float) -> DeviceWindow:
        """The sums over the window that ends ``now_s``, which is ``wall_s`` seconds after the epoch."""
        while self._samples and self._samples[0].at_s <= now_s - WINDOW_S:
            self._samples.popleft()
        samples = self._samples
        used = sorted(each for each in (s.utilization_percent for s in samples) if each is not None)
        memory = [each for each in (s.memory_used_bytes for s in samples) if each is not None]
        throttled_s = sum(s.covers_s for s in samples if s.is_throttled)
        idle_s = self._idle_since_s
        return DeviceWindow(
            utilization_p50=_nearest_rank(used, 50),
            utilization_p95=_nearest_rank(used, 95),
            utilization_max=used[-1] if used else None,
            memory_peak_bytes=max(memory, default=None),
            memory_used_bytes=memory[-1] if memory else None,
            power_max_milliwatts=_highest(s.power_milliwatts for s in samples),
            temperature_max_celsius=_highest(s.temperature_celsius for s in samples),
            throttled_seconds=min(WINDOW_S, round(throttled_s)) if samples else None,
            samples=len(samples),
            idle_since=None if idle_s is None or not samples else rfc3339(wall_s - (now_s - idle_s)),
            source=self._source,
        )

    def idle_s(self, now_s: float) -> float | None:
        """For how many seconds it has done nothing; None while it works, or nobody knows."""
        return None if self._idle_since_s is None else max(0.0, now_s - self._idle_since_s)

    def _was_a_blip(self, utilization: int | None) -> bool:
        """Whether the samples of the window were idle but for too few to count."""
        judged = [s.is_idle for s in self._samples if s.utilization_percent is not None]
        return utilization is not None and judged.count(False) * 20 <= len(judged)

    def _is_idle(self, utilization: int | None, power: int | None) -> bool:
        lowest, highest = self._lowest_milliwatts, self._highest_milliwatts
        if power is None or highest * 100 < lowest * self._rule.contrast_percent:
            return utilization is not None and utilization < self._rule.below_percent
        if utilization is None:
            return power * 100 <= lowest * self._rule.floor_percent
        works = (power - lowest) * 100 > (highest - lowest) * self._rule.work_percent
        return utilization < self._rule.below_percent and not works

    def _power_by_energy(self, reading: DeviceReading, now_s: float) -> int | None:
        """Mean power since the sample before, in milliwatts; the counter begins anew with the driver.

        A counter that stands still was not brought up to date. One that was brought up to date late tells too
        little of one sample, so that the lowest is what two in a row do not exceed.
        """
        before, energy = self._energy, measured(reading.energy_millijoules, _MOST_MILLIJOULES)
        if before is not None and energy == before[1]:
            return None
        self._energy = None if energy is None else (now_s, energy)
        if before is None or energy is None or energy < before[1]:
            return None
        power = measured(round((energy - before[1]) / (now_s - before[0])), MOST_MILLIWATTS)
        if power is None:
            return None
        other = power if self._power_before is None else self._power_before
        self._power_before = power
        self._lowest_milliwatts = min(self._lowest_milliwatts, max(1, power, other))
        self._highest_milliwatts = max(self._highest_milliwatts, power)
        return power


class Windows:
    """The samples of all devices of a node, by id. ``period_s``: how often they are read."""

    span_s: Final = WINDOW_S

    def __init__(self, period_s: float, rule: IdleRule = IDLE) -> None:
        self._most = int(WINDOW_S / period_s) + 1
        self._rule = replace(rule, gap_s=max(rule.gap_s, _MISSED * period_s))
        self._resumed_at_s: float | None = None
        self._devices: dict[str, DeviceSamples] = {}
        self._idle_before: dict[str, float] = {}

    def resume(self, idle_since_s: dict[str, float]) -> None:
        """What an agent before us knew: since when devices are idle, by this agent's monotonic clock."""
        self._idle_before.update(idle_since_s)
        self._resumed_at_s = None

    def add(self, devices: Iterable[DeviceReading], now_s: float) -> None:
        """One reading of all devices; what has not been there for a whole window is forgotten.

        A device that is first seen later than the others was not watched since an agent before us.
        """
        if self._resumed_at_s is None:
            self._resumed_at_s = now_s
        if now_s - self._resumed_at_s > self._rule.gap_s:
            self._idle_before.clear()
        for reading in devices:
            samples = self._devices.get(reading.id)
            if samples is None:
                samples = self._devices[reading.id] = DeviceSamples(self._most, self._rule)
            samples.add(reading, now_s)
            if (idle_s := self._idle_before.pop(reading.id, None)) is not None:
                samples.resume(idle_s)
        for id, samples in tuple(self._devices.items()):
            if samples.last_s is not None and samples.last_s <= now_s - WINDOW_S:
                del self._devices[id]

    def summaries(self, now_s: float, wall_s: float) -> dict[str, DeviceWindow]:
        """The sums of every device that is known, by id."""
        return {id: samples.summary(now_s, wall_s) for id, samples in self._devices.items()}

    def idle_s(self, id: str, now_s: float) -> float | None:
        """For how many seconds a device has done nothing; see `DeviceSamples.idle_s`."""
        samples = self._devices.get(id)
        return None if samples is None else samples.idle_s(now_s)


def _nearest_rank(ordered: list[int], percent: int) -> int | None:
    return ordered[-(-len(ordered) * percent // 100) - 1] if ordered else None


def _highest(values: Iterable[int | None]) -> int | None:
    return max((each for each in values if each is not None), default=None)
