import math

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from estimator.metrics import ClusterReading, EstimatorMetrics, Rpc
from fairway.kube.observation import ReflectorMetrics
from fairway.service.certificates import CertificateReading
from fairway.service.lifecycle import StallReading

STOCK = "karmada_scheduler_estimator_estimating_"


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def metrics(registry: CollectorRegistry) -> EstimatorMetrics:
    return EstimatorMetrics(registry, ["m1", "m2"], version="1.2.3")


def buckets(registry: CollectorRegistry, name: str) -> list[str]:
    """The upper bounds of a histogram as a scrape shows them."""
    return [
        sample.labels["le"]
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == f"{name}_bucket"
    ]


def test_a_request_counts_under_the_stock_names(
    registry: CollectorRegistry, metrics: EstimatorMetrics
) -> None:
    metrics.request("MaxAvailableReplicas", ok=True, duration_s=0.0004)
    metrics.request("MaxAvailableReplicas", ok=False, duration_s=3)
    for result, type_, count in (
        ("success", "MaxAvailableReplicas", 1),
        ("error", "MaxAvailableReplicas", 1),
        ("success", "GetUnschedulableReplicas", 0),
    ):
        labels = {"result": result, "type": type_}
        assert registry.get_sample_value(f"{STOCK}request_total", labels) == count
    total = {"result": "success", "type": "MaxAvailableReplicas", "step": "Total"}
    assert registry.get_sample_value(f"{STOCK}algorithm_duration_seconds_count", total) == 1
    assert registry.get_sample_value(f"{STOCK}algorithm_duration_seconds_sum", total) == 0.0004


def test_extension_points_and_plugins_have_the_stock_labels(
    registry: CollectorRegistry, metrics: EstimatorMetrics
) -> None:
    metrics.request("GetUnschedulableReplicas", ok=True, duration_s=0.001)
    metrics.extension_point("estimate_components", 0.002)
    metrics.plugin("NodeResourceEstimator", "estimate_components", 0.003)
    for name, labels in (
        (
            "algorithm_duration_seconds",
            {"result": "success", "type": "GetUnschedulableReplicas", "step": "Total"},
        ),
        (
            "plugin_extension_point_duration_seconds",
            {"estimating_plugin_extension_point": "estimate_components"},
        ),
        (
            "plugin_execution_duration_seconds",
            {
                "estimating_plugin": "NodeResourceEstimator",
                "estimating_plugin_extension_point": "estimate_components",
            },
        ),
    ):
        assert registry.get_sample_value(f"{STOCK}{name}_count", labels) == 1


def test_buckets_are_the_stock_ones(registry: CollectorRegistry, metrics: EstimatorMetrics) -> None:
    metrics.request("MaxAvailableReplicas", ok=True, duration_s=0)
    metrics.extension_point("estimate_replicas", 0)
    metrics.plugin("NodeResourceEstimator", "estimate_replicas", 0)
    assert buckets(registry, f"{STOCK}algorithm_duration_seconds") == [
        *("0.001", "0.002", "0.004", "0.008", "0.016", "0.032", "0.064", "0.128", "0.256", "0.512", "+Inf")
    ]
    points = buckets(registry, f"{STOCK}plugin_extension_point_duration_seconds")
    assert (points[0], points[-2], len(points)) == ("0.0001", "0.2048", 13)
    plugins = [float(bound) for bound in buckets(registry, f"{STOCK}plugin_execution_duration_seconds")]
    assert len(plugins) == 21
    assert plugins[:3] == [1e-05, 1.5000000000000002e-05, 2.2500000000000005e-05]
    assert plugins[-2] == pytest.approx(1e-05 * 1.5**19)
    assert plugins[-1] == math.inf


def test_the_build_is_told_under_the_stock_name(
    registry: CollectorRegistry, metrics: EstimatorMetrics
) -> None:
    [sample] = [
        sample
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == "karmada_build_info"
    ]
    assert sample.value == 1
    assert sample.labels["git_version"] == "v1.2.3"
    assert sample.labels.keys() == {
        *("git_version", "git_commit", "git_short_commit", "git_tree_state"),
        *("build_date", "go_version", "compiler", "platform"),
    }


def test_answers_and_doubts_count_by_cluster_rpc_and_kind(
    registry: CollectorRegistry, metrics: EstimatorMetrics
) -> None:
    rpc: Rpc = "MaxAvailableComponentSets"
    metrics.answer("m1", rpc, "value")
    metrics.answer("m1", rpc, "value")
    metrics.doubt("m2", rpc, "stale")
    metrics.bad_object("m2", "pods")
    value = registry.get_sample_value
    assert value("fairway_estimator_answers_total", {"cluster": "m1", "rpc": rpc, "kind": "value"}) == 2
    assert value("fairway_estimator_doubts_total", {"cluster": "m2", "rpc": rpc, "cause": "stale"}) == 1
    assert value("fairway_estimator_bad_objects_total", {"cluster": "m2", "resource": "pods"}) == 1


def test_names_that_requests_make_up_do_not_become_series(
    registry: CollectorRegistry, metrics: EstimatorMetrics
) -> None:
    for number in range(100):
        metrics.answer(f"made-up-{number}", "MaxAvailableReplicas", "doubt")
    text = generate_latest(registry).decode()
    assert "made-up" not in text
    labels = {"cluster": "(unknown)", "rpc": "MaxAvailableReplicas", "kind": "doubt"}
    assert registry.get_sample_value("fairway_estimator_answers_total", labels) == 100


def test_a_reflector_can_report_into_it(registry: CollectorRegistry, metrics: EstimatorMetrics) -> None:
    watch: ReflectorMetrics = metrics.reflector("m1")
    watch.event("pods", "ADDED")
    watch.dropped("pods")
    watch.undecodable("pods")
    watch.listed("pods", 150_000, 3, 1.5)
    watch.relist("pods", "expired")
    watch.half_open("pods")
    watch.error("pods", "unreachable")
    pods = {"cluster": "m1", "resource": "pods"}
    for name, labels, value in (
        ("events_total", pods, 1),
        ("dropped_events_total", pods, 1),
        ("undecodable_total", pods, 1),
        ("missed_deletions_total", pods, 3),
        ("list_duration_seconds_sum", {"resource": "pods"}, 1.5),
        ("relists_total", pods | {"reason": "expired"}, 1),
        ("half_open_total", pods, 1),
        ("errors_total", pods | {"reason": "unreachable"}, 1),
    ):
        assert registry.get_sample_value(f"fairway_estimator_watch_{name}", labels) == value, name


def test_a_cluster_adds_few_lines_to_a_scrape(registry: CollectorRegistry, metrics: EstimatorMetrics) -> None:
    def lines() -> int:
        return sum(len(metric.samples) for metric in registry.collect())

    def report(cluster: str) -> None:
        watch = metrics.reflector(cluster)
        for resource in ("nodes", "pods"):
            watch.listed(resource, 200, 0, 0.1)
            for type in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
                watch.event(resource, type)

    report("c0")
    before = lines()
    report("c1")
    assert lines() - before == 2, "the loop is held while they are read, with hundreds of clusters"


def test_states_are_read_at_each_scrape(registry: CollectorRegistry, metrics: EstimatorMetrics) -> None:
    reading = ClusterReading(False, math.inf, 0, 0, 0)
    metrics.watch_cluster("m1", lambda: reading)
    value = registry.get_sample_value
    m1 = {"cluster": "m1"}
    assert value("fairway_estimator_cluster_synced", m1) == 0
    assert value("fairway_estimator_cluster_staleness_seconds", m1) == math.inf
    reading = ClusterReading(True, 0.5, 5000, 50_000, 9, {"pods": 0.5, "nodes": 4.0})
    for name, expected in (("synced", 1), ("staleness_seconds", 0.5), ("nodes", 5000), ("pods", 50_000)):
        assert value(f"fairway_estimator_cluster_{name}", m1) == expected
    assert value("fairway_estimator_cluster_resources", m1) == 9
    assert value("fairway_estimator_watch_lag_seconds", m1 | {"resource": "nodes"}) == 4.0


def test_the_loop_and_the_certificates_are_read_at_each_scrape(
    registry: CollectorRegistry, metrics: EstimatorMetrics
) -> None:
    metrics.watch_stalls(lambda: StallReading(3, 0.045))
    metrics.watch_certificates(lambda: CertificateReading(2e9, 3e9, 4, 5))
    value = registry.get_sample_value
    expiry = "fairway_estimator_certificate_expiry_timestamp_seconds"
    assert value("fairway_estimator_loop_stalls_total") == 3
    assert value("fairway_estimator_loop_worst_delay_seconds") == 0.045
    assert value(expiry, {"certificate": "server"}) == 2e9
    assert value(expiry, {"certificate": "client_ca"}) == 3e9
    assert value("fairway_estimator_certificate_reloads_total") == 4
    assert value("fairway_estimator_certificate_reload_failures_total") == 5


def test_no_creation_times_are_exported(registry: CollectorRegistry, metrics: EstimatorMetrics) -> None:
    metrics.request("MaxAvailableReplicas", ok=True, duration_s=0.1)
    assert b"_created" not in generate_latest(registry)
