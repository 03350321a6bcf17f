"""Every metric that the programs can show, with its labels: what alerts and dashboards may ask for.

What the rules record has the labels that it has where they are evaluated over a fleet of agents.
"""

from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase

from estimator.metrics import ClusterReading, EstimatorMetrics, PrometheusReading
from fairway.service.certificates import CertificateReading
from fairway.service.lifecycle import StallReading
from fairway.service.metrics import PermissionMetrics
from manifests.observability.rules import recording_rules
from queue_dispatcher.gauges import Readings, ReservationsReading, UsageReading
from queue_dispatcher.metrics import DispatcherMetrics
from tests.builders import pod
from tests.monitoring.agents import shown as shown_by_agents
from tests.monitoring.evaluator import NAME, Series, recorded
from tests.usage.agents import NOW, DeviceBuilder, agent, ago
from webhook.metrics import WebhookMetrics

_STALLS = StallReading(stalls=1, worst_last_minute_s=0.1)
_CERTIFICATES = CertificateReading(certificate_expires_s=1.0, client_ca_expires_s=2.0, reloads=1, failures=1)


_KUBE_STATE_METRICS = {
    "kube_node_status_allocatable": frozenset({"cluster", "node", "resource", "unit"}),
    "kube_node_status_condition": frozenset({"cluster", "node", "condition", "status"}),
}
"""Of another program, as its docs/metrics/cluster/node-metrics.md says, and ``cluster`` beside it."""


def of_agents() -> list[Series]:
    """The series of the node agents, with what the PodMonitor adds, and those that are recorded of them."""
    lost = DeviceBuilder("d").held_by("p").with_(health="Lost", problems=[{"code": "Xid79"}])
    quiet = DeviceBuilder("e").held_by("p").doing(0, 0, idle_s=9000, throttledSeconds=300, memoryUsedBytes=1)
    small = DeviceBuilder("f").held_by("p").doing(9, 9, 1)
    part = DeviceBuilder("g").with_(parent="f", migProfile="1g.10gb")
    held = pod("p").on("n").condition("PodScheduled", "True", "", ago(10_000)).build()
    series = shown_by_agents([agent("n", lost, quiet, small, part)], [held], NOW.timestamp())
    series = [Series({**one.labels, "cluster": "c"}, one.value) for one in series]
    return recorded(recording_rules(), series, NOW.timestamp())


def _labels_of_agents() -> dict[str, frozenset[str]]:
    found = of_agents()
    labels: dict[str, frozenset[str]] = {}
    for one in found:
        labels[one.labels[NAME]] = labels.get(one.labels[NAME], frozenset()) | one.labels.keys() - {NAME}
    missing = {rule.record for rule in recording_rules()} - labels.keys()
    assert not missing, f"nothing is recorded of {missing}"
    return labels


def shown() -> dict[str, frozenset[str]]:
    """The label names of each series, by the name that PromQL knows."""
    registries = [CollectorRegistry() for _ in range(3)]
    estimator = EstimatorMetrics(registries[0], ["east"], version="1")
    estimator.watch_cluster(
        "east", lambda: ClusterReading(True, 1.0, 2, 3, 4, {"pods": 1.0}, PrometheusReading(1.0, 2, 3))
    )
    estimator.watch_stalls(lambda: _STALLS)
    estimator.watch_certificates(lambda: _CERTIFICATES)
    dispatcher = DispatcherMetrics(registries[1], version="1")
    usage = UsageReading("q", "f", "nvidia.com/gpu", 1, 1, 0)
    dispatcher.readings = Readings(
        pending={"q": 1},
        unadmitted={("q", "NeverFits"): 1},
        states={"Placed": 1},
        usage=(usage,),
        shares={"q": 0.5},
        overdue_s={("q", "urgent"): 1.0},
        reservations={"q": ReservationsReading(1, 60.0, 0.1, 30.0)},
        objects={"clusters": 1},
    )
    dispatcher.watch_stalls(lambda: _STALLS)
    webhook = WebhookMetrics(registries[2], version="1")
    webhook.watch_stalls(lambda: _STALLS)
    webhook.watch_certificates(lambda: _CERTIFICATES)
    permissions = CollectorRegistry()
    permissions.register(PermissionMetrics(lambda: [("karmada", "list", "clusters")]))
    registries.append(permissions)
    found: dict[str, frozenset[str]] = {}
    for registry in registries:
        for collector in list(registry._collector_to_names):
            if isinstance(collector, MetricWrapperBase):
                found |= _series(collector)
                continue
            for family in collector.collect():
                for sample in family.samples:
                    found[sample.name] = frozenset(sample.labels)
    up = frozenset({"job", "instance", "node", "cluster"})
    return found | _labels_of_agents() | _KUBE_STATE_METRICS | {"up": up}


def _series(metric: MetricWrapperBase) -> dict[str, frozenset[str]]:
    """Those of a metric that may have no child yet."""
    labels = frozenset(metric._labelnames)
    if metric._type == "histogram":
        name = metric._name
        return {f"{name}_bucket": labels | {"le"}, f"{name}_sum": labels, f"{name}_count": labels}
    return {f"{metric._name}_total" if metric._type == "counter" else metric._name: labels}
