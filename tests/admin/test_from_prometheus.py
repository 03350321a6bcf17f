"""``--from-prometheus`` of ``fairway top`` and ``report``: devices measured without node agents."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from admin.main import cli
from fairway.prometheus.answer import Sample
from fairway.prometheus.exporters import Exporter, Value
from tests.admin.dumps import Labelled, gpu_node, gpu_pod, write_dump
from tests.builders import node, pod
from tests.prometheus.fake import Reply, dcgm, exported, failure, from_table, prometheus
from tests.prometheus.series import AT_S, GIB, Series, values
from tests.usage.agents import DeviceBuilder, ago

IDLER = Series("GPU-0").held_by("team-a/idler")
IDLER = IDLER.doing({Value.P50: 0, Value.P95: 0, Value.MAX: 0, Value.FIRST_AT: AT_S - 14_400})
WORKER = (
    Series("GPU-1")
    .with_(gpu="1")
    .held_by("team-b/worker")
    .doing({Value.P50: 80, Value.MEMORY_PEAK: 70 * GIB})
)
OBJECTS: Sequence[Labelled] = (
    gpu_node("g1", 8),
    gpu_pod("idler", "g1", 1, "team-a"),
    gpu_pod("worker", "g1", 1, "team-b"),
)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    return write_dump(tmp_path / "east.json", OBJECTS)


def run(*args: object, command: str = "top") -> Result:
    return CliRunner().invoke(cli, [command, *map(str, args), "-o", "json"])


def lines(result: Result) -> dict[str, dict[str, int | None]]:
    found = json.loads(result.stdout)
    return {line["name"][-1]: {**line["sums"], "used": line["used_percent"]} for line in found["lines"]}


def notes(result: Result) -> str:
    return "\n".join(note["text"] for note in json.loads(result.stdout)["notes"])


def test_devices_are_measured_without_node_agents(dump: Path) -> None:
    table = dcgm([IDLER.sample(), WORKER.sample()], values([IDLER, WORKER]))
    with prometheus(from_table(table)) as fake:
        result = run(dump, "--from-prometheus", fake.url)
    assert result.exit_code == 0, result.output
    found = lines(result)
    assert (found["team-a"]["used"], found["team-a"]["idle_milli"]) == (0, 1000)
    assert (found["team-b"]["used"], found["team-b"]["idle_milli"]) == (80, 0)
    assert f"devices measured through Prometheus {fake.url}: 2 by DCGM's exporter" in notes(result)


def test_what_node_agents_wrote_goes_before_it(tmp_path: Path) -> None:
    device = DeviceBuilder("GPU-0").held_by("team-a/idler").doing(40, 50).object(0)
    agent = {"metadata": {"name": "g1"}, "observedAt": ago(0), "windowSeconds": 300, "devices": [device]}
    written = {**agent, "apiVersion": "fairway.dev/v1alpha1"}
    dump = write_dump(tmp_path / "east.json", (*OBJECTS, ("NodeDevices", written)))
    with prometheus(from_table(dcgm([IDLER.sample(), WORKER.sample()], values([IDLER, WORKER])))) as fake:
        result = run(dump, "--from-prometheus", f"east={fake.url}")
    assert {name: line["used"] for name, line in lines(result).items()} == {"team-a": 40, "team-b": 80}
    assert f"through Prometheus {fake.url}: 1 by DCGM's exporter" in notes(result)
    # A file is asked about at the moment that it tells of.
    assert {one.params["time"] for one in fake.asked} == {f"{AT_S:.3f}"}


def test_a_prometheus_that_fails_is_told_and_costs_only_its_measurements(dump: Path) -> None:
    with prometheus(lambda _: Reply(failure("unavailable", "starting up"), 503)) as fake:
        result = run(dump, "--from-prometheus", fake.url)
    assert result.exit_code == 2
    found = json.loads(result.stdout)
    assert found["total"]["sums"]["allocated_milli"] == 2000
    assert found["total"]["used_percent"] is None
    (failed,) = found["failures"]
    assert failed["cluster"] == f"east, Prometheus {fake.url}"
    assert failed["problem"].startswith("503: starting up; expected success: is Prometheus overloaded")


def test_each_cluster_has_its_own(dump: Path, tmp_path: Path) -> None:
    west = write_dump(tmp_path / "west.json", OBJECTS)
    with (
        prometheus(from_table(dcgm([IDLER.sample()], values([IDLER])))) as one,
        prometheus(from_table(dcgm([WORKER.sample()], values([WORKER])))) as two,
    ):
        given = ("--from-prometheus", f"east={one.url}", "--from-prometheus", f"west={two.url}")
        result = run(dump, west, *given, "--by", "cluster")
    assert {name: line["measured_milli"] for name, line in lines(result).items()} == {
        "east": 1000,
        "west": 1000,
    }
    assert {name: line["used"] for name, line in lines(result).items()} == {"east": 0, "west": 80}


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            ["--from-prometheus", "p:9090"],
            "--from-prometheus 'p:9090': expected http(s)://HOST[:PORT][/PATH]",
        ),
        (
            ["--from-prometheus", "west=http://p"],
            "--from-prometheus west=...: no cluster of this name; there is east",
        ),
        (["--prometheus-token-file", "x"], "--prometheus-token-file: expected --from-prometheus URL with it"),
        (["--prometheus-ca-file", "x"], "--prometheus-ca-file: expected --from-prometheus URL with it"),
    ],
)
@pytest.mark.parametrize("command", ["top", "report"])
def test_flags_that_cannot_be_meant(dump: Path, args: list[str], said: str, command: str) -> None:
    result = run(dump, *args, command=command)
    assert result.exit_code == 1
    assert said in result.output


def test_an_estimator_has_a_prometheus_of_its_own(dump: Path) -> None:
    result = run("grpc://localhost:1", "--from-prometheus", "http://p", command="report")
    assert result.exit_code == 1
    assert "--from-prometheus: estimator localhost:1 has a setting of its own" in result.output


def test_chips_of_tpus_meet_the_pod_that_holds_them(tmp_path: Path) -> None:
    labels = {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
        "cloud.google.com/gke-tpu-topology": "2x4",
    }
    host = node("t1").has({"google.com/tpu": 4}).label(labels)
    worker = pod("worker", "team-t").on("t1").requests({"google.com/tpu": 4})
    dump = write_dump(tmp_path / "east.json", (("Node", host.object()), ("Pod", worker.object())))
    chips = [
        {"accelerator_id": f"7-{number}", "model": "tpu-v6e-slice", "node": "t1"} for number in range(8, 12)
    ]
    held = {"namespace": "team-t", "pod": "worker", "container": "main"}
    table = exported(
        Exporter.TPU,
        [Sample({**labels, **held}, 1.0) for labels in chips],
        {
            value: [Sample(labels, 60.0) for labels in chips]
            for value in (Value.P50, Value.P95, Value.SAMPLES)
        },
    )
    with prometheus(from_table(table)) as fake:
        result = run(dump, "--from-prometheus", fake.url)
    found = lines(result)["team-t"]
    assert (found["allocated_milli"], found["measured_milli"], found["used"]) == (4000, 4000, 60)
    assert f"measured through Prometheus {fake.url}: 4 by GKE's TPU device plugin (runtime)" in notes(result)


def report(*args: object) -> Result:
    return run(*args, command="report")


def test_the_report_has_what_is_used_where_no_agent_runs(dump: Path) -> None:
    broken = Series("GPU-2").with_(gpu="2").doing({Value.REMAP_FAILED: 1.0})
    every = [IDLER, WORKER, broken]
    with prometheus(from_table(dcgm([one.sample() for one in every], values(every)))) as fake:
        result = report(dump, "--from-prometheus", fake.url)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert "1 allocated and idle for an hour; largest gang" in found["headline"]
    (cluster,) = found["clusters"]
    usage = cluster["usage"]
    assert {group["name"][-1]: group["measured_milli"] for group in usage["namespaces"]} == {
        "team-a": 1000,
        "team-b": 1000,
    }
    assert [(one["device"], one["health"]) for one in usage["sick"]] == [("GPU-2", "Unhealthy")]
    # What is broken is not free, whoever found it.
    assert [product["unhealthy"] for product in cluster["summary"]["products"]] == [1]
    assert f"devices measured through Prometheus {fake.url}: 3 by DCGM's exporter" in usage["notes"]


def test_a_report_goes_on_without_a_prometheus_that_fails(dump: Path) -> None:
    with prometheus(lambda _: Reply(failure("unavailable", "starting up"), 503)) as fake:
        result = report(dump, "--from-prometheus", fake.url)
    assert result.exit_code == 2
    found = json.loads(result.stdout)
    assert [cluster["summary"]["cluster"] for cluster in found["clusters"]] == ["east"]
    assert [one["cluster"] for one in found["failures"]] == [f"east, Prometheus {fake.url}"]
    assert "allocated and idle" not in found["headline"]
