"""Who we are: kubeconfigs, exec plugins, service accounts, certificates, and how each is renewed."""

import asyncio
import base64
import json
import os
import ssl
import sys
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fairway.kube.client import KubeClient
from fairway.kube.credentials import (
    Credentials,
    InClusterSource,
    proxy_for,
    refresh_at_s,
)
from fairway.kube.errors import BadConfig, Unauthorized, Unreachable
from fairway.kube.kubeconfig_source import KubeconfigSource
from sandbox.fakeapi import FakeApi
from tests.certs import Authority

Obj = dict[str, Any]
START_S = 1_800_000_000.0

PLUGIN = """
import json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
with (folder / "runs").open("a") as runs:
    runs.write("x")
sys.stdout.write((folder / "answer").read_text())
sys.exit("plugin out of order" if not (folder / "answer").read_text() else 0)
"""


def kubeconfig(path: Path, url: str, user: Mapping[str, object], **cluster: object) -> str:
    config = {
        "current-context": "c",
        "clusters": [{"name": "k", "cluster": {"server": url, **cluster}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
    }
    path.write_text(json.dumps(config))
    return str(path)


class Plugin:
    """An exec plugin that answers what the test last said, and counts its runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "plugin.py").write_text(PLUGIN)

    @property
    def user(self) -> Obj:
        command = {"command": sys.executable, "args": [str(self._folder / "plugin.py"), str(self._folder)]}
        return {"exec": command | {"apiVersion": "client.authentication.k8s.io/v1"}}

    @property
    def runs(self) -> int:
        runs = self._folder / "runs"
        return len(runs.read_text()) if runs.exists() else 0

    def gives(self, token: str, expires_at_s: float | None = None) -> None:
        status: Obj = {"token": token}
        if expires_at_s is not None:
            expiry = datetime.fromtimestamp(expires_at_s, UTC)
            status["expirationTimestamp"] = expiry.strftime("%Y-%m-%dT%H:%M:%SZ")
        version = "client.authentication.k8s.io/v1"
        answer = {"apiVersion": version, "kind": "ExecCredential", "status": status}
        (self._folder / "answer").write_text(json.dumps(answer))

    def fails(self) -> None:
        (self._folder / "answer").write_text("")


class Clock:
    def __init__(self) -> None:
        self.now_s = START_S

    def __call__(self) -> float:
        return self.now_s


def with_plugin(
    folder: Path, scenario: Callable[[FakeApi, Plugin, KubeClient, Clock], Awaitable[None]]
) -> None:
    async def run() -> None:
        plugin, clock = Plugin(folder), Clock()
        async with FakeApi(tokens={"first"}) as api:
            source = KubeconfigSource(kubeconfig(folder / "config", api.url, plugin.user), None, None)
            async with KubeClient(source, qps=-1, wall_clock=clock) as client:
                await scenario(api, plugin, client, clock)

    asyncio.run(run())


def test_a_plugin_is_run_once_while_its_token_lasts_and_again_before_it_expires(tmp_path: Path) -> None:
    async def scenario(api: FakeApi, plugin: Plugin, client: KubeClient, clock: Clock) -> None:
        plugin.gives("first", START_S + 3600)
        for _ in range(3):
            await client.get_bytes("/version")
        clock.now_s = START_S + 3600 - 61
        await client.get_bytes("/version")
        assert plugin.runs == 1
        plugin.gives("second", START_S + 7200)
        api.expire_tokens("first", "second")
        clock.now_s = START_S + 3600 - 59
        await client.get_bytes("/version")
        assert plugin.runs == 2
        assert api.seen[-1].headers["Authorization"] == "Bearer second"

    with_plugin(tmp_path, scenario)


def test_a_plugin_is_run_again_when_the_server_rejects_its_token(tmp_path: Path) -> None:
    async def scenario(api: FakeApi, plugin: Plugin, client: KubeClient, clock: Clock) -> None:
        plugin.gives("first")
        await client.get_bytes("/version")
        clock.now_s += 10**6
        await client.get_bytes("/version")
        assert plugin.runs == 1
        plugin.gives("second")
        api.expire_tokens("second")
        await client.get_bytes("/version")
        assert plugin.runs == 2
        async with client.stream("/api/v1/nodes", {"watch": "1"}, idle_timeout_s=5):
            plugin.gives("third")
            api.expire_tokens("third")
            async with client.stream("/api/v1/nodes", {"watch": "1"}, idle_timeout_s=5):
                assert plugin.runs == 3

    with_plugin(tmp_path, scenario)


def test_requests_rejected_together_run_the_plugin_once(tmp_path: Path) -> None:
    async def scenario(api: FakeApi, plugin: Plugin, client: KubeClient, clock: Clock) -> None:
        plugin.gives("first")
        await client.get_bytes("/version")
        plugin.gives("second")
        api.expire_tokens("second")
        await asyncio.gather(*(client.get_bytes("/version") for _ in range(5)))
        assert plugin.runs == 2

    with_plugin(tmp_path, scenario)


def test_a_token_rejected_twice_is_unauthorized(tmp_path: Path) -> None:
    async def scenario(api: FakeApi, plugin: Plugin, client: KubeClient, clock: Clock) -> None:
        plugin.gives("wrong")
        with pytest.raises(Unauthorized):
            await client.get_bytes("/version")
        assert plugin.runs == 2
        assert len(api.seen) == 1

    with_plugin(tmp_path, scenario)


def test_a_failing_plugin_stops_the_start_but_not_a_token_that_still_lasts(tmp_path: Path) -> None:
    async def scenario(api: FakeApi, plugin: Plugin, client: KubeClient, clock: Clock) -> None:
        plugin.fails()
        with pytest.raises(BadConfig, match="context 'c': the exec plugin gave neither"):
            await client.authenticate()
        plugin.gives("first", START_S + 600)
        assert await client.authenticate() == api.url
        plugin.fails()
        clock.now_s = START_S + 590
        await client.get_bytes("/version")
        await client.get_bytes("/version")
        assert plugin.runs == 3
        clock.now_s = START_S + 601
        with pytest.raises(BadConfig):
            await client.get_bytes("/version")
        plugin.gives("first", START_S + 1200)
        await client.get_bytes("/version")

    with_plugin(tmp_path, scenario)


@pytest.mark.parametrize(
    ("lives_s", "refreshed_after_s"),
    [(3600, 3540), (300, 240), (100, 80), (20, 16), (5, 10), (-50, 10)],
)
def test_credentials_are_refreshed_a_little_before_they_expire(
    lives_s: float, refreshed_after_s: float
) -> None:
    assert refresh_at_s(START_S + lives_s, START_S) == START_S + refreshed_after_s


def server_tls(authority: Authority, folder: Path, *, ask_for_certificates: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("server").write(folder, "server"))
    if ask_for_certificates:
        context.load_verify_locations(cadata=authority.pem.decode())
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def subject(peer: Mapping[str, Any] | None) -> str:
    assert peer is not None
    name: str = peer["subject"][0][0][1]
    return name


def test_the_token_of_a_service_account_is_read_again_when_it_is_replaced(tmp_path: Path) -> None:
    async def scenario() -> None:
        authority = Authority("cluster")
        async with FakeApi(tokens={"first"}, tls=server_tls(authority, tmp_path)) as api:
            # As the kubelet does: a symbolic link to the present version of the volume.
            for version, token in (("v1", "first\n"), ("v2", "second")):
                (tmp_path / version).mkdir()
                (tmp_path / version / "token").write_text(token)
                (tmp_path / version / "ca.crt").write_bytes(authority.pem)
            (tmp_path / "mounted").symlink_to(tmp_path / "v1")
            host, port = api.url.removeprefix("https://").split(":")
            environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
            source = InClusterSource(str(tmp_path / "mounted"), environ)
            async with KubeClient(source) as client:
                await client.get_bytes("/version")
                (tmp_path / "next").symlink_to(tmp_path / "v2")
                (tmp_path / "next").rename(tmp_path / "mounted")
                api.expire_tokens("first", "second")
                await client.get_bytes("/version")
            sent = [seen.headers["Authorization"] for seen in api.seen]
            assert [text.lower() for text in sent] == ["bearer first", "bearer second"]

    asyncio.run(scenario())


def test_outside_a_cluster_the_service_account_is_missing(tmp_path: Path) -> None:
    async def scenario() -> None:
        for environ in ({}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}):
            async with KubeClient(InClusterSource(str(tmp_path), environ)) as client:
                with pytest.raises(BadConfig, match="expected to run in a pod"):
                    await client.authenticate()

    asyncio.run(scenario())


def test_a_rotated_client_certificate_is_used_and_open_streams_go_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        authority, clock = Authority("cluster"), Clock()
        (tmp_path / "ca.crt").write_bytes(authority.pem)
        authority.issue("alice").write(tmp_path, "client")
        async with FakeApi(tls=server_tls(authority, tmp_path, ask_for_certificates=True)) as api:
            user = {"client-certificate": "client.crt", "client-key": "client.key"}
            path = kubeconfig(tmp_path / "config", api.url, user, **{"certificate-authority": "ca.crt"})
            async with (
                KubeClient(KubeconfigSource(path, None, None), qps=-1, wall_clock=clock) as client,
                client.stream("/api/v1/nodes", {"watch": "1"}, idle_timeout_s=5) as stream,
            ):
                await client.get_bytes("/version")
                pair = authority.issue("bob")
                (tmp_path / "client.crt").write_bytes(pair.certificate)
                await client.get_bytes("/version")  # the key is still the old one
                (tmp_path / "client.key").write_bytes(pair.key)
                await client.get_bytes("/version")  # and is not read again at once
                clock.now_s += 10
                await client.get_bytes("/version")
                api.create("/api/v1/nodes", {"metadata": {"name": "n"}})
                assert b"ADDED" in await anext(stream)
            names = [subject(seen.peer_certificate) for seen in api.seen]
            assert names == ["alice", "alice", "alice", "alice", "bob"]

    asyncio.run(scenario())


def test_embedded_certificates_and_a_kubeconfig_written_anew(tmp_path: Path) -> None:
    async def scenario() -> None:
        authority = Authority("cluster")

        def data(content: bytes) -> str:
            return base64.b64encode(content).decode()

        def write(url: str, name: str) -> str:
            pair = authority.issue(name)
            user = {"client-certificate-data": data(pair.certificate), "client-key-data": data(pair.key)}
            ca = {"certificate-authority-data": data(authority.pem)}
            return kubeconfig(tmp_path / "config", url, user, **ca)

        async with FakeApi(tls=server_tls(authority, tmp_path, ask_for_certificates=True)) as api:
            async with KubeClient.from_kubeconfig(write(api.url, "alice")) as client:
                await client.get_bytes("/version")
                write(api.url, "carol")
                await client.get_bytes("/version")
            assert [subject(seen.peer_certificate) for seen in api.seen] == ["alice", "carol"]

    asyncio.run(scenario())


def test_a_server_of_an_unknown_authority_is_refused_unless_told_otherwise(tmp_path: Path) -> None:
    async def scenario() -> None:
        other = tmp_path / "other.crt"
        other.write_bytes(Authority("other").pem)
        async with FakeApi(tls=server_tls(Authority("cluster"), tmp_path)) as api:
            path = kubeconfig(tmp_path / "a", api.url, {}, **{"certificate-authority": str(other)})
            async with KubeClient.from_kubeconfig(path) as client:
                with pytest.raises(Unreachable, match="signed by a CA that is not known here"):
                    await client.get_bytes("/version")
            path = kubeconfig(tmp_path / "b", api.url, {}, **{"insecure-skip-tls-verify": True})
            async with KubeClient.from_kubeconfig(path) as client:
                await client.get_bytes("/version")

    asyncio.run(scenario())


def test_a_token_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    async def scenario() -> None:
        (tmp_path / "token").write_text("first")
        async with FakeApi(tokens={"first"}) as api:
            path = kubeconfig(tmp_path / "config", api.url, {"tokenFile": "token"})
            async with KubeClient.from_kubeconfig(path) as client:
                await client.get_bytes("/version")
                (tmp_path / "token").write_text("the second")
                api.expire_tokens("first", "the second")
                await client.get_bytes("/version")
            assert api.seen[-1].headers["Authorization"] == "Bearer the second"

    asyncio.run(scenario())


def test_the_master_url_replaces_the_server_and_keeps_the_user(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with FakeApi(tokens={"first"}) as api:
            path = kubeconfig(tmp_path / "config", "https://elsewhere.example", {"token": "first"})
            async with KubeClient.from_kubeconfig(path, master=api.url + "/") as client:
                await client.get_bytes("/version")
                assert client.server == api.url
            async with KubeClient.from_kubeconfig(master=api.url) as client:
                with pytest.raises(Unauthorized):
                    await client.get_bytes("/version")

    asyncio.run(scenario())


def test_files_of_the_environment_are_merged_and_a_context_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with FakeApi() as api:
            kubeconfig(tmp_path / "one", "http://127.0.0.1:1", {})
            context = {"name": "other", "context": {"cluster": "other"}}
            cluster = {"name": "other", "cluster": {"server": api.url}}
            (tmp_path / "two").write_text(json.dumps({"contexts": [context], "clusters": [cluster]}))
            paths = [str(tmp_path / name) for name in ("absent", "one", "two")]
            monkeypatch.setenv("KUBECONFIG", os.pathsep.join(paths))
            async with KubeClient.from_kubeconfig() as client:
                assert await client.authenticate() == "http://127.0.0.1:1"
            async with KubeClient.from_kubeconfig(context="other") as client:
                await client.get_bytes("/version")

    asyncio.run(scenario())


GOOD: Obj = {
    "current-context": "c",
    "clusters": [{"name": "k", "cluster": {"server": "https://10.0.0.1"}}],
    "users": [{"name": "u", "user": {}}],
    "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
}
NO_PEM = {"server": "https://10.0.0.1", "certificate-authority-data": "eHh4"}
BAD_CONFIGS = {
    "not YAML": ("{", "no YAML from line 1"),
    "two documents": ("a: 1\n---\n---\n", "several documents, the second from line 2 on"),
    "a list": ("[]", "Expected `object`, got `array`"),
    "empty": ("", "Expected `object`, got `null`"),
    "wrong type": (json.dumps(GOOD | {"clusters": [{"name": 3}]}), r"\$\.clusters\[0\]"),
    "no current context": (json.dumps(GOOD | {"current-context": None}), "no current-context"),
    "unknown context": (json.dumps(GOOD | {"current-context": "x"}), "named 'x', found: c"),
    "unknown cluster": (json.dumps(GOOD | {"clusters": []}), "clusters: expected .* 'k', found: none"),
    "unknown user": (json.dumps(GOOD | {"users": []}), "users: expected an entry named 'u'"),
    "no server": (json.dumps(GOOD | {"clusters": [{"name": "k", "cluster": {}}]}), "http.s. URL, got ''"),
    "absent key file": (
        json.dumps(GOOD | {"users": [{"name": "u", "user": {"client-certificate": "absent.crt"}}]}),
        "absent.crt",
    ),
    "bad base64": (
        json.dumps(GOOD | {"users": [{"name": "u", "user": {"client-certificate-data": "x"}}]}),
        "base64",
    ),
    "no PEM": (json.dumps(GOOD | {"clusters": [{"name": "k", "cluster": NO_PEM}]}), "expected PEM files"),
}


@pytest.mark.parametrize(("content", "told"), BAD_CONFIGS.values(), ids=BAD_CONFIGS)
def test_a_bad_kubeconfig_is_located(tmp_path: Path, content: str, told: str) -> None:
    async def scenario() -> None:
        path = tmp_path / "config"
        path.write_text(content)
        async with KubeClient.from_kubeconfig(str(path)) as client:
            with pytest.raises(BadConfig, match=told) as caught:
                await client.authenticate()
            assert str(path) in str(caught.value) or "10.0.0.1" in str(caught.value)

    asyncio.run(scenario())


def test_an_absent_kubeconfig_is_named(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with KubeClient.from_kubeconfig(str(tmp_path / "none")) as client:
            with pytest.raises(BadConfig, match="none: no such file"):
                await client.get_bytes("/version")
            # It may be mounted late.
            async with FakeApi() as api:
                kubeconfig(tmp_path / "none", api.url, {})
                await client.get_bytes("/version")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("server", "own", "expected"),
    [
        ("https://10.1.2.3:6443", None, "http://proxy.example:3128"),
        ("https://10.1.2.3:6443", "http://own.example:1", "http://own.example:1"),
        ("https://api.internal.example", None, None),
        ("http://10.1.2.3", None, None),
        ("https://127.0.0.1:6443", None, None),
        ("https://localhost:6443", None, None),
        ("https://[::1]:6443", None, None),
    ],
)
def test_proxies_come_from_the_kubeconfig_or_the_environment(
    monkeypatch: pytest.MonkeyPatch, server: str, own: str | None, expected: str | None
) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", ".internal.example")
    assert proxy_for(Credentials(server, proxy=own)) == expected
