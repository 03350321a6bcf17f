"""Mutual TLS with a real gRPC server and real channels on loopback."""

import asyncio
import contextlib
import itertools
import logging
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from fairway.service.certificates import TlsError, TlsFiles
from fairway.service.tls import ServerCertificates
from tests.certs import Authority, Pair

SERVER_AUTHORITY = Authority("server authority")
CLIENT_AUTHORITY = Authority("client authority")
STRANGER = Authority("client authority")  # the same name, another key
SERVER = SERVER_AUTHORITY.issue("server")
RENEWED = SERVER_AUTHORITY.issue("server renewed")
CLIENT = CLIENT_AUTHORITY.issue("karmada-scheduler")
METHOD = "/test.Echo/Echo"


@pytest.fixture
def files(tmp_path: Path) -> TlsFiles:
    certificate, key = SERVER.write(tmp_path, "server")
    client_ca = tmp_path / "client-ca.crt"
    client_ca.write_bytes(CLIENT_AUTHORITY.pem)
    return TlsFiles(certificate, key, client_ca, verify_clients=True)


def impatient(files: TlsFiles) -> ServerCertificates:
    """Certificates whose clock moves a second at each look, so that every handshake checks the files."""
    return ServerCertificates(files, clock=itertools.count().__next__)


async def echo(request: bytes, _: "grpc.aio.ServicerContext[bytes, bytes]") -> bytes:
    return request


@contextlib.asynccontextmanager
async def serving(certificates: ServerCertificates) -> AsyncIterator[int]:
    server = grpc.aio.server()
    method = grpc.unary_unary_rpc_method_handler(echo)
    handler = grpc.method_handlers_generic_handler("test.Echo", {"Echo": method})
    server.add_generic_rpc_handlers((handler,))
    port = server.add_secure_port("127.0.0.1:0", certificates.credentials())
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)


def channel(port: int, client: Pair | None) -> grpc.aio.Channel:
    """A channel with a connection, and so a handshake, of its own."""
    credentials = grpc.ssl_channel_credentials(
        SERVER_AUTHORITY.pem,
        client.key if client else None,
        client.certificate if client else None,
    )
    return grpc.aio.secure_channel(
        f"localhost:{port}", credentials, options=[("grpc.use_local_subchannel_pool", 1)]
    )


async def call(port: int, client: Pair | None) -> bytes:
    async with channel(port, client) as connection:
        return await ask(connection, b"hello")


async def ask(connection: grpc.aio.Channel, question: bytes) -> bytes:
    method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = connection.unary_unary(METHOD)
    return await method(question, timeout=20)


async def is_refused(port: int, client: Pair | None) -> bool:
    try:
        await call(port, client)
    except grpc.aio.AioRpcError as error:
        return error.code() is grpc.StatusCode.UNAVAILABLE
    return False


async def served_certificate(port: int) -> bytes:
    """The server's certificate in DER, as a new connection sees it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    secure: ssl.SSLObject = writer.get_extra_info("ssl_object")
    certificate = secure.getpeercert(binary_form=True)
    writer.transport.abort()
    assert certificate is not None
    return certificate


@pytest.mark.parametrize(
    ("client", "admitted"),
    [(CLIENT, True), (STRANGER.issue("karmada-scheduler"), False), (None, False)],
    ids=["right certificate", "wrong authority", "no certificate"],
)
def test_only_clients_that_the_authority_signed_get_in(
    files: TlsFiles, client: Pair | None, admitted: bool
) -> None:
    async def scenario() -> None:
        async with serving(ServerCertificates(files)) as port:
            if admitted:
                assert await call(port, client) == b"hello"
            else:
                assert await is_refused(port, client)

    asyncio.run(scenario())


@pytest.mark.parametrize("client", [CLIENT, None], ids=["with a certificate", "without"])
@pytest.mark.parametrize("with_ca", [True, False], ids=["verification off", "no authority"])
def test_without_verification_every_client_gets_in(
    files: TlsFiles, client: Pair | None, with_ca: bool
) -> None:
    lax = TlsFiles(
        files.certificate, files.key, files.authorities if with_ca else None, verify_clients=not with_ca
    )

    async def scenario() -> None:
        async with serving(ServerCertificates(lax)) as port:
            assert await call(port, client) == b"hello"

    asyncio.run(scenario())


def test_certificates_swapped_under_load_fail_no_call(files: TlsFiles) -> None:
    directory, calls, every = files.certificate.parent, 160, 16
    versions = itertools.cycle([RENEWED, SERVER])

    async def scenario() -> None:
        certificates = impatient(files)
        done = itertools.count(1)

        async def swap(port: int) -> None:
            newer = next(versions)
            files.certificate.write_bytes(newer.certificate)
            # The key is still the old one: a handshake now meets a pair that does not match.
            assert await call(port, CLIENT) == b"hello"
            newer.write(directory, "server")

        async def caller(port: int) -> None:
            async with channel(port, CLIENT) as steady:
                for _ in range(calls // 8):
                    assert await ask(steady, b"steady") == b"steady"
                    assert await call(port, CLIENT) == b"hello"
                    if next(done) % every == 0:
                        await swap(port)

        async with serving(certificates) as port:
            async with asyncio.TaskGroup() as callers:
                for _ in range(8):
                    callers.create_task(caller(port))
            last = SERVER if (calls // every) % 2 == 0 else RENEWED
            assert await served_certificate(port) == last.der
        reading = certificates.reading()
        assert reading.reloads >= 2
        assert reading.failures >= 1, "no handshake met the mismatched pair"

    asyncio.run(scenario())


def test_a_new_client_authority_admits_its_clients_and_shuts_out_the_old_ones(files: TlsFiles) -> None:
    newcomer = Authority("new client authority")

    async def scenario() -> None:
        assert files.authorities is not None
        async with serving(impatient(files)) as port:
            assert await call(port, CLIENT) == b"hello"
            assert await is_refused(port, newcomer.issue("scheduler"))

            files.authorities.write_bytes(CLIENT_AUTHORITY.pem + newcomer.pem)
            assert await call(port, CLIENT) == b"hello"
            assert await call(port, newcomer.issue("scheduler")) == b"hello"

            files.authorities.write_bytes(newcomer.pem)
            assert await is_refused(port, CLIENT)
            assert await call(port, newcomer.issue("scheduler")) == b"hello"

    asyncio.run(scenario())


def test_a_half_written_pair_keeps_the_old_one_until_it_is_whole(
    files: TlsFiles, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        certificates = impatient(files)
        async with serving(certificates) as port:
            files.certificate.write_bytes(RENEWED.certificate[:100])
            assert await served_certificate(port) == SERVER.der
            assert await call(port, CLIENT) == b"hello"
            files.certificate.unlink()
            assert await call(port, CLIENT) == b"hello"
            assert certificates.reading().failures >= 3

            RENEWED.write(files.certificate.parent, "server")
            assert await served_certificate(port) == RENEWED.der
            assert await call(port, CLIENT) == b"hello"
            assert certificates.reading().reloads == 1

    with caplog.at_level(logging.INFO):
        asyncio.run(scenario())
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 2, "one line for each problem, not one for each handshake"
    assert all(str(files.certificate) in error for error in errors)
    assert "No such file" in errors[1]


def test_files_are_looked_at_once_a_second_at_most(files: TlsFiles) -> None:
    now_s = 0.0
    certificates = ServerCertificates(files, clock=lambda: now_s)
    RENEWED.write(files.certificate.parent, "server")
    now_s = 0.9
    assert certificates.current().certificate_pem == SERVER.certificate
    now_s = 1.0
    assert certificates.current().certificate_pem == RENEWED.certificate


def test_a_touched_but_equal_file_is_no_reload(files: TlsFiles) -> None:
    certificates = impatient(files)
    SERVER.write(files.certificate.parent, "server")
    assert certificates.reading().reloads == 0


def test_files_restored_after_a_problem_are_well_again(files: TlsFiles) -> None:
    certificates = impatient(files)
    aside = files.key.with_suffix(".aside")
    files.key.rename(aside)
    assert certificates.reading().failures == 1
    aside.rename(files.key)
    assert certificates.reading().failures == 1
    files.key.rename(aside)
    assert certificates.reading().failures == 2


def test_a_server_does_not_start_on_bad_files(files: TlsFiles) -> None:
    files.key.write_bytes(RENEWED.key)
    with pytest.raises(TlsError, match="does not belong to the key"):
        ServerCertificates(files)
