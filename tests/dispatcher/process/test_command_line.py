import asyncio
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from queue_dispatcher.main import main
from tests.crash.processes import Interpreters, kubeconfig
from tests.dispatcher.process.builders import ALONE, QUIET, WITHIN_S, control_plane, said, workload


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["--no-such-flag"], "no-such-flag"),
        (["serve"], "unknown command"),
        (["--kubeconfig=/no/such/file"], "--kubeconfig"),
        (["--catalogue=/no/such/file"], "--catalogue"),
        (["--kube-api-qps=fast"], "--kube-api-qps"),
        (["--leader-elect=perhaps"], "--leader-elect"),
        (["--leader-elect-lease-duration=0s"], "--leader-elect-lease-duration"),
        (["--leader-elect-lease-duration=5s"], "--leader-elect-lease-duration"),
        (["--visibility-bind-address=:99999"], "--visibility-bind-address"),
        (["--estimator=member1"], "--estimator"),
        (["--estimator=a=h:1", "--estimator=a=h:2"], "--estimator"),
        (["--scheduler-estimator-cert-file=/no/such/file"], "--scheduler-estimator-cert-file"),
        (["--scheduler-estimator-port=0"], "--scheduler-estimator-port"),
    ],
)
def test_a_wrong_flag_is_one_line_that_names_it(
    argv: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Error: ")
    assert told in err
    assert err.count("\n") == 1


def test_a_catalogue_that_cannot_be_read_is_told_in_one_line_and_exits_with_1(tmp_path: Path) -> None:
    file = tmp_path / "file.yaml"
    file.write_text("- pattern: 7\n")
    flags = ("--master=http://127.0.0.1:9", f"--catalogue={file}", *QUIET)
    error = the_error_of(*flags)
    assert f"cannot start: --catalogue: {file}" in error


def test_an_address_that_is_taken_is_told_in_one_line_and_exits_with_1() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        flags = (*QUIET[:2], f"--visibility-bind-address={address}", "--master=http://127.0.0.1:9")
        error = the_error_of(*flags)
    assert "cannot start" in error
    assert address in error


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--master=nonsense"], "'nonsense' is no address of an API server: expected http(s)://HOST"),
        (["--master=http://"], "'http:' is no address of an API server"),
        (["--master=ftp://host"], "'ftp://host' is no address of an API server"),
        (["--kubeconfig={file}", "--master=nonsense"], "expected an http(s) URL, got 'nonsense'"),
        (["--kubeconfig={file}", "--karmada-context=other"], "contexts: expected an entry named 'other'"),
        (["--kubeconfig={broken}"], "expected a kubeconfig as kubectl reads it"),
        ([], "expected to run in a pod with a mounted service account, otherwise name a kubeconfig"),
    ],
)
def test_what_no_waiting_mends_is_told_in_one_line_and_exits_with_2(
    flags: list[str], told: str, tmp_path: Path
) -> None:
    kubeconfig(tmp_path / "file", "http://127.0.0.1:9", "token")
    (tmp_path / "broken").write_text("a: [")
    named = [flag.format(file=tmp_path / "file", broken=tmp_path / "broken") for flag in flags]
    assert told in the_error_of(*named, *QUIET, code=2)


def the_error_of(*flags: str, code: int = 1) -> str:
    """The only error in the log of a dispatcher that does not start."""
    ended = subprocess.run(
        [sys.executable, "-m", "queue_dispatcher", *flags],
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert ended.returncode == code, ended.stderr
    assert "Traceback" not in ended.stderr
    (error,) = (line for line in ended.stderr.splitlines() if " ERROR " in line)
    return error


def test_a_kubeconfig_that_cannot_be_used_yet_is_told_and_read_again_once_it_can(tmp_path: Path) -> None:
    async def run() -> None:
        async with control_plane(tmp_path) as plane:
            file = kubeconfig(tmp_path / "late.json", plane.api.url, "late")
            late = json.loads(file.read_text())
            late["users"][0]["user"] = {"tokenFile": "token-that-comes-later"}
            file.write_text(json.dumps(late))
            child = await Interpreters().start(
                (f"--kubeconfig={file}", "--hold-namespaces=all", *ALONE), tmp_path / "late.log"
            )
            plane.children.append(child)
            await said(child, f"kubeconfig {file}")
            plane.submit(one := workload("one"))
            kubeconfig(file, plane.api.url, "late")
            await plane.admitted(one)

    asyncio.run(run())
