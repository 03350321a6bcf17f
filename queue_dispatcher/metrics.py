"""Every metric of the dispatcher, in one place. Names start with ``fairway_``.

Calls only bump counters. What can be asked for (how many wait and why, what is used of which quota) is read
when somebody scrapes, so that it can never drift from the truth; `Readings` says what that is.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from fairway.kube.observation import ReflectorMetrics
from fairway.service.lifecycle import StallReading
from fairway.service.metrics import Declared, WatchCounters, stall_metrics
from queue_dispatcher.cache.entry import Reached

_P: Final = "fairway_"
_OWN: Final = "fairway_dispatcher_"

CYCLE_BUCKETS_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
WAIT_BUCKETS_S: Final = (0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 86_400, 7 * 86_400)
PLACED_BUCKETS_S: Final = (0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600)
PROBE_BUCKETS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


@dataclass(frozen=True, slots=True)
class UsageReading:
    """One resource of one flavor in one queue; amounts in milli-cores of cpu, whole units of all else."""

    queue: str
    flavor: str
    resource: str
    used: int
    nominal: int
    borrowed: int


@dataclass(frozen=True, slots=True)
class Readings:
    """The state of the queues at one moment.

    ``pending``: by ClusterQueue, empty for workloads without one. ``unadmitted``: by ClusterQueue and reason.
    ``states``: bindings by state. ``fits_but_waits_s``: for how long the workload that has waited longest
    with quota and room for it has not been released. ``observes``: all of it is only what would be.
    """

    is_leading: bool = False
    observes: bool = False
    is_synced: bool = False
    pending: Mapping[str, int] = field(default_factory=dict)
    unadmitted: Mapping[tuple[str, str], int] = field(default_factory=dict)
    states: Mapping[str, int] = field(default_factory=dict)
    usage: Sequence[UsageReading] = ()
    shares: Mapping[str, float] = field(default_factory=dict)
    in_flight: int = 0
    parked: int = 0
    window: int = 0
    writes_waiting: int = 0
    fits_but_waits_s: float = 0.0
    objects: Mapping[str, int] = field(default_factory=dict)


class DispatcherMetrics:
    """The counters of one dispatcher process. Used on the event loop only."""

    def __init__(self, registry: CollectorRegistry, *, version: str) -> None:
        self._collector = _Collector()
        registry.register(self._collector)
        Gauge(
            f"{_OWN}build_info", "The version, as a label of a constant 1.", ["version"], registry=registry
        ).labels(version).set(1)

        declared = Declared(registry)
        counter, histogram = declared.counter, declared.histogram
        self._admitted = counter(f"{_P}admitted_total", "Bindings released, growth included", "cluster_queue")
        self._guided = counter(
            f"{_P}guided_releases_total",
            "Releases whose pods were told which nodes to prefer",
            "cluster_queue",
        )
        self._taken_back = counter(
            f"{_P}evicted_total", "Bindings taken back, by reason", "cluster_queue", "reason"
        )
        self._finished = counter(f"{_P}finished_total", "Bindings whose workload finished", "cluster_queue")
        self._waited = histogram(
            f"{_P}admission_wait_seconds",
            "From the place in the line to the release",
            WAIT_BUCKETS_S,
            "cluster_queue",
            "class",
        )
        self._reached = {
            reached: histogram(
                f"{_P}{reached}_wait_seconds", f"From the release to {what}", buckets, "cluster_queue"
            )
            for reached, what, buckets in (
                (Reached.PLACED, "the placement of all of it", PLACED_BUCKETS_S),
                (Reached.BOUND, "nodes for all of its pods", WAIT_BUCKETS_S),
                (Reached.READY, "running of all of its pods", WAIT_BUCKETS_S),
            )
        }
        self._writes = counter(
            f"{_P}binding_writes_total", "Patches of bindings, by purpose and outcome", "purpose", "outcome"
        )
        self._events = counter(f"{_P}events_total", "Kubernetes Events, by what became of them", "outcome")
        self._statuses = counter(
            f"{_P}status_writes_total", "Statuses of queues, by kind and outcome", "kind", "outcome"
        )
        self._visibility = counter(
            f"{_P}visibility_requests_total",
            "Questions to the visibility API, by what became of them",
            "outcome",
        )
        self._probes = counter(f"{_P}probes_total", "Questions to the estimators, by answer", "answer")
        self._probe_s = Histogram(
            f"{_P}probe_seconds",
            "Time that the estimators took for one question",
            buckets=PROBE_BUCKETS_S,
            registry=registry,
        )
        self._cycle_s = Histogram(
            f"{_P}cycle_seconds", "Time of one admission cycle", buckets=CYCLE_BUCKETS_S, registry=registry
        )
        self._cycle_errors = Counter(
            f"{_P}cycle_errors_total", "Cycles that failed by a defect", registry=registry
        )
        self._bad_objects = counter(
            f"{_P}bad_objects_total",
            "Objects, or parts of them, that could not be understood",
            "resource",
        )
        self._watches = WatchCounters(declared, _OWN).of()

    def admitted(self, queue: str, service_class: str, waited_s: float) -> None:
        """A binding was released after so long in the line."""
        self._admitted(queue).inc()
        self._waited(queue, service_class).observe(waited_s)

    def guided(self, queue: str) -> None:
        """The pods of a binding that was released were told which nodes to prefer."""
        self._guided(queue).inc()

    def reached(self, queue: str, reached: Reached, took_s: float) -> None:
        """What was released came so far so long after its release."""
        self._reached[reached](queue).observe(took_s)

    def taken_back(self, queue: str, reason: str) -> None:
        """A released binding was held again; ``reason`` is one of a small fixed set of words."""
        self._taken_back(queue, reason).inc()

    def finished(self, queue: str) -> None:
        """A workload came to its end."""
        self._finished(queue).inc()

    def write(self, purpose: str, outcome: str) -> None:
        """One attempt to patch a binding."""
        self._writes(purpose, outcome).inc()

    def event(self, outcome: str) -> None:
        """One Kubernetes Event: written, dropped, failed."""
        self._events(outcome).inc()

    def status(self, kind: str, outcome: str) -> None:
        """One status of a queue was written, or not."""
        self._statuses(kind, outcome).inc()

    def visibility_request(self, outcome: str) -> None:
        """One question about queues, answered or refused."""
        self._visibility(outcome).inc()

    def probe(self, answer: str, took_s: float) -> None:
        """One question to the estimators was answered: fits, waits, unknown."""
        self._probes(answer).inc()
        self._probe_s.observe(took_s)

    def cycle(self, took_s: float) -> None:
        """One admission cycle, from the snapshot to the actions handed over."""
        self._cycle_s.observe(took_s)

    def cycle_error(self) -> None:
        """A cycle failed by a defect of ours."""
        self._cycle_errors.inc()

    def bad_object(self, resource: str) -> None:
        """An object, or a part of it, was not understood; the rest counts."""
        self._bad_objects(resource).inc()

    def reflector(self) -> ReflectorMetrics:
        """The counters that reflectors use, each naming its resource."""
        return self._watches

    @property
    def readings(self) -> Readings | None:
        """The state of the queues that a scrape tells; None for nothing about queues."""
        return self._collector.readings

    @readings.setter
    def readings(self, now: Readings) -> None:
        self._collector.readings = now

    def watch_stalls(self, read: Callable[[], StallReading]) -> None:
        """Ask ``read`` about the event loop at each scrape."""
        self._collector.stalls = read


class _Collector(Collector):
    """Metrics made at scrape time from what was asked for."""

    def __init__(self) -> None:
        self.readings: Readings | None = None
        self.stalls: Callable[[], StallReading] | None = None

    def collect(self) -> Iterator[Metric]:
        if self.readings is not None:
            yield from _gauges(self.readings)
            yield from _queue_metrics(self.readings)
        if self.stalls is not None:
            yield from stall_metrics(_OWN, self.stalls())


def _gauges(now: Readings) -> Iterator[Metric]:
    rows = (
        ("leading", "1 when this process leads and writes, else 0", float(now.is_leading)),
        ("observing", "1 when nothing is held and all is what would be, else 0", float(now.observes)),
        ("synced", "1 when everything watched has been read completely, else 0", float(now.is_synced)),
        ("release_window_inflight", "Bindings released and not yet placed", now.in_flight),
        ("release_window_parked", "Of those, bindings that Karmada put aside as unschedulable", now.parked),
        ("release_window_size", "How many may be released and not yet placed", now.window),
        ("writes_waiting", "Patches decided and not yet made", now.writes_waiting),
        (
            "fits_but_waits_seconds",
            "For how long a workload has not been released although it fits; 0 if there is none",
            now.fits_but_waits_s,
        ),
    )
    for name, text, value in rows:
        yield GaugeMetricFamily(f"{_P}{name}", text, value=value)


def _queue_metrics(now: Readings) -> Iterator[Metric]:
    """One after the other, so that others may run in between."""

    def gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(f"{_P}{name}", text, labels=labels)

    pending = gauge("pending", "Workloads that wait; without a queue where none can be told", "cluster_queue")
    for queue, count in now.pending.items():
        pending.add_metric([queue], count)
    yield pending
    unadmitted = gauge("unadmitted", "Workloads that wait, by reason", "cluster_queue", "reason")
    for (queue, reason), count in now.unadmitted.items():
        unadmitted.add_metric([queue, reason], count)
    yield unadmitted
    states = gauge("bindings", "Bindings in scope, by state", "state")
    for state, count in now.states.items():
        states.add_metric([state], count)
    yield states
    where = ("cluster_queue", "flavor", "resource")
    used = gauge("queue_usage", "What is charged; milli-cores of cpu, whole units of all else", *where)
    for usage in now.usage:
        used.add_metric([usage.queue, usage.flavor, usage.resource], usage.used)
    yield used
    nominal = gauge("queue_nominal", "What the queue owns", *where)
    for usage in now.usage:
        nominal.add_metric([usage.queue, usage.flavor, usage.resource], usage.nominal)
    yield nominal
    borrowed = gauge("queue_borrowed", "What is charged beyond what the queue and those below own", *where)
    for usage in now.usage:
        borrowed.add_metric([usage.queue, usage.flavor, usage.resource], usage.borrowed)
    yield borrowed
    shares = gauge("weighted_share", "Dominant share beyond the quota, by weight; 0 within", "cluster_queue")
    for queue, share in now.shares.items():
        shares.add_metric([queue], share)
    yield shares
    objects = gauge("objects", "Objects held, by resource", "resource")
    for resource, count in now.objects.items():
        objects.add_metric([resource], count)
    yield objects
