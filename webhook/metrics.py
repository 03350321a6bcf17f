"""Every metric of the webhook, in one place; names start with ``fairway_webhook_``."""

import platform
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from fairway.service.certificates import CertificateReading
from fairway.service.lifecycle import StallReading
from fairway.service.metrics import stall_metrics
from webhook.registration import Look
from webhook.suspend import CREATE, UPDATE, Outcome

Refusal = Literal["malformed", "too_large", "too_slow", "too_many_connections"]

_OWN: Final = "fairway_webhook_"
_BUCKETS_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_OTHER: Final = "other"


class WebhookMetrics:
    """The counters of one webhook process. Used on the event loop only."""

    def __init__(self, registry: CollectorRegistry, *, version: str) -> None:
        """Register everything."""
        # A switch of the whole library: the creation time of each child doubles a scrape and says nothing.
        disable_created_metrics()
        self._readings = _Readings()
        registry.register(self._readings)
        build = Gauge(
            f"{_OWN}build_info", "Which release this is", ["version", "python_version"], registry=registry
        )
        build.labels(version, platform.python_version()).set(1)
        reviews = Counter(
            f"{_OWN}reviews_total",
            "Admission reviews answered, by what was asked and what became of it",
            ["operation", "outcome"],
            registry=registry,
        )
        self._reviews = {
            (operation, outcome): reviews.labels(operation, outcome.value)
            for operation in (CREATE, UPDATE, _OTHER)
            for outcome in Outcome
        }
        self._seconds = Histogram(
            f"{_OWN}review_seconds",
            "From the headers of a review to its answer",
            buckets=_BUCKETS_S,
            registry=registry,
        )
        self._refused = Counter(
            f"{_OWN}refused_total",
            "Requests that were no reviews or came too slowly, and connections beyond the limit",
            ["reason"],
            registry=registry,
        )
        self._in_flight = Gauge(f"{_OWN}in_flight", "Reviews being answered now", registry=registry)
        looks = Counter(
            f"{_OWN}registration_looks_total",
            "Looks at the webhook configuration on karmada-apiserver, by what became of them",
            ["result"],
            registry=registry,
        )
        self._looks = {look: looks.labels(look.value) for look in Look}

    def began(self) -> None:
        """A review is being answered."""
        self._in_flight.inc()

    def ended(self, took_s: float) -> None:
        """It is answered, or was given up."""
        self._in_flight.dec()
        self._seconds.observe(took_s)

    def decided(self, operation: str, outcome: Outcome) -> None:
        """One review was answered."""
        known = operation if operation in (CREATE, UPDATE) else _OTHER
        self._reviews[known, outcome].inc()

    def refused(self, reason: Refusal) -> None:
        """One request or connection was refused."""
        self._refused.labels(reason).inc()

    def looked(self, look: Look) -> None:
        """One look at the webhook configuration."""
        self._looks[look].inc()

    def watch_certificates(self, read: Callable[[], CertificateReading]) -> None:
        """Show the state of the certificates at every scrape."""
        self._readings.certificates = read

    def watch_stalls(self, read: Callable[[], StallReading]) -> None:
        """Show how late the event loop has been at every scrape."""
        self._readings.stalls = read


class _Readings(Collector):
    """What is asked for at every scrape."""

    def __init__(self) -> None:
        self.certificates: Callable[[], CertificateReading] | None = None
        self.stalls: Callable[[], StallReading] | None = None

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        if self.certificates is not None:
            reading = self.certificates()
            yield GaugeMetricFamily(
                f"{_OWN}certificate_expiry_timestamp_seconds",
                "When the serving certificate expires; 0 where there is none yet",
                reading.certificate_expires_s,
            )
            yield CounterMetricFamily(
                f"{_OWN}certificate_reloads_total", "Certificates replaced while serving", reading.reloads
            )
            yield CounterMetricFamily(
                f"{_OWN}certificate_failures_total", "Looks for certificates that failed", reading.failures
            )
        if self.stalls is not None:
            yield from stall_metrics(_OWN, self.stalls())
