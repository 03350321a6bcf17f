"""The whole server behind mutual TLS, with its certificates swapped while callers come and go."""

import asyncio
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from estimator.settings import Settings
from fairway.service.certificates import TlsFiles
from tests.certs import Authority, Pair
from tests.estimator.serving import (
    DEFAULTS,
    Caller,
    gpu_node,
    replicas_request,
    running,
    snapshot,
    write_dump,
)

ONE_GPU = replicas_request("m", {"nvidia.com/gpu": "1"})
AUTHORITY = Authority("ours")
STRANGER = Authority("theirs")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    certificate, key = AUTHORITY.issue("server").write(tmp_path, "server")
    client_ca = tmp_path / "ca.crt"
    client_ca.write_bytes(AUTHORITY.pem)
    dump = write_dump(tmp_path / "m.json", [gpu_node("a", 8)])
    return replace(DEFAULTS, clusters=(snapshot("m", dump),), tls=TlsFiles(certificate, key, client_ca, True))


async def ask(port: int, client: Pair | None) -> int:
    """One question over a new connection."""
    credentials = grpc.ssl_channel_credentials(
        AUTHORITY.pem, client.key if client else None, client.certificate if client else None
    )
    options = [("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.secure_channel(f"localhost:{port}", credentials, options) as channel:
        return (await Caller(channel).replicas(ONE_GPU)).value


def test_the_right_client_gets_an_answer_and_no_other(settings: Settings) -> None:
    async def scenario() -> None:
        async with running(settings) as (port, _):
            assert await ask(port, AUTHORITY.issue("karmada-scheduler")) == 8
            for intruder in (None, STRANGER.issue("karmada-scheduler")):
                with pytest.raises(grpc.aio.AioRpcError) as refused:
                    await ask(port, intruder)
                assert refused.value.code() is grpc.StatusCode.UNAVAILABLE
            assert await ask(port, AUTHORITY.issue("karmada-scheduler")) == 8

    asyncio.run(scenario())


def test_certificates_swapped_under_load_fail_no_call(settings: Settings, tmp_path: Path) -> None:
    client = AUTHORITY.issue("karmada-scheduler")

    async def scenario() -> None:
        async with running(settings) as (port, _):
            for _ in range(5):
                calls = [asyncio.create_task(ask(port, client)) for _ in range(10)]
                await asyncio.to_thread(AUTHORITY.issue("server").write, tmp_path, "server")
                assert await asyncio.gather(*calls) == [8] * 10

    asyncio.run(scenario())
