"""The HTTP side of visibility: read-only JSON on every replica, for those who may read it.

Documents are made of the cache when they are asked for; nothing is written anywhere. Followers answer too, as
of what they see; ``isLeader`` tells. Who cannot be told apart from anybody gets nothing: without a token 401,
without rights 403, beyond a bound 429, and while the API server cannot be asked 503, never a guess.
"""

import asyncio
import logging
import math
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

import msgspec
from aiohttp import web

from fairway.service.addresses import BindAddress
from fairway.service.connections import host_of, limited
from fairway.service.http import EndpointError
from queue_dispatcher.clock import SteadyClock
from queue_dispatcher.dispatcher import Dispatcher
from queue_dispatcher.visibility.authorization import Guest, OpenGuest, ReviewedGuest, viewer_of
from queue_dispatcher.visibility.bounds import Allowances, Bounds
from queue_dispatcher.visibility.outcome import Outcome, outcome_of
from queue_dispatcher.visibility.reviews import ReviewFailed, Reviews
from queue_dispatcher.visibility.viewer import EVERYTHING
from queue_dispatcher.visibility.views import Views

logger = logging.getLogger(__name__)

ROOT = "/visibility/v1"
DEFAULT_LIMIT = 100
MAX_LIMIT = 1_000
MAX_NAMESPACES_ASKED: Final = 64
MAX_TOKEN: Final = 16 << 10
MAX_LINE_BYTES: Final = 4 << 10
MAX_HEADER_BYTES: Final = 20 << 10
MAX_HEADERS: Final = 64
MAX_CONNECTIONS: Final = 512
MAX_CONNECTIONS_OF_ONE: Final = 128
HEAD_WITHIN_S: Final = 10.0
"""How long a connection may be open without a whole request."""
AT_ONCE: Final = 64
GUEST_BOUNDS: Final = Bounds(per_second=20, burst=200, at_once=8)
STRANGER_BOUNDS: Final = Bounds(per_second=5, burst=20, at_once=4)
"""Of an address, for tokens that have to be looked at first."""
_ANSWER_WITHIN_S: Final = 30.0
_MAX_NAME: Final = 253
_ENCODE = msgspec.json.Encoder().encode
_GUEST: Final = web.RequestKey("guest", Guest)
_TO_BE_SHOWN: Final = (
    "get localqueues.fairway.dev there shows a namespace, ClusterRole fairway-visibility-reader everything"
)
_EXPIRED: Final = "and has it expired?"
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class _Refusal(Exception):
    """An answer that is none: its status, and what to do about it."""

    def __init__(self, status: int, text: str, retry_after_s: float = 0.0) -> None:
        super().__init__(text)
        self.status = status
        self.retry_after_s = retry_after_s


class VisibilityServer:
    """Answers about one dispatcher; without ``reviews`` to anybody. ``monotonic`` is in seconds.

    ``observe`` is told what became of each question, and of each connection that was cut off.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        clock: SteadyClock,
        reviews: Reviews | None = None,
        *,
        observe: Callable[[Outcome], None] = lambda outcome: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._dispatcher = dispatcher
        self._observe = observe
        self._clock = clock
        self._reviews = reviews
        self._monotonic = monotonic
        self._guests = Allowances(GUEST_BOUNDS)
        self._strangers = Allowances(STRANGER_BOUNDS)
        self._at_once = 0

    def app(self) -> web.Application:
        """The routes."""
        app = web.Application(middlewares=[self._counted, self._bounded])
        app.router.add_get(f"{ROOT}/queues", self._queues)
        app.router.add_get(f"{ROOT}/queues/{{name}}", self._queue)
        app.router.add_get(f"{ROOT}/namespaces/{{namespace}}/queues/{{name}}", self._local_queue)
        app.router.add_get(f"{ROOT}/workloads/{{namespace}}/{{name}}", self._workloads)
        return app

    @asynccontextmanager
    async def serve(
        self, address: BindAddress, tls: ssl.SSLContext | None = None, *, head_within_s: float = HEAD_WITHIN_S
    ) -> AsyncIterator[BindAddress]:
        """Serve while the context is open; where, with a chosen port filled in. Raises EndpointError."""
        runner = web.AppRunner(
            self.app(),
            access_log=None,
            handle_signals=False,
            shutdown_timeout=1.0,
            # Also what ends a connection on which no whole request arrives.
            keepalive_timeout=head_within_s,
            lingering_time=1.0,
            max_line_size=MAX_LINE_BYTES,
            max_field_size=MAX_HEADER_BYTES,
            max_headers=MAX_HEADERS,
        )
        await runner.setup()
        assert runner.server is not None
        connection = limited(
            runner.server,
            most=MAX_CONNECTIONS,
            most_of_one=MAX_CONNECTIONS_OF_ONE,
            refused=lambda: self._observe(Outcome.CUT_OFF),
        )
        try:
            try:
                listener = await asyncio.get_running_loop().create_server(
                    connection,
                    address.host or None,
                    address.port,
                    ssl=tls,
                    ssl_handshake_timeout=head_within_s if tls is not None else None,
                )
            except OSError as error:
                raise EndpointError(
                    f"cannot serve visibility on {address}: {error.strerror or error}"
                ) from None
            try:
                yield BindAddress(address.host, listener.sockets[0].getsockname()[1])
            finally:
                listener.close()
        finally:
            await runner.cleanup()

    # Who asks, and whether it is too much.

    @web.middleware
    async def _counted(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        outcome = Outcome.FAILED
        try:
            response = await handler(request)
            outcome = outcome_of(response.status)
            return response
        except web.HTTPException as refusal:
            # A path or a method that there is none of.
            outcome = outcome_of(refusal.status)
            raise
        finally:
            self._observe(outcome)

    @web.middleware
    async def _bounded(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        if self._at_once >= AT_ONCE:
            return _refused(
                _Refusal(503, f"{AT_ONCE} requests are being answered: ask again in a second", 1.0)
            )
        self._at_once += 1
        try:
            async with asyncio.timeout(_ANSWER_WITHIN_S):
                return await self._admitted(request, handler)
        except _Refusal as refusal:
            return _refused(refusal)
        except ReviewFailed as error:
            return _refused(_Refusal(503, str(error), 5.0))
        except TimeoutError:
            return _refused(_Refusal(503, f"no answer within {_ANSWER_WITHIN_S:g} s: ask again", 5.0))
        finally:
            self._at_once -= 1

    async def _admitted(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        if request.body_exists:
            raise _Refusal(413, "a body is not expected: what is asked for is in the path")
        guest = await self._guest(request)
        wait_s = self._guests.begin(guest.key, self._monotonic())
        if wait_s:
            bounds = GUEST_BOUNDS
            raise _Refusal(
                429,
                f"{guest.name} asks too much: expected {bounds.per_second} requests a second, {bounds.burst} "
                f"in a row and {bounds.at_once} at once",
                wait_s,
            )
        try:
            request[_GUEST] = guest
            return await handler(request)
        finally:
            self._guests.end(guest.key)

    async def _guest(self, request: web.Request) -> Guest:
        host = host_of(request.transport.get_extra_info("peername") if request.transport else None)
        reviews = self._reviews
        if reviews is None:
            return OpenGuest(host)
        token = _token(request)
        wait_s, is_stranger = 0.0, not reviews.known(token)
        if is_stranger:
            wait_s = self._strangers.begin(host, self._monotonic())
        if wait_s:
            raise _Refusal(429, "too many tokens from this address that are not known: ask later", wait_s)
        try:
            identity = await reviews.identity(token)
        finally:
            if is_stranger:
                self._strangers.end(host)
        if identity is None:
            raise _Refusal(
                401, f"karmada-apiserver does not know the bearer token: is it of Karmada, {_EXPIRED}"
            )
        return ReviewedGuest(identity, reviews)

    # What is answered.

    async def _queues(self, request: web.Request) -> web.Response:
        dispatcher = self._dispatcher
        views = await self._views(request)
        return await _document(
            views.queues(
                in_flight=len(dispatcher.cache.running.in_flight),
                window=dispatcher.window.size,
                is_leader=dispatcher.controller.is_leading,
                observes=dispatcher.observes,
            )
        )

    async def _queue(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        offset, limit = _page(request)
        found = (await self._views(request)).queue(name, offset, limit)
        return await _document(found, f"there is no ClusterQueue {name[:_MAX_NAME]} that concerns you")

    async def _local_queue(self, request: web.Request) -> web.Response:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        offset, limit = _page(request)
        found = (await self._views(request, namespace)).local_queue(namespace, name, offset, limit)
        return await _document(found, f"there is no LocalQueue {namespace[:_MAX_NAME]}/{name[:_MAX_NAME]}")

    async def _workloads(self, request: web.Request) -> web.Response:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        found = (await self._views(request, namespace)).workloads(namespace, name)
        if not found.workloads:
            elsewhere = await self._namespaces_of(name, request[_GUEST])
            found = msgspec.structs.replace(found, namespaces=elsewhere)
        return await _document(found)

    async def _namespaces_of(self, name: str, guest: Guest) -> list[str]:
        """Where the guest may see workloads of that name. Raises ReviewFailed."""
        dispatcher = self._dispatcher
        views = Views(dispatcher.cache, dispatcher.controller.view, self._clock.now_ms())
        there = views.namespaces_of(name)
        viewer = await viewer_of(guest, there, ())
        return [namespace for namespace in there if viewer.sees(namespace)]

    async def _views(self, request: web.Request, namespace: str = "") -> Views:
        """Documents for who asks; of one namespace only, if one is given. Raises _Refusal, ReviewFailed."""
        controller = self._dispatcher.controller
        if not controller.is_synced:
            raise _Refusal(503, "the state of the control plane has not been read completely yet", 2.0)
        guest = request[_GUEST]
        if namespace and len(namespace) > _MAX_NAME:
            raise _Refusal(400, f"namespace {namespace[:40]}...: expected {_MAX_NAME} characters at most")
        asked = (namespace,) if namespace else _namespaces(request)
        if namespace and await guest.sees_all():
            viewer = EVERYTHING
        else:
            viewer = await viewer_of(guest, () if asked else self._candidates(), asked)
        if not viewer.sees_all and not viewer.namespaces and not viewer.unreviewed:
            where = f"in namespace {', '.join(asked)}" if asked else "in any namespace that has queues"
            raise _Refusal(403, f"{guest.name} may see nothing {where}: {_TO_BE_SHOWN}")
        await controller.settled()
        cache, etas = self._dispatcher.cache, controller.state.etas
        return Views(cache, controller.view, self._clock.now_ms(), viewer, etas)

    def _candidates(self) -> Sequence[str]:
        """Namespaces in which there is anything to see, by name."""
        cache = self._dispatcher.cache
        found = {local.namespace for local in cache.queues.local_queues.values.values()}
        found.update(entry.binding.namespace for entry in cache.entries.values())
        return sorted(found - {""})


def _token(request: web.Request) -> str:
    """The bearer token of a request. Raises _Refusal."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        raise _Refusal(
            401,
            "expected a bearer token of karmada-apiserver (Authorization: Bearer ...); one is made by: "
            "kubectl create token NAME",
        )
    if len(token) > MAX_TOKEN or not token.isascii():
        raise _Refusal(401, f"the bearer token cannot be one: expected {MAX_TOKEN} ASCII characters at most")
    return token


def _namespaces(request: web.Request) -> Sequence[str]:
    """The namespaces that a request is about; none for all. Raises _Refusal."""
    asked = list(dict.fromkeys(request.query.getall("namespace", [])))
    if len(asked) > MAX_NAMESPACES_ASKED or any(not 0 < len(name) <= _MAX_NAME for name in asked):
        raise _Refusal(400, f"namespace: expected {MAX_NAMESPACES_ASKED} names at most, none of them empty")
    return asked


def _page(request: web.Request) -> tuple[int, int]:
    """Offset and limit of a request. Raises _Refusal."""
    page = []
    for name, default, most in (("offset", 0, 1 << 31), ("limit", DEFAULT_LIMIT, MAX_LIMIT)):
        text = request.query.get(name, str(default))
        if not (text.isascii() and text.isdigit() and len(text) < 11 and int(text) <= most):
            raise _Refusal(400, f"{name}={text[:40]}: expected a whole number from 0 to {most}")
        page.append(int(text))
    return page[0], page[1]


async def _document(document: msgspec.Struct | None, absent: str = "") -> web.Response:
    if document is None:
        raise _Refusal(404, absent)
    return web.Response(body=await asyncio.to_thread(_ENCODE, document), content_type="application/json")


def _refused(refusal: _Refusal) -> web.Response:
    logger.debug("refused with %d: %s", refusal.status, refusal)
    response = web.json_response({"error": str(refusal)}, status=refusal.status)
    if refusal.status == 401:
        response.headers["WWW-Authenticate"] = 'Bearer realm="karmada-apiserver"'
    if refusal.retry_after_s:
        response.headers["Retry-After"] = str(math.ceil(refusal.retry_after_s))
    return response
