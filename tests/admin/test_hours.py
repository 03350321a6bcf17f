"""``fairway hours``: what it shows of whom and when, at which width, from which sources, and how it ends."""

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from admin.hours import Chosen as Everything
from admin.hours import Observed, PeriodError, hours, period, to_csv
from admin.listings.hours import hour_text
from admin.main import cli
from admin.terminal.hours import observed
from fairway.prometheus.answer import Sample
from fairway.usage.hours import ClusterHours, HoursBy, Period, TeamDay
from tests.admin.dumps import Labelled, gpu_node, write_dump
from tests.prometheus.fake import Reply, failure, prometheus, success
from tests.usage.agents import NOW, ago

HOUR_S, DAY_S = 3600, 86_400


@pytest.fixture(autouse=True)
def at_noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("admin.hours_command._now", lambda: NOW)


def team(namespace: str, hours_: tuple[int, int, int, int], queue: str = "") -> dict[str, object]:
    names = ("allocatedSeconds", "measuredSeconds", "usedSeconds", "quietSeconds")
    amounts = {name: HOUR_S * amount for name, amount in zip(names, hours_, strict=True)}
    named = {"namespace": namespace, "queue": queue}
    return {**{name: text for name, text in named.items() if text}, **amounts}


def written(node: str, *days: tuple[str, int, list[dict[str, object]]]) -> Labelled:
    told = [{"date": date, "observedSeconds": seconds, "teams": teams} for date, seconds, teams in days]
    return "NodeDevices", {
        "apiVersion": "fairway.dev/v1alpha1",
        "metadata": {"name": node},
        "observedAt": ago(60),
        "devices": [{"id": "GPU-1", "product": "NVIDIA H100"}],
        "days": told,
    }


OBJECTS = [
    gpu_node("g1", 8),
    written(
        "g1",
        ("2026-11-20", DAY_S, [team("vision", (100, 100, 90, 0), "train")]),
        ("2026-11-21", DAY_S, [team("vision", (20, 20, 15, 1)), team("labs", (50, 40, 8, 30))]),
        ("2026-11-22", DAY_S // 2 - 60, [team("labs", (10, 0, 0, 0)), team("", (5, 5, 5, 0))]),
    ),
]


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    return write_dump(tmp_path / "east.json", OBJECTS)


def run(*args: object) -> Result:
    return CliRunner().invoke(cli, ["hours", *map(str, args)])


def lines(result: Result) -> dict[str, list[str]]:
    return {words[0]: words[1:] for line in result.stdout.splitlines() if (words := line.split())}


def test_those_who_waste_most_come_first_and_everything_adds_up(dump: Path) -> None:
    result = run(dump, "--since", "3d")
    assert result.exit_code == 0, result.output
    found = lines(result)
    assert list(found)[-4:] == ["labs", "vision", "(others)", "all"]
    assert found["labs"] == ["60.0", "8.0", "20%", "32.0", "30.0", "20.0", "32%"]
    assert found["vision"] == ["120.0", "105.0", "88%", "15.0", "1.0", "0", "65%"]
    assert found["all"] == ["185.0", "118.0", "72%", "47.0", "31.0", "20.0", "100%"]
    said = (
        "185.0 device-hours allocated, 72% used, 47.0 wasted, 31.0 of these quiet, 20.0 not measured. "
        "Observed: 100% of the nodes' time."
    )
    assert said in " ".join(result.stdout.split())


CHOICES: dict[str, tuple[list[str], dict[str, str]]] = {
    "a day": (["--since", "2026-11-21", "--until", "2026-11-21"], {"labs": "50.0", "vision": "20.0"}),
    "by queue": (["--since", "3d", "--by", "queue"], {"(no": "queue)", "vision/train": "100.0"}),
    "by day": (
        ["--since", "3d", "--by", "day"],
        {"2026-11-20": "100.0", "2026-11-21": "70.0", "2026-11-22": "15.0"},
    ),
    "by product": (["--since", "3d", "--by", "product"], {"NVIDIA-H100": "185.0"}),
    "by cluster": (["--since", "3d", "--by", "cluster"], {"east": "185.0"}),
    "a namespace": (["--since", "3d", "-n", "labs"], {"labs": "60.0"}),
    "a queue": (["--since", "3d", "--queue", "vision/train"], {"vision": "100.0"}),
    "a product": (["--since", "1d", "--product", "h100"], {"labs": "10.0", "(others)": "5.0"}),
}


@pytest.mark.parametrize("case", CHOICES)
def test_what_is_chosen(case: str, dump: Path) -> None:
    flags, expected = CHOICES[case]
    result = run(dump, *flags)
    assert result.exit_code == 0, result.output
    shown = result.stdout.partition("SHARE\n")[2].splitlines()
    found = {words[0]: words[1] for line in shown if (words := line.split())}
    assert {name: found[name] for name in expected} == expected
    assert len(found) == len(expected) + 1


@pytest.mark.parametrize("by", HoursBy)
@pytest.mark.parametrize("width", [60, 80, 140])
def test_no_line_is_wider_than_the_terminal(by: HoursBy, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    result = run("--demo", "--by", by)
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) <= width
    head = next(line for line in result.stdout.splitlines() if "ALLOCATED" in line)
    assert {"ALLOCATED", "USED", "WASTED"} <= set(head.split())


def test_machines_get_everything_in_seconds_and_spreadsheets_in_hours(dump: Path, tmp_path: Path) -> None:
    found = json.loads(run(dump, "--since", "3d", "-o", "json").stdout)
    assert (found["format"], found["since"], found["until"]) == (
        "fairway-hours/1",
        "2026-11-20",
        "2026-11-22",
    )
    assert found["total"]["sums"]["allocated_seconds"] == 185 * HOUR_S
    assert found["observed"] == [
        {
            "cluster": "east",
            "of": "nodes",
            "observed_seconds": int(2.5 * DAY_S) - 60,
            "expected_seconds": int(2.5 * DAY_S) - 60,
        }
    ]
    assert found["definitions"].keys() == {"allocated", "used", "wasted", "quiet", "unmeasured"}
    assert yaml.safe_load(run(dump, "--since", "3d", "-o", "yaml").stdout)["lines"] == found["lines"]
    file = tmp_path / "hours.csv"
    assert run(dump, "--since", "3d", "--by", "queue", "--out", file).exit_code == 0
    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    assert [(row["namespace"], row["queue"], row["allocated_hours"]) for row in rows] == [
        ("", "", "85.000"),
        ("vision", "train", "100.000"),
    ]


def test_a_name_is_no_formula() -> None:
    row = TeamDay("c", NOW.date(), "=1+1", "", "H100", 1, 1, 1, 0)
    found = hours(
        [ClusterHours("c", (row,), "devices", 0, 0)],
        (),
        HoursBy.NAMESPACE,
        Everything(),
        Period(NOW.date(), NOW.date()),
        made_at="",
        release="",
    )
    assert to_csv(found).splitlines()[1].startswith("'=1+1,")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--since", "tomorrow"], "expected a day as 2026-11-01, or days back from today as 7d"),
        (["--since", "0d"], "expected a day as"),
        (["--since", "20261101"], "expected a day as"),
        (["--since", "2026-11-23"], "expected a day up to 2026-11-22"),
        (["--until", "2026-12-24"], "expected a day up to today, which is 2026-11-22 in UTC"),
        (["--since", "2026-11-02", "--until", "2026-11-01"], "expected a day from 2026-11-02 on"),
        (["--since", "500d"], "expected at most 400 days"),
        (["-n", "nobody"], "there is labs, vision"),
        (["--queue", "none"], "there is train"),
        (["--product", "tpu"], "there is NVIDIA-H100"),
        (["grpc://localhost:1"], "an estimator keeps no sums"),
        (["--prometheus-token-file", "x"], "expected --from-prometheus URL with it"),
    ],
)
def test_what_cannot_be_is_told_in_a_line(args: list[str], said: str, dump: Path) -> None:
    result = run(*args) if args[0].startswith("grpc") else run(dump, *args)
    assert result.exit_code == 1
    assert said in result.output


def test_the_last_days_count_back_from_today_in_utc() -> None:
    late = datetime(2026, 11, 22, 23, 59, 59, tzinfo=UTC)
    assert period("7d", "", late) == Period(datetime(2026, 11, 16, tzinfo=UTC).date(), late.date())
    assert period("2d", "2d", late).days == (datetime(2026, 11, 21, tzinfo=UTC).date(),)
    with pytest.raises(PeriodError):
        period("2026-02-30", "", late)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0"), (1, "<0.1"), (180, "0.1"), (3600, "1.0"), (4_444_200, "1,234.5")]
)
def test_hours_are_told_to_a_tenth(seconds: int, text: str) -> None:
    assert hour_text(seconds) == text


@pytest.mark.parametrize("text", ["NVIDIA H100", "NVIDIA-H100", "nvidia h100", "h100"])
def test_a_product_is_spelled_as_labels_do_and_found_in_either_spelling(text: str, dump: Path) -> None:
    result = run(dump, "--since", "3d", "--by", "product", "--product", text)
    assert lines(result)["NVIDIA-H100"][0] == "185.0"


def test_the_hours_of_the_sample_clusters_are_those_of_the_pods_that_top_shows() -> None:
    """Nobody held a device for longer than the pods are there, and what is idle now lay quiet as long."""
    top = json.loads(CliRunner().invoke(cli, ["top", "--demo", "--by", "queue", "-o", "json"]).stdout)[
        "lines"
    ]
    hours_ = json.loads(run("--demo", "--by", "queue", "-o", "json").stdout)["lines"]
    held = {"/".join(line["name"]): line["sums"] for line in top}
    found = {"/".join(line["name"]): line["sums"] for line in hours_}
    assert found.keys() == held.keys()
    for queue, sums in found.items():
        now = held[queue]
        assert sums["allocated_seconds"] <= now["age_s"] * now["allocated_milli"] // 1000
        assert sums["quiet_seconds"] >= now["idle_device_seconds"] - 60
    assert found["training/large"]["allocated_seconds"] - found["training/large"]["measured_seconds"] == 2100
    assert found["research/large"]["quiet_seconds"] == 8 * 26 * HOUR_S


@pytest.mark.parametrize(
    ("clusters", "said"),
    [
        ([("a", "nodes", 50, 100)], "Observed: 50% of the nodes' time."),
        ([("a", "nodes", 10, 10), ("b", "nodes", 30, 30)], "Observed: 100% of the nodes' time."),
        (
            [(name, "nodes", part, 100) for name, part in zip("abcde", (100, 90, 0, 99, 70), strict=True)],
            "Observed: 71% of the nodes' time (least: c 0%, e 70%, b 90%).",
        ),
        (
            [("a", "nodes", 999, 1000), ("b", "devices", 10, 10)],
            "Observed: 99% of the nodes' time (least: a 99%), 100% of the devices' time.",
        ),
    ],
)
def test_what_was_observed_is_one_line_however_many_clusters_there_are(
    clusters: list[tuple[str, str, int, int]], said: str
) -> None:
    assert observed([Observed(*one) for one in clusters]) == said


def test_a_cluster_whose_pods_held_other_products_is_not_counted_as_observed() -> None:
    found = json.loads(run("--demo", "--product", "h100", "-o", "json").stdout)
    assert [one["cluster"] for one in found["observed"]] == [
        "bravo",
        "charlie",
    ]  # of charlie nothing is known


def test_nothing_is_known_of_a_cluster_without_agents(tmp_path: Path) -> None:
    result = run(write_dump(tmp_path / "west.json", [gpu_node("g1", 8)]))
    assert result.exit_code == 0
    said = " ".join(result.stdout.split())
    assert "No device-hour is known. Observed: 0% of the nodes' time." in said
    assert "west: NodeDevices: this dump has none (where the node agent runs, add nodedevices to it)" in said


def answer(query: str) -> Reply:
    if query.startswith("max_over_time((count(fairway"):
        return Reply(success([Sample({}, 8.0)]))
    return Reply(success([Sample({"team": "metrics", "product": "H100"}, 60.0)]))


def test_prometheus_goes_before_the_agents_sums(dump: Path) -> None:
    with prometheus(answer) as fake:
        result = run(dump, "--since", "2d", "--from-prometheus", fake.url)
    assert result.exit_code == 0, result.output
    assert lines(result)["metrics"][0] == "2.0"
    assert "labs" not in lines(result)
    assert f"east: device-hours through Prometheus {fake.url}, by Fairway's node agents" in result.stdout


def test_a_prometheus_that_fails_is_told_and_the_agents_sums_stand(dump: Path) -> None:
    with prometheus(lambda _: Reply(failure("unavailable", "starting up"), 503)) as fake:
        result = run(dump, "--since", "2d", "--from-prometheus", fake.url, "-o", "json")
    assert result.exit_code == 2
    found = json.loads(result.stdout)
    assert found["total"]["sums"]["allocated_seconds"] == 85 * HOUR_S
    assert found["failures"][0]["cluster"] == f"east, Prometheus {fake.url}"


def test_one_prometheus_cannot_tell_of_two_clusters(dump: Path, tmp_path: Path) -> None:
    west = write_dump(tmp_path / "west.json", OBJECTS)
    result = run(dump, west, "--from-prometheus", "http://localhost:1")
    assert result.exit_code == 1
    assert "expected that of one cluster, found it for east and west: name one each" in result.output
