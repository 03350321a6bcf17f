"""Metrics that several programs have, and how a program declares its own."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, Metric, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from fairway.service.lifecycle import StallReading

PERMISSION_DENIED: Final = "fairway_permission_denied"
_LIST_BUCKETS_S: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Declared:
    """Declares metrics; each is a function from its labels' values to what is to be counted up.

    Children are kept: a call is a plain cache hit instead of checks and a lock.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        # A switch of the whole library: the creation time of each child doubles a scrape and says nothing.
        disable_created_metrics()
        self._registry = registry

    def counter(self, name: str, text: str, *labels: str) -> Callable[..., Counter]:
        """A counter with these labels."""
        return cache(Counter(name, text, labels, registry=self._registry).labels)

    def histogram(
        self, name: str, text: str, buckets: Sequence[float], *labels: str
    ) -> Callable[..., Histogram]:
        """A histogram with these labels."""
        return cache(Histogram(name, text, labels, buckets=buckets, registry=self._registry).labels)


class WatchCounters:
    """What all reflectors count; names begin with ``prefix``, and ``labels`` stand before the others."""

    def __init__(self, declared: Declared, prefix: str, *labels: str) -> None:
        def counter(name: str, text: str, *others: str) -> Callable[..., Counter]:
            return declared.counter(f"{prefix}watch_{name}", text, *labels, "resource", *others)

        # Not by type: it would treble what is scraped of hundreds of clusters.
        self.events = counter("events_total", "Watch events applied")
        self.dropped = counter("dropped_events_total", "Watch events that were duplicates or out of order")
        self.undecodable = counter(
            "undecodable_total", "Items and events that could not be decoded and were skipped"
        )
        self.relists = counter(
            "relists_total", "Lists made because the watch could not go on, by reason", "reason"
        )
        self.half_open = counter("half_open_total", "Watches given up because nothing was heard for too long")
        self.errors = counter("errors_total", "Failed attempts to list or watch, by reason", "reason")
        self.missed = counter("missed_deletions_total", "Deletions that only a later list showed")
        self.lists = declared.histogram(
            f"{prefix}watch_list_duration_seconds",
            "Time that a complete list took",
            _LIST_BUCKETS_S,
            "resource",  # not whose: hundreds of clusters with all these buckets take long to scrape
        )

    def of(self, *values: str) -> "_WatchMetrics":
        """The ``ReflectorMetrics`` of `fairway.kube.observation` for these values of ``labels``."""
        return _WatchMetrics(self, values)


class _WatchMetrics:
    def __init__(self, counters: WatchCounters, values: tuple[str, ...]) -> None:
        self._counters = counters
        self._values = values

    def event(self, resource: str, type: str) -> None:
        self._counters.events(*self._values, resource).inc()

    def dropped(self, resource: str) -> None:
        self._counters.dropped(*self._values, resource).inc()

    def undecodable(self, resource: str) -> None:
        self._counters.undecodable(*self._values, resource).inc()

    def listed(self, resource: str, objects: int, deleted: int, duration_s: float) -> None:
        self._counters.lists(resource).observe(duration_s)
        if deleted:
            self._counters.missed(*self._values, resource).inc(deleted)

    def relist(self, resource: str, reason: str) -> None:
        self._counters.relists(*self._values, resource, reason).inc()

    def half_open(self, resource: str) -> None:
        self._counters.half_open(*self._values, resource).inc()

    def error(self, resource: str, reason: str) -> None:
        self._counters.errors(*self._values, resource, reason).inc()


def stall_metrics(prefix: str, now: StallReading) -> Iterator[Metric]:
    """How late the event loop has been."""
    yield CounterMetricFamily(
        f"{prefix}loop_stalls_total", "Times the event loop was more than 20 ms late", value=now.stalls
    )
    yield GaugeMetricFamily(
        f"{prefix}loop_worst_delay_seconds",
        "Longest delay of the event loop in the last minute",
        value=now.worst_last_minute_s,
    )


@dataclass(frozen=True, slots=True)
class PermissionMetrics(Collector):
    """One line for each verb on a resource that an API server denies us.

    ``read`` answers, at each scrape: which API server (``karmada``, or a cluster's name), verb, resource.
    """

    read: Callable[[], Iterable[tuple[str, str, str]]]

    def describe(self) -> Iterable[Metric]:
        """Nothing is asked before the first scrape."""
        return (_denied_family(),)

    def collect(self) -> Iterator[Metric]:
        """What is denied now."""
        family = _denied_family()
        for labels in sorted(set(self.read())):
            family.add_metric(labels, 1)
        yield family


def _denied_family() -> GaugeMetricFamily:
    return GaugeMetricFamily(
        PERMISSION_DENIED,
        "1 for each verb on a resource that an API server does not allow",
        labels=["api", "verb", "resource"],
    )
