"""The command as it is typed: outputs, exit codes, help and completion."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from admin.main import cli, run
from tests.admin.dumps import gpu_node, gpu_pod, write_dump
from tests.admin.test_workload_file import JOB

ROOT = Path(__file__).parents[2]
COMMANDS = ("report", "top", "hours", "notify", "explain", "what-if", "completion")


@dataclass(frozen=True)
class Done:
    """What a run printed, and its exit code."""

    code: int
    out: str
    err: str


Fairway = Callable[..., Done]


@pytest.fixture
def fairway(capsys: pytest.CaptureFixture[str]) -> Fairway:
    def call(*args: object) -> Done:
        code = run([str(arg) for arg in args])
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return call


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """13 of 16 GPUs free, 8 of them on one node."""
    objects = [gpu_node("a", 8, rack="r1"), gpu_node("b", 8, rack="r2"), gpu_pod("x", "a", 3)]
    return write_dump(tmp_path / "one.json", objects)


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A full cluster."""
    return write_dump(tmp_path / "two.json", [gpu_node("c", 4), gpu_pod("y", "c", 4)])


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    file = tmp_path / "broken.json"
    file.write_text('{"kind": "List", "items": [')
    return file


def test_a_report_is_a_table_by_default(fairway: Fairway, one: Path, two: Path) -> None:
    done = fairway("report", one, f"full={two}")
    assert (done.code, done.err) == (0, "")
    lines = [line.split() for line in done.out.splitlines()]
    assert ["nvidia.com/gpu", "3", "20", "0", "7", "0", "13", "0", "13", "1", "3", "6", "13"] in lines
    assert any(line[:3] == ["nvidia.com/gpu", "full", "4"] for line in lines)


def test_a_report_as_json_is_what_a_later_one_is_compared_with(
    fairway: Fairway, one: Path, tmp_path: Path
) -> None:
    earlier, page = tmp_path / "earlier.json", tmp_path / "page.html"
    assert fairway("report", one, "-o", "json", "--out", earlier) == Done(0, "", "")
    write_dump(one, [gpu_node("a", 8), gpu_node("d", 4)])
    done = fairway("report", one, "--compare", earlier)
    assert "12 (-1)" in done.out
    assert "one: 1 node appeared: d" in done.out
    assert "one: 1 node vanished: b" in done.out
    changes = json.loads(fairway("report", one, "--compare", earlier, "-o", "json").out)["changes"]
    assert changes["clusters"][0]["appeared"] == ["d"]
    assert fairway("report", one, "--compare", earlier, "-o", "html", "--out", page).code == 0
    assert "Changed since" in page.read_text()


def test_colours_can_be_had_in_a_pipe_and_are_not_there_unasked(
    fairway: Fairway, one: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "\x1b[" not in fairway("report", one).out
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[1m" in fairway("report", one).out


def test_yaml_and_json_say_the_same(fairway: Fairway, one: Path) -> None:
    found = yaml.safe_load(fairway("report", one, "-o", "yaml").out)
    also = json.loads(fairway("report", one, "-o", "json").out)
    assert found["clusters"][0]["node_names"] == also["clusters"][0]["node_names"] == ["a", "b"]


def test_clusters_stand_in_order_of_their_names(fairway: Fairway, one: Path) -> None:
    found = json.loads(fairway("report", f"z={one}", f"a={one}", f"m={one}", "-o", "json").out)
    assert [cluster["summary"]["cluster"] for cluster in found["clusters"]] == ["a", "m", "z"]


def test_what_cannot_be_read_is_told_and_exits_with_2(fairway: Fairway, one: Path, broken: Path) -> None:
    done = fairway("report", one, broken, "-o", "json")
    assert done.code == 2
    assert "broken: " in done.err
    found = json.loads(done.out)
    assert [failure["cluster"] for failure in found["failures"]] == ["broken"]
    assert found["clusters"][0]["summary"]["cluster"] == "one"
    alone = fairway("report", broken)
    assert (alone.code, alone.out) == (1, "")
    assert "Error: no cluster could be read" in alone.err


def test_a_file_that_is_not_there_does_not_lose_the_others(fairway: Fairway, one: Path) -> None:
    done = fairway("report", one, "nope.json")
    assert done.code == 2
    assert done.err.startswith("nope.json: no file nope.json; expected")
    assert "Accelerator capacity: 1 cluster" in done.out
    assert "nope.json could not be read: no file nope.json" in done.out
    assert fairway("explain", one, "nope.json", "--gpus", "8").code == 0
    assert fairway("explain", one, "nope.json", "--gpus", "16").code == 2
    assert fairway("report", "nope.json", "no.json").err.startswith("Error: source 'nope.json': no file")


def test_a_product_that_nobody_has_is_told_with_what_there_is(fairway: Fairway, one: Path) -> None:
    done = fairway("report", "--demo", "--product", "H200")
    assert (done.code, done.out) == (1, "")
    assert "--product H200: no product is called so; there is NVIDIA-A100-SXM4-80GB, " in done.err
    assert "there is no accelerator" in fairway("report", one, "--product", "H200").err
    assert fairway("report", "--demo", "--product", "h100").code == 0


@pytest.mark.parametrize(
    ("name", "begins"),
    [("r.html", "<!doctype"), ("r.JSON", "{"), ("r.yml", "format:"), ("r.txt", "Acc"), ("r", "Acc")],
)
def test_a_file_is_written_as_its_name_says(fairway: Fairway, one: Path, name: str, begins: str) -> None:
    out = one.parent / name
    assert fairway("report", one, "--out", out) == Done(0, "", "")
    assert out.read_text().startswith(begins)


def test_no_name_is_doubled_in_a_message(fairway: Fairway, tmp_path: Path) -> None:
    file = tmp_path / "obj.json"
    file.write_text('{"kind": "List", "items": [{"kind": "Node", "metadata": 7}]}')
    for source, name in ((str(file), str(file)), ("grpc://127.0.0.1:1", "estimator 127.0.0.1:1")):
        said = fairway("report", source).err.splitlines()[0]
        assert said.count(name) == 1, said


def test_nodes_products_and_levels_on_request(fairway: Fairway, one: Path, tmp_path: Path) -> None:
    assert any(line.split() == ["a", "one", "nvidia.com/gpu", "8", "3", "5"] for line in fairway(
        "report", one, "--show-nodes").out.splitlines())  # fmt: skip
    found = json.loads(fairway("report", one, "--levels", "rack", "-o", "json").out)
    (level,) = found["clusters"][0]["summary"]["levels"]
    assert [domain["path"] for domain in level["domains"]] == [["r1"], ["r2"]]


def test_the_sample_fleet_can_be_asked_about_without_any_file(fairway: Fairway, one: Path) -> None:
    found = json.loads(fairway("report", "--demo", "-o", "json").out)
    assert [cluster["summary"]["cluster"] for cluster in found["clusters"]] == ["alpha", "bravo", "charlie"]
    assert fairway("explain", "--demo", "--gpus", "8", "--nodes", "2").code == 0
    assert "a100-0" in fairway("what-if", one, "--demo", "--drop-node", "a100-0").out
    slices = fairway("explain", "--demo", "--tpu-topology", "4x4", "--copies", "2").out
    assert "not wholly free" in slices
    assert "must be in one domain" not in slices


@pytest.mark.parametrize(("mode", "usable", "code"), [("auto", 2, 0), ("on", 2, 0), ("off", 0, 3)])
def test_report_and_explain_agree_on_taints_named_after_devices(
    fairway: Fairway, tmp_path: Path, mode: str, usable: int, code: int
) -> None:
    taint = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
    nodes = [gpu_node(name, 8) for name in "ab"]
    for _, node in nodes:
        node["spec"] = {"taints": [taint]}
    dump = write_dump(tmp_path / "tainted.json", nodes)
    asked = ("--extended-resource-toleration", mode)
    found = json.loads(fairway("report", dump, *asked, "-o", "json").out)
    summary = found["clusters"][0]["summary"]
    (product,) = summary["products"]
    assert [fit["pods"] for fit in product["placeable"] if fit["devices"] == 8] == [usable]
    note = "pods of nvidia.com/gpu are assumed to tolerate"
    assert any(text.startswith(note) for text in summary["problems"]) == (mode == "auto")
    for output in ("table", "html"):
        assert (note in fairway("report", dump, *asked, "-o", output).out) == (mode == "auto")
    done = fairway("explain", dump, "--gpus", 8, "--nodes", 2, *asked)
    assert done.code == code
    assert ("of nvidia.com/gpu tolerate taints of that name is assumed" in " ".join(done.out.split())) == (
        mode == "auto"
    )
    row = done.out.splitlines()[3]
    assert (" yes " in row, " no " in row) == ((False, True) if mode == "auto" else (True, False))


def test_flags_that_an_estimator_does_not_heed_hold_for_the_others(fairway: Fairway, one: Path) -> None:
    done = fairway("report", one, "x=grpc://127.0.0.1:1", "--extended-resource-toleration", "off")
    assert done.code == 2
    assert "of its own: give the flag to the estimator itself; it holds for the other clusters" in done.err


def test_pods_added_in_memory_are_no_evidence_of_what_admission_adds(
    fairway: Fairway, tmp_path: Path
) -> None:
    nodes = [gpu_node(name, 8) for name in "ab"]
    for _, node in nodes:
        node["spec"] = {"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]}
    dump = write_dump(tmp_path / "tainted.json", nodes)
    (tmp_path / "job.yaml").write_text(JOB.replace("3", "1").replace('"8"', '"1"'))
    found = json.loads(fairway("what-if", dump, "--add-pods", tmp_path / "job.yaml", "-o", "json").out)
    (change,) = found["changes"]["products"]
    ones = next(each["pods"] for each in change["placeable"] if each["devices"] == 1)
    assert (change["stranded"], ones) == ({"before": 0, "after": 0}, {"before": 16, "after": 15})


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["report", "none.json"], "no file none.json"),
        (["report", "ONE", "--compare", "none.json"], "--compare none.json"),
        (["report", "ONE", "--compare", "ONE"], "format: expected 'fairway-report/1'"),
        (["report", "ONE", "--levels", "a,a"], "is there twice"),
        (["report", "ONE", "--catalogue", "none.yaml"], "--catalogue none.yaml"),
        (["report", "ONE", "--out", "none/x"], "--out none/x"),
        (["report", "ONE", "--cert-file", "x"], "--cert-file and --key-file belong together"),
        (["report", "ONE", "-o", "xml"], "'xml' is not one of"),
        (["report", "--frob"], "No such option"),
        (["report", "ONE", "ONE"], "is given twice"),
        (["report", "ONE", "-o", "json", "--out", "x.html"], "its name says html, --output says json"),
        (["explain", "ONE", "--gpus", "1", "--out", "x.html"], "expected one of table, json, yaml"),
        (["explain", "ONE"], "nothing is asked for"),
        (["explain", "ONE", "--gpus", "8", "-f", "job.yaml"], "give either it or a shape"),
        (["explain", "ONE", "-f", "none.yaml"], "there is no such file"),
        (["explain", "ONE", "--gpus", "abc"], "'abc': expected a whole number from 0 to 1,000,000."),
        (["explain", "ONE", "--gpus", "-1"], "'-1': expected a whole number"),
        (["explain", "ONE", "--gpus", "1", "--copies", "0"], "'0': expected a whole number from 1"),
        (["explain", "ONE", "--gpus", "1", "--cpu", "-1"], "--cpu -1: expected 0 or more"),
        (["explain", "ONE", "--gpus", "1", "--memory", "0"], "--memory 0: expected more than 0"),
        (["explain", "ONE", "--cpu", "1e400"], "--cpu 1e400: expected less than 2^63"),
        (["explain", "ONE", "--cpu", "many"], "--cpu many: 'many' is not a Kubernetes quantity"),
        (["explain", "ONE", "--gpu-memory", "-1Gi"], "--gpu-memory -1Gi: expected 0 or more"),
        (["explain", "ONE", "--resource", "gpu=8"], "a name with a domain, such as nvidia.com/gpu"),
        (["explain", "ONE", "--resource", "nvidia.com/gpu=-8"], "nvidia.com/gpu=-8: expected 0 or more"),
        (["explain", "ONE", "--resource", "nvidia.com/gpu=1.5"], "expected whole devices"),
        (["explain", "ONE", "--resource", "nvidia.com/=1"], "expected DOMAIN/NAME"),
        (["explain", "ONE", "--fraction", "2"], "--fraction"),
        (["what-if", "ONE"], "nothing to suppose"),
        (["what-if", "ONE", "--add-nodes", "1"], "belong together"),
        *(
            (
                ["what-if", "ONE", "--add-nodes", count, "--like", "a"],
                f"'{count}': expected a whole number from 1 to 100,000.",
            )
            for count in ("-2", "0", "1000000")
        ),
        (["what-if", "ONE", "--drop-node", "z"], "without node z: nothing like that in one"),
        (["what-if", "ONE", "--drop-nodes", "=x"], "cannot be read"),
        (["what-if", "grpc://localhost:1", "--drop-node", "z"], "gives no objects to edit"),
        (["report", "grpc://a:1", "--levels", "rack"], "--levels: estimator a:1 has a setting of its own"),
        (
            ["explain", "grpc://a:1", "--gpus", "1", "--extended-resource-toleration", "on"],
            "--extended-resource-toleration: estimator a:1 has a setting of its own",
        ),
        (["nonsense"], "No such command"),
        (["completion", "tcsh"], "'tcsh' is not one of"),
    ],
)
def test_bad_usage_exits_with_1_and_says_what_was_expected(
    fairway: Fairway, one: Path, args: list[str], said: str
) -> None:
    done = fairway(*(str(one) if arg == "ONE" else arg for arg in args))
    assert (done.code, done.out) == (1, "")
    assert said in done.err


def test_a_catalogue_with_a_wrong_class_is_told_by_its_line(
    fairway: Fairway, one: Path, tmp_path: Path
) -> None:
    file = tmp_path / "more.yaml"
    file.write_text("- pattern: example.com/npu\n  class: hole\n")
    done = fairway("report", one, "--catalogue", file)
    assert done.code == 1
    assert f"{file}:2: " in done.err


@pytest.mark.parametrize(
    ("shape", "code"),
    [
        (["--gpus", "8"], 0),
        (["--gpus", "8", "--nodes", "2"], 3),
        (["--gpus", "4", "--copies", "3"], 0),
        (["--gpus", "4", "--copies", "4"], 3),
        (["--gpus", "1", "--product", "H100"], 1),
        (["--cpu", "64", "--memory", "1Gi"], 0),
        (["--resource", "nvidia.com/gpu=16"], 3),
        (["--gpus", "5", "--nodes", "2", "--within", "rack"], 1),
    ],
)
def test_explain_exits_by_its_verdict(fairway: Fairway, one: Path, shape: Sequence[str], code: int) -> None:
    assert fairway("explain", one, *shape).code == code


@pytest.mark.parametrize(
    ("namespace", "is_told"), [("", False), ("default", False), ("research", False), ("reserach", True)]
)
def test_explain_tells_a_namespace_that_nothing_is_in(
    fairway: Fairway, tmp_path: Path, namespace: str, is_told: bool
) -> None:
    quota = {"metadata": {"name": "q", "namespace": "research"}, "spec": {"hard": {"pods": "9"}}}
    dump = write_dump(tmp_path / "a.json", [gpu_node("a", 8), ("ResourceQuota", quota)])
    done = fairway("explain", dump, "--gpus", "1", *(("--namespace", namespace) if namespace else ()))
    assert done.code == 0
    assert (f"a: nothing here is in namespace {namespace}, so" in done.out) == is_told


def test_explain_is_unsure_where_a_cluster_is_missing(
    fairway: Fairway, one: Path, two: Path, broken: Path
) -> None:
    assert fairway("explain", one, two, broken, "--gpus", "8").code == 0
    unsure = fairway("explain", two, broken, "--gpus", "8")
    assert unsure.code == 2
    assert "broken: " in unsure.err
    assert fairway("explain", broken, "--gpus", "8").code == 1


def test_explain_says_why_and_what_would_help(fairway: Fairway, one: Path, tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(JOB)
    done = fairway("explain", one, "--file", job)
    assert done.code == 3
    assert done.out.startswith("Job research/train; wanted: 1 copy\n")
    assert "insufficient nvidia.com/gpu" in done.out
    assert "3 nvidia.com/gpu" in done.out
    found = json.loads(fairway("explain", one, "--file", job, "-o", "json").out)
    assert (found["workload"], found["wanted"]) == ("Job research/train", 1)
    assert found["words"] == {"one": "not-now"}
    assert found["clusters"][0]["placement"]["fits"] == 0


def test_what_if_shows_the_difference_and_changes_nothing(fairway: Fairway, one: Path) -> None:
    before = one.read_bytes()
    done = fairway("what-if", one, "--drop-pods", "default/x", "--gpus", "8", "--nodes", "2")
    assert done.code == 0
    assert "without pods default/x" in done.out
    assert "16 (+3)" in done.out
    assert any(
        line.split() == ["one", "does", "not", "fit", "now", "0", "fits", "1"]
        for line in done.out.splitlines()
    )
    assert one.read_bytes() == before
    heading = next(line.split() for line in done.out.splitlines() if line.startswith("PRODUCT"))
    assert heading[2:6] == ["TOTAL", "ALLOCATED", "CORDONED", "FREE"]
    dropped = json.loads(fairway("what-if", one, "--drop-nodes", "rack=r1", "-o", "json").out)
    assert dropped["changes"]["clusters"][0]["vanished"] == ["a"]
    added = fairway("what-if", one, "--add-nodes", "2", "--like", "b", "-o", "yaml")
    assert yaml.safe_load(added.out)["changes"]["products"][0]["free"] == {"before": 13, "after": 29}


def test_what_if_places_the_pods_of_a_workload(fairway: Fairway, one: Path, tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(JOB.replace('"8"', '"4"'))
    done = fairway("what-if", one, "--add-pods", job)
    assert done.code == 0
    assert "with the pods of Job research/train" in done.out
    assert "1 (-12)" in done.out
    job.write_text(JOB)
    short = fairway("what-if", one, "--add-pods", f"one={job}")
    assert "0 of 1 copies fit into one and are added" in short.out
    assert "Nothing has changed." in short.out
    elsewhere = fairway("what-if", one, "--add-pods", f"nope={job}")
    assert "no cluster 'nope'" in elsewhere.err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(command: str) -> None:
    found = CliRunner().invoke(cli, [command, "--help"])
    assert found.exit_code == 0
    assert "Examples:" in found.output
    assert f"fairway {command}" in found.output


def test_help_names_the_objects_of_a_dump_as_the_guide_does() -> None:
    guide = (Path(__file__).parents[2] / "docs/report.md").read_text(encoding="utf-8")
    objects = guide.partition("kubectl get ")[2].partition(" -A -o json")[0]
    assert objects in "".join(CliRunner().invoke(cli, ["--help"]).output.split())


def test_help_names_commands_sources_and_exit_codes() -> None:
    found = CliRunner().invoke(cli, ["--help"])
    assert all(command in found.output for command in COMMANDS)
    for expected in ("[NAME=]KUBECONFIG[@CONTEXT]", "grpc://HOST:PORT", "Exit codes: 0 done"):
        assert expected in found.output
    assert CliRunner().invoke(cli, ["--version"]).output.startswith("fairway, version ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_ask_the_command_itself(shell: str) -> None:
    found = CliRunner().invoke(cli, ["completion", shell])
    assert found.exit_code == 0
    assert f"_FAIRWAY_COMPLETE={shell}_complete" in found.output


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("fairway ", "plain,what-if"),
        ("fairway report --out", "plain,--output"),
        ("fairway report a=du", "file,du"),
    ],
)
def test_completion_completes_commands_options_and_files(
    monkeypatch: pytest.MonkeyPatch, words: str, expected: str
) -> None:
    typed = words.split(" ")
    environment = {
        "_FAIRWAY_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(typed) - 1),
    }
    found = CliRunner().invoke(cli, [], prog_name="fairway", env=environment)
    assert expected in found.output.splitlines()


def test_the_program_writes_utf_8_where_the_encoding_is_ascii(one: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "admin", "report", str(one), "-o", "html"],
        cwd=ROOT, env={**os.environ, "PYTHONIOENCODING": "ascii"}, capture_output=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode("utf-8").startswith("<!doctype html>")


FULL = (">/dev/full", "standard output: No space left on device")
CLOSED = (">&-", "standard output is closed")


@pytest.mark.parametrize(
    ("args", "redirected", "said"),
    [
        ("report ONE", *FULL),
        ("report ONE", *CLOSED),
        ("explain ONE --gpus 1 -o json", *FULL),
        ("completion zsh", *CLOSED),
    ],
)
def test_an_output_that_takes_nothing_is_told_in_a_line(
    one: Path, args: str, redirected: str, said: str
) -> None:
    command = f"{sys.executable} -m admin {args.replace('ONE', str(one))} {redirected}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert said in done.stderr
