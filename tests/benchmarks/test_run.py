"""The whole thing, very small: real processes are started, asked and ended, and the figures are written."""

from pathlib import Path

import msgspec
import pytest

from benchmarks import first_answer
from benchmarks.__main__ import main
from benchmarks.report import Target
from benchmarks.sides import Setting


def test_a_small_run_writes_its_figures(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"

    code = main(
        [
            "--only",
            "latency_replicas",
            "--only",
            "event_latency",
            "--sizes",
            "20",
            "--seconds",
            "0.2",
            "--json",
            str(file),
        ]
    )

    assert code == 0
    results = msgspec.json.decode(file.read_bytes())["results"]
    assert [result["question"] for result in results] == ["latency_replicas", "event_latency"]
    assert [len(result["cases"]) for result in results] == [3, 1]
    values = {
        f["name"]: f["value"] for result in results for case in result["cases"] for f in case["figures"]
    }
    assert values.keys() >= {"p50", "p99", "calls/s", "longest", "stalls", "pods created"}
    assert all(value > 0 for name, value in values.items() if name != "stalls")


def test_the_first_answer_is_timed_for_streamed_and_for_paged_lists() -> None:
    result = first_answer.measure(Setting(seconds=0.1, sizes=(20,), clients=(1,), sync_pods=600))

    assert [case.label for case in result.cases] == [
        "20 nodes, 600 pods, streamed list",
        "20 nodes, 600 pods, list in pages",
    ]
    for case in result.cases:
        figures = {figure.name: figure.value for figure in case.figures}
        assert 0 < figures["listens after"] < figures["first right answer"]
        assert not case.faults


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--against", "127.0.0.1:1"], "--against needs --target"),
        (["--target", "127.0.0.1:1"], "--target needs --sizes"),
        (["--target", ":1", "--sizes", "5,6"], "--target needs --sizes with one number"),
        (["--target", ":1", "--sizes", "5", "--only", "first_answer"], "first_answer: not with --target"),
        (["--only", "nothing"], "invalid choice: 'nothing'"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        main(arguments)

    assert refused.value.code == 2
    assert says in capsys.readouterr().err


def test_a_server_that_is_not_there_fails_the_run(tmp_path: Path) -> None:
    options = ["--target", "127.0.0.1:1", "--sizes", "20", "--only", "latency_replicas"]

    assert main([*options, "--json", str(tmp_path / "figures.json")]) == 1


@pytest.mark.parametrize(
    ("target", "value", "holds"),
    [
        (Target(2), 2, True),
        (Target(2), 2.1, False),
        (Target(2, at_least=True), 2, True),
        (Target(2, True), 1.9, False),
    ],
)
def test_a_target_is_kept_up_to_its_bound(target: Target, value: float, holds: bool) -> None:
    assert target.holds(value) is holds
