"""``fairway queues``, ``queue`` and ``pending`` against a dispatcher's visibility API."""

import asyncio
import json
from collections.abc import Iterator
from typing import NoReturn

import pytest
import yaml
from rich.text import Text

from admin.dispatcher import DispatcherError
from admin.main import run
from admin.terminal.queues import bar
from admin.watching import shown_live
from fairway.visibility import LocalQueueView, WorkloadList, WorkloadView
from tests.admin.dispatchers import QUEUES, RESEARCH, dispatcher, waiting

RUNS = WorkloadView("team-a", "serve", "Deployment", "serve-deployment", "Placed", clusters={"east": 2})


@pytest.fixture
def url() -> Iterator[str]:
    answers = {
        "/queues": QUEUES,
        "/queues/research": RESEARCH,
        "/namespaces/team-a/queues/main": LocalQueueView("team-a", "main", "research", pending=1),
        "/workloads/team-a/train": WorkloadList([waiting("train", 1)]),
        "/workloads/team-a/serve": WorkloadList([RUNS]),
        "/workloads/team-a/odd": b'{"workloads": 7}',
    }
    with dispatcher(answers) as url:
        yield url


def told(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    code = run(args)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_queues_are_a_tree_with_a_bar_for_each_resource(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, "queues", "--dispatcher", url)
    assert code == 0
    line = next(line for line in out.splitlines() if "research" in line)
    assert line.startswith("  research")
    assert "[####################]++++++++++" in line
    assert "NeverFits 1, WaitingForQuota 2" in line
    assert "admits nothing: stopPolicy is Hold" in out
    assert "1 workload without a queue" in out
    assert "2 of 10 releases are being placed" in out


def test_a_queue_shows_its_limits_and_its_line(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, "queue", "research", "--dispatcher", url)
    assert code == 0
    assert "parent all, BestEffortFIFO, weight 1, 2 admitted, 3 pending" in out
    assert "4500m cpu 8 nvidia.com/gpu" in out
    assert "and 1 more workload (--limit)" in out


def test_a_local_queue_is_named_with_its_namespace(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, "queue", "team-a/main", "--dispatcher", url)
    assert code == 0
    assert "LocalQueue team-a/main" in out
    assert "of ClusterQueue research" in out


def test_pending_leaves_out_queues_in_which_nothing_waits(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = told(capsys, "pending", "--dispatcher", url)
    assert code == 0
    assert "research: 3 pending" in out
    assert "idle" not in out
    assert "QueueNotFound" in out


@pytest.mark.parametrize(("workload", "code"), [("train", 3), ("serve", 0)])
def test_the_exit_code_tells_whether_a_workload_waits(
    workload: str, code: int, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found, out, _ = told(capsys, "pending", workload, "-n", "team-a", "--dispatcher", url)
    assert found == code
    assert f"team-a/{workload}" in out


def test_a_waiting_workload_is_told_why_and_until_when(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = told(capsys, "pending", "train", "-n", "team-a", "--dispatcher", url)
    assert "1 in the ClusterQueue, 1 in the LocalQueue" in out
    assert "WaitingForQuota: 2 nvidia.com/gpu too few are left" in out
    assert "until     workloads finish" in out


def test_documents_come_as_json_and_yaml_too(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = told(capsys, "queues", "-o", "json", "--dispatcher", url)
    document = json.loads(out)
    assert document["inFlight"] == 2
    assert [queue["name"] for queue in document["queues"]] == ["all", "research", "idle"]
    _, out, _ = told(capsys, "queues", "-o", "yaml", "--dispatcher", url)
    assert yaml.safe_load(out) == document


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("queue", "nosuch"), "no such queue: known are research, all"),
        (("pending", "odd", "-n", "team-a"), "expected the visibility API of a Fairway dispatcher"),
        (("queues", "--watch", "-o", "json"), "expected --output table"),
        (("queues", "--ca-file", "/nonexistent/ca"), "expected certificates in PEM"),
    ],
)
def test_what_cannot_be_shown_is_told_with_what_to_do(
    args: tuple[str, ...], says: str, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = told(capsys, *args, "--dispatcher", url)
    assert code == 1
    assert says in err


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://[", "ftp://somewhere"])
def test_a_dispatcher_that_is_not_there_is_named(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = told(capsys, "queues", "--dispatcher", url)
    assert code == 1
    assert url in err
    assert "http://127.0.0.1:8082" in err or "port-forward" in err


@pytest.mark.parametrize(
    ("used", "nominal", "drawn"),
    [
        (0, 8, "[....................]"),
        (2, 8, "[#####...............]"),
        (8, 8, "[####################]"),
        (9, 8, "[####################]+++"),
        (1, 0, "[....................]++++++++++"),
        (0, 0, "[....................]"),
        (800, 8, "[####################]++++++++++++++++++++"),
    ],
)
def test_a_bar_shows_what_is_used_of_the_quota_and_what_is_borrowed(
    used: int, nominal: int, drawn: str
) -> None:
    assert bar(used, nominal).plain == drawn


def test_the_live_view_keeps_the_last_answer_when_one_fails(capsys: pytest.CaptureFixture[str]) -> None:
    asked = 0

    async def ask() -> str:
        nonlocal asked
        asked += 1
        if asked == 2:
            raise DispatcherError("gone for a moment")
        return f"answer {asked}"

    pauses = iter([None, None])

    async def sleep(seconds: float) -> None:
        if next(pauses, "end") == "end":
            interrupted()

    def interrupted() -> NoReturn:
        raise KeyboardInterrupt

    assert asyncio.run(shown_live(ask, Text, sleep=sleep)) == "answer 3"
