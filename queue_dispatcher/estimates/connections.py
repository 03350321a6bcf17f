"""Connections to estimators, one an address, whose certificates follow their files without a restart.

gRPC takes a client's certificates once, when a connection is made. So the files are looked at before each
question, at most once a second, and when they say something else all connections are made anew: what is
asked from then on goes over new ones, and an old one is closed when the last question on it has been
answered. Files that cannot be used leave the last good set in force, with one log line.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import grpc

from fairway.service.certificates import Certificates, CertificateSet, ClientFiles
from queue_dispatcher.settings import EstimatorTls

if TYPE_CHECKING:
    # Generic in their stubs, not at run time.
    Method = grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]

_MAX_BYTES: Final = 16 << 20
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", _MAX_BYTES),
    ("grpc.enable_http_proxy", 0),
    # An estimator that is back is to be noticed within seconds, not after gRPC's two minutes.
    ("grpc.max_reconnect_backoff_ms", 5_000),
    # A connection made anew is to show the new certificate, not to share one that is open.
    ("grpc.use_local_subchannel_pool", 1),
)


@dataclass(slots=True, eq=False)
class _Connection:
    channel: grpc.aio.Channel
    asked: int = 0
    is_old: bool = False


class Connections:
    """Connections by address, opened when first used; without an authority in ``tls`` in plaintext."""

    def __init__(self, tls: EstimatorTls, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing is sent yet. Raises TlsError."""
        self._certificates: Certificates | None = None
        self._shown: CertificateSet | None = None
        if tls.ca is not None:
            files = ClientFiles(tls.ca, tls.certificate, tls.key)
            self._certificates = Certificates(
                files,
                named="certificates towards the estimators",
                leads_to=": connections are made anew",
                clock=clock,
            )
            self._shown = self._certificates.current()
        self._open: dict[str, _Connection] = {}
        self._old: set[_Connection] = set()

    async def ask(
        self, address: str, method: str, question: bytes, timeout_s: float, *, named: str = ""
    ) -> bytes:
        """The answer to one question; ``named``: whose the certificate has to be, where the address does not
        say. Raises grpc.aio.AioRpcError.
        """
        await self._follow()
        connection = self._connection(address, named)
        call: Method = connection.channel.unary_unary(method)
        connection.asked += 1
        try:
            return await call(question, timeout=timeout_s)
        finally:
            connection.asked -= 1
            if connection.is_old and not connection.asked:
                await self._let_go(connection)

    async def close(self) -> None:
        """Close every connection, whatever is being asked."""
        connections = [*self._open.values(), *self._old]
        self._open = {}
        for connection in connections:
            await self._let_go(connection)

    async def _follow(self) -> None:
        if self._certificates is None:
            return
        current = self._certificates.current()
        if current is self._shown:
            return
        self._shown = current
        former, self._open = self._open, {}
        for connection in former.values():
            connection.is_old = True
            self._old.add(connection)
        for connection in former.values():
            if not connection.asked:
                await self._let_go(connection)

    def _connection(self, address: str, named: str) -> _Connection:
        connection = self._open.get(address)
        if connection is None:
            connection = self._open[address] = _Connection(self._channel(address, named))
        return connection

    def _channel(self, address: str, named: str) -> grpc.aio.Channel:
        shown = self._shown
        if shown is None:
            return grpc.aio.insecure_channel(address, _OPTIONS)
        credentials: grpc.ChannelCredentials = grpc.ssl_channel_credentials(
            shown.authorities_pem, shown.key_pem, shown.certificate_pem
        )
        name = (("grpc.ssl_target_name_override", named),) if named else ()
        return grpc.aio.secure_channel(address, credentials, (*_OPTIONS, *name))

    async def _let_go(self, connection: _Connection) -> None:
        self._old.discard(connection)
        await connection.channel.close()
