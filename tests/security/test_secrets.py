"""No secret in what programs write or answer: marked tokens, passwords, keys and plugin output go into every
input, and logs at the highest verbosity, error messages, reports and HTTP answers are searched for them.
"""

import asyncio
import base64
import contextlib
import json
import logging
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from admin.main import run
from estimator.demo.server_process import end
from fairway.kube.errors import BadConfig
from fairway.kube.kubeconfig import read_kubeconfig
from sandbox.fakeapi import FakeApi
from sandbox.processes import free_ports
from tests.admin.dispatchers import dispatcher
from tests.certs import Authority
from tests.security.marks import (
    KEY,
    PASSWORD,
    PLUGIN_TOKEN,
    TOKEN,
    credential,
    kubeconfig,
    plugin,
    secrets_in,
)

LOOK_S = 0.05
GPU_NODE = {
    "metadata": {"name": "a"},
    "status": {"allocatable": {"cpu": "8", "pods": "10", "nvidia.com/gpu": "8"}},
}


@dataclass(slots=True)
class Program:
    """A program with everything logged; ``urls`` answer over HTTP."""

    log: Path
    urls: list[str]


@asynccontextmanager
async def logged(folder: Path, module: str, flags: list[str], form: str) -> AsyncIterator[Program]:
    health, metrics = free_ports(2)
    flags = [*flags, "-v=9", f"--logging-format={form}"]
    flags += [
        f"--health-probe-bind-address=127.0.0.1:{health}",
        f"--metrics-bind-address=127.0.0.1:{metrics}",
    ]
    log = folder / f"{module}.log"
    with log.open("wb") as stream:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", module, *flags),
            stdout=stream,
            stderr=stream,
            stdin=asyncio.subprocess.DEVNULL,
        )
        try:
            yield Program(log, [f"http://127.0.0.1:{health}/readyz", f"http://127.0.0.1:{metrics}/metrics"])
        finally:
            await end(process)


def flags_of(module: str, config: Path, port: int) -> list[str]:
    match module:
        case "estimator":
            return ["--cluster-name=m", f"--kubeconfig={config}", f"--server-port={port}"]
        case "queue_dispatcher":
            return [
                f"--kubeconfig={config}",
                "--leader-elect=false",
                f"--visibility-bind-address=127.0.0.1:{port}",
            ]
        case _:
            return [
                f"--kubeconfig={config}",
                f"--secure-port={port}",
                "--bind-address=127.0.0.1",
                f"--url=https://127.0.0.1:{port}",
            ]


@pytest.mark.parametrize(
    ("module", "form"),
    # The forms are the same code in all programs.
    [("estimator", "text"), ("estimator", "json"), ("queue_dispatcher", "json"), ("webhook", "text")],
)
def test_no_program_writes_or_answers_a_secret(module: str, form: str, tmp_path: Path) -> None:
    user = {"token": TOKEN} if form == "text" else plugin(tmp_path, credential(PLUGIN_TOKEN))
    token = TOKEN if form == "text" else PLUGIN_TOKEN

    async def scenario() -> str:
        said = ""
        async with FakeApi(tokens={token}) as api:
            api.create("/api/v1/nodes", GPU_NODE)
            secret = {
                "metadata": {"name": "s"},
                "data": {"password": base64.b64encode(PASSWORD.encode()).decode()},
            }
            api.create("/api/v1/namespaces/default/secrets", secret)
            (port,) = free_ports(1)
            config = kubeconfig(tmp_path / "config", api.url, user)
            async with logged(tmp_path, module, flags_of(module, config, port), form) as program:
                await api.until(lambda: len(api.seen) >= 3)
                # What goes wrong is told in most words.
                api.fail(500, 3)
                api.expire_tokens("another")
                api.end_watches()
                async with asyncio.timeout(60):
                    # What is logged wakes nobody.
                    while "401" not in program.log.read_text():  # noqa: ASYNC110 - it is a file
                        await asyncio.sleep(LOOK_S)
                async with aiohttp.ClientSession() as session:
                    for url in program.urls:
                        with contextlib.suppress(aiohttp.ClientError):
                            async with session.get(url) as response:
                                said += await response.text()
            keys = [
                base64.b64decode(record.decode()["data"]["tls.key"]).decode().splitlines()[1]
                for key, record in api.store.collection("v1", "secrets").records.items()
                if "tls.key" in (record.decode().get("data") or {})
            ]
            said += program.log.read_text()
            assert not [key for key in keys if key in said]
        return said

    said = asyncio.run(scenario())
    assert not secrets_in(said)


@pytest.mark.parametrize(
    "user",
    [
        pytest.param({"token": TOKEN}, id="token"),
        pytest.param({"username": "u", "password": PASSWORD}, id="password"),
        pytest.param(
            {
                "client-certificate-data": base64.b64encode(KEY.certificate).decode(),
                "client-key-data": base64.b64encode(KEY.key).decode(),
            },
            id="key",
        ),
        pytest.param({"token": {TOKEN: 1}}, id="a token that is none"),
        pytest.param({"auth-provider": {"name": "oidc", "config": {"id-token": TOKEN}}}, id="provider"),
    ],
)
@pytest.mark.parametrize("command", ["report", "explain", "queues"])
def test_no_command_prints_a_secret(
    user: dict[str, Any],
    command: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    # Nobody listens there; and a server that answers with an error is met above.
    config = kubeconfig(tmp_path / "config", "http://127.0.0.1:9", user)
    job = tmp_path / "job.yaml"
    job.write_text(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\nspec: {template: {spec: {containers: []}}}\n"
    )
    with dispatcher({}) as url:
        args = {
            "report": ["report", str(config)],
            "explain": ["explain", "-f", str(job), str(config)],
            "queues": ["queues", "--kubeconfig", str(config), "--dispatcher", url],
        }[command]
        assert run(args) != 0
    captured = capsys.readouterr()
    assert captured.err
    assert not secrets_in(captured.out + captured.err + caplog.text)


@pytest.mark.parametrize(
    ("output", "code"),
    [
        (f"{{ {PLUGIN_TOKEN}", 0),
        (credential(PLUGIN_TOKEN)[:-10], 0),
        (json.dumps({"status": PLUGIN_TOKEN}), 0),
        (json.dumps({"apiVersion": "v9", "kind": "ExecCredential", "status": {"token": PLUGIN_TOKEN}}), 0),
        (credential(PLUGIN_TOKEN), 1),
    ],
)
def test_what_a_plugin_prints_is_printed_nowhere(
    output: str,
    code: int,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    config = kubeconfig(tmp_path / "config", "http://127.0.0.1:9", plugin(tmp_path, output, code))
    assert run(["report", str(config)]) != 0
    captured = capfd.readouterr()
    assert captured.err
    assert not secrets_in(captured.out + captured.err + caplog.text)


@pytest.mark.parametrize(
    "text",
    [
        f"users:\n- name: x\n  user:\n    token: {TOKEN}\n   broken: [",
        f'users: [{{name: x, user: {{token: "{TOKEN}',
        f"token: {TOKEN}: {TOKEN}: x",
        f"{TOKEN}",
        f"users: {TOKEN}",
        f"users:\n- name: x\n  user:\n    exec: {TOKEN}\n",
        f"clusters:\n- name: x\n  cluster: {{server: {TOKEN}}}\n  token: \t@{TOKEN}",
    ],
)
def test_a_kubeconfig_that_cannot_be_read_is_not_quoted(text: str, tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(BadConfig) as error:
        read_kubeconfig((str(file),), None, None)
    assert str(file) in str(error.value)
    assert not secrets_in(str(error.value))


@pytest.mark.parametrize("content", [f"{TOKEN} {TOKEN}", f"{TOKEN}\n{TOKEN}", f"{TOKEN}é"])
def test_a_token_file_that_cannot_be_used_is_not_quoted(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "token"
    file.write_text(content)
    assert run(["queues", "--token-file", str(file)]) == 1
    captured = capsys.readouterr()
    assert "expected one token and nothing else" in captured.err
    assert not secrets_in(captured.out + captured.err)


def test_a_token_is_not_sent_where_others_could_read_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    for url in ("http://192.0.2.1:8082", "http://dispatcher.example"):
        assert run(["queues", "--token-file", str(file), "--dispatcher", url]) == 1
        assert "a token would go there in plaintext" in capsys.readouterr().err


def test_a_key_that_cannot_be_used_is_not_quoted(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    certificate, key = KEY.write(tmp_path, "tls")
    certificate.write_bytes(Authority("other").issue("other").certificate)
    env = {**os.environ, "PYTHONWARNINGS": "error"}
    assert env

    async def scenario() -> int:
        flags = ["--master=http://127.0.0.1:9", f"--visibility-tls-cert-file={certificate}"]
        flags += [f"--visibility-tls-private-key-file={key}", "--metrics-bind-address=0"]
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "queue_dispatcher", *flags, "--health-probe-bind-address=0", "-v=9")
        )
        return await process.wait()

    assert asyncio.run(scenario()) == 1
    said = capfd.readouterr().err
    assert "does not belong to the key" in said
    assert not secrets_in(said)
