"""The demonstration as a user runs it, and the server process that it must never leave behind."""

import asyncio
import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from estimator.demo import __main__ as demo
from estimator.demo import server_process
from estimator.demo.fleet import GPU
from estimator.demo.questions import questions
from estimator.demo.server_process import Server, ServerError, serving
from estimator.pb import estimator_pb2 as pb
from fairway.names import DUMPED

ROOT = Path(__file__).parents[3]

CLUSTER_ROW = re.compile(r"^    (?:alpha|bravo|charlie) +(\d+)", re.MULTILINE)
ANSWERS = {
    "1 GPU, 8 CPUs, 64Gi": (7, 32, 0),
    "the same in the namespace research": (4, 32, 0),
    "8 H100": (0, 3, 0),
    "16 GPUs": (0, 0, 0),
    "1 MIG slice 3g.40gb": (3, 0, 0),
    "4 TPU chips of a v5e 4x4 slice": (0, 0, 4),
    "4 CPUs, 16Gi, no device": (62, 104, 15),
    "a launcher, and 2 workers with 8 H100 each": (0, 1, 0),
    "a 2-GPU and a 4-GPU pod (first-fit, in this order, would find no room on alpha)": (1, 5, 0),
    "Deployment serving/llm-gateway": (3, 0, 0),
    "Job training/pretrain": (0, 2, 0),
}


def test_the_demonstration_shows_the_true_answers_and_ends_by_itself() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-m", "estimator.demo"],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    shown = "\n".join(line.rstrip() for line in done.stdout.splitlines())
    for title, answers in ANSWERS.items():
        block = shown.partition(f"  {title}\n")[2].partition("\n\n")[0]
        assert tuple(map(int, CLUSTER_ROW.findall(block))) == answers, title
    assert set(ANSWERS) == {question.title for question in questions()}
    assert "never fits: needs 16 nvidia.com/gpu, the largest eligible node has 8" in shown
    assert "doubt" not in shown
    assert f"kubectl get {DUMPED} -A -o json > member1.json\n" in shown
    assert "--snapshot member1=member1.json" in shown
    assert "docs/estimator.md" in shown


def test_requests_are_those_of_karmada_1_19() -> None:
    request = questions()[3].about("bravo")
    assert isinstance(request, pb.MaxAvailableReplicasRequest)
    assert request.cluster == "bravo"
    requirements = request.replica_requirements
    assert pb.Quantity.FromString(requirements.resource_request_bytes[GPU]).string == "16"
    assert not requirements.resource_request
    assert [pb.Toleration.FromString(data).key for data in requirements.node_claim.tolerations_bytes] == [GPU]
    assert not requirements.node_claim.tolerations


SERVER = """
import os, pathlib, signal, sys
pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))
{setup}
print('not JSON', file=sys.stderr)
print('{{"msg": "serving", "port": 4711}}', file=sys.stderr, flush=True)
signal.pause()
"""


def is_running(pid_file: Path) -> bool:
    try:
        os.kill(int(pid_file.read_text()), 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(
    "setup", ["", "signal.signal(signal.SIGTERM, signal.SIG_IGN)"], ids=["willing", "stubborn"]
)
def test_the_server_is_ended_even_when_asking_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setup: str
) -> None:
    monkeypatch.setattr(server_process, "_STOP_WITHIN_S", 0.3)
    pid_file, server = tmp_path / "pid", Server()
    command = (sys.executable, "-c", SERVER.format(setup=setup), str(pid_file))

    async def fail() -> None:
        async with serving(server, {}, command):
            assert is_running(pid_file)
            raise LookupError

    with pytest.raises(LookupError):
        asyncio.run(fail())
    assert server.port == 4711
    assert not is_running(pid_file)


def test_a_server_that_hangs_at_its_start_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_process, "_START_WITHIN_S", 0.5)
    command = (sys.executable, "-c", "import signal; signal.pause()")

    async def start() -> None:
        async with serving(Server(), {}, command):
            pass

    with pytest.raises(ServerError, match="did not start within"):
        asyncio.run(start())


def test_a_server_that_cannot_start_is_shown_with_its_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = (sys.executable, "-c", "import sys; print('port [taken]', file=sys.stderr); sys.exit(3)")
    monkeypatch.setattr(demo, "serving", partial(serving, command=command))
    assert demo.main() == 1
    shown = capsys.readouterr().out
    assert "the server ended with status 3 instead of starting" in shown
    assert "port [taken]" in shown


def test_a_server_that_dies_while_it_is_asked_is_shown_with_its_log(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """import sys; print('{"msg": "serving", "port": 1}\\nlast words', file=sys.stderr)"""
    monkeypatch.setattr(demo, "serving", partial(serving, command=(sys.executable, "-c", text)))
    assert demo.main() == 1
    shown = capsys.readouterr().out
    assert "The demonstration failed" in shown
    assert "last words" in shown
