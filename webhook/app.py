"""The HTTP side: a body in, a body out, within bounds of size, time and number.

What is a review gets an answer that allows, whatever is in it. What is none gets an HTTP error that says so:
400 for a body that is no review, 413 for one that is too large, 503 for one that came too slowly. The API
server then acts as the failurePolicy says. Everything is decided from the body, without any I/O.
"""

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from typing import Final

from aiohttp import web

from fairway.scope import Scope
from fairway.service.addresses import BindAddress
from fairway.service.connections import limited
from fairway.service.http import EndpointError
from webhook.configuration import BINDINGS_PATH, MANAGED_PATH
from webhook.metrics import WebhookMetrics
from webhook.review import ReviewError, read_review, write_review
from webhook.suspend import Outcome, decide

logger = logging.getLogger(__name__)

MAX_BODY_BYTES: Final = 8 << 20
"""An API server takes objects of 3 MiB at most, and a review of an update holds two."""
MAX_CONNECTIONS: Final = 1000
MAX_CONNECTIONS_OF_ONE: Final = 500
"""Of one address: whoever takes all that it gets leaves room for an API server."""
SMALL_BODY_BYTES: Final = 256 << 10
MAX_LARGE_BODIES: Final = 16
"""Bodies above that being read at the same time, which bounds the memory; common ones never wait for them."""
ANSWER_WITHIN_S: Final = 2.5
"""Before the API server gives up, so that it is told why."""
_HANDSHAKE_WITHIN_S: Final = 2.5
_IDLE_S: Final = 120.0
_FINISH_WITHIN_S: Final = 5.0
_LINGER_S: Final = 1.0
"""How long what is left of a refused body is read and dropped, so that the refusal is read at all."""
_BACKLOG: Final = 1024
_TOO_SLOW: Final = 503


class _Flights:
    """Reviews that have begun and not ended."""

    def __init__(self) -> None:
        self._count = 0
        self._none = asyncio.Event()
        self._none.set()

    def began(self) -> None:
        self._count += 1
        self._none.clear()

    def ended(self) -> None:
        self._count -= 1
        if not self._count:
            self._none.set()

    async def landed(self, within_s: float) -> None:
        """Wait until none is left, but no longer than that."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._none.wait()


_FLIGHTS: Final = web.AppKey("flights", _Flights)


def application(
    scope: Scope,
    metrics: WebhookMetrics,
    *,
    observe: bool = False,
    answer_within_s: float = ANSWER_WITHIN_S,
    clock: Callable[[], float] = time.perf_counter,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> web.Application:
    """The routes of the webhook; ``clock`` is monotonic, in seconds. With ``observe`` nothing is held."""
    large_bodies = asyncio.Semaphore(MAX_LARGE_BODIES)
    flights = _Flights()

    async def body_of(request: web.Request) -> bytes:
        length = MAX_BODY_BYTES if request.content_length is None else request.content_length
        if length <= SMALL_BODY_BYTES:
            return await request.read()
        if length > MAX_BODY_BYTES:
            raise web.HTTPRequestEntityTooLarge(MAX_BODY_BYTES, length)
        async with large_bodies:
            return await request.read()

    async def answer(request: web.Request, *, managed: bool) -> web.Response:
        began_s = clock()
        metrics.began()
        flights.began()
        try:
            async with asyncio.timeout(answer_within_s):
                body = await body_of(request)
            return decided(body, managed=managed)
        except ReviewError as error:
            metrics.refused("malformed")
            return _refusal(400, str(error))
        except web.HTTPRequestEntityTooLarge:
            metrics.refused("too_large")
            return _refusal(413, f"expected a review of at most {MAX_BODY_BYTES:,} bytes")
        except TimeoutError:
            metrics.refused("too_slow")
            return _refusal(_TOO_SLOW, f"the review did not arrive within {answer_within_s:g} s: overloaded?")
        finally:
            flights.ended()
            metrics.ended(clock() - began_s)

    def decided(body: bytes, *, managed: bool) -> web.Response:
        review = read_review(body)
        at = now().isoformat(timespec="milliseconds")
        decision = decide(review, scope, managed=managed, at=at, observe=observe)
        metrics.decided(review.operation, decision.outcome)
        if decision.outcome is Outcome.NOT_UNDERSTOOD:
            logger.warning("not understood, let through: %s", decision.detail)
        else:
            logger.debug("%s", decision.outcome, extra={"uid": review.uid, "detail": decision.detail})
        return web.Response(body=write_review(review.uid, decision.response), content_type="application/json")

    async def bindings(request: web.Request) -> web.Response:
        return await answer(request, managed=False)

    async def managed_bindings(request: web.Request) -> web.Response:
        return await answer(request, managed=True)

    app = web.Application(client_max_size=MAX_BODY_BYTES)
    app[_FLIGHTS] = flights
    app.router.add_post(BINDINGS_PATH, bindings)
    app.router.add_post(MANAGED_PATH, managed_bindings)
    return app


def _refusal(status: int, text: str) -> web.Response:
    logger.warning("refused with %d: %s", status, text)
    response = web.Response(status=status, text=f"fairway-webhook: {text}\n")
    if status == _TOO_SLOW:
        # What is left of the body would be taken for the next request.
        response.force_close()
    return response


@asynccontextmanager
async def serve(
    app: web.Application,
    bound: socket.socket,
    context: ssl.SSLContext,
    metrics: WebhookMetrics,
    *,
    max_connections: int = MAX_CONNECTIONS,
    max_connections_of_one: int = MAX_CONNECTIONS_OF_ONE,
) -> AsyncIterator[int]:
    """Serve over TLS on a bound socket while the context is open, then finish what is in flight; the port."""
    runner = web.AppRunner(
        app,
        access_log=None,
        handle_signals=False,
        shutdown_timeout=_FINISH_WITHIN_S,
        keepalive_timeout=_IDLE_S,
        lingering_time=_LINGER_S,
        auto_decompress=False,
    )
    await runner.setup()
    server = runner.server
    assert server is not None

    connection = limited(
        server,
        most=max_connections,
        most_of_one=max_connections_of_one,
        refused=lambda: metrics.refused("too_many_connections"),
    )
    try:
        listener = await asyncio.get_running_loop().create_server(
            connection,
            sock=bound,
            ssl=context,
            backlog=_BACKLOG,
            ssl_handshake_timeout=_HANDSHAKE_WITHIN_S,
        )
        try:
            yield listener.sockets[0].getsockname()[1]
        finally:
            listener.close()
            # The server drops what is still arriving once it is told to shut down.
            await app[_FLIGHTS].landed(_FINISH_WITHIN_S)
    finally:
        await runner.cleanup()


def bind(address: BindAddress) -> socket.socket:
    """A socket that holds the address and does not listen yet. Raises EndpointError."""
    dual_stack = not address.host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual_stack or ":" in address.host else socket.AF_INET
    bound = socket.socket(family)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if dual_stack:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        bound.bind((address.host, address.port))
    except OSError as error:
        bound.close()
        raise EndpointError(f"cannot serve reviews on {address}: {error.strerror or error}") from error
    return bound
