"""``fairway notify`` as it is typed: what it shows, what it refuses, how it ends."""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from admin.main import cli, run
from admin.notify_command import notify
from fairway.names import NOTIFY
from tests.admin.dumps import Labelled, gpu_node, gpu_pod, write_dump
from tests.usage.agents import DeviceBuilder, ago

ROOT = Path(__file__).parents[3]
KUBECONFIG = {
    "current-context": "c",
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
    "users": [{"name": "u", "user": {}}],
    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
}


def dumped(file: Path, pods: Iterable[str], namespace: str = "team", value: str = "true") -> Path:
    """A namespace with pods of a Job each, all of whose devices are idle."""
    objects: list[Labelled] = [("Namespace", {"metadata": {"name": namespace, "labels": {NOTIFY: value}}})]
    devices: dict[str, list[object]] = {}
    for number, name in enumerate(pods):
        node = f"g{number // 8}"
        kind, made = gpu_pod(name, node, 1, namespace)
        owner = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": f"job-{name}",
            "uid": name,
            "controller": True,
        }
        bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": ago(86_400)}
        metadata = {"name": name, "namespace": namespace, "ownerReferences": [owner]}
        status = {"phase": "Running", "conditions": [bound]}
        objects.append((kind, {**made, "metadata": metadata, "status": status}))
        device = DeviceBuilder(f"GPU-{number}").held_by(f"{namespace}/{name}").doing(0, 0, 1, idle_s=7200)
        devices.setdefault(node, []).append(device.object(number % 8))
    for node, found in devices.items():
        told = {"apiVersion": "fairway.dev/v1alpha1", "observedAt": ago(0), "windowSeconds": 300}
        objects += [
            gpu_node(node, 8),
            ("NodeDevices", {"metadata": {"name": node}, **told, "devices": found}),
        ]
    return write_dump(file, objects)


def ran(*args: object) -> Result:
    return CliRunner().invoke(cli, ["notify", *map(str, args)])


def test_a_dry_run_of_a_dump_says_what_would_be_said(tmp_path: Path) -> None:
    dump = dumped(tmp_path / "east.json", ["a", "b"])
    result = ran(dump, "--dry-run", "-o", "json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["format"], found["dry_run"]) == ("fairway-notify/1", True)
    assert [(line["kind"], line["name"], line["outcome"]) for line in found["lines"]] == [
        ("Job", "job-a", "would be told"),
        ("Job", "job-b", "would be told"),
    ]
    as_yaml = yaml.safe_load(ran(dump, "--dry-run", "-o", "yaml").stdout)
    assert as_yaml["lines"] == found["lines"]
    table = ran(dump, "--dry-run").stdout
    assert "2 workloads with findings: 2 would be told" in table
    assert "IdleDevices" in table


@pytest.mark.parametrize(("width", "last"), [(60, "OUTCOME"), (80, "WASTED"), (140, "WASTED")])
def test_a_workload_is_one_line_and_its_text_is_shown_where_wide_is_asked_for(
    width: int, last: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    head, *rows = ran("--demo", "--dry-run").stdout.partition("\n\n")[2].split("\n\n")[0].splitlines()
    assert (head.split()[-1], len(rows)) == (last, 13)
    assert max(map(len, (head, *rows))) <= width
    head, first, *_ = ran("--demo", "--dry-run", "-o", "wide").stdout.partition("\n\n")[2].splitlines()
    assert head.split()[-3:] == ["DEVICES", "WASTED", "MESSAGE"]
    assert "Of 8 devices (NVIDIA-A100-SXM4-80GB) in alpha: 8 idle" in first
    assert first.endswith("Told once a day at most.")


@pytest.mark.parametrize("value", ["false", "yes"])
def test_where_nobody_asks_nobody_is_told_and_that_is_said(tmp_path: Path, value: str) -> None:
    result = ran(dumped(tmp_path / "east.json", ["a"], value=value), "--dry-run")
    assert result.exit_code == 0
    assert "No workload of a namespace that wants to be told has findings." in result.stdout
    assert "no namespace is labelled fairway.dev/notify=true" in result.stdout


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["DUMP"], "expected --dry-run with it, for Events are written to live clusters alone"),
        (["--demo"], "expected --dry-run with it"),
        (["grpc://127.0.0.1:9", "--dry-run"], "no cluster could be read"),
        (["LIVE", "--karmada", "DUMP"], "expected a kubeconfig of Karmada's API server, found dump"),
        (["LIVE", "--karmada", "nowhere"], "--karmada: source 'nowhere': no file nowhere"),
        (["karmada=LIVE", "--karmada", "LIVE"], "expected another name of a member cluster"),
        (["LIVE", "--limit", "0"], "expected a whole number from 1 to 1,000"),
        (["LIVE"], "no cluster could be read"),
    ],
)
def test_what_cannot_be_done_is_refused(
    tmp_path: Path, args: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    live = tmp_path / "live.config"
    live.write_text(json.dumps(KUBECONFIG))
    dump = dumped(tmp_path / "east.json", ["a"])
    assert run(["notify", *(arg.replace("LIVE", str(live)).replace("DUMP", str(dump)) for arg in args)]) == 1
    captured = capsys.readouterr()
    assert told in " ".join((captured.out + captured.err).split())


def test_a_cluster_that_cannot_be_read_makes_it_partial(tmp_path: Path) -> None:
    live = tmp_path / "live.config"
    live.write_text(json.dumps(KUBECONFIG))
    result = ran(dumped(tmp_path / "east.json", ["a"]), f"west={live}", "--dry-run", "-o", "json")
    assert result.exit_code == 2
    found = json.loads(result.stdout)
    assert len(found["lines"]) == 1
    assert [failure["cluster"] for failure in found["failures"]] == ["west"]


def test_of_many_workloads_the_first_are_told_and_the_rest_is_a_line(tmp_path: Path) -> None:
    dump = dumped(tmp_path / "east.json", [f"p{number}" for number in range(1500)])
    result = ran(dump, "--dry-run")
    assert result.exit_code == 0
    assert "1,500 workloads with findings: 100 would be told, 1,400 left for the next run" in result.stdout
    assert "east, namespace team: 1,400 more workloads with findings" in result.stdout


def test_files_are_looked_at_without_what_talks_to_api_servers(tmp_path: Path) -> None:
    dump = dumped(tmp_path / "east.json", ["a"])
    told = "import sys; from admin.main import run; run(sys.argv[1:]); print(*sys.modules)"
    command = [sys.executable, "-c", told, "notify", str(dump), "--dry-run"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert {"kubernetes", "aiohttp"} & set(done.stdout.splitlines()[-1].split()) == set()


def test_names_that_command_a_terminal_are_shown_as_escapes(tmp_path: Path) -> None:
    result = ran(dumped(tmp_path / "a.json", ["\x1b[31mred"], namespace="\x1b[2Jteam"), "--dry-run")
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout


def test_the_guide_names_every_option_and_every_reason() -> None:
    from admin.notify.notices import TOLD

    guide = (ROOT / "docs" / "notify.md").read_text(encoding="utf-8")
    options = {name for option in notify.params for name in option.opts if name.startswith("-")}
    assert {option for option in options if f"`{option}" not in guide} == set()
    for told in TOLD:
        assert f"| `{told.reason}` | {told.type.value} | {told.finding.value}" in guide
