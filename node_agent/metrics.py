"""Every metric of the node agent, in one place; names start with ``fairway_node_``.

Series are bounded: by devices (at most 128), and by holders (at most ``MOST_HOLDERS`` of the whole node).
Labels are those texts that the object may hold, whatever drivers, kubelet and pods call things.
"""

import platform
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Gauge, Histogram, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from fairway.kube.node_devices import DeviceWindow, Health, NodeDevice
from fairway.service.metrics import Declared
from node_agent import bounds
from node_agent.bounds import measured
from node_agent.holders import HolderPod
from node_agent.publishing import Why
from node_agent.reading import DeviceReading
from node_agent.sampling import Sample
from node_agent.window import WINDOW_S

MOST_HOLDERS: Final = 512

WATCHES: Final = "fairway_node_agent_"
"""What counts of the watches on pods and slices begins with it: see `WatchCounters`."""

_DEVICE: Final = "fairway_node_device_"
_POD: Final = "fairway_node_pod_"
_AGENT: Final = WATCHES
_LABELS: Final = ("uuid", "index", "product", "mig_profile")
_HOLDER: Final = ("namespace", "pod", "container", "queue", "source")
_LOOK_BUCKETS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class AgentMetrics:
    """The metrics of one agent. ``last`` answers the latest sample at every scrape, None before the first.

    ``foreign_writes``: how often somebody else wrote our object.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        *,
        version: str,
        last: Callable[[], Sample | None],
        foreign_writes: Callable[[], int],
        wall_clock: Callable[[], float],
    ) -> None:
        declared = Declared(registry)
        self._wall_clock = wall_clock
        build = Gauge(
            f"{_AGENT}build_info", "Which release this is", ["version", "python_version"], registry=registry
        )
        build.labels(version, platform.python_version()).set(1)
        writes = declared.counter(f"{_AGENT}writes_total", "Writes of NodeDevices that were stored", "why")
        self._writes = {why: writes(why.value) for why in Why}
        self._failures = declared.counter(
            f"{_AGENT}write_failures_total", "Writes of NodeDevices that failed", "reason"
        )
        self._last_write = Gauge(
            f"{_AGENT}last_write_timestamp_seconds", "When NodeDevices was stored last", registry=registry
        )
        self._looks = Histogram(
            f"{_AGENT}look_seconds",
            "Time that a look at all devices and holders took",
            buckets=_LOOK_BUCKETS_S,
            registry=registry,
        )
        registry.register(_Devices(last, foreign_writes))

    def looked(self, sample: Sample) -> None:
        """The devices were looked at."""
        self._looks.observe(sample.took_s)

    def wrote(self, why: Why) -> None:
        """The object is stored."""
        self._writes[why].inc()
        self._last_write.set(self._wall_clock())

    def failed(self, reason: str) -> None:
        """It is not."""
        self._failures(reason).inc()


class _Devices(Collector):
    """What is read of the latest sample at every scrape."""

    def __init__(self, last: Callable[[], Sample | None], foreign_writes: Callable[[], int]) -> None:
        self._last, self._foreign_writes = last, foreign_writes

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        yield CounterMetricFamily(
            f"{_AGENT}foreign_writes_total",
            "Writes of this node's NodeDevices by somebody else",
            value=self._foreign_writes(),
        )
        sample = self._last()
        if sample is None:
            return
        yield _flag(
            "problem", "1 while less is known than should be; the object says why", bool(_told(sample))
        )
        yield _flag("driver_hung", "1 while the driver does not answer", sample.reading.hung)
        yield GaugeMetricFamily(f"{_AGENT}devices", "Devices that were read", len(sample.reading.devices))
        devices = _read(sample)
        yield from _of_devices(sample, devices)
        yield from _held(sample, devices)


def _told(sample: Sample) -> str:
    return sample.made.agent.problem


def _flag(name: str, text: str, is_so: bool) -> Metric:
    return GaugeMetricFamily(f"{_AGENT}{name}", text, 1 if is_so else 0)


_Read = list[tuple[NodeDevice, DeviceReading]]
"""Each device as it is told, whose texts and numbers are bounded, and as it was read."""


def _read(sample: Sample) -> _Read:
    readings = {each.id: each for each in sample.reading.devices}
    return [(each, readings[each.id]) for each in sample.made.devices if each.id in readings]


def _of_devices(sample: Sample, devices: _Read) -> Iterator[Metric]:
    info = _family("info", "What the device is", "parent", "driver")
    health = _family("health", "1 for the health that the device is in", "health")
    problems = _family("problem", "1 for each thing that is wrong with the device", "code")
    idle = _family("idle_seconds", "For how long the device has done nothing; absent while it works")
    throttled = _family("throttled", "Whether heat or power holds the clocks down, by 0 and 1")
    for each, reading in devices:
        labels = _labels(each)
        info.add_metric([*labels, each.parent, sample.made.driver.version], 1)
        for one in Health:
            health.add_metric([*labels, one.value], 1 if one == each.health else 0)
        for code in sorted({problem.code for problem in each.problems or ()}):
            problems.add_metric([*labels, code], 1)
        if each.id in sample.idle_s:
            idle.add_metric(labels, sample.idle_s[each.id])
        throttled.add_metric(labels, 1 if reading.throttled else 0)
    yield from (info, health, problems, idle, throttled)
    for name, text, read in _AMOUNTS:
        family = _family(name, text)
        for each, reading in devices:
            if (value := read(reading)) is not None:
                family.add_metric(_labels(each), value)
        yield family
    for name, text, sum_up in _SUMS:
        family = _family(f"window_{name}", f"{text}, of the last {WINDOW_S} seconds")
        for each, _ in devices:
            if each.window is not None and (value := sum_up(each.window)) is not None:
                family.add_metric(_labels(each), value)
        yield family
    energy = CounterMetricFamily(
        f"{_DEVICE}energy_joules", "Energy since the driver was loaded", labels=_LABELS
    )
    for each, reading in devices:
        if reading.energy_millijoules is not None and reading.energy_millijoules >= 0:
            energy.add_metric(_labels(each), reading.energy_millijoules / 1000)
    yield energy


def _part(percent: int | None) -> float | None:
    return None if percent is None else percent / 100


def _watts(each: DeviceReading) -> float | None:
    power = measured(each.power_milliwatts, bounds.MOST_MILLIWATTS)
    return None if power is None else power / 1000


_AMOUNTS: Final[tuple[tuple[str, str, Callable[[DeviceReading], float | None]], ...]] = (
    (
        "utilization_ratio",
        "Part of the time in which a kernel ran, 0 to 1",
        lambda each: _part(measured(each.utilization_percent, bounds.MOST_PERCENT)),
    ),
    (
        "memory_used_bytes",
        "Memory in use",
        lambda each: measured(each.memory_used_bytes, bounds.MOST_BYTES),
    ),
    (
        "memory_total_bytes",
        "Memory of the device",
        lambda each: measured(each.memory_bytes, bounds.MOST_BYTES),
    ),
    ("power_watts", "Power drawn", _watts),
    (
        "temperature_celsius",
        "Temperature",
        lambda each: measured(each.temperature_celsius, bounds.MOST_CELSIUS),
    ),
    ("processes", "Processes on the device", lambda each: len(each.processes)),
)

_SUMS: Final[tuple[tuple[str, str, Callable[[DeviceWindow], float | None]], ...]] = (
    ("utilization_p50_ratio", "Median utilisation", lambda window: _part(window.utilization_p50)),
    ("utilization_p95_ratio", "95th percentile of utilisation", lambda window: _part(window.utilization_p95)),
    ("memory_peak_bytes", "Peak of memory used", lambda window: window.memory_peak_bytes),
    ("throttled_seconds", "Time with clocks held down", lambda window: window.throttled_seconds),
)
"""What everything that judges devices goes by: see `fairway.usage.definitions`."""


def _held(sample: Sample, devices: _Read) -> Iterator[Metric]:
    """1 for each container that holds a device, or a share of it; the first of the node's, if too many."""
    family = _family("holder", "1 for each container that holds the device", *_HOLDER)
    left = MOST_HOLDERS
    pods: set[tuple[str, str]] = set()
    for each, _ in devices:
        # Of one container that both kubelet and a process tell of, what kubelet says.
        found = {
            (one.namespace, one.pod, one.container): (one.queue, one.source)
            for one in sorted(each.holders or (), key=lambda one: one.source)
        }
        for names in sorted(found)[:left]:
            family.add_metric([*_labels(each), *names, *found[names]], 1)
            pods.add(names[:2])
        left -= min(left, len(found))
    yield family
    bound = _pod_family("scheduled_timestamp_seconds", "When a pod that holds devices was bound to the node")
    unknown = _pod_family("unknown_devices", "Devices that kubelet gave a pod and nobody could read")
    for pod in sorted(pods):
        known = sample.pods.get(pod, HolderPod())
        if known.bound_s is not None:
            bound.add_metric(pod, known.bound_s)
        unknown.add_metric(pod, known.unknown)
    yield from (bound, unknown)


def _labels(each: NodeDevice) -> list[str]:
    return [each.id, str(each.index), each.product, each.mig_profile]


def _family(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{_DEVICE}{name}", text, labels=[*_LABELS, *labels])


def _pod_family(name: str, text: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{_POD}{name}", text, labels=["namespace", "pod"])
