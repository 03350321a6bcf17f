"""A TLS handshake with a server, and what its certificate says; nothing is sent over the connection."""

import asyncio
import ssl
from dataclasses import dataclass
from typing import Final

from admin.doctor.certificate import BadCertificate, Certificate, read_der
from admin.doctor.evidence import Reached

_TIMEOUT_S: Final = 5.0


class Unresolved(Exception):
    """The host's name means nothing here, which says nothing about the server."""


@dataclass(frozen=True, slots=True)
class Peek:
    """What a server shows of itself, whether it is trusted or not. ``certificate`` None: it speaks no TLS."""

    certificate: Certificate | None
    problem: str = ""


async def resolve(host: str, port: int) -> None:
    """Whether there is such a host. Raises Unresolved."""
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            await asyncio.get_running_loop().getaddrinfo(host, port)
    except (OSError, UnicodeError, TimeoutError) as error:
        raise Unresolved(f"{host}: {error}") from None


async def peek(host: str, port: int, *, alpn: str = "") -> Peek:
    """The certificate of whoever answers there, unverified; the problem where nobody does."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if alpn:
        context.set_alpn_protocols([alpn])
    try:
        return Peek(await _handshake(host, port, context))
    except (ssl.SSLError, ConnectionResetError, ConnectionAbortedError):
        # What does not speak TLS answers with something else, or hangs up.
        return Peek(None)
    except BadCertificate as error:
        return Peek(None, str(error))
    except TimeoutError:
        return Peek(None, f"no TLS handshake within {_TIMEOUT_S:g} s")
    except OSError as error:
        return Peek(None, _connection_problem(error))


async def verify(host: str, port: int, authorities_pem: bytes | None) -> Reached:
    """Whether a client that trusts these authorities (None: the system's) can call the server."""
    address = f"{host}:{port}"
    seen = await peek(host, port)
    if seen.certificate is None:
        return Reached(address, seen.problem or "answers, and speaks no TLS")
    certificate = seen.certificate

    def reached(problem: str) -> Reached:
        return Reached(address, problem, certificate.names, certificate.not_after_ms)

    try:
        # With cadata of nothing, Python would trust the system's.
        context = ssl.create_default_context(cadata=(authorities_pem or b"").decode("ascii") or None)
        await _handshake(host, port, context)
    except ssl.SSLCertVerificationError as error:
        names = ", ".join(certificate.names) or "nobody"
        return reached(f"its certificate, made out to {names}, is not accepted: {error.verify_message}")
    except (ssl.SSLError, ValueError) as error:
        return reached(f"no TLS with it: {error}")
    except TimeoutError:
        return reached(f"no TLS handshake within {_TIMEOUT_S:g} s")
    except OSError as error:
        return reached(_connection_problem(error))
    return reached("")


async def _handshake(host: str, port: int, context: ssl.SSLContext) -> Certificate:
    async with asyncio.timeout(_TIMEOUT_S):
        _, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=host)
    try:
        stream: ssl.SSLObject = writer.get_extra_info("ssl_object")
        return read_der(stream.getpeercert(binary_form=True) or b"")
    finally:
        # Not closed in good order, which would wait for the peer's farewell.
        writer.transport.abort()


def _connection_problem(error: OSError) -> str:
    return f"no connection: {error.strerror or error}"
