"""The lean caller against a real gRPC server, and against single frames that such a server may send."""

import socket
import struct
import threading

import pytest

from benchmarks.caller import Address, CallFailed, Connection, Exchange, header_block
from tests.benchmarks.echo import ECHO, METADATA, REFUSE, REMAINING, on_server

HEADERS = header_block(ECHO, "localhost")


def one_call(address: Address, path: str, message: bytes, *metadata: tuple[str, str]) -> bytes:
    with Connection(address) as connection:
        return connection.call(header_block(path, str(address), metadata), message)


@pytest.mark.parametrize("size", [0, 1, 16_379, 16_384, 65_535, 400_000])
def test_a_message_of_any_size_comes_back_whole(size: int) -> None:
    message = bytes(range(256)) * (size // 256) + b"x" * (size % 256)

    assert on_server(lambda address: one_call(address, ECHO, message)) == message


def test_one_connection_carries_many_calls_beyond_its_first_window() -> None:
    def ask(address: Address) -> list[bytes]:
        with Connection(address) as connection:
            return [connection.call(HEADERS, b"%d" % number * 500) for number in range(400)]

    assert on_server(ask) == [b"%d" % number * 500 for number in range(400)]


@pytest.mark.parametrize("length", [3, 126, 127, 128, 254, 255, 300, 3000])
def test_metadata_of_any_length_arrives(length: int) -> None:
    value = "v" * length

    assert (
        on_server(lambda address: one_call(address, METADATA, b"object", ("object", value))) == value.encode()
    )


def test_a_deadline_is_a_header() -> None:
    remaining = on_server(lambda address: one_call(address, REMAINING, b"", ("grpc-timeout", "30S")))

    assert 0 < float(remaining) <= 30


@pytest.mark.parametrize("path", [REFUSE, "/try.It/Nothing", "/no.Such/Service"])
def test_a_grpc_error_is_a_failed_call(path: str) -> None:
    with pytest.raises(CallFailed, match="gRPC error"):
        on_server(lambda address: one_call(address, path, b"x"))


def test_after_an_error_the_connection_can_be_used_again() -> None:
    def ask(address: Address) -> bytes:
        with Connection(address) as connection:
            with pytest.raises(CallFailed):
                connection.call(header_block(REFUSE, str(address)), b"x")
            return connection.call(HEADERS, b"again")

    assert on_server(ask) == b"again"


def test_where_nothing_listens_the_address_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    with pytest.raises(CallFailed, match=f"127.0.0.1:{port}: .*refused"):
        Connection(Address("127.0.0.1", port))


@pytest.mark.parametrize("says", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_a_server_that_hangs_up_is_a_failed_call(says: bytes) -> None:
    def hang_up(listener: socket.socket) -> None:
        accepted, _ = listener.accept()
        with accepted:
            accepted.sendall(says)
            accepted.shutdown(socket.SHUT_WR)
            while accepted.recv(4096):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        answering = threading.Thread(target=hang_up, args=(listener,))
        answering.start()
        with pytest.raises(CallFailed, match="closed the connection"):
            one_call(Address("127.0.0.1", listener.getsockname()[1]), ECHO, b"x")
        answering.join()


# --- frames by hand --------------------------------------------------------------------------------------

DATA, RESPONSE_HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, PADDED = 1, 4, 8


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def started(message: bytes = b"") -> Exchange:
    exchange = Exchange()
    exchange.start(HEADERS, message)
    exchange.outbox.clear()
    return exchange


def reply(message: bytes, *, stream: int = 1) -> bytes:
    return (
        frame(RESPONSE_HEADERS, END_HEADERS, stream, b"")
        + frame(DATA, 0, stream, struct.pack(">BI", 0, len(message)) + message)
        + frame(RESPONSE_HEADERS, END_HEADERS | END_STREAM, stream, b"")
    )


def test_a_reply_may_come_in_any_pieces() -> None:
    data = frame(SETTINGS, 0, 0, b"") + reply(b"hello")
    for size in range(1, len(data) + 1):
        exchange = started()
        parts = [exchange.receive(data[at : at + size]) for at in range(0, len(data), size)]
        assert parts == [*[None] * (len(parts) - 1), b"hello"]


def test_padding_is_no_part_of_the_message() -> None:
    padded = frame(DATA, PADDED, 1, b"\x03" + struct.pack(">BI", 0, 2) + b"hi" + b"\0\0\0")

    assert started().receive(padded + frame(RESPONSE_HEADERS, END_STREAM, 1, b"")) == b"hi"


def test_pings_and_settings_are_acknowledged() -> None:
    exchange = started()

    exchange.receive(frame(SETTINGS, 0, 0, b"") + frame(PING, 0, 0, b"12345678"))

    assert bytes(exchange.outbox) == frame(SETTINGS, 1, 0, b"") + frame(PING, 1, 0, b"12345678")


def test_a_body_waits_until_the_servers_windows_have_room() -> None:
    exchange = started(b"x" * 100_000)
    exchange.receive(frame(WINDOW_UPDATE, 0, 1, struct.pack(">I", 100_000)))
    assert not exchange.outbox

    exchange.receive(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 100_000)))

    assert len(exchange.outbox) == 5 + 100_000 - 65_535 + 3 * 9


def test_a_smaller_initial_window_holds_for_calls_under_way_and_later() -> None:
    exchange = started(b"x" * 65_000)

    exchange.receive(frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 10)) + reply(b""))
    exchange.outbox.clear()
    exchange.start(b"", b"y" * 100)

    assert bytes(exchange.outbox[-19:]) == frame(DATA, 0, 3, struct.pack(">BI", 0, 100) + b"y" * 5)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (frame(RST_STREAM, 0, 1, struct.pack(">I", 8)), "reset the call: HTTP/2 error code 8"),
        (frame(GOAWAY, 0, 0, struct.pack(">II", 1, 11)), "going away: HTTP/2 error code 11"),
        (frame(RESPONSE_HEADERS, END_HEADERS | END_STREAM, 1, b""), "gRPC error"),
        (
            frame(DATA, 0, 1, b"\0\0\0\0\5hel") + frame(RESPONSE_HEADERS, END_STREAM, 1, b""),
            "no whole message",
        ),
        (frame(DATA, END_STREAM, 1, b"\0\0\0\0\0"), "without trailers"),
    ],
)
def test_what_is_no_whole_reply_is_a_failed_call(data: bytes, says: str) -> None:
    with pytest.raises(CallFailed, match=says):
        started().receive(data)


def test_what_comes_after_a_call_has_ended_concerns_nobody() -> None:
    exchange = started()
    assert exchange.receive(reply(b"first")) == b"first"

    assert exchange.receive(frame(RST_STREAM, 0, 1, bytes(4))) is None
    exchange.start(HEADERS, b"")
    assert exchange.receive(frame(RST_STREAM, 0, 1, bytes(4)) + reply(b"second", stream=3)) == b"second"
