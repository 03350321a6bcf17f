"""docs/node-agent.md tells of every flag, every metric and every label of nodes."""

import re

from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase

from node_agent.document import document, lasting
from node_agent.flags import GROUPS
from node_agent.holders import HolderPod
from node_agent.metrics import AgentMetrics
from node_agent.sampling import Sample
from node_agent.window import Windows
from tests.manifests.objects import MANIFESTS, ROOT
from tests.node_agent.readings import XID79, device, holder, node, uuid

PAGE = (ROOT / "docs" / "node-agent.md").read_text("utf-8")


def sample() -> Sample:
    """A node that has a value for every metric."""
    reading = node(device(utilization=0, energy_millijoules=1, troubles=(XID79,)))
    held = {uuid(0): [holder()]}
    windows = Windows(5)
    windows.add(reading.devices, 0)
    sums = windows.summaries(0, 0)
    made = document("n", reading, held, sums, {}, version="1", problem="", wall_s=0).object
    pods = {("vision", "train-0"): HolderPod(1.0)}
    return Sample(reading, held, made, lasting(made), {uuid(0): 1.0}, pods=pods)


def shown() -> dict[str, tuple[str, ...]]:
    """Labels by the names that PromQL knows; histograms by their own."""
    registry = CollectorRegistry()
    AgentMetrics(registry, version="1", last=sample, foreign_writes=lambda: 0, wall_clock=lambda: 0.0)
    found: dict[str, tuple[str, ...]] = {}
    for collector in list(registry._collector_to_names):
        if isinstance(collector, MetricWrapperBase):
            total = "_total" if collector._type == "counter" else ""
            found[collector._name + total] = collector._labelnames
            continue
        for family in collector.collect():
            assert family.samples, family.name
            for one in family.samples:
                found[one.name] = tuple(one.labels)
    return found


def test_every_metric_is_told_and_no_other() -> None:
    told = set(re.findall(r"`(fairway_node_[a-z0-9_]+)`", PAGE))
    assert told == shown().keys()
    common = {"uuid", "index", "product", "mig_profile"}
    for name, labels in shown().items():
        if "_device_" in name:
            assert common <= set(labels), name
        for label in set(labels) - common:
            assert f"`{label}`" in PAGE, (name, label)


def test_every_flag_is_told() -> None:
    for flag in (flag for group in GROUPS for flag in group.flags):
        assert flag.name == "help" or f"`--{flag.name}`" in PAGE, flag.name


def test_every_label_of_nodes_is_told() -> None:
    text = (MANIFESTS / "member" / "node-agent" / "daemonset.yaml").read_text("utf-8")
    for key in re.findall(r"- \{key: ([a-z0-9./_-]+)", text):
        assert key in PAGE or key.rpartition("/")[2] in PAGE, key
