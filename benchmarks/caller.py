"""A caller of unary gRPC methods that costs a few microseconds a call.

The real caller is a compiled program. Python's own gRPC client spends about 0.2 ms on each call, as much as
the server that is to be measured, so this speaks just as much HTTP/2 (RFC 9113) as such calls need: in
plaintext, one call at a time on a connection, headers sent as literals, headers received not even read. What
a response says is then seen from its frames: a whole message followed by trailers is success, all else is an
error.
"""

import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RST_STREAM, _SETTINGS, _PING, _GOAWAY, _WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
_END_STREAM, _ACK, _END_HEADERS, _PADDED = 0x1, 0x1, 0x4, 0x8
_INITIAL_WINDOW_SIZE = 4
_WINDOW = 65_535
_FRAME_BYTES = 16_384
_HEAD = struct.Struct(">HBBBI")
_PREFIX = struct.Struct(">BI")
_RECEIVE_BYTES = 65_536


class CallFailed(RuntimeError):
    """The server answered with a gRPC error, broke the connection off, or did not answer in time."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def header_block(path: str, authority: str, metadata: Iterable[tuple[str, str]] = ()) -> bytes:
    """The headers of a call to ``path``, as HPACK literals that no server keeps in its table (RFC 7541)."""
    headers = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", authority),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
        *metadata,
    ]
    return b"".join(b"\x10" + _text(name) + _text(value) for name, value in headers)


class Exchange:
    """One connection's side of HTTP/2, without the socket: bytes in through `receive`, out in ``outbox``."""

    def __init__(self) -> None:
        self.outbox = bytearray(_PREFACE + _frame(_SETTINGS, 0, 0, b""))
        self._inbox = bytearray()
        self._stream = -1
        self._open = False
        self._body = b""
        self._reply = bytearray()
        self._unacknowledged = 0
        self._connection_window = _WINDOW
        self._stream_window = self._initial_window = _WINDOW

    def start(self, headers: bytes, message: bytes) -> None:
        """Begin a call; the one before must have ended."""
        self._stream += 2
        self._open = True
        self._stream_window = self._initial_window
        self._reply.clear()
        self.outbox += _frame(_HEADERS, _END_HEADERS, self._stream, headers)
        self._body = _PREFIX.pack(0, len(message)) + message
        self._send_body()

    def receive(self, data: bytes) -> bytes | None:
        """The reply's message once it is complete, until then None. Raises CallFailed."""
        inbox = self._inbox
        inbox += data
        reply: bytes | None = None
        at = 0
        while len(inbox) - at >= _HEAD.size:
            high, low, kind, flags, stream = _HEAD.unpack_from(inbox, at)
            end = at + _HEAD.size + (high << 8 | low)
            if len(inbox) < end:
                break
            payload = bytes(inbox[at + _HEAD.size : end])
            at = end
            if stream and not (self._open and stream == self._stream):
                continue  # an afterthought about a call that is over
            if kind == _DATA:
                self._take(payload, flags)
            elif kind == _HEADERS and flags & _END_STREAM:
                reply = self._message()
                self._open = False
            elif kind != _HEADERS:
                self._control(kind, flags, stream, payload)
            if kind == _DATA and flags & _END_STREAM:
                raise CallFailed("the reply ended without trailers: is this a gRPC server?")
        del inbox[:at]
        return reply

    def _take(self, payload: bytes, flags: int) -> None:
        self._reply += payload[1 : len(payload) - payload[0]] if flags & _PADDED else payload
        self._unacknowledged += len(payload)
        if self._unacknowledged > _WINDOW // 2:
            more = struct.pack(">I", self._unacknowledged)
            self.outbox += _frame(_WINDOW_UPDATE, 0, 0, more)
            self.outbox += _frame(_WINDOW_UPDATE, 0, self._stream, more)
            self._unacknowledged = 0

    def _message(self) -> bytes:
        reply = self._reply
        if len(reply) < _PREFIX.size or _PREFIX.unpack_from(reply) != (0, len(reply) - _PREFIX.size):
            raise CallFailed("a gRPC error, or no whole message: the server's log may say why")
        return bytes(reply[_PREFIX.size :])

    def _control(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == _SETTINGS and not flags & _ACK:
            for name, value in struct.iter_unpack(">HI", payload):
                if name == _INITIAL_WINDOW_SIZE:
                    self._stream_window += value - self._initial_window
                    self._initial_window = value
            self.outbox += _frame(_SETTINGS, _ACK, 0, b"")
            self._send_body()
        elif kind == _PING and not flags & _ACK:
            self.outbox += _frame(_PING, _ACK, 0, payload)
        elif kind == _WINDOW_UPDATE:
            more = int.from_bytes(payload, "big") & 0x7FFF_FFFF
            if stream:
                self._stream_window += more
            else:
                self._connection_window += more
            self._send_body()
        elif kind in (_RST_STREAM, _GOAWAY):
            code = int.from_bytes(payload[-4:] if kind == _RST_STREAM else payload[4:8], "big")
            what = "reset the call" if kind == _RST_STREAM else "is going away"
            raise CallFailed(f"the server {what}: HTTP/2 error code {code}")

    def _send_body(self) -> None:
        while self._body:
            size = min(len(self._body), self._connection_window, self._stream_window, _FRAME_BYTES)
            if size <= 0:
                return
            last = size == len(self._body)
            self.outbox += _frame(_DATA, _END_STREAM if last else 0, self._stream, self._body[:size])
            self._body = self._body[size:]
            self._connection_window -= size
            self._stream_window -= size


class Connection:
    """An `Exchange` on a socket. ``timeout_s`` bounds each wait for the server."""

    def __init__(self, address: Address, *, timeout_s: float = 10.0) -> None:
        try:
            self.socket = socket.create_connection((address.host, address.port), timeout_s)
        except OSError as error:
            raise CallFailed(f"{address}: {error}: does a server listen there?") from None
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._address = address
        self._exchange = Exchange()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def call(self, headers: bytes, message: bytes) -> bytes:
        """Make one call and wait for its reply. Raises CallFailed."""
        self.start(headers, message)
        while (reply := self.receive()) is None:
            pass
        return reply

    def start(self, headers: bytes, message: bytes) -> None:
        """Send a call and come back at once. Raises CallFailed."""
        self._exchange.start(headers, message)
        self._flush()

    def receive(self) -> bytes | None:
        """Wait for bytes; the reply, if they complete it. Raises CallFailed."""
        try:
            data = self.socket.recv(_RECEIVE_BYTES)
        except OSError as error:
            raise CallFailed(f"{self._address}: {error or type(error).__name__}") from None
        if not data:
            raise CallFailed(f"{self._address}: the server closed the connection")
        try:
            reply = self._exchange.receive(data)
        except CallFailed as error:
            raise CallFailed(f"{self._address}: {error}") from None
        self._flush()
        return reply

    def _flush(self) -> None:
        if self._exchange.outbox:
            try:
                self.socket.sendall(self._exchange.outbox)
            except OSError as error:
                raise CallFailed(f"{self._address}: {error}") from None
            self._exchange.outbox.clear()


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return _HEAD.pack(len(payload) >> 8, len(payload) & 0xFF, kind, flags, stream) + payload


def _text(text: str) -> bytes:
    data = text.encode()
    if len(data) < 127:
        return bytes((len(data),)) + data
    length, rest = bytearray((127,)), len(data) - 127
    while rest > 127:
        length.append(rest & 127 | 128)
        rest >>= 7
    length.append(rest)
    return bytes(length) + data
