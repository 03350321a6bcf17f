"""The estimator's port as clients of every kind meet it: who gets in, and what one client can use up."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import cast

import grpc
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from prometheus_client import CollectorRegistry

from estimator import capacity_service, server
from estimator.capacity_answering import CapacityAnswering
from estimator.capacity_service import CapacityService
from estimator.metrics import EstimatorMetrics
from estimator.pb import estimator_pb2
from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.service.certificates import TlsFiles
from sandbox.processes import free_ports
from sandbox.processes import running as sandbox_running
from tests.certs import NOW, Authority, Pair
from tests.estimator.serving import (
    DEFAULTS,
    Caller,
    CapacityCaller,
    gpu_node,
    gpu_pod,
    replicas_request,
    running,
    snapshot,
    write_dump,
)

SERVERS, CLIENTS, STRANGERS = Authority("servers"), Authority("clients"), Authority("clients")
CLIENT = CLIENTS.issue("karmada-scheduler")
SECOND = timedelta(seconds=1)
HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
REFUSED = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


def tls_files(folder: Path) -> TlsFiles:
    certificate, key = SERVERS.issue("estimator").write(folder, "server")
    authorities = folder / "clients.crt"
    authorities.write_bytes(CLIENTS.pem)
    return TlsFiles(certificate, key, authorities, verify_clients=True)


@asynccontextmanager
async def guarded(folder: Path) -> AsyncIterator[int]:
    """An estimator with a client authority; its port."""
    pods = [gpu_pod("secret-pod", "a", 3, "secret-namespace"), gpu_pod("without-devices", "a", 0)]
    dump = write_dump(folder / "m.json", [gpu_node("a", 8), *pods])
    settings = replace(DEFAULTS, clusters=(snapshot("m", dump),), tls=tls_files(folder))
    async with running(settings) as (port, _):
        yield port


def channel(port: int, client: Pair | None, trusted: Authority = SERVERS) -> grpc.aio.Channel:
    credentials = grpc.ssl_channel_credentials(
        trusted.pem, client.key if client else None, client.certificate if client else None
    )
    return grpc.aio.secure_channel(f"localhost:{port}", credentials)


async def _karmada(channel: grpc.aio.Channel) -> None:
    await Caller(channel).replicas(replicas_request("m", {"nvidia.com/gpu": "1"}), timeout_s=5)


async def _capacity(channel: grpc.aio.Channel) -> None:
    await CapacityCaller(channel).summary(timeout_s=5)


async def _reflection(channel: grpc.aio.Channel) -> None:
    asked = reflection_pb2.ServerReflectionRequest(list_services="")
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    async for _ in stub.ServerReflectionInfo(iter([asked]), timeout=5):
        return


Ask = Callable[[grpc.aio.Channel], Awaitable[None]]
SERVICES: list[Ask] = [_karmada, _capacity, _reflection]


class TestMutualTls:
    @pytest.mark.parametrize("ask", SERVICES)
    @pytest.mark.parametrize(
        "client",
        [
            pytest.param(None, id="no certificate"),
            pytest.param(STRANGERS.issue("karmada-scheduler"), id="another authority of the same name"),
            pytest.param(CLIENTS.issue("karmada-scheduler", expires=NOW - SECOND), id="expired"),
        ],
    )
    def test_who_shows_no_good_certificate_gets_no_answer(
        self, client: Pair | None, ask: Ask, tmp_path: Path
    ) -> None:
        async def scenario() -> None:
            async with guarded(tmp_path) as port:
                async with channel(port, client) as refused:
                    with pytest.raises(grpc.aio.AioRpcError) as error:
                        await ask(refused)
                    assert error.value.code() in REFUSED
                async with channel(port, CLIENT) as welcome:
                    await ask(welcome)

        asyncio.run(scenario())

    @pytest.mark.parametrize("ask", SERVICES)
    def test_plaintext_gets_no_answer(self, ask: Ask, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with guarded(tmp_path) as port:
                async with grpc.aio.insecure_channel(f"localhost:{port}") as refused:
                    with pytest.raises(grpc.aio.AioRpcError) as error:
                        await ask(refused)
                    assert error.value.code() in REFUSED
                async with channel(port, CLIENT) as welcome:
                    await ask(welcome)

        asyncio.run(scenario())

    @pytest.mark.parametrize(
        ("newest", "agreed"), [(ssl.TLSVersion.TLSv1_2, None), (ssl.TLSVersion.TLSv1_3, "TLSv1.3")]
    )
    def test_nothing_older_than_tls_1_3_is_spoken(
        self, newest: ssl.TLSVersion, agreed: str | None, tmp_path: Path
    ) -> None:
        """Of the program itself: what decides is set before gRPC is loaded."""

        async def scenario() -> None:
            dump = write_dump(tmp_path / "m.json", [gpu_node("a", 8)])
            files = tls_files(tmp_path)
            (port,) = free_ports(1)
            flags = [
                *(
                    f"--snapshot={dump}",
                    f"--server-port={port}",
                    f"--grpc-auth-cert-file={files.certificate}",
                ),
                *(f"--grpc-auth-key-file={files.key}", f"--grpc-client-ca-file={files.authorities}"),
                *("--health-probe-bind-address=0", "--metrics-bind-address=0"),
            ]
            context = ssl.create_default_context(cadata=SERVERS.pem.decode())
            context.load_cert_chain(*CLIENT.write(tmp_path, "client"))
            context.set_alpn_protocols(["h2"])
            context.maximum_version = newest
            async with sandbox_running("the estimator", "estimator", flags, port):
                try:
                    _, writer = await asyncio.open_connection("localhost", port, ssl=context)
                except (ssl.SSLError, ConnectionError):
                    assert agreed is None
                    return
                version = writer.get_extra_info("ssl_object").version()
                writer.close()
                assert version == agreed

        asyncio.run(scenario())


class TestWhatIsTold:
    def test_only_who_uses_what_names_pods_and_namespaces(self, tmp_path: Path) -> None:
        template = json.dumps(
            {"spec": {"containers": [{"name": "c", "resources": {"limits": {"nvidia.com/gpu": "6"}}}]}}
        )
        gang = pb.Gang(pod_sets=[pb.PodSet(name="w", count=2, template_json=template.encode())], copies=1)

        async def scenario() -> None:
            async with guarded(tmp_path) as port, channel(port, CLIENT) as welcome:
                caller = CapacityCaller(welcome)
                placed = await caller.place(pb.PlaceRequest(gang=gang, want_placement=True))
                explained = await caller.explain(pb.ExplainRequest(gang=gang))
                summed = await caller.summary()
                request = replicas_request("m", {"nvidia.com/gpu": "6"})
                reasons = (await Caller(welcome).replicas(request)).reasons
                unschedulable = estimator_pb2.UnschedulableReplicasRequest(
                    cluster="m",
                    resource=estimator_pb2.ObjectReference(
                        api_version="apps/v1", kind="Deployment", namespace="secret-namespace", name="x"
                    ),
                )
                told = (await Caller(welcome).unschedulable(unschedulable)).reasons
                said = f"{placed} {explained} {summed} {reasons} {told}"
                # Nodes are named, to whoever has a certificate.
                assert "gpu" in said
                assert "secret-pod" not in said
                assert "secret-namespace" not in f"{placed} {explained} {summed} {reasons}"
                used = f"{await caller.usage()}"
                assert "secret-pod" in used
                assert "secret-namespace" in used
                assert "without-devices" not in used

        asyncio.run(scenario())


class _Waits:
    """Answers when it is let go."""

    def __init__(self) -> None:
        self.asked = 0
        self.go = asyncio.Event()

    async def summaries(self, clusters: object, within_s: float) -> list[object]:
        self.asked += 1
        await self.go.wait()
        return []

    place = explain = bound = promise = summaries


class TestBounds:
    def test_a_message_beyond_the_limit_is_refused_and_others_are_answered(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with (
                guarded(tmp_path) as port,
                channel(port, CLIENT) as flood,
                channel(port, CLIENT) as other,
            ):
                with pytest.raises(grpc.aio.AioRpcError) as error:
                    await CapacityCaller(flood).call("Place", b"x" * (server.MAX_REQUEST_BYTES + 1))
                assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
                await _karmada(other)

        asyncio.run(scenario())

    def test_metadata_beyond_the_limit_is_refused_and_others_are_answered(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with (
                guarded(tmp_path) as port,
                channel(port, CLIENT) as flood,
                channel(port, CLIENT) as other,
            ):
                with pytest.raises(grpc.aio.AioRpcError) as error:
                    await Caller(flood).raw("MaxAvailableReplicas", b"", object_text="x" * (64 << 10))
                assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
                await _karmada(other)

        asyncio.run(scenario())

    def test_calls_of_one_host_beyond_the_limit_are_refused_and_others_are_answered(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setattr(capacity_service, "MOST_OF_ONE", 3)

        async def scenario() -> None:
            waits = _Waits()
            metrics = EstimatorMetrics(CollectorRegistry(), ["m"], version="1")
            with ThreadPoolExecutor(2) as executor:
                service = CapacityService(cast("CapacityAnswering", waits), metrics, executor)
                grpc_server = grpc.aio.server()
                grpc_server.add_generic_rpc_handlers((service.handlers(),))
                first = grpc_server.add_insecure_port("127.0.0.1:0")
                # A client of another kind of address is one of another host.
                elsewhere = f"unix:{tmp_path / 'socket'}"
                grpc_server.add_insecure_port(elsewhere)
                await grpc_server.start()
                async with (
                    grpc.aio.insecure_channel(f"127.0.0.1:{first}") as flood,
                    grpc.aio.insecure_channel(elsewhere) as other,
                ):
                    held = [CapacityCaller(flood).call("Summary", b"") for _ in range(3)]
                    while waits.asked < 3:  # noqa: ASYNC110 - the calls arrive on threads of gRPC's
                        await asyncio.sleep(0)
                    with pytest.raises(grpc.aio.AioRpcError) as error:
                        await CapacityCaller(flood).call("Summary", b"")
                    assert error.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
                    assert "expected 3 calls of one host" in (error.value.details() or "")
                    welcome = CapacityCaller(other).call("Summary", b"")
                    while waits.asked < 4:  # noqa: ASYNC110 - as above
                        await asyncio.sleep(0)
                    waits.go.set()
                    await welcome
                    for call in held:
                        await call
                    await CapacityCaller(flood).call("Summary", b"")
                assert not service._in_hand
                await grpc_server.stop(None)

        asyncio.run(scenario())

    def test_a_connection_may_have_so_many_calls_in_hand(self, tmp_path: Path) -> None:
        async def scenario() -> None:
            async with plain(tmp_path) as port:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(HTTP2_PREFACE + frame(SETTINGS))
                kind, payload = await next_frame(reader)
                while kind != SETTINGS:
                    kind, payload = await next_frame(reader)
                settings = {
                    int.from_bytes(payload[at : at + 2], "big"): int.from_bytes(
                        payload[at + 2 : at + 6], "big"
                    )
                    for at in range(0, len(payload), 6)
                }
                assert settings[MAX_CONCURRENT_STREAMS] == server.MAX_STREAMS
                writer.close()

        asyncio.run(scenario())

    def test_a_client_that_pings_without_end_is_sent_away_and_others_are_answered(
        self, tmp_path: Path
    ) -> None:
        async def scenario() -> None:
            async with plain(tmp_path) as port, grpc.aio.insecure_channel(f"127.0.0.1:{port}") as other:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(HTTP2_PREFACE + frame(SETTINGS) + frame(PING, b"12345678") * 20)
                kind, payload = await next_frame(reader)
                while kind != GOAWAY:
                    kind, payload = await next_frame(reader)
                assert b"too_many_pings" in payload
                writer.close()
                await _karmada(other)

        asyncio.run(scenario())

    @pytest.mark.parametrize("begun", [b"", HTTP2_PREFACE[:10]])
    def test_a_connection_that_never_begins_is_ended_and_others_are_answered(
        self, begun: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        patient = [
            (name, 200 if name == "grpc.server_handshake_timeout_ms" else value)
            for name, value in server._OPTIONS
        ]
        assert ("grpc.server_handshake_timeout_ms", 200) in patient
        monkeypatch.setattr(server, "_OPTIONS", patient)

        async def scenario() -> None:
            async with plain(tmp_path) as port, grpc.aio.insecure_channel(f"127.0.0.1:{port}") as other:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(begun)
                await _karmada(other)
                async with asyncio.timeout(30):
                    while await reader.read(1024):
                        pass
                writer.close()
                await _karmada(other)

        asyncio.run(scenario())


SETTINGS, PING, GOAWAY = 4, 6, 7
MAX_CONCURRENT_STREAMS = 3


def frame(kind: int, payload: bytes = b"") -> bytes:
    """An HTTP/2 frame of the connection itself (RFC 9113, section 4.1)."""
    return len(payload).to_bytes(3, "big") + bytes([kind, 0]) + bytes(4) + payload


async def next_frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readexactly(9)
    return head[3], await reader.readexactly(int.from_bytes(head[:3], "big"))


@asynccontextmanager
async def plain(folder: Path) -> AsyncIterator[int]:
    """An estimator without TLS; its port."""
    dump = write_dump(folder / "m.json", [gpu_node("a", 8)])
    async with running(replace(DEFAULTS, clusters=(snapshot("m", dump),))) as (port, _):
        yield port
