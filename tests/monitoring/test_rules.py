"""What the recording rules find is what `fairway.usage` finds: of the same devices, no more, no fewer."""

import json
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.openb.usage import NOW_S, told_fleet
from fairway.accelerators.builtin import builtin_catalogue
from fairway.kube.node_devices import NodeDevices
from fairway.kube.objects import Node, Pod
from fairway.resources import pod_request
from fairway.usage.cluster import Objects, cluster_usage
from fairway.usage.definitions import Finding
from fairway.usage.groups import total
from fairway.usage.owner import Owners
from manifests.observability.__main__ import ROOT, outdated
from manifests.observability.rules import ALLOCATED, FINDING, MEASURED, USED, recording_rules
from tests.builders import PodBuilder, node, pod
from tests.monitoring.agents import shown
from tests.monitoring.evaluator import NAME, Series, recorded
from tests.usage.agents import NOW, DeviceBuilder, agent, ago

Found = set[tuple[str, str, str]]
"""Pod, device and what is said of it."""

D = DeviceBuilder("d").held_by("p")
IDLE = D.doing(0, 4, 70, idle_s=9000)


def test_the_committed_files_are_what_is_made() -> None:
    assert outdated(ROOT) == []


def judged(nodes: Iterable[Node], pods: Iterable[Pod], agents: Iterable[NodeDevices]) -> Found:
    objects = Objects(tuple(nodes), tuple(pods), tuple(agents), Owners())
    found = cluster_usage("east", objects, builtin_catalogue(), NOW.timestamp())
    return {
        (use.pod.name, use.device.id, finding.value)
        for use in found.uses
        if use.device is not None
        for finding in use.findings
    }


def ruled(series: Iterable[Series], now_s: float = NOW.timestamp()) -> Found:
    return {
        (one.labels["pod"], one.labels["uuid"], one.labels["finding"])
        for one in recorded(recording_rules(), series, now_s)
        if one.labels[NAME] == FINDING
    }


def drawn(seed: int, nodes: int = 20) -> tuple[list[Node], list[Pod], tuple[NodeDevices, ...]]:
    """A fleet of pods with stories, some of which have come only just now."""
    rng = Random(seed)
    machines, pods = [], []
    for n in range(nodes):
        machines.append(node(f"n{n}").gpus(8).build())
        left = 8
        while left:
            asks = min(left, rng.choice((1, 1, 2, 4, 8)))
            left -= asks
            age_s = rng.choice((60, 3599, 3600, 10**6))
            made = pod(f"p{n}-{left}").requests(gpu=asks).on(f"n{n}")
            pods.append(made.condition("PodScheduled", "True", "", ago(age_s)).build())
    fleet = told_fleet(machines, pods, rng)
    assert NOW.timestamp() == NOW_S
    return machines, pods, fleet.agents


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32))
def test_a_drawn_fleet(seed: int) -> None:
    machines, pods, agents = drawn(seed)
    assert ruled(shown(agents, pods, NOW_S)) == judged(machines, pods, agents)


P, Q = pod("p").requests(gpu=1).on("n"), pod("q").requests(gpu=1).on("n")
CUT = pod("p").requests({"nvidia.com/mig-1g.10gb": 1}).on("n")
WHOLE = DeviceBuilder("g").doing(0, 0, idle_s=9000)
SEEN = DeviceBuilder("e").doing(0, 0, 1, idle_s=9000).held_by("p", source="Cgroup")
WIDE = [DeviceBuilder(f"d{n}").held_by("p").doing(*((90, 99) if n < 1 else (0, 1))) for n in range(4)]


@pytest.mark.parametrize(
    ("what", "pods", "found"),
    [
        ("idle, and nobody says since when its pod is there", [P], agent("n", IDLE)),
        ("its pod is young", [P.condition("PodScheduled", "True", "", ago(600))], agent("n", IDLE)),
        ("idle, and of unknown size", [P], agent("n", IDLE.with_(memoryBytes=0))),
        ("idle, but for the quiet that counts", [P], agent("n", D.doing(0, 5, idle_s=9000))),
        ("idle, with more memory than there is", [P], agent("n", D.doing(0, 4, 81, idle_s=9000))),
        ("a device that nobody holds", [P], agent("n", WHOLE)),
        ("a process on a device that nobody gave it", [P, Q], agent("n", IDLE, SEEN)),
        ("two containers of one pod", [P], agent("n", IDLE.held_by("p", container="side"))),
        ("not measured, and lost", [P], agent("n", D.with_(health="Lost").unmeasured())),
        ("degraded", [P], agent("n", D.with_(health="Degraded"))),
        ("of four it uses one", [P.requests(gpu=4)], agent("n", *WIDE)),
        ("of four one is not measured", [P.requests(gpu=4)], agent("n", *WIDE[:3], WIDE[3].unmeasured())),
        ("of four one cannot be read", [P.requests(gpu=4)], agent("n", *WIDE[:3])),
        ("an instance of a device", [CUT], agent("n", WHOLE, IDLE.with_(parent="g", migProfile="1g.10gb"))),
        ("nobody", [], agent("n")),
    ],
)  # fmt: skip
def test_what_the_agents_metrics_leave_open(what: str, pods: list[PodBuilder], found: NodeDevices) -> None:
    built = [one.build() for one in pods]
    asked = {one.metadata.name: sum(_asks(one).values()) for one in built}
    held = [holder.pod for device in found.devices for holder in device.holders or ()]
    unknown = {name: count - held.count(name) for name, count in asked.items() if held.count(name) < count}
    series = shown([found], built, NOW.timestamp(), unknown)
    assert ruled(series) == judged([node("n").gpus(8).build()], built, [found]), what


def _asks(one: Pod) -> Mapping[str, int]:
    return {name: count for name, count in pod_request(one).items() if "/" in name}


def test_the_sums_are_those_of_top() -> None:
    machines, pods, agents = drawn(2)
    found = recorded(recording_rules(), shown(agents, pods, NOW_S), NOW_S)
    sums = {one.labels[NAME]: one.value for one in found if ":sum" in one.labels[NAME]}
    objects = Objects(tuple(machines), tuple(pods), agents, Owners())
    top = total([cluster_usage("east", objects, builtin_catalogue(), NOW_S)])
    assert 1000 * sums[ALLOCATED] == pytest.approx(top.allocated_milli)
    assert 1000 * sums[MEASURED] == pytest.approx(top.measured_milli)
    assert 1000 * (sums[MEASURED] - sums[USED]) == pytest.approx(top.wasted_milli)


def test_a_scrape_that_is_doubled_changes_nothing() -> None:
    _, pods, agents = drawn(1, 3)
    series = shown(agents, pods, NOW_S)
    twice = [Series({**one.labels, "replica": replica}, one.value) for one in series for replica in "ab"]
    assert ruled(twice) == ruled(series)


def test_clusters_whose_nodes_have_the_same_names_are_told_apart() -> None:
    a = [
        Series({**one.labels, "cluster": "a"}, one.value)
        for one in shown([agent("n", IDLE)], [P.build()], NOW_S)
    ]
    b = [
        Series({**one.labels, "cluster": "b"}, one.value)
        for one in shown([agent("n", D)], [P.build()], NOW_S)
    ]
    found = [one for one in recorded(recording_rules(), a + b, NOW_S) if one.labels[NAME] == FINDING]
    assert {one.labels["cluster"] for one in found} == {"a"}


def test_a_device_that_pods_share_is_allocated_and_used_once() -> None:
    shared = DeviceBuilder("d").held_by("a/p").held_by("b/q").doing(40, 60)
    found = recorded(recording_rules(), shown([agent("n", shared)], [], NOW_S), NOW_S)
    sums = {
        (one.labels[NAME], one.labels["namespace"]): one.value for one in found if ":sum" in one.labels[NAME]
    }
    assert (sums[ALLOCATED, "a"], sums[ALLOCATED, "b"], sums[USED, "a"]) == (0.5, 0.5, 0.2)


def test_prometheus_finds_the_same(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not on PATH")
    machines, pods, agents = drawn(1, 25)
    # Its clock begins at 0: what is so long ago there is so long before that.
    at_s = 60.0
    series = [
        Series(one.labels, one.value - NOW_S + at_s if "timestamp" in one.labels[NAME] else one.value)
        for one in shown(agents, pods, NOW_S)
    ]
    rules = [
        {"record": rule.record, "expr": rule.expression, "labels": dict(rule.labels)}
        for rule in recording_rules()
    ]
    found = judged(machines, pods, agents)
    assert {finding for _, _, finding in found} == {finding.value for finding in Finding}
    expected = [one for one in recorded(recording_rules(), series, at_s) if one.labels[NAME] == FINDING]
    test = {
        "rule_files": ["rules.yaml"],
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": _written(one), "values": f"{one.value:.17g}x2"} for one in series
                ],
                "promql_expr_test": [
                    {
                        "expr": FINDING,
                        "eval_time": "1m",
                        "exp_samples": [{"labels": _written(one), "value": one.value} for one in expected],
                    }
                ],
            }
        ],
    }
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "devices", "rules": rules}]}))
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(test))
    done = subprocess.run(
        [promtool, "test", "rules", str(tmp_path / "test.yaml")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[:5000]


def _written(one: Series) -> str:
    labels = ",".join(f"{name}={json.dumps(text)}" for name, text in one.labels.items() if name != NAME)
    return f"{one.labels[NAME]}{{{labels}}}"
