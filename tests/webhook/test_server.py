"""The whole webhook against an API server: it registers itself, is asked, and survives what happens."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from fairway.kube.client import KubeClient
from fairway.names import QUEUEING
from fairway.scope_flags import ScopeSettings, read_scope
from fairway.service.addresses import BindAddress
from fairway.service.http import EndpointError
from fairway.service.program import StartError
from sandbox.fakeapi import FakeApi
from tests.certs import Authority
from tests.webhook.builders import CPU, GPU, Obj, binding, spec
from webhook.flags import parse
from webhook.server import serve
from webhook.settings import FilesSettings, Settings

BINDINGS = "/apis/work.karmada.io/v1alpha2/namespaces/team/resourcebindings"
CLUSTER_BINDINGS = "/apis/work.karmada.io/v1alpha2/clusterresourcebindings"
OFF = ("--health-probe-bind-address=0", "--metrics-bind-address=0")


def run_scenario(scenario: Coroutine[object, object, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await scenario

    asyncio.run(bounded())


def settings_for(api: FakeApi, port: int, *flags: str) -> Settings:
    address = ("--bind-address=127.0.0.1", f"--secure-port={port}", f"--url=https://127.0.0.1:{port}")
    own = (*OFF, *address, f"--master={api.url}", "--hold-namespaces=all")
    settings = parse([*own, *flags], version="1")
    assert isinstance(settings, Settings)
    return settings


@asynccontextmanager
async def webhook(settings: Settings) -> AsyncIterator[None]:
    """A webhook in this process, from the moment it serves."""
    stop, started = asyncio.Event(), asyncio.Event()
    task = asyncio.create_task(serve(settings, stop, lambda port: started.set()))
    waiting = asyncio.create_task(started.wait())
    await asyncio.wait((task, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    try:
        yield
    finally:
        stop.set()
        assert await task == 0


async def registered(api: FakeApi) -> None:
    await api.until(lambda: bool(_configurations(api)))


def _configurations(api: FakeApi) -> object:
    found = api.store.collections.get("admissionregistration.k8s.io/v1/mutatingwebhookconfigurations")
    return found.records if found is not None else None


def is_held(obj: Obj) -> bool:
    return bool((obj["spec"].get("suspension") or {}).get("scheduling"))


async def create(client: KubeClient, name: str, wanted: Obj, **options: Any) -> Obj:  # noqa: ANN401 - metadata
    obj = binding(wanted, name=name, **options)
    path = BINDINGS if obj["kind"] == "ResourceBinding" else CLUSTER_BINDINGS
    created: Obj = await client.post(path, obj, dict)
    return created


def test_bindings_are_held_from_the_moment_the_webhook_is_registered(unused_tcp_port: int) -> None:
    async def scenario() -> None:
        async with FakeApi() as api, KubeClient.from_url(api.url, qps=-1) as client:
            api.create("/api/v1/namespaces", {"metadata": {"name": "team"}})
            async with webhook(settings_for(api, unused_tcp_port)):
                await registered(api)
                assert is_held(await create(client, "gpu", spec(GPU)))
                assert is_held(await create(client, "crb", spec(GPU), kind="ClusterResourceBinding"))
                assert not is_held(await create(client, "cpu", spec(CPU)))
                assert not is_held(await create(client, "crb-cpu", spec(CPU), kind="ClusterResourceBinding"))
                assert not is_held(
                    await create(client, "skipped", spec(GPU), labels={"fairway.dev/skip": ""})
                )
                assert len(api.admission.calls) == 2

                merge = "application/merge-patch+json"
                released = {"spec": {"suspension": {"scheduling": False}}}
                obj = await client.patch(f"{BINDINGS}/gpu", released, dict, content_type=merge)
                assert not is_held(obj)
                placed = {"spec": {"clusters": [{"name": "member1", "replicas": 2}]}}
                assert not is_held(await client.patch(f"{BINDINGS}/gpu", placed, dict, content_type=merge))
                grown = {"spec": {"replicas": 6}}
                obj = await client.patch(f"{BINDINGS}/gpu", grown, dict, content_type=merge)
                assert is_held(obj)
                assert obj["spec"]["clusters"] == placed["spec"]["clusters"]
                assert len(api.admission.calls) == 3

                api.update(
                    "/api/v1/namespaces/team", lambda ns: ns["metadata"].update(labels={QUEUEING: "all"})
                )
                assert is_held(await create(client, "managed", spec(CPU)))

    run_scenario(scenario())


def test_without_a_kubeconfig_and_outside_a_pod_it_ends_and_says_what_it_wants(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    settings = parse([*OFF, "--bind-address=127.0.0.1", "--secure-port=0"], version="1")
    assert isinstance(settings, Settings)

    async def scenario() -> None:
        assert await serve(settings, asyncio.Event()) == 2

    run_scenario(scenario())
    assert "cannot start: in-cluster configuration" in caplog.text
    assert "otherwise name a kubeconfig" in caplog.text


def test_replicas_share_certificates_and_either_answers(unused_tcp_port: int) -> None:
    async def scenario() -> None:
        async with FakeApi() as api, KubeClient.from_url(api.url, qps=-1) as client:
            first = settings_for(api, unused_tcp_port)
            second = replace(first, address=BindAddress("127.0.0.1", 0))
            async with webhook(second), webhook(first):
                await registered(api)
                assert is_held(await create(client, "a", spec(GPU)))
            async with webhook(first):
                # Registered before, with the same authority: no other is made.
                assert is_held(await create(client, "b", spec(GPU)))
                secret = json.loads(
                    await client.get_bytes("/api/v1/namespaces/karmada-system/secrets/fairway-webhook")
                )
                assert sorted(secret["data"]) == ["ca.crt", "ca.key", "tls.crt", "tls.key"]
                assert secret["type"] == "kubernetes.io/tls"

    run_scenario(scenario())


def test_certificates_from_files_are_registered_with_their_authority(
    unused_tcp_port: int, tmp_path: Path
) -> None:
    async def scenario() -> None:
        authority = Authority("files")
        certificate, key = authority.issue("webhook").write(tmp_path, "tls")
        ca = tmp_path / "ca.crt"
        ca.write_bytes(authority.pem)
        async with FakeApi() as api, KubeClient.from_url(api.url, qps=-1) as client:
            files = (f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}", f"--tls-ca-file={ca}")
            settings = settings_for(api, unused_tcp_port, *files, "--failure-policy=Ignore")
            assert isinstance(settings.certificates, FilesSettings)
            async with webhook(settings):
                await registered(api)
                assert is_held(await create(client, "gpu", spec(GPU)))
            # Nobody answers, and the policy says to go on.
            assert not is_held(await create(client, "later", spec(GPU)))

    run_scenario(scenario())


def test_while_no_webhook_answers_only_what_would_be_held_is_refused(unused_tcp_port: int) -> None:
    async def scenario() -> None:
        async with FakeApi() as api, KubeClient.from_url(api.url, qps=-1) as client:
            async with webhook(settings_for(api, unused_tcp_port)):
                await registered(api)
                await create(client, "running", spec(GPU))
            with pytest.raises(Exception, match="failed calling webhook"):
                await create(client, "gpu", spec(GPU))
            assert not is_held(await create(client, "cpu", spec(CPU)))
            assert not is_held(await create(client, "config", spec(replicas=None)))
            fewer = {"spec": {"replicas": 1, "suspension": {"scheduling": False}}}
            await client.patch(
                f"{BINDINGS}/running", fewer, dict, content_type="application/merge-patch+json"
            )

    run_scenario(scenario())


def test_without_an_api_server_it_waits_unready_and_stops_when_told(
    unused_tcp_port: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        api = FakeApi()
        settings = settings_for(api, unused_tcp_port)
        # A port that nobody listens on: 0, of an API server that was never started, is no port at all.
        settings = replace(settings, api=replace(settings.api, master="http://127.0.0.1:9"))
        health = BindAddress("127.0.0.1", unused_tcp_port)
        settings = replace(settings, endpoints=replace(settings.endpoints, health=health))
        stop = asyncio.Event()
        task = asyncio.create_task(serve(settings, stop))
        async with aiohttp.ClientSession() as session:
            while "nothing is served yet" not in caplog.text:  # noqa: ASYNC110 - a log wakes nobody
                await asyncio.sleep(0.01)
            async with session.get(f"http://{health}/readyz") as response:
                assert response.status == 503
                assert "[-]certificate failed" in await response.text()
            async with session.get(f"http://{health}/healthz") as response:
                assert response.status == 200
        stop.set()
        assert await task == 0

    run_scenario(scenario())


def test_metrics_are_served(unused_tcp_port: int) -> None:
    async def scenario() -> None:
        async with FakeApi() as api:
            settings = settings_for(api, unused_tcp_port)
            metrics = BindAddress("127.0.0.1", free_port())
            settings = replace(settings, endpoints=replace(settings.endpoints, metrics=metrics))
            async with webhook(settings), aiohttp.ClientSession() as session:
                await registered(api)
                async with session.get(f"http://{metrics}/metrics") as response:
                    text = await response.text()
                assert 'fairway_webhook_registration_looks_total{result="created"} ' in text
                assert "fairway_webhook_certificate_expiry_timestamp_seconds 1." in text
                assert "fairway_webhook_build_info" in text

    run_scenario(scenario())


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


@pytest.fixture
def unused_tcp_port() -> int:
    return free_port()


def test_a_port_in_use_ends_the_start() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = settings_for(FakeApi(), taken.getsockname()[1])
        with pytest.raises(
            EndpointError, match=r"cannot serve reviews on 127\.0\.0\.1:\d+: Address already in use"
        ):
            asyncio.run(serve(settings, asyncio.Event()))


def test_a_bad_catalogue_ends_the_start(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("{")
    with pytest.raises(StartError, match="--catalogue: "):
        read_scope(ScopeSettings(own, ()))
    settings = replace(settings_for(FakeApi(), 1), scope=ScopeSettings(tmp_path / "absent", ()))
    with pytest.raises(StartError, match="absent"):
        asyncio.run(serve(settings, asyncio.Event()))
