"""Every counter of the dispatcher, in one place. Names start with ``fairway_``.

Calls only bump counters. What can be asked for (how many wait and why, what is used of which quota) is read
when somebody scrapes, so that it can never drift from the truth: `queue_dispatcher.gauges`.
"""

from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric
from prometheus_client.registry import Collector

from fairway.kube.observation import ReflectorMetrics
from fairway.service.lifecycle import StallReading
from fairway.service.metrics import Declared, WatchCounters, stall_metrics
from queue_dispatcher.cache.entry import Reached
from queue_dispatcher.gauges import Readings, gauges

_P: Final = "fairway_"
_OWN: Final = "fairway_dispatcher_"

CYCLE_BUCKETS_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
WAIT_BUCKETS_S: Final = (0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 86_400, 7 * 86_400)
PLACED_BUCKETS_S: Final = (0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600)
_RESERVATION_OUTCOMES: Final = ("made", "fulfilled", "given_up")
PROBE_BUCKETS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


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
        self._backfilled = counter(
            f"{_P}backfilled_total",
            "Bindings released past a reservation that they do not delay",
            "cluster_queue",
        )
        self._reserved = counter(
            f"{_P}reservations_total",
            "Reservations, by what became of them: made, fulfilled, given_up",
            "cluster_queue",
            "outcome",
        )
        self._guided = counter(
            f"{_P}guided_releases_total",
            "Releases whose pods were told which nodes to prefer",
            "cluster_queue",
        )
        self._taken_back = counter(
            f"{_P}evicted_total", "Bindings taken back, by reason", "cluster_queue", "reason"
        )
        self._shrunk = counter(
            f"{_P}shrunk_total", "Times that elastic bindings gave pods up and ran on", "cluster_queue"
        )
        self._finished = counter(f"{_P}finished_total", "Bindings whose workload finished", "cluster_queue")
        self._waited = histogram(
            f"{_P}admission_wait_seconds",
            "From the place in the line to the release",
            WAIT_BUCKETS_S,
            "cluster_queue",
            "class",
        )
        self._max_wait_missed = counter(
            f"{_P}max_wait_missed_total",
            "Workloads that have waited for longer than the maxWait of their class",
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
        self._watches = WatchCounters(declared, _OWN).of()

    def admitted(self, queue: str, service_class: str, waited_s: float, *, passes: bool = False) -> None:
        """A binding was released after so long in the line; ``passes``: past a reservation."""
        self._admitted(queue).inc()
        if passes:
            self._backfilled(queue).inc()
        self._waited(queue, service_class).observe(waited_s)

    def max_wait_missed(self, queue: str, service_class: str) -> None:
        """A workload has waited for longer than its class says it should."""
        self._max_wait_missed(queue, service_class).inc()

    def reserved(self, queue: str, outcome: str) -> None:
        """What became of a reservation: made, fulfilled, given_up."""
        for known in _RESERVATION_OUTCOMES:
            # Whoever looks for an increase has to have seen the zero before.
            self._reserved(queue, known)
        self._reserved(queue, outcome).inc()

    def guided(self, queue: str) -> None:
        """The pods of a binding that was released were told which nodes to prefer."""
        self._guided(queue).inc()

    def reached(self, queue: str, reached: Reached, took_s: float) -> None:
        """What was released came so far so long after its release."""
        self._reached[reached](queue).observe(took_s)

    def taken_back(self, queue: str, reason: str) -> None:
        """A released binding was held again; ``reason`` is one of a small fixed set of words."""
        self._taken_back(queue, reason).inc()

    def shrunk(self, queue: str) -> None:
        """An elastic binding has given pods up, and runs on."""
        self._shrunk(queue).inc()

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
            yield from gauges(self.readings)
        if self.stalls is not None:
            yield from stall_metrics(_OWN, self.stalls())
