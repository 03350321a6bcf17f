"""The client's own behaviour: rates, timeouts, streams, errors, and what it never says."""

import asyncio
import gzip
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from fairway.kube import client as client_module
from fairway.kube import transport
from fairway.kube.client import KubeClient
from fairway.kube.credentials import UrlSource
from fairway.kube.errors import (
    BadObject,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    Refused,
    ServerError,
    Silent,
    TooManyRequests,
    Unauthorized,
    Unreachable,
)
from fairway.kube.transport import keepalive_socket
from sandbox.fakeapi import FakeApi

Obj = dict[str, Any]


def against_fake(scenario: Callable[[FakeApi, KubeClient], Awaitable[None]]) -> None:
    async def run() -> None:
        async with FakeApi() as api, KubeClient.from_url(api.url, qps=-1) as client:
            await scenario(api, client)

    asyncio.run(run())


@asynccontextmanager
async def raw_server(answer: bytes) -> AsyncIterator[str]:
    """A server that reads a request's head, says ``answer`` and hangs up."""

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(respond, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


STATUSES: list[tuple[int, type[Refused]]] = [
    (302, Invalid),
    (400, Invalid),
    (401, Unauthorized),
    (403, Forbidden),
    (404, NotFound),
    (409, Conflict),
    (410, Expired),
    (422, Invalid),
    (429, TooManyRequests),
    (500, ServerError),
    (503, ServerError),
]


@pytest.mark.parametrize(("status", "kind"), STATUSES)
def test_each_status_is_its_own_error_and_says_where(status: int, kind: type[Refused]) -> None:
    async def scenario(api: FakeApi, client: KubeClient) -> None:
        api.fail(status, retry_after_s=3)
        with pytest.raises(Refused) as caught:
            await client.get_bytes("/api/v1/nodes")
        assert type(caught.value) is kind
        assert (caught.value.status, caught.value.retry_after_s) == (status, 3.0)
        told = f"{api.url}: GET /api/v1/nodes: {status}: a fault was asked for; expected "
        assert str(caught.value).startswith(told)

    against_fake(scenario)


def test_an_error_page_of_a_proxy_is_quoted() -> None:
    async def scenario() -> None:
        page = b"<html>bad gateway</html>"
        head = b"HTTP/1.1 502 Bad Gateway\r\nRetry-After: soon\r\nContent-Length: %d\r\n\r\n" % len(page)
        async with raw_server(head + page) as url, KubeClient.from_url(url) as client:
            with pytest.raises(ServerError, match="502: <html>bad gateway</html>") as caught:
                await client.get_bytes("/api/v1/nodes")
            assert caught.value.retry_after_s is None

    asyncio.run(scenario())


def test_an_answer_that_is_no_json_is_a_bad_object() -> None:
    async def scenario() -> None:
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n<html/>"
        async with raw_server(answer) as url, KubeClient.from_url(url) as client:
            with pytest.raises(BadObject, match=r"GET /version: .*is this an API server"):
                await client.get_json("/version", Obj)

    asyncio.run(scenario())


@pytest.mark.parametrize("answer", [b"", b"what?\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"])
def test_a_broken_answer_is_unreachable(answer: bytes) -> None:
    async def scenario() -> None:
        async with raw_server(answer) as url, KubeClient.from_url(url) as client:
            with pytest.raises(Unreachable, match=r"GET /version: .*expected an HTTP answer"):
                await client.get_bytes("/version")

    asyncio.run(scenario())


def test_redirects_are_not_followed() -> None:
    async def scenario(api: FakeApi, client: KubeClient) -> None:
        answer = b"HTTP/1.1 302 Found\r\nLocation: %s/version\r\nContent-Length: 0\r\n\r\n" % api.url.encode()
        async with raw_server(answer) as url, KubeClient.from_url(url, token="S3CRET") as redirected:
            with pytest.raises(Invalid, match="302"):
                await redirected.get_bytes("/version")
        assert api.seen == []

    against_fake(scenario)


def test_a_refused_connection_is_unreachable() -> None:
    async def scenario(api: FakeApi, client: KubeClient) -> None:
        await api.refuse()
        with pytest.raises(
            Unreachable, match=r"no connection to .* \(connection refused\); expected an HTTP answer"
        ):
            await client.get_bytes("/version")

    against_fake(scenario)


def test_requests_say_who_asks_and_accept_compression_except_for_streams() -> None:
    async def scenario(api: FakeApi, client: KubeClient) -> None:
        await client.get_bytes("/version")
        async with client.stream("/api/v1/nodes", {"watch": "1"}, idle_timeout_s=5):
            pass
        assert [seen.headers["Accept-Encoding"] for seen in api.seen] == ["gzip", "identity"]
        assert all(seen.headers["User-Agent"].startswith("fairway/") for seen in api.seen)
        assert all("Authorization" not in seen.headers for seen in api.seen)

    against_fake(scenario)


def test_parameters_are_quoted() -> None:
    async def scenario(api: FakeApi, client: KubeClient) -> None:
        selector = "status.phase!=Succeeded,metadata.name=a+b&c"
        await client.get_bytes("/api/v1/pods", {"fieldSelector": selector})
        assert api.seen[0].params == {"fieldSelector": selector}

    against_fake(scenario)


def test_sockets_notice_a_dead_peer() -> None:
    address = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", 1))
    with keepalive_socket(address) as sock:
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        wanted = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
        known = {name: value for name, value in wanted.items() if hasattr(socket, name)}
        assert {name: sock.getsockopt(socket.IPPROTO_TCP, getattr(socket, name)) for name in known} == known


def test_connections_are_made_of_such_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[socket.socket] = []

    def noted(address: aiohttp.AddrInfoType) -> socket.socket:
        made.append(keepalive_socket(address))
        return made[-1]

    monkeypatch.setattr(transport, "keepalive_socket", noted)

    async def scenario(api: FakeApi, client: KubeClient) -> None:
        await client.get_bytes("/version")
        assert len(made) == 1

    against_fake(scenario)


def test_the_request_rate_is_kept_and_further_pages_are_free() -> None:
    async def scenario() -> None:
        now_s, slept_s = 0.0, list[float]()

        async def sleep(wait_s: float) -> None:
            nonlocal now_s
            slept_s.append(wait_s)
            now_s += wait_s

        async with FakeApi() as api:
            api.load("/api/v1/nodes", ({"metadata": {"name": f"n{number}"}} for number in range(9)))
            source = UrlSource(api.url, None)
            async with KubeClient(source, qps=2, burst=3, clock=lambda: now_s, sleep=sleep) as client:
                page = await client.get_json("/api/v1/nodes", Obj, {"limit": "1"})
                while token := page["metadata"].get("continue"):
                    params = {"limit": "1", "continue": token}
                    page = await client.get_json("/api/v1/nodes", Obj, params)
                assert len(api.seen) == 9
                assert slept_s == []
                for _ in range(4):
                    await client.get_bytes("/version")
                assert slept_s == [0.5, 0.5]

    asyncio.run(scenario())


def test_a_waiter_that_gives_up_returns_its_turn() -> None:
    async def scenario() -> None:
        waits_s: list[float] = []
        asleep = asyncio.Event()

        async def sleep(wait_s: float) -> None:
            waits_s.append(wait_s)
            asleep.set()
            await asyncio.Event().wait()

        async with FakeApi() as api:
            source = UrlSource(api.url, None)
            async with KubeClient(source, qps=1, burst=1, clock=lambda: 0.0, sleep=sleep) as client:
                await client.get_bytes("/version")
                for _ in range(3):
                    asleep.clear()
                    waiting = asyncio.create_task(client.get_bytes("/version"))
                    await asleep.wait()
                    waiting.cancel()
                    await asyncio.gather(waiting, return_exceptions=True)
                assert waits_s == [1.0, 1.0, 1.0]

    asyncio.run(scenario())


def test_a_stream_yields_lines_until_the_server_ends_it() -> None:
    async def scenario(api: FakeApi, client: KubeClient) -> None:
        api.create("/api/v1/nodes", {"metadata": {"name": "a"}})
        lines: list[bytes] = []
        params = {"watch": "1", "timeoutSeconds": "0", "allowWatchBookmarks": "true"}
        async with client.stream("/api/v1/nodes", params, idle_timeout_s=5) as stream:
            lines.extend([line async for line in stream])
        assert [line[:14] for line in lines] == [b'{"type":"ADDED', b'{"type":"BOOKM']
        await api.until(lambda: api.watches == 0)

    against_fake(scenario)


def test_leaving_a_stream_closes_its_connection() -> None:
    async def scenario(api: FakeApi, client: KubeClient) -> None:
        async with client.stream("/api/v1/nodes", {"watch": "1"}, idle_timeout_s=5):
            await api.until(lambda: api.watches == 1)
        await api.until(lambda: api.watches == 0)

    against_fake(scenario)


def test_a_silent_stream_says_so() -> None:
    async def scenario(api: FakeApi, client: KubeClient) -> None:
        async with client.stream("/api/v1/nodes", {"watch": "1"}, idle_timeout_s=0.1) as stream:
            with pytest.raises(Silent, match=r"nothing read for 0\.1 s"):
                await anext(stream)

    against_fake(scenario)


def test_a_stream_without_an_answer_is_unreachable_but_not_half_open() -> None:
    async def scenario(api: FakeApi, client: KubeClient) -> None:
        api.hang()
        with pytest.raises(Unreachable, match="no answer in time") as caught:
            async with client.stream("/api/v1/nodes", {"watch": "1"}, idle_timeout_s=0.1):
                pass
        assert not isinstance(caught.value, Silent)

    against_fake(scenario)


def test_a_stream_cut_within_a_line_is_unreachable() -> None:
    async def scenario() -> None:
        answer = b'HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{"type":"ADDED"}\n{"type":"MOD'
        async with (
            raw_server(answer) as url,
            KubeClient.from_url(url) as client,
            client.stream("/api/v1/nodes", idle_timeout_s=5) as stream,
        ):
            assert await anext(stream) == b'{"type":"ADDED"}'
            with pytest.raises(Unreachable, match="middle of a line"):
                await anext(stream)

    asyncio.run(scenario())


def test_an_endless_line_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "MAX_LINE_BYTES", 1000)

    async def scenario(api: FakeApi, client: KubeClient) -> None:
        async with client.stream("/api/v1/nodes", {"watch": "1"}, idle_timeout_s=5) as stream:
            api.emit("/api/v1/nodes", b"x" * 1000)
            assert len(await anext(stream)) == 1000
            api.emit("/api/v1/nodes", b"x" * 1001)
            with pytest.raises(BadObject, match="a line of more than 1000 bytes"):
                await anext(stream)

    against_fake(scenario)


def test_an_error_of_the_reader_of_a_stream_stays_what_it_is() -> None:
    async def scenario(api: FakeApi, client: KubeClient) -> None:
        with pytest.raises(OSError, match="the reader's own"):
            async with client.stream("/api/v1/nodes", {"watch": "1"}, idle_timeout_s=5):
                raise OSError("the reader's own")

    against_fake(scenario)


def test_tokens_are_never_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    told: list[str] = []

    async def scenario() -> None:
        async with (
            FakeApi(tokens={"other"}) as api,
            KubeClient.from_url(api.url, token="S3CRET", qps=-1) as client,
        ):

            async def attempt() -> None:
                with pytest.raises(KubeError) as caught:
                    await client.get_json("/api/v1/nodes", list[int])
                error: BaseException | None = caught.value
                while error is not None:
                    told.extend((str(error), repr(error)))
                    error = error.__cause__

            await attempt()
            api.tokens = {"S3CRET"}
            await attempt()
            for status in (302, 404, 500):
                api.fail(status)
                await attempt()
            await api.refuse()
            await attempt()
            told.append(repr(await UrlSource(api.url, "S3CRET").load()))

    asyncio.run(scenario())
    assert len(told) > 6
    assert not any("S3CRET" in text for text in told)
    assert "S3CRET" not in caplog.text


@pytest.mark.parametrize("size", [10, 200_000], ids=["small", "large"])
def test_a_packed_body_is_unpacked(size: int) -> None:
    body = b'{"metadata":{"name":"' + b"x" * size + b'"}}'
    packed = gzip.compress(body)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n".encode()

    async def scenario() -> None:
        async with raw_server(head + packed) as url, KubeClient.from_url(url) as client:
            assert await client.get_bytes("/api/v1/nodes/x") == body

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("encoding", "body", "says"),
    [("gzip", b"no gzip at all", "no valid gzip"), ("br", b"", "expected gzip or none")],
)
def test_a_body_that_cannot_be_unpacked_is_an_answer_that_cannot_be_used(
    encoding: str, body: bytes, says: str
) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    async def scenario() -> None:
        async with raw_server(head + body) as url, KubeClient.from_url(url) as client:
            with pytest.raises(Unreachable, match=says):
                await client.get_bytes("/api/v1/nodes/x")

    asyncio.run(scenario())
