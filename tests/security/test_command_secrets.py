"""No secret in what ``fairway doctor`` and ``fairway install`` print, which read and write Secrets: marked
ones are in API servers, dumps, kubeconfigs and configurations, whole and broken.
"""

import asyncio
import base64
import json
import logging
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import pytest
import yaml

from admin.main import run
from sandbox.fakeapi.store import Obj
from tests.admin.doctor.installation import KARMADA, OURS, Installation, Manifest, secret, write
from tests.admin.install.fleet import MEMBERS, SETTINGS, Fleet, fleet
from tests.security.marks import KEY, PASSWORD, TOKEN, kubeconfig, secrets_in

KUBECONFIG = f"""\
current-context: x
clusters: [{{name: x, cluster: {{server: "http://127.0.0.1:9"}}}}]
contexts: [{{name: x, context: {{cluster: x, user: x}}}}]
users: [{{name: x, user: {{token: {TOKEN}, client-key-data: {base64.b64encode(KEY.key).decode()}}}}}]
"""
TLS = {
    "tls.crt": KEY.certificate,
    "tls.key": KEY.key,
    "ca.crt": KEY.certificate,
    "password": PASSWORD.encode(),
}
BROKEN = [
    f"users:\n- name: x\n  user:\n    token: {TOKEN}\n   broken: [",
    f"token: {TOKEN}: {TOKEN}: x",
    TOKEN,
    f"users: {TOKEN}",
    f"users: [{{user: {{token: !!int {TOKEN}}}}}]",
    f"users: [{{user: {{token: !!timestamp {TOKEN}}}}}]",
    f"users: [{{user: {{token: !!bool {TOKEN}}}}}]",
    f"users: [{{user: {{token: !{TOKEN} x}}}}]",
    f"users: *{TOKEN}",
    f"{TOKEN}: 1",
    f"[{TOKEN}]",
    f'{{"users": "{TOKEN}',
    "[" * 600 + TOKEN,
]


class Screen:
    """What commands print and log."""

    def __init__(self, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        self._capsys, self._caplog = capsys, caplog

    def fairway(self, *args: object) -> str:
        """All that a command says. It says something."""
        code = run([str(arg) for arg in args])
        printed = self._capsys.readouterr()
        assert printed.out + printed.err, code
        return printed.out + printed.err + self._caplog.text


@pytest.fixture
def screen(capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Screen:
    return Screen(capsys, caplog)


def marked_host(key: bytes = KEY.key, config: str = KUBECONFIG) -> list[Manifest]:
    """A host on which all Secrets hold marked values; with this key in those with certificates."""
    made = Installation().host
    assert made is not None
    secrets = [
        secret("fairway-karmada-webhook", OURS, {"kubeconfig": config.encode()}),
        secret("fairway-karmada-dispatcher", OURS, {"kubeconfig": config.encode()}),
        secret("east-kubeconfig", KARMADA, {"east-kubeconfig": config.encode()}),
        secret("karmada-scheduler-estimator-cert", KARMADA, TLS | {"tls.key": key}),
        secret("karmada-scheduler-scheduler-estimator-client-cert", KARMADA, TLS | {"tls.crt": key}),
        secret("token", KARMADA, {"token": TOKEN.encode()}, "kubernetes.io/service-account-token"),
    ]
    for one in secrets:
        metadata = one["metadata"]
        assert isinstance(metadata, dict)
        copy = "kubectl.kubernetes.io/last-applied-configuration"
        metadata["annotations"] = {copy: json.dumps({"data": one["data"]})}
    return [each for each in made if each["kind"] != "Secret"] + secrets


@pytest.mark.parametrize("form", [["-o", "table"], ["-o", "json"], ["-o", "yaml"], ["--fix"]])
@pytest.mark.parametrize(
    ("key", "config"),
    [
        pytest.param(KEY.key, KUBECONFIG, id="whole"),
        pytest.param(KEY.key[:-40] + TOKEN.encode(), BROKEN[0], id="broken"),
    ],
)
def test_the_doctor_shows_nothing_of_secrets_in_a_dump(
    form: list[str], key: bytes, config: str, tmp_path: Path, screen: Screen
) -> None:
    dump = write(tmp_path / "host.json", marked_host(key, config))
    said = screen.fairway("doctor", "--host", dump, "--members-from-host", "--offline", *form)
    assert not secrets_in(said)


@pytest.mark.parametrize(
    "data",
    [
        TOKEN,
        {"token": TOKEN},
        {"token": [TOKEN]},
        {"token": {TOKEN: 1}},
        {"token": base64.b64encode(TOKEN.encode()).decode()[:-3]},
        [TOKEN],
    ],
)
def test_the_doctor_quotes_no_secret_that_cannot_be_read(
    data: object, tmp_path: Path, screen: Screen
) -> None:
    host: list[object] = [*marked_host()]
    host.append({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bad"}, "data": data})
    for name, text in (
        ("host.json", json.dumps({"apiVersion": "v1", "kind": "List", "items": host})),
        ("host.yaml", yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": host})),
    ):
        (tmp_path / name).write_text(text)
        said = screen.fairway("doctor", "--host", tmp_path / name, "--offline", "-o", "json")
        assert not secrets_in(said)


@pytest.mark.parametrize("text", BROKEN)
def test_files_that_cannot_be_read_are_not_quoted(text: str, tmp_path: Path, screen: Screen) -> None:
    """Neither as a configuration, nor as a kubeconfig, a dump, or a kubeconfig in a Secret."""
    file = tmp_path / "file.yaml"
    file.write_text(text)
    dump = write(tmp_path / "host.json", marked_host(config=text))
    for command in (
        ["install", "--config", file],
        ["install", "--host", file, "--karmada", file],
        ["doctor", "--host", file, "--offline"],
        ["doctor", "--host", dump, "--members-from-host", "--offline"],
    ):
        assert not secrets_in(screen.fairway(*command))


def test_flags_of_a_configuration_are_named(tmp_path: Path, screen: Screen) -> None:
    file = tmp_path / "file.yaml"
    file.write_text(f"tag: x\nkarmadaServer: {TOKEN}\n")
    said = screen.fairway("install", "--config", file)
    assert "karmadaServer: no such flag; expected one of" in said
    assert not secrets_in(said)


async def _marked(made: Fleet) -> None:
    """Everything is installed, and then all Secrets were renewed with marked values."""
    await made.install(SETTINGS)
    for api in made.apis.values():
        for key, record in api.store.collection("v1", "secrets").records.items():
            data = record.decode().get("data") or {}
            path = f"/api/v1/namespaces/{key[0]}/secrets/{key[1]}"
            api.update(path, partial(_renew, data))


def _renew(entries: Iterable[str], obj: Obj) -> None:
    is_token = obj.get("type") == "kubernetes.io/service-account-token"
    value = base64.b64encode(TOKEN.encode() if is_token else KEY.key).decode()
    obj["data"] = dict.fromkeys(entries, value)


@pytest.mark.parametrize("form", [["--dry-run"], ["--dry-run", "-o", "json"], ["-o", "yaml"], []])
def test_an_installation_prints_no_secret(form: list[str], tmp_path: Path, screen: Screen) -> None:
    async def scenario() -> str:
        async with fleet() as made:
            await _marked(made)
            args = ["--tag=1.2.3", f"--karmada-server={SETTINGS.karmada_server}", "--timeout=10s"]
            for name, api in made.apis.items():
                file = kubeconfig(tmp_path / name, api.url, {"token": TOKEN})
                args.append(f"--member={name}={file}" if name in MEMBERS else f"--{name}={file}")
            return await asyncio.to_thread(screen.fairway, "install", *args, *form)

    said = asyncio.run(scenario())
    # It came as far as the Secrets.
    assert ("fairway-karmada-dispatcher" if form else "done: ") in said
    assert not secrets_in(said)
