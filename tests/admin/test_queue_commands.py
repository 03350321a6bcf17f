"""``fairway queues``, ``queue`` and ``pending`` against a dispatcher's visibility API."""

import asyncio
import io
import json
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import msgspec
import pytest
import yaml
from rich.console import Console, RenderableType
from rich.text import Text

from admin.dispatcher import DispatcherError
from admin.main import run
from admin.printable import since
from admin.terminal.queues import (
    Look,
    bar,
    local_queue_page,
    pending_tables,
    queue_page,
    queue_tables,
    workload_pages,
)
from admin.terminal.reservations import reservation_facts
from admin.terminal.starts import start_facts
from admin.watching import shown_live, told_again
from fairway.visibility import (
    EtaView,
    LocalQueueView,
    QueueList,
    QueueView,
    Reservation,
    Start,
    Usage,
    WorkloadList,
    WorkloadView,
)
from tests.admin.dispatchers import GPU, HELD, PRETRAIN, QUEUES, RESEARCH, dispatcher, started, usage, waiting

SOON = msgspec.structs.replace(waiting("soon", 1), eta=EtaView(text="about noon"))
RUNS = WorkloadView("team-a", "serve", "Deployment", "serve-deployment", "Placed", clusters={"east": 2})


@pytest.fixture
def url() -> Iterator[str]:
    answers = {
        "/queues": QUEUES,
        "/queues/research": RESEARCH,
        "/namespaces/team-a/queues/main": LocalQueueView("team-a", "main", "research", pending=1),
        "/workloads/team-a/train": WorkloadList([waiting("train", 1)]),
        "/workloads/team-a/soon": WorkloadList([SOON]),
        "/workloads/team-a/serve": WorkloadList([RUNS]),
        "/workloads/team-a/pretrain": WorkloadList([PRETRAIN]),
        "/workloads/team-a/odd": b'{"workloads": 7}',
        "/workloads/team-a/elsewhere": WorkloadList(namespaces=["team-b", "team-c"]),
        "/workloads/team-a/nope": WorkloadList(),
        "/workloads/team-a/nightly": WorkloadList(
            [WorkloadView("team-a", "nightly", "CronJob", "b", "NotGated")]
        ),
        "/workloads/team-a/web": WorkloadList([WorkloadView("team-a", "web", "Job", "b", "Foreign"), RUNS]),
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
    assert "########++++" in line
    assert "NeverFits 1, WaitingForQuota 2" in line
    assert "idle: admits nothing: stopPolicy is Hold" in out
    assert "1 workload without a queue" in out
    assert "2 released and being placed by Karmada, at most 10 at once" in out


def test_a_queue_shows_its_limits_and_its_line(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, "queue", "research", "--dispatcher", url)
    assert code == 0
    assert "parent all, BestEffortFIFO, weight 1, 2 admitted, 3 pending" in out
    assert "8 gpu" in out
    assert "train: WaitingForQuota: 2 nvidia.com/gpu too few are left" in out
    assert "and 1 more workload (--limit)" in out


def test_a_local_queue_is_named_with_its_namespace(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = told(capsys, "queue", "team-a/main", "--dispatcher", url)
    assert code == 0
    assert "LocalQueue team-a/main" in out
    assert "of ClusterQueue research" in out


@pytest.mark.parametrize("name", ["", "/", "a/", "/b", "a/b/c", "a//b"])
def test_what_names_no_queue_is_refused_before_anybody_is_asked(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = told(capsys, "queue", name, "--dispatcher", "http://127.0.0.1:1")
    assert (code, out) == (1, "")
    assert f"queue {name!r}: expected NAME or NAMESPACE/NAME" in err


def test_pending_leaves_out_queues_in_which_nothing_waits(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = told(capsys, "pending", "--dispatcher", url)
    assert code == 0
    assert "research: 3 pending" in out
    assert "idle" not in out
    assert "QueueNotFound" in out


@pytest.mark.parametrize(("workload", "code"), [("train", 3), ("serve", 0), ("nightly", 4), ("web", 0)])
def test_the_exit_code_tells_whether_a_workload_waits(
    workload: str, code: int, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found, out, _ = told(capsys, "pending", workload, "-n", "team-a", "--dispatcher", url)
    assert found == code
    assert f"team-a/{workload}" in out


@pytest.fixture(autouse=True)
def no_kubeconfig(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))


def test_a_waiting_workload_is_told_why_and_until_when(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = told(capsys, "pending", "train", "-n", "team-a", "--dispatcher", url)
    assert "1 in the ClusterQueue, 1 in the LocalQueue" in out
    assert "WaitingForQuota: 2 nvidia.com/gpu too few are left" in out
    assert "until     workloads finish" in out


@pytest.mark.parametrize(("workload", "line"), [("soon", "eta       about noon"), ("train", "")])
def test_when_it_is_expected_to_start_is_told_where_that_was_worked_out(
    workload: str, line: str, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = told(capsys, "pending", workload, "-n", "team-a", "--dispatcher", url)
    assert [one.strip() for one in out.splitlines() if one.strip().startswith("eta")] == [line] * bool(line)


@pytest.mark.parametrize("width", [60, 140])
def test_what_starts_is_told_how_far_it_has_come(
    width: int, url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, _ = told(capsys, "pending", "pretrain", "-n", "team-a", "--dispatcher", url)
    assert code == 0
    assert max(map(len, out.splitlines())) <= width
    said = " ".join(out.split())
    assert "because it is the fullest; its pods were told which nodes to prefer in east" in said
    assert "start Placed; 14 of 16 pods have nodes; 3 of 16 run" in said
    assert "left 4 min, or it is taken back and waits again" in said


@pytest.mark.parametrize(
    ("start", "facts"),
    [
        (
            Start("Placing", left_s=70),
            {"start": "Placing", "left": "1 min, or it is taken back and waits again"},
        ),
        (Start("Placed", 4), {"start": "Placed"}),
        (Start("Placed", 4, running=1), {"start": "Placed; 1 of 4 run"}),
        (
            Start("Ready", 4, 4, 4, reason="it is"),
            {"because": "it is", "start": "Ready; 4 of 4 pods have nodes; 4 of 4 run"},
        ),
    ],
)
def test_of_a_start_only_what_is_known_is_told(start: Start, facts: dict[str, str]) -> None:
    assert dict(start_facts(started("x", start))) == facts
    assert not list(start_facts(waiting("x", 1)))


@pytest.mark.parametrize(("width", "kind"), [(60, []), (140, ["Job"])])
def test_a_queue_shows_what_starts(
    width: int,
    kind: list[str],
    url: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    _, out, _ = told(capsys, "queue", "research", "--dispatcher", url)
    assert "3 workloads released that have not run as a whole yet" in out
    lines = [line.split() for line in out.splitlines()]
    found = [words for words in lines if {"Placed", "Placing"} & set(words)]
    assert found == [
        ["team-a", "pretrain", *kind, "east", "Placed", "14/16", "3/16", "4", "min"],
        ["team-a", "sweep", *kind, "-", "Placing", "-", "-", "-"],
    ]
    assert "and 1 more workload\n" in out


def test_the_wide_form_says_why_it_started_there(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = told(capsys, "queue", "research", "-o", "wide", "--dispatcher", url)
    (line,) = (line for line in out.splitlines() if " pretrain " in line)
    assert line.endswith("it is the fullest; its pods were told which nodes to prefer in east")


def test_a_local_queue_shows_what_starts_too() -> None:
    page = local_queue_page(
        LocalQueueView("team-a", "main", "research", starting=1, starts=[PRETRAIN]),
        Look(datetime(2026, 3, 15, tzinfo=UTC)),
    )
    console = Console(file=io.StringIO(), width=100)
    console.print(page)
    assert isinstance(console.file, io.StringIO)
    assert "1 workload released that has not run as a whole yet" in console.file.getvalue()
    assert "14/16" in console.file.getvalue()


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
        (0, 8, "............"),
        (2, 8, "###........."),
        (8, 8, "############"),
        (12, 8, "########++++"),
        (1, 0, "++++++++++++"),
        (0, 0, "............"),
        (800, 8, "++++++++++++"),
    ],
)
def test_a_bar_shows_what_is_used_of_the_quota_and_what_is_borrowed(
    used: int, nominal: int, drawn: str
) -> None:
    assert bar(used, nominal).plain == drawn


@pytest.mark.parametrize(
    ("name", "there"), [("nope", "none in any other"), ("elsewhere", "one in team-b, team-c")]
)
@pytest.mark.parametrize("output", ["table", "json", "yaml"])
def test_a_workload_that_nobody_knows_is_an_error_and_not_released(
    name: str, there: str, output: str, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = told(capsys, "pending", name, "-n", "team-a", "-o", output, "--dispatcher", url)
    assert code == 4
    assert f"no workload {name!r} in namespace team-a" in err
    assert f"there is {there}" in err
    assert (out == "") is (output == "table")


def test_a_namespace_without_a_queue_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    with dispatcher({"/queues": QueueList()}) as url:
        assert (
            "No queue takes workloads of namespace typo."
            in told(capsys, "queues", "-n", "typo", "--dispatcher", url)[1]
        )
        assert "There is no ClusterQueue." in told(capsys, "queues", "--dispatcher", url)[1]
        assert (
            "Nothing waits in namespace typo."
            in told(capsys, "pending", "-n", "typo", "--dispatcher", url)[1]
        )


@pytest.mark.parametrize("command", [("queues",), ("pending",), ("queue", "research")])
@pytest.mark.parametrize("width", [40, 60, 80, 140])
def test_a_workload_is_one_line_and_a_queue_one_for_each_resource_at_any_width(
    command: tuple[str, ...],
    width: int,
    url: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = told(capsys, *command, "--dispatcher", url)[1].splitlines()
    assert max(map(len, lines)) <= width
    if command != ("queues",):
        (train,) = (line.split() for line in lines if line.split()[1:2] == ["train"] or " train " in line)
        assert (train[0], train[-1]) == ("1", "WaitingForQuota")
    if command != ("pending",):
        (used,) = (line for line in lines if {"12", "8"} <= set(line.split()))
        assert ("########++++" in used) is (width == 140)


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("wide", [False, True])
def test_what_is_reserved_is_shown_and_for_whom(width: int, wide: bool) -> None:
    gang = msgspec.structs.replace(waiting("gang", 1), reservation=HELD)
    line = [gang, *(waiting(f"w{number}", number) for number in range(2, 6))]
    queue = QueueView("main", pending=5, workloads=line, usage=[usage(4, 16, reserved=16)], reservations=1)
    look = Look(datetime(2026, 3, 15, tzinfo=UTC), wide=wide)

    def drawn(page: RenderableType) -> list[str]:
        # The wide form is as wide as it needs to be, as on the command line.
        console = Console(file=io.StringIO(), width=1_000 if wide else width)
        console.print(page)
        assert isinstance(console.file, io.StringIO)
        return console.file.getvalue().splitlines()

    page = drawn(queue_page(queue, look))
    (row,) = (text for text in page if " gang " in text)
    if wide:
        assert f"WaitingForQuota: 2 {GPU} too few are left; Reserved: {HELD.text}" in row
    else:
        assert row.rstrip().endswith("Reserved, WaitingForQuota")
        assert " ".join(page).replace("  ", " ").count(f"gang: {HELD.text}") == 1
        # What is alike otherwise is not what holds one.
        assert any(" w2 x4 " in text for text in page)
    for tables in (page, drawn(queue_tables(QueueList([queue]), look))):
        (head,) = (text.split() for text in tables if " NOMINAL " in text)
        assert head.index("RESERVED") == head.index("TAKE") + 1
    facts = " ".join(" ".join(drawn(workload_pages([gang], look))).split())
    assert f"reserved 16 {GPU} of h100 (12 not free) in cluster east" in facts
    assert "starts 2026-03-14T10:26:53.000Z at the latest" in facts
    assert "stage Reserved; nothing else starts in what it lacks from 2026-03-14T09:36:53.000Z on" in facts
    assert "held since 2026-03-14T09:27:53.000Z, until 2026-03-15T09:27:53.000Z" in facts


def test_where_nothing_is_reserved_there_is_no_column_for_it() -> None:
    console = Console(file=io.StringIO(), width=200)
    console.print(queue_tables(QUEUES, Look(datetime(2026, 3, 15, tzinfo=UTC))))
    assert isinstance(console.file, io.StringIO)
    assert "RESERVED" not in console.file.getvalue()


@pytest.mark.parametrize(
    ("starts_at", "stage", "facts"),
    [
        ("", "Reserved", ("nobody knows when, as why", "Reserved; nothing else starts in what it lacks")),
        ("S", "Reserved", ("S at the latest", "Reserved; nothing else starts in what it lacks from D on")),
        ("S", "Draining", ("S at the latest", "Draining; nothing else starts in what it lacks since D")),
    ],
)
def test_a_reservation_says_when_it_starts_and_who_may_pass(
    starts_at: str, stage: str, facts: tuple[str, str]
) -> None:
    told = dict(reservation_facts(Reservation(stage, "", "", "D", "", starts_at, "why")))
    assert (told["starts"], told["stage"]) == facts


@pytest.mark.parametrize(
    ("not_running", "behind_s", "says"),
    [
        (
            62,
            15,
            "all: 62 of 88 nvidia.com/gpu charged (flavor h100) are not running (Karmada is 15 s behind)",
        ),
        (62, 1, "all: 62 of 88 nvidia.com/gpu charged (flavor h100) are not running"),
        (8, 15, ""),
        (22, 1, ""),
        (0, 0, ""),
    ],
)
def test_what_is_charged_and_does_not_run_is_told(not_running: int, behind_s: int, says: str) -> None:
    used = Usage("h100", "nvidia.com/gpu", 88, 88, 0, not_running=not_running)
    queue = QueueView("all", usage=[used], behind_s=behind_s)
    drawn = []
    look = Look(datetime(2026, 3, 15, tzinfo=UTC))
    for page in (queue_tables(QueueList([queue]), look), queue_page(queue, look)):
        console = Console(file=io.StringIO(), width=200)
        console.print(page)
        assert isinstance(console.file, io.StringIO)
        drawn.append([line for line in console.file.getvalue().splitlines() if "not running" in line])
    assert drawn == ([[says], [says.removeprefix("all: ")]] if says else [[], []])


@pytest.mark.parametrize("width", [80, 200])
def test_workloads_that_are_alike_are_one_line(width: int) -> None:
    line = [waiting(f"w{n}", n) for n in range(1, 15)]
    line[12] = msgspec.structs.replace(line[12], request={"nvidia.com/gpu": 1})
    queues = QueueList([QueueView("main", pending=14, workloads=line)])
    now = datetime(2026, 3, 15, tzinfo=UTC)

    def drawn(look: Look) -> list[list[str]]:
        console = Console(file=io.StringIO(), width=width)
        console.print(pending_tables(queues, look))
        assert isinstance(console.file, io.StringIO)
        return [words for text in console.file.getvalue().splitlines() if "Job" in (words := text.split())]

    rows = drawn(Look(now))
    names = [words[:4] for words in rows]
    assert names == [
        ["1-12", "team-a", "w1", "x12"],
        ["13", "team-a", "w13", "Job"],
        ["14", "team-a", "w14", "Job"],
    ]
    assert rows[0][-1] == "WaitingForQuota"


def test_the_wide_form_has_every_word_on_one_line(
    url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    _, out, _ = told(capsys, "pending", "-o", "wide", "--dispatcher", url)
    (line,) = (line for line in out.splitlines() if " train " in line)
    for word in ("4500m cpu, 8 nvidia.com/gpu", "2026-03-14T09:26:53", "2 nvidia.com/gpu too few are left"):
        assert word in line


@pytest.mark.parametrize(
    ("seconds", "said"), [(0, "0s"), (119, "119s"), (120, "2m"), (7_260, "2h"), (172_800, "2d"), (-5, "0s")]
)
def test_ages_are_short(seconds: int, said: str) -> None:
    began = datetime(2026, 3, 14, 9, 26, 53, tzinfo=UTC)
    assert since("2026-03-14T09:26:53.000Z", began + timedelta(seconds=seconds)) == said
    assert since("", began) == since("2026-03-14T09:26:53", began) == "-"


def test_the_live_view_keeps_the_last_answer_when_one_fails(capsys: pytest.CaptureFixture[str]) -> None:
    asked = 0

    async def ask() -> str:
        nonlocal asked
        asked += 1
        if asked == 2:
            raise DispatcherError("gone for a moment")
        return f"answer {asked}"

    answer = asyncio.run(shown_live(ask, lambda text, most: Text(text), 1, sleep=pauses(2)))
    assert answer == "answer 3"


def pauses(count: int) -> Callable[[float], Awaitable[None]]:
    """So many pauses that take no time, and then Ctrl-C."""
    left = iter([None] * count)

    async def sleep(seconds: float) -> None:
        if next(left, "end") == "end":
            raise KeyboardInterrupt

    return sleep


@pytest.mark.parametrize(("height", "shown", "more"), [(40, 20, 14), (24, 18, 16), (12, 6, 28), (3, 0, 34)])
def test_the_live_view_is_as_high_as_the_screen(height: int, shown: int, more: int) -> None:
    # Of different priorities, so that each is a line.
    line = [msgspec.structs.replace(waiting(f"w{n}", n), priority=n) for n in range(1, 21)]
    queue = QueueView("main", pending=34, workloads=line)
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=height)

    async def ask() -> QueueList:
        return QueueList([queue])

    def draw(queues: QueueList, most: int) -> RenderableType:
        return pending_tables(queues, Look(datetime(2026, 3, 15, tzinfo=UTC), most=most))

    asyncio.run(shown_live(ask, draw, 20, console=console, sleep=pauses(0)))
    assert isinstance(console.file, io.StringIO)
    drawn = Text.from_ansi(console.file.getvalue()).plain
    assert drawn.count(" WaitingForQuota\n") == shown * drawn.count(f"and {more} more workloads")
    assert f"and {more} more workloads" in drawn


def test_off_a_terminal_what_has_changed_is_said_once_more() -> None:
    answers = iter(["one", "one", "fails", "two"])
    said: list[str] = []

    async def ask() -> str:
        answer = next(answers)
        if answer == "fails":
            raise DispatcherError("gone for a moment")
        return answer

    asyncio.run(told_again(ask, str.upper, said.append, said.append, sleep=pauses(3)))
    assert said == ["ONE", "gone for a moment", "TWO"]


@pytest.mark.parametrize("output", ["table", "json", "yaml"])
def test_watching_off_a_terminal_prints_documents(
    output: str, url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("admin.watching.told_again", partial(told_again, sleep=pauses(0)))
    code, out, _ = told(capsys, "queues", "--watch", "-o", output, "--dispatcher", url)
    assert code == 0
    match output:
        case "json":
            assert [json.loads(line)["inFlight"] for line in out.splitlines()] == [2]
        case "yaml":
            assert [document["inFlight"] for document in yaml.safe_load_all(out)] == [2]
        case _:
            assert "########++++" in out
