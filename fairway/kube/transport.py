"""The HTTP session: sockets that notice a dead peer, who we say we are, and failures as our own errors."""

import asyncio
import gzip
import importlib.metadata
import os
import platform
import socket
import ssl
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp

from fairway.kube.errors import NotSent, Unreachable

# Of each answer, twice that waits here until somebody reads on: hundreds of lists may come in at once.
_READ_BUFFER_BYTES = 32 << 10
_SMALL_BYTES = 16 << 10
_KEEPALIVE = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))


class TimedOut(Unreachable):
    """A time limit passed before the server answered."""


def open_session() -> aiohttp.ClientSession:
    """A session without credentials or TLS settings: those go with each request, so that they can change."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(socket_factory=keepalive_socket),
        headers={"User-Agent": user_agent()},
        cookie_jar=aiohttp.DummyCookieJar(),
        read_bufsize=_READ_BUFFER_BYTES,
        # Unpacking a page of pods takes ten milliseconds, which the loop shall not spend: see `read_body`.
        auto_decompress=False,
    )


async def read_body(response: aiohttp.ClientResponse) -> bytes:
    """The whole body, unpacked; a large one on a thread. Raises aiohttp.ClientPayloadError."""
    body = await response.read()
    encoding = response.headers.get("Content-Encoding", "identity").lower()
    if encoding == "identity":
        return body
    try:
        if encoding != "gzip":
            raise aiohttp.ClientPayloadError(f"Content-Encoding {encoding[:40]!r}: expected gzip or none")
        return (
            gzip.decompress(body)
            if len(body) < _SMALL_BYTES
            else await asyncio.to_thread(gzip.decompress, body)
        )
    except (OSError, EOFError, zlib.error) as error:
        raise aiohttp.ClientPayloadError(f"the body is no valid gzip: {error}") from error


def keepalive_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    """A socket on which a dead peer is noticed within half a minute: 15 s idle, then 3 probes 5 s apart."""
    family, kind, protocol, _, _ = address
    sock = socket.socket(family, kind, protocol)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE:
        # Only Linux has all three.
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return sock


def user_agent() -> str:
    """``fairway/<version> (<system>/<machine>)``, as API server audit logs show it."""
    try:
        version = importlib.metadata.version("fairway")
    except importlib.metadata.PackageNotFoundError:
        version = "uninstalled"
    return f"fairway/{version} ({platform.system().lower()}/{platform.machine()})"


@contextmanager
def transport_errors(where: str) -> Iterator[None]:
    """Turn what the HTTP library raises into Unreachable; ``where`` says ``server: METHOD path``."""
    try:
        yield
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        raise NotSent(_unreachable(where, error)) from error
    except TimeoutError as error:
        raise TimedOut(
            f"{where}: no answer in time; expected one: is the server overloaded, or the network cut?"
        ) from error
    except (aiohttp.ClientError, OSError) as error:
        raise Unreachable(_unreachable(where, error)) from error


def in_words(error: Exception) -> str:
    """Why there was no answer, without what only a programmer could read."""
    match error:
        case aiohttp.ClientConnectorCertificateError(
            certificate_error=ssl.SSLCertVerificationError() as wrong
        ):
            known = _CERTIFICATES.get(wrong.verify_code)
            return known or f"its certificate is refused: {wrong.verify_message}"
        case aiohttp.ClientConnectorDNSError():
            return f"the name {error.host} cannot be resolved ({error.os_error.strerror})"
        case aiohttp.ClientConnectorError(os_error=ssl.SSLError(reason="WRONG_VERSION_NUMBER")):
            return f"{error.host}:{error.port} does not speak TLS: is it http://?"
        case aiohttp.ClientConnectorError(os_error=ssl.SSLError() as wrong):
            return f"no TLS with {error.host}:{error.port} ({wrong.reason or wrong.strerror or 'broken off'})"
        case aiohttp.ClientConnectorError():
            why = os.strerror(error.os_error.errno) if error.os_error.errno else "no address answers"
            return f"no connection to {error.host}:{error.port} ({why.lower()})"
        case aiohttp.ServerDisconnectedError():
            return "the connection was closed without an answer"
        case OSError(errno=int() as number):
            return os.strerror(number).lower()
        case _:
            return str(error) or type(error).__name__


# X509_V_ERR_* of OpenSSL's x509_vfy.h.
_CERTIFICATES = {
    9: "its certificate is not valid yet: is the clock right?",
    10: "its certificate has expired",
    18: "its certificate is signed by itself, and not by a CA that is known here",
    19: "its certificate is signed by a CA that is not known here",
    20: "its certificate is signed by a CA that is not known here",
}


def _unreachable(where: str, error: Exception) -> str:
    expected = "expected an HTTP answer: check the address, the network and the TLS files"
    return f"{where}: {in_words(error)}; {expected}"
