"""Why there was no answer, said in words: no repr of an object, no address as Python writes it."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path

import pytest

from fairway.kube.errors import Unreachable
from fairway.kube.transport import open_session, transport_errors
from tests.certs import DAY, NOW, Authority

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
KNOWN, UNKNOWN = Authority("known"), Authority("unknown")


async def _closes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(64 << 10)
    writer.close()


async def _speaks_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    await _closes(reader, writer)


async def told(
    scheme: str, server_tls: ssl.SSLContext | None, client_tls: ssl.SSLContext | None, serve: Serve = _closes
) -> str:
    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server_tls) as server:
        port = server.sockets[0].getsockname()[1]
        async with open_session() as session:
            with pytest.raises(Unreachable) as raised, transport_errors("there"):
                await session.get(f"{scheme}://127.0.0.1:{port}/", ssl=client_tls or True)
    return str(raised.value)


def _contexts(
    authority: Authority, folder: Path, expires: datetime = NOW + DAY
) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(*authority.issue("localhost", expires=expires).write(folder, "server"))
    client = ssl.create_default_context(cadata=KNOWN.pem.decode())
    client.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return server, client


@pytest.mark.parametrize(
    ("authority", "expires", "said"),
    [
        (KNOWN, NOW - DAY / 2, "its certificate has expired"),
        (UNKNOWN, NOW + DAY, "its certificate is signed by a CA that is not known here"),
    ],
)
def test_a_certificate_that_is_refused_is_told_in_words(
    tmp_path: Path, authority: Authority, expires: datetime, said: str
) -> None:
    message = asyncio.run(told("https", *_contexts(authority, tmp_path, expires)))
    assert message.startswith(f"there: {said}; expected an HTTP answer")


def test_a_server_without_tls_is_told(tmp_path: Path) -> None:
    _, client = _contexts(KNOWN, tmp_path)
    message = asyncio.run(told("https", None, client, _speaks_http))
    assert "127.0.0.1" in message
    assert " does not speak TLS: is it http://?; expected" in message


def test_an_answer_that_is_none_is_told() -> None:
    assert asyncio.run(told("http", None, None)).startswith(
        "there: the connection was closed without an answer"
    )
