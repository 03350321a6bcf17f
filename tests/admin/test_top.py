"""``fairway top``: what it shows of whom, at which width, from which sources, and how it ends."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from admin.main import cli
from admin.top import Chosen, Top, top
from admin.top_command import _watched
from admin.top_command import top as top_command
from estimator.capacity.usage import UsageAnswer
from fairway.usage.definitions import THRESHOLDS, idle_time
from fairway.usage.groups import By
from fairway.usage.use import ClusterUsage
from tests.admin.dumps import gpu_node, gpu_pod, write_dump
from tests.admin.estimators import FakeEstimator, serving
from tests.builders import node, pod
from tests.usage.agents import DeviceBuilder, ago, usage

FIRST = DeviceBuilder("GPU-0").held_by("team-a/idler").doing(0, 0, 60, idle_s=7200)
SECOND = DeviceBuilder("GPU-1").held_by("team-b/worker").doing(80, 95)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """Two teams with a device each that is measured; one of them has one more that is not."""
    agent = {"metadata": {"name": "g1"}, "observedAt": ago(0), "windowSeconds": 300}
    devices = [FIRST.object(0), SECOND.object(1)]
    return write_dump(
        tmp_path / "east.json",
        [
            gpu_node("g1", 8),
            gpu_pod("idler", "g1", 1, "team-a"),
            gpu_pod("worker", "g1", 2, "team-b"),
            ("NodeDevices", {**agent, "apiVersion": "fairway.dev/v1alpha1", "devices": devices}),
        ],
    )


def run(*args: object) -> Result:
    return CliRunner().invoke(cli, ["top", *map(str, args)])


def lines(result: Result) -> list[list[str]]:
    return [line.split() for line in result.stdout.splitlines()]


def test_those_who_waste_most_come_first_and_everything_adds_up(dump: Path) -> None:
    result = run(dump)
    assert result.exit_code == 0, result.output
    rows = {words[0]: words for words in lines(result) if words}
    assert list(rows)[-3:] == ["team-a", "team-b", "all"]
    assert rows["team-a"][1:3] == ["1", "0%"]
    assert rows["team-b"][1:3] == ["2", "80%"]
    assert rows["all"][1:3] == ["3", "40%"]
    assert "3 devices held by 2 pods, 40% used, 1.2 wasted, 1 idle for an hour or longer, 1 not measured" in (
        " ".join(result.stdout.split())
    )


@pytest.mark.parametrize("by", ["namespace", "queue", "owner", "pod", "node", "device", "product", "cluster"])
@pytest.mark.parametrize("width", [60, 80, 140])
def test_no_line_is_wider_than_the_terminal(by: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    result = run("--demo", "--by", by)
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) <= width
    head = next(line for line in result.stdout.splitlines() if "DEVICES" in line)
    assert {"DEVICES", "USED", "WASTED"} <= set(head.split())


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        ([], [["team-a"], ["team-b"]]),
        (["--namespace", "team-b"], [["team-b"]]),
        (["--idle"], [["team-a"]]),
        (["--node", "g1"], [["team-a"], ["team-b"]]),
        (["--by", "device", "--idle"], [["east", "g1", "0 GPU-0"]]),
        (["--by", "pod", "-n", "team-a"], [["east", "team-a", "idler"]]),
    ],
)
def test_what_is_chosen(dump: Path, flags: list[str], names: list[list[str]]) -> None:
    found = json.loads(run(dump, *flags, "-o", "json").stdout)
    assert found["format"] == "fairway-top/1"
    assert [line["name"] for line in found["lines"]] == names
    assert set(found["definitions"]) >= {"idle", "under-used", "oversized", "throttled", "failing"}


def test_yaml_says_the_same_as_json(dump: Path) -> None:
    as_json, as_yaml = (run(dump, "-o", form).stdout for form in ("json", "yaml"))
    left, right = json.loads(as_json), yaml.safe_load(as_yaml)
    assert left["lines"] == right["lines"]


def test_wide_has_every_column_on_one_line(dump: Path) -> None:
    head = next(line for line in run(dump, "-o", "wide").stdout.splitlines() if "DEVICES" in line)
    assert "IDLE DEVICE-HOURS" in head
    assert "MEMORY HELD" in head


@pytest.mark.parametrize(
    ("args", "code", "told"),
    [
        (
            ["--namespace", "nope"],
            1,
            "--namespace nope: no pod that holds devices is of such",
        ),
        (["--queue", "nope"], 1, "--queue nope: no pod that holds devices is of such a queue; there is none"),
        (["--product", "B900"], 1, "--product B900: no pod"),
        (["--node", "g9"], 1, "--node g9: no pod that holds devices is of such a node; there is g1"),
        (["grpc://127.0.0.1:9"], 2, "is it running there, and are the TLS flags as it needs them?"),
        (
            ["grpc://127.0.0.1:9", "--from-prometheus", "http://localhost:9"],
            1,
            "--from-prometheus: estimator 127.0.0.1:9 has a setting of its own: give the flag",
        ),
        (["--cert-file", "x"], 1, "--cert-file and --key-file belong together"),
        (["--watch", "--out", "x.json"], 1, "--watch and --out: expected one of them"),
    ],
)
def test_what_cannot_be_shown_is_told(dump: Path, args: list[str], code: int, told: str) -> None:
    result = run(dump, *args)
    assert told in result.output
    assert result.exit_code == code or (code == 1 and result.exit_code != 0)


def asked(estimator: FakeEstimator, *args: object, methods: Collection[str] = ("Usage",)) -> Result:
    """What the command says of an estimator, after the sources and options of ``args``."""

    async def scenario() -> Result:
        async with serving(estimator, methods=methods):
            return await asyncio.to_thread(run, *args, f"grpc://{estimator.address}")

    return asyncio.run(scenario())


WEST = usage([node("n").gpus(8)], [pod("p").requests(gpu=3).on("n")], name="west")


def test_estimators_are_shown_beside_dumps(dump: Path) -> None:
    result = asked(FakeEstimator(usages=(UsageAnswer(WEST),)), dump, "--by", "cluster", "-o", "json")
    assert result.exit_code == 0, result.output
    sums = {line["name"][0]: line["sums"]["allocated_milli"] for line in json.loads(result.stdout)["lines"]}
    assert sums == {"east": 3000, "west": 3000}


@pytest.mark.parametrize(
    ("answer", "code", "told"),
    [
        (UsageAnswer(WEST, 200.0, "nodes: out of contact"), 0, "west: nodes: out of contact"),
        (
            UsageAnswer(ClusterUsage("west", ()), 0.0, "nodes: not read"),
            2,
            "west could not be read: nodes: not read",
        ),
    ],
)
def test_of_a_cluster_in_doubt_is_shown_what_is_known(
    dump: Path, answer: UsageAnswer, code: int, told: str
) -> None:
    result = asked(FakeEstimator(usages=(answer,)), dump)
    assert result.exit_code == code, result.output
    assert told in " ".join(result.output.split())


def test_an_estimator_that_does_not_know_the_call_is_told_what_to_do_about() -> None:
    result = asked(FakeEstimator(), methods=("Summary",))
    assert result.exit_code == 1
    told = " ".join(result.output.split())
    assert (
        "it is no Fairway estimator, or one older than this command. Update it, or give the cluster's" in told
    )


@pytest.mark.parametrize("text", ["NVIDIA H100 80GB", "NVIDIA-H100-80GB", "h100 80gb"])
@pytest.mark.parametrize("command", ["top", "hours", "report"])
def test_a_product_may_be_spelled_as_by_labels_or_as_by_the_driver(text: str, command: str) -> None:
    asked_for = CliRunner().invoke(cli, [command, "--demo", "--product", text])
    assert asked_for.exit_code == 0, asked_for.output


@pytest.mark.parametrize("width", [80, 100, 140])
def test_devices_of_a_node_are_told_apart_at_any_width(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    head, *rows = run("--demo", "--by", "device").stdout.partition("CLUSTER")[2].splitlines()
    assert head.split()[:3] == ["NODE", "NO", "DEVICE"]
    cut = [row.split()[:4] for row in rows if " MIG-" in row]
    assert len(cut) == len(set(map(tuple, cut))) == 5


def test_all_commands_tell_the_same_share_that_is_used_and_all_of_what_is_wasted(dump: Path) -> None:
    shares = [line["wasted_percent"] for line in json.loads(run(dump, "-o", "json").stdout)["lines"]]
    assert shares == [83, 17]


def test_a_cluster_without_agents_says_that_nothing_is_measured(tmp_path: Path) -> None:
    result = run(write_dump(tmp_path / "a.json", [gpu_node("g1", 8), gpu_pod("p", "g1", 4)]))
    assert result.exit_code == 0
    assert "4 devices held by 1 pod; none of them is measured" in result.stdout
    assert "this dump has none (where the node agent runs, add nodedevices to it)" in result.stdout
    assert "0%" not in result.stdout


def test_watching_off_a_terminal_tells_what_has_changed(capsys: pytest.CaptureFixture[str]) -> None:
    answers = iter([_empty("2026-01-01T00:00:00Z")] * 2 + [_empty("2026-01-01T00:00:30Z")])
    naps = iter(range(3))

    async def ask() -> Top:
        return next(answers)

    async def sleep(_: float) -> None:
        if next(naps, None) == 2:
            raise asyncio.CancelledError

    asyncio.run(_watched(ask, "json", 10, sleep))
    told = [json.loads(line)["made_at"] for line in capsys.readouterr().out.splitlines()]
    assert told == ["2026-01-01T00:00:00Z", "2026-01-01T00:00:30Z"]


def _empty(made_at: str) -> Top:
    return top([], (), By.NAMESPACE, Chosen(), made_at=made_at, release="0.1.0")


def test_names_that_command_a_terminal_are_shown_as_escapes(tmp_path: Path) -> None:
    result = run(write_dump(tmp_path / "a.json", [gpu_node("g", 8), gpu_pod("p", "g", 1, "\x1b[31mred")]))
    assert "\x1b" not in result.stdout
    assert "\\x1b[31mred" in result.stdout


def test_the_guide_names_every_option_and_every_definition() -> None:
    guide = (Path(__file__).parents[2] / "docs/top.md").read_text(encoding="utf-8")
    options = {name for option in top_command.params for name in option.opts if name.startswith("-")}
    assert {option for option in options if f"`{option}" not in guide} == set()
    limits = THRESHOLDS
    for threshold in (
        f"below {limits.quiet_percent} %",
        f"more than {limits.held_memory_percent} %",
        f"less than {limits.oversized_memory_percent} % of its memory",
        f"less than {limits.oversized_busy_percent} % of its time",
        f"for {limits.throttled_percent} % of the window",
        f"for {idle_time()} or longer",
    ):
        assert threshold in guide
    assert (limits.under_used_percent, limits.stale_s) == (50, 600)


def test_who_uses_what_of_files_is_told_without_what_talks_to_api_servers(dump: Path) -> None:
    told = "import sys; from admin.main import run; run(['top', sys.argv[1]]); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", told, str(dump)], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert {"kubernetes", "aiohttp"} & set(loaded) == set()


def test_watching_what_was_never_there_is_an_error() -> None:
    result = run("grpc://127.0.0.1:9", "--watch")
    assert result.exit_code == 1
    assert "no cluster could be read" in result.output


def test_the_files_of_one_cluster_count_as_one_file(dump: Path, tmp_path: Path) -> None:
    items = json.loads(dump.read_text())["items"]
    files = [
        write_dump(tmp_path / f"{kind}.json", [(kind, one) for one in items if one["kind"] == kind])
        for kind in ("NodeDevices", "Pod", "Node")
    ]
    whole, parts = run(dump, "-o", "json"), run(f"east={','.join(map(str, files))}", "-o", "json")
    assert parts.exit_code == 0, parts.output
    left, right = json.loads(whole.stdout), json.loads(parts.stdout)
    assert [left[name] for name in ("total", "lines", "notes")] == [
        right[name] for name in ("total", "lines", "notes")
    ]


def test_files_of_one_cluster_given_one_by_one_are_told_how_to_be_given(dump: Path) -> None:
    result = run(f"a={dump}", f"a={dump}")
    assert result.exit_code == 1
    assert "or the files of one cluster as NAME=FILE,FILE" in " ".join(result.output.split())
