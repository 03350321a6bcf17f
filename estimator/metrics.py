"""Every metric of the estimator, in one place: the stock names for existing dashboards, and our own.

Stock names, labels and bucket bounds are those of Karmada 1.19 (pkg/estimator/server/metrics/metrics.go,
pkg/metrics/version.go). Ours start with ``fairway_estimator_``.

Calls only bump counters, whose children are kept, so that one costs about a microsecond. What can be asked
for (states, ages, sizes) is read when somebody scrapes, through the ``watch_`` methods.
"""

import platform
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from prometheus_client import CollectorRegistry, Gauge, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from fairway.kube.observation import ReflectorMetrics
from fairway.service.certificates import CertificateReading
from fairway.service.lifecycle import StallReading
from fairway.service.metrics import Declared, WatchCounters, stall_metrics

Rpc = Literal["MaxAvailableReplicas", "MaxAvailableComponentSets", "GetUnschedulableReplicas"]
ExtensionPoint = Literal["estimate_replicas", "estimate_components"]
CapacityRpc = Literal["Place", "Explain", "Summary", "Usage", "Bound", "Promise"]

UNKNOWN_CLUSTER: Final = "(unknown)"

_STOCK: Final = "karmada_scheduler_estimator_estimating_"
_OWN: Final = "fairway_estimator_"


def _exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Bounds by repeated multiplication as in client_golang, so that they agree to the last digit."""
    bounds = [start]
    while len(bounds) < count:
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)


ALGORITHM_BUCKETS_S: Final = _exponential(0.001, 2, 10)
EXTENSION_POINT_BUCKETS_S: Final = _exponential(0.0001, 2, 12)
PLUGIN_BUCKETS_S: Final = _exponential(0.00001, 1.5, 20)
CAPACITY_BUCKETS_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


@dataclass(frozen=True, slots=True)
class PrometheusReading:
    """What a cluster's Prometheus tells: age of its last good word, and what of it is heeded.

    ``nodes``: those that it tells of; ``broken``: the devices on them that do not work.
    """

    staleness_s: float
    nodes: int
    broken: int


@dataclass(frozen=True, slots=True)
class ClusterReading:
    """One cluster's mirror now.

    ``synced``: complete and fresh enough to answer from. ``staleness_s``: age of the last news of it.
    ``resources``: columns, one for each resource name seen. ``watch_lag_s``: per watched resource, how long
    ago its watch was last heard of. ``prometheus``: None where none is asked.
    """

    synced: bool
    staleness_s: float
    nodes: int
    pods: int
    resources: int
    watch_lag_s: Mapping[str, float] = field(default_factory=dict)
    prometheus: PrometheusReading | None = None


class EstimatorMetrics:
    """The counters of one estimator process. Used on the event loop only."""

    def __init__(self, registry: CollectorRegistry, clusters: Iterable[str], *, version: str) -> None:
        """Register everything; a name outside ``clusters`` is labelled ``(unknown)``.

        A request may name any cluster, and each name would otherwise stay a time series for ever.
        """
        self._clusters = frozenset(clusters)
        self._readings = _Readings()
        registry.register(self._readings)
        _register_build_info(registry, version)
        declared = Declared(registry)
        self._requests = declared.counter(
            f"{_STOCK}request_total", "Number of scheduler estimator requests", "result", "type"
        )
        self._algorithm = declared.histogram(
            f"{_STOCK}algorithm_duration_seconds",
            "Estimating algorithm latency in seconds for each step",
            ALGORITHM_BUCKETS_S,
            *("result", "type", "step"),
        )
        self._extension_points = declared.histogram(
            f"{_STOCK}plugin_extension_point_duration_seconds",
            "Latency for running all plugins of a specific extension point.",
            EXTENSION_POINT_BUCKETS_S,
            "estimating_plugin_extension_point",
        )
        self._plugins = declared.histogram(
            f"{_STOCK}plugin_execution_duration_seconds",
            "Duration for running a plugin at a specific extension point.",
            PLUGIN_BUCKETS_S,
            *("estimating_plugin", "estimating_plugin_extension_point"),
        )
        self._answers = declared.counter(
            f"{_OWN}answers_total", "Answers by what they were", "cluster", "rpc", "kind"
        )
        self._doubts = declared.counter(
            f"{_OWN}doubts_total", "Answers given in doubt, by its cause", "cluster", "rpc", "cause"
        )
        self._bad_objects = declared.counter(
            f"{_OWN}bad_objects_total",
            "Objects, or parts of them, that could not be understood and were left out",
            *("cluster", "resource"),
        )
        self._prometheus_failures = declared.counter(
            f"{_OWN}prometheus_failures_total", "Times that a Prometheus told nothing of devices", "cluster"
        )
        self._capacity = declared.histogram(
            "fairway_capacity_request_duration_seconds",
            "Duration of calls of fairway.capacity.v1",
            CAPACITY_BUCKETS_S,
            *("result", "rpc"),
        )
        self._promises_refused = declared.counter(
            f"{_OWN}promises_refused_total", "Promises that were refused, by why", "cause"
        )
        self._watches = WatchCounters(declared, _OWN, "cluster")
        for rpc in get_args(Rpc):
            for result in ("success", "error"):
                self._requests(result, rpc)

    def request(self, rpc: Rpc, *, ok: bool, duration_s: float) -> None:
        """One call was answered, ``ok`` unless with a gRPC error."""
        result = "success" if ok else "error"
        self._requests(result, rpc).inc()
        self._algorithm(result, rpc, "Total").observe(duration_s)

    def capacity_request(self, rpc: CapacityRpc, *, ok: bool, duration_s: float) -> None:
        """One call of Fairway's own service was answered, ``ok`` unless with a gRPC error."""
        self._capacity("success" if ok else "error", rpc).observe(duration_s)

    def promises_refused(self, cause: str) -> None:
        """Promises were refused; ``outranked``: somebody promises who leads since later."""
        self._promises_refused(cause).inc()

    def extension_point(self, point: ExtensionPoint, duration_s: float) -> None:
        """The whole estimation behind a call took this long."""
        self._extension_points(point).observe(duration_s)

    def plugin(self, plugin: str, point: ExtensionPoint, duration_s: float) -> None:
        """One part of an estimation took this long: ``NodeResourceEstimator``, ``ResourceQuotaEstimator``."""
        self._plugins(plugin, point).observe(duration_s)

    def answer(self, cluster: str, rpc: Rpc, kind: str) -> None:
        """One answer; ``kind`` is one of a small fixed set of words."""
        self._answers(self._known(cluster), rpc, kind).inc()

    def doubt(self, cluster: str, rpc: Rpc, cause: str) -> None:
        """One answer in doubt; ``cause`` is one of a small fixed set of words."""
        self._doubts(self._known(cluster), rpc, cause).inc()

    def bad_object(self, cluster: str, resource: str) -> None:
        """An object, or a part of it, was not understood; the rest counts."""
        self._bad_objects(self._known(cluster), resource).inc()

    def prometheus_failed(self, cluster: str) -> None:
        """A Prometheus of the cluster was asked about devices in vain."""
        self._prometheus_failures(self._known(cluster)).inc()

    def reflector(self, cluster: str) -> ReflectorMetrics:
        """The counters that a cluster's reflectors use, each naming its resource."""
        return self._watches.of(cluster)

    def watch_cluster(self, cluster: str, read: Callable[[], ClusterReading]) -> None:
        """Ask ``read`` about the cluster at each scrape."""
        self._readings.clusters[cluster] = read

    def watch_stalls(self, read: Callable[[], StallReading]) -> None:
        """Ask ``read`` about the event loop at each scrape."""
        self._readings.stalls = read

    def watch_promises(self, read: Callable[[str], int]) -> None:
        """Ask ``read`` at each scrape how many workloads are promised a cluster."""
        self._readings.promises = read

    def watch_certificates(self, read: Callable[[], CertificateReading]) -> None:
        """Ask ``read`` about the server's certificates at each scrape."""
        self._readings.certificates = read

    def _known(self, cluster: str) -> str:
        return cluster if cluster in self._clusters else UNKNOWN_CLUSTER


class _Readings(Collector):
    """Metrics made at scrape time from what was asked for."""

    def __init__(self) -> None:
        self.clusters: dict[str, Callable[[], ClusterReading]] = {}
        self.promises: Callable[[str], int] | None = None
        self.stalls: Callable[[], StallReading] | None = None
        self.certificates: Callable[[], CertificateReading] | None = None

    def collect(self) -> Iterator[Metric]:
        yield from self._cluster_metrics()
        if self.stalls is not None:
            yield from stall_metrics(_OWN, self.stalls())
        if self.certificates is not None:
            yield from _certificate_metrics(self.certificates())

    def _cluster_metrics(self) -> Iterator[Metric]:
        def gauge(name: str, help_text: str, *labels: str) -> GaugeMetricFamily:
            return GaugeMetricFamily(f"{_OWN}{name}", help_text, labels=["cluster", *labels])

        families = (
            gauge("cluster_synced", "1 when answers come from the cluster's present state, else 0"),
            gauge("cluster_staleness_seconds", "Age of the last news of the cluster"),
            gauge("cluster_nodes", "Nodes mirrored"),
            gauge("cluster_pods", "Pods mirrored"),
            gauge("cluster_resources", "Resource columns, one for each resource name seen"),
        )
        told = (
            gauge("prometheus_staleness_seconds", "Age of the last word of Prometheus on devices"),
            gauge("prometheus_nodes", "Nodes of whose devices Prometheus tells"),
            gauge("prometheus_broken_devices", "Devices that do not work, as Prometheus tells"),
        )
        promises = gauge(
            "promises", "Workloads on their way to the cluster whose room is left out of answers"
        )
        lag = gauge("watch_lag_seconds", "Time since the watch of a resource was last heard of", "resource")
        for cluster, read in self.clusters.items():
            now = read()
            values = (float(now.synced), now.staleness_s, now.nodes, now.pods, now.resources)
            for family, value in zip(families, values, strict=True):
                family.add_metric([cluster], value)
            if now.prometheus is not None:
                said = (now.prometheus.staleness_s, now.prometheus.nodes, now.prometheus.broken)
                for family, value in zip(told, said, strict=True):
                    family.add_metric([cluster], value)
            if self.promises is not None:
                promises.add_metric([cluster], self.promises(cluster))
            for resource, lag_s in now.watch_lag_s.items():
                lag.add_metric([cluster, resource], lag_s)
        yield from (*families, *told, promises, lag)


def _certificate_metrics(now: CertificateReading) -> Iterator[Metric]:
    expiry = GaugeMetricFamily(
        f"{_OWN}certificate_expiry_timestamp_seconds",
        "When the certificate expires, seconds since the epoch; the earliest of several",
        labels=["certificate"],
    )
    expiry.add_metric(["server"], now.certificate_expires_s)
    if now.client_ca_expires_s is not None:
        expiry.add_metric(["client_ca"], now.client_ca_expires_s)
    yield expiry
    yield CounterMetricFamily(
        f"{_OWN}certificate_reloads_total", "Changed certificate files put in force", value=now.reloads
    )
    yield CounterMetricFamily(
        f"{_OWN}certificate_reload_failures_total",
        "Looks at changed certificate files that could not be used",
        value=now.failures,
    )


def _register_build_info(registry: CollectorRegistry, version: str) -> None:
    labels = {
        "git_version": f"v{version}",
        **dict.fromkeys(("git_commit", "git_short_commit", "git_tree_state", "build_date"), "unknown"),
        "go_version": f"python{platform.python_version()}",
        "compiler": platform.python_implementation(),
        "platform": f"{sys.platform}/{platform.machine()}",
    }
    gauge = Gauge(
        "karmada_build_info",
        "Karmada build metadata exposed as labels with a constant value of 1.",
        list(labels),
        registry=registry,
    )
    gauge.labels(**labels).set(1)
