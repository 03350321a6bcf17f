"""The webhook over real TLS: answers, refusals, bounds, and certificates that change while calls go on."""

import asyncio
import base64
import json
import ssl
from collections.abc import Coroutine
from contextlib import suppress

import aiohttp
import msgspec
import pytest

from tests.certs import Authority
from tests.webhook.builders import CPU, GPU, binding, review, spec
from tests.webhook.serving import Running, running, serving_of, trusting
from webhook.app import MAX_BODY_BYTES, SMALL_BODY_BYTES
from webhook.tls import Serving, install


def run(scenario: Coroutine[object, object, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(60):
            await scenario

    asyncio.run(bounded())


GPU_REVIEW = msgspec.json.encode(review(binding(spec(GPU))))


def test_a_creation_is_held() -> None:
    async def scenario() -> None:
        async with running() as webhook:
            answer = await webhook.ask(review(binding(spec(GPU))))
            assert answer["allowed"] is True
            patch = json.loads(base64.b64decode(answer["patch"]))
            assert patch[0] == {"op": "add", "path": "/spec/suspension", "value": {"scheduling": True}}
            assert [step["path"] for step in patch] == ["/spec/suspension", "/metadata/annotations"]
            assert webhook.counted("reviews_total", operation="CREATE", outcome="held-creation") == 1
            assert webhook.counted("review_seconds_count") == 1
            assert webhook.counted("in_flight") == 0

    run(scenario())


def test_the_path_says_whether_the_namespace_is_managed() -> None:
    async def scenario() -> None:
        async with running() as webhook:
            assert "patch" not in await webhook.ask(review(binding(spec(CPU))))
            assert "patch" in await webhook.ask(review(binding(spec(CPU))), "/bindings/managed")
            # The API server adds its own time limit to the address.
            assert "patch" in await webhook.ask(review(binding(spec(CPU))), "/bindings/managed?timeout=3s")

    run(scenario())


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        (b"", 400, "the body is no AdmissionReview"),
        (b"\x00\xff garbage", 400, "the body is no AdmissionReview"),
        (b"{}", 400, "expected AdmissionReview"),
        (GPU_REVIEW.replace(b"admission.k8s.io/v1", b"admission.k8s.io/v1beta1"), 400, 'to ["v1"]'),
        (GPU_REVIEW.replace(b'"uid"', b'"di"'), 400, "request.uid"),
        (b'{"x":' * 200_000, 400, "nested too deeply"),
        (b" " * (MAX_BODY_BYTES + 1), 413, "at most 8,388,608 bytes"),
        (b" " * (10 << 20), 413, "at most 8,388,608 bytes"),
        (b" " * (SMALL_BODY_BYTES + 1), 400, "the body is no AdmissionReview"),
    ],
)
def test_what_is_no_review_is_refused_and_the_next_is_answered(body: bytes, status: int, text: str) -> None:
    async def scenario() -> None:
        async with running() as webhook:
            answered, said = await webhook.post(body)
            assert (answered, text in said.decode()) == (status, True), said
            assert webhook.counted("refused_total", reason="malformed") == (status == 400)
            assert webhook.counted("refused_total", reason="too_large") == (status == 413)
            assert "patch" in await webhook.ask(review(binding(spec(GPU))))

    run(scenario())


def test_a_body_without_a_length_is_bounded_too() -> None:
    async def scenario() -> None:
        async def endless() -> object:
            while True:
                yield b" " * 65536

        async with running() as webhook:
            with suppress(aiohttp.ClientError):
                async with webhook.session.post(webhook.url + "/bindings", data=endless()) as response:
                    assert response.status == 413
            assert webhook.counted("refused_total", reason="too_large") == 1

    run(scenario())


def test_a_compressed_body_is_no_review() -> None:
    async def scenario() -> None:
        async with running() as webhook:
            status, _ = await webhook.post(GPU_REVIEW, headers={"Content-Encoding": "gzip"})
            assert status in (200, 400)
            assert "patch" in await webhook.ask(review(binding(spec(GPU))))

    run(scenario())


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/bindings", 405), ("POST", "/other", 404)])
def test_other_requests_are_refused(method: str, path: str, status: int) -> None:
    async def scenario() -> None:
        async with (
            running() as webhook,
            webhook.session.request(method, webhook.url + path, data=GPU_REVIEW) as response,
        ):
            assert response.status == status

    run(scenario())


def test_a_body_that_comes_too_slowly_is_given_up() -> None:
    async def scenario() -> None:
        async with running(answer_within_s=0.05) as webhook:
            reader, writer = await asyncio.open_connection(
                "localhost", webhook.port, ssl=webhook_tls(webhook)
            )
            writer.write(b"POST /bindings HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
            answer = await reader.read()
            assert answer.startswith(b"HTTP/1.1 503 ")
            writer.close()
            assert webhook.counted("refused_total", reason="too_slow") == 1
            assert webhook.counted("in_flight") == 0

    run(scenario())


def webhook_tls(webhook: Running) -> ssl.SSLContext:
    return trusting(webhook.authority.pem)


def test_connections_beyond_the_limit_are_closed() -> None:
    async def scenario() -> None:
        async with running(max_connections=1) as webhook:
            assert "patch" in await webhook.ask(review(binding(spec(GPU))))
            reader, writer = await asyncio.open_connection(
                "localhost", webhook.port, ssl=webhook_tls(webhook)
            )
            writer.write(b"POST /bindings HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
            with suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()
            assert webhook.counted("refused_total", reason="too_many_connections") == 1
            assert "patch" in await webhook.ask(review(binding(spec(GPU))))

    run(scenario())


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_nothing_older_than_tls_1_3_is_spoken(version: ssl.TLSVersion) -> None:
    async def scenario() -> None:
        async with running() as webhook:
            context = webhook_tls(webhook)
            context.maximum_version = version
            if version is ssl.TLSVersion.TLSv1_2:
                with pytest.raises((ssl.SSLError, ConnectionError)):
                    await asyncio.open_connection("localhost", webhook.port, ssl=context)
                return
            _, writer = await asyncio.open_connection("localhost", webhook.port, ssl=context)
            writer.close()

    run(scenario())


def test_the_certificate_is_replaced_while_calls_go_on() -> None:
    async def scenario() -> None:
        async with running() as webhook:
            other = Authority("next-ca")
            tls = trusting(webhook.authority.pem, other.pem)
            stop = asyncio.Event()
            answered = 0

            async def call(*, keeps: bool) -> None:
                nonlocal answered
                connector = aiohttp.TCPConnector(ssl=tls, force_close=not keeps)
                async with aiohttp.ClientSession(connector=connector) as session:
                    while not stop.is_set():
                        async with session.post(webhook.url + "/bindings", data=GPU_REVIEW) as response:
                            assert response.status == 200
                            await response.read()
                        answered += 1

            async with asyncio.TaskGroup() as group:
                for keeps in (True, False, False):
                    group.create_task(call(keeps=keeps))
                for authority in (other, webhook.authority, other):
                    enough = answered + 20
                    install(webhook.context, serving_of(authority.issue("webhook"), authority))
                    await webhook.until(lambda enough=enough: answered >= enough)  # type: ignore[misc]  # bound
                stop.set()
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                async with aiohttp.ClientSession() as session:
                    await session.post(
                        webhook.url + "/bindings", data=GPU_REVIEW, ssl=trusting(webhook.authority.pem)
                    )

    run(scenario())


def test_a_pair_that_does_not_fit_leaves_the_old_one_in_force() -> None:
    async def scenario() -> None:
        async with running() as webhook:
            one, two = webhook.authority.issue("a"), webhook.authority.issue("b")
            for bad in (Serving(one.certificate, two.key, None), Serving(b"garbage", one.key, None)):
                with pytest.raises(ValueError, match="cannot be used"):
                    install(webhook.context, bad)
            _, writer = await asyncio.open_connection("localhost", webhook.port, ssl=webhook_tls(webhook))
            writer.close()

    run(scenario())


def test_what_is_in_flight_is_finished() -> None:
    async def scenario() -> None:
        async with running() as webhook:
            reader, writer = await asyncio.open_connection(
                "localhost", webhook.port, ssl=webhook_tls(webhook)
            )
            head = f"POST /bindings HTTP/1.1\r\nHost: x\r\nContent-Length: {len(GPU_REVIEW)}\r\n\r\n"
            writer.write(head.encode() + GPU_REVIEW[:10])
            await writer.drain()
            await webhook.until(lambda: webhook.counted("in_flight") > 0)
            sent = asyncio.create_task(_rest(reader, writer))
        assert (await sent).startswith(b"HTTP/1.1 200 ")

    async def _rest(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(GPU_REVIEW[10:])
        answer = await reader.read()
        writer.close()
        return answer

    run(scenario())
