"""What is tried over the network, against real servers on loopback: estimators and webhooks, well and not."""

import asyncio
import io
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest
from rich.console import Console

from admin.doctor import tls_probe
from admin.doctor.estimator_address import Address
from admin.doctor.estimator_probe import OURS, ask_estimator
from admin.doctor.evidence import Reached
from admin.doctor.platform.estimators import STOCK
from admin.doctor.probing import probed
from admin.doctor.tls_probe import Unresolved, verify
from admin.remote import RemoteError, Tls
from estimator.capacity.summary import Summary
from estimator.pb import estimator_pb2
from tests.admin.doctor.installation import Installation, configuration, external_service
from tests.admin.estimators import FakeEstimator, serving
from tests.certs import DAY, NOW, Authority

if TYPE_CHECKING:
    Context = grpc.aio.ServicerContext[bytes, bytes]

EAST = FakeEstimator((Summary("east", 1, 0),))
NOWHERE = "no-such-host.invalid"


def where(address: str) -> list[Address]:
    host, _, port = address.rpartition(":")
    return [Address(host, int(port))]


def asked(estimator: FakeEstimator, tls: Tls, *, methods: Sequence[str] = ("Summary",)) -> Reached | None:
    async def run() -> Reached | None:
        async with serving(estimator, methods=methods) as server:
            return await ask_estimator("east", where(server.address), tls)

    return asyncio.run(run())


def test_an_estimator_of_ours_that_serves_the_cluster_is_well() -> None:
    found = asked(EAST, Tls())
    assert found is not None
    assert (found.problem, found.detail, found.names) == ("", OURS, ())


@pytest.mark.parametrize(
    ("summaries", "problem"),
    [
        ((), "tells nothing of east"),
        ((Summary("east", 0, 0, doubt="nodes are 9 min old"),), "nodes are 9 min old"),
    ],
)
def test_an_estimator_that_does_not_serve_the_cluster_is_not(
    summaries: tuple[Summary, ...], problem: str
) -> None:
    found = asked(FakeEstimator(summaries), Tls())
    assert found is not None
    assert (found.problem, found.detail) == (problem, OURS)


@asynccontextmanager
async def stock(cluster: str) -> AsyncIterator[str]:
    """Karmada's own estimator, as far as it is asked: an error about any other cluster."""

    async def replicas(data: bytes, context: "Context") -> bytes:
        if estimator_pb2.MaxAvailableReplicasRequest.FromString(data).cluster != cluster:
            await context.abort(grpc.StatusCode.UNKNOWN, "cluster name does not match")
        return estimator_pb2.MaxAvailableReplicasResponse(max_replicas=3).SerializeToString()

    server = grpc.aio.server()
    handlers = {"MaxAvailableReplicas": grpc.unary_unary_rpc_method_handler(replicas)}
    service = "github.com.karmada_io.karmada.pkg.estimator.service.Estimator"
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


@pytest.mark.parametrize(
    ("cluster", "problem"), [("east", ""), ("west", "unknown: cluster name does not match")]
)
def test_karmadas_own_estimator_is_known_and_asked_in_its_own_words(cluster: str, problem: str) -> None:
    async def run() -> Reached | None:
        async with stock(cluster) as address:
            return await ask_estimator("east", where(address), Tls())

    found = asyncio.run(run())
    assert found is not None
    assert (found.problem, found.detail) == (problem, STOCK)


def test_the_first_address_that_exists_is_asked_and_none_says_nothing() -> None:
    async def run() -> tuple[Reached | None, Reached | None]:
        async with serving(EAST) as server:
            first = await ask_estimator("east", [Address(NOWHERE, 1), *where(server.address)], Tls())
        return first, await ask_estimator("east", [Address(NOWHERE, 1)], Tls())

    first, second = asyncio.run(run())
    assert first is not None
    assert not first.problem
    assert second is None


def test_nobody_there_is_a_problem() -> None:
    found = asyncio.run(ask_estimator("east", [Address("127.0.0.1", 1)], Tls()))
    assert found is not None
    assert found.problem.startswith("no connection: ")


def test_mutual_tls(tmp_path: Path) -> None:
    authority = Authority("ca")
    server, client = authority.issue("estimator"), authority.issue("scheduler")
    certificate, key = client.write(tmp_path, "client")
    ca = tmp_path / "ca.crt"
    ca.write_bytes(authority.pem)
    credentials = grpc.ssl_server_credentials([(server.key, server.certificate)], authority.pem, True)

    async def run() -> list[Reached | None]:
        async with serving(EAST, credentials, ("Summary",)) as one:
            at = where(one.address)
            found = [await ask_estimator("east", at, Tls(ca, certificate, key))]
            found += [await ask_estimator("east", at, Tls()), await ask_estimator("east", at, Tls(ca))]
        async with serving(EAST, methods=("Summary",)) as plain:
            found.append(await ask_estimator("east", where(plain.address), Tls(ca, certificate, key)))
        return found

    both, neither, only_ca, plain = asyncio.run(run())
    assert both is not None
    assert (both.problem, both.names) == ("", ("localhost", "127.0.0.1"))
    assert both.not_after_ms == int((NOW + DAY).timestamp() * 1000)
    # Without files there is nothing to ask with, which says nothing about the estimator.
    assert neither is None
    assert only_ca is not None
    assert only_ca.problem.startswith("unavailable")
    assert plain is not None
    assert plain.problem == "answers in plaintext, and is asked over TLS"


def test_a_tls_file_that_is_missing_is_told(tmp_path: Path) -> None:
    authority = Authority("ca")
    pair = authority.issue("estimator")
    credentials = grpc.ssl_server_credentials([(pair.key, pair.certificate)])

    async def run() -> None:
        async with serving(EAST, credentials, ("Summary",)) as one:
            await ask_estimator("east", where(one.address), Tls(tmp_path / "none"))

    with pytest.raises(RemoteError, match="none: No such file"):
        asyncio.run(run())


@asynccontextmanager
async def https(
    authority: Authority, folder: Path, *, days: int = 1, names: tuple[str, ...] = ()
) -> AsyncIterator[int]:
    """A server that does no more than to shake hands."""
    pair = authority.issue("webhook", expires=NOW + days * DAY, names=names)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair.write(folder, "server"))

    async def handle(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(
    ("days", "trusts", "problem"),
    [
        (30, "mine", ""),
        (30, "other", "made out to 127.0.0.1, is not accepted: unable to get local issuer certificate"),
        (30, "", "is not accepted: unable to get local issuer certificate"),
        (30, "rubbish", "no TLS with it"),
        (-2, "mine", "is not accepted: certificate has expired"),
    ],
)
def test_a_webhook_is_called_as_the_api_server_would(
    tmp_path: Path, days: int, trusts: str, problem: str
) -> None:
    mine = Authority("mine")
    pem = {"mine": mine.pem, "other": Authority("other").pem, "": None, "rubbish": b"-----BEGIN"}[trusts]

    async def run() -> Reached:
        async with https(mine, tmp_path, days=days) as port:
            return await verify("127.0.0.1", port, pem)

    found = asyncio.run(run())
    assert problem in found.problem if problem else not found.problem
    assert found.names == ("127.0.0.1",)
    assert found.not_after_ms == int((NOW + days * DAY).timestamp() * 1000)


def test_a_webhook_that_is_not_there_or_speaks_no_tls() -> None:
    async def run() -> tuple[Reached, Reached]:
        async def handle(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
            plain = await verify("127.0.0.1", server.sockets[0].getsockname()[1], None)
        return plain, await verify("127.0.0.1", 1, None)

    plain, nobody = asyncio.run(run())
    assert plain.problem == "answers, and speaks no TLS"
    assert nobody.problem.startswith("no connection: ")


def test_a_name_that_means_nothing_here_says_nothing() -> None:
    with pytest.raises(Unresolved, match=NOWHERE):
        asyncio.run(tls_probe.resolve(NOWHERE, 1))


def test_everything_is_tried_at_once(tmp_path: Path) -> None:
    """Cluster a has an estimator that is found, b one that is not; of the webhooks ours answers."""
    mine = Authority("mine")
    console = Console(file=io.StringIO())

    async def run() -> tuple[dict[str, Reached], dict[str, Reached]]:
        a = FakeEstimator((Summary("a", 1, 0),))
        async with serving(a) as server, https(mine, tmp_path, names=("localhost",)) as port:
            (address,) = where(server.address)
            one = Installation().without("karmada", "MutatingWebhookConfiguration/fairway-webhook")
            one = one.plus(
                "karmada",
                configuration(f"https://127.0.0.1:{port}", mine.pem),
                external_service("karmada-scheduler-estimator-a", address.host, address.port),
            )
            evidence = replace(one.evidence(tmp_path), estimators={}, webhooks={})
            made = await probed(evidence, Tls(), console)
        return dict(made.estimators), dict(made.webhooks)

    estimators, webhooks = asyncio.run(run())
    assert {name: each.problem for name, each in estimators.items()} == {"a": ""}
    assert sorted(url.rpartition("/")[2] for url in webhooks) == ["bindings", "managed"]
    assert {each.problem for each in webhooks.values()} == {""}
