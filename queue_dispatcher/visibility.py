"""The visibility API: queues, positions and reasons over HTTP, read-only, on every replica.

Documents are made of the book when they are asked for; nothing is written anywhere. Followers answer too, as
of what they see; ``isLeader`` tells.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec
from aiohttp import web

from fairway.service.addresses import BindAddress
from fairway.service.http import EndpointError
from queue_dispatcher.clock import SteadyClock
from queue_dispatcher.dispatcher import Dispatcher
from queue_dispatcher.views import Views

ROOT = "/visibility/v1"
DEFAULT_LIMIT = 100
MAX_LIMIT = 1_000
_ENCODE = msgspec.json.Encoder().encode


class VisibilityServer:
    """Answers about one dispatcher."""

    def __init__(self, dispatcher: Dispatcher, clock: SteadyClock) -> None:
        self._dispatcher = dispatcher
        self._clock = clock

    def app(self) -> web.Application:
        """The routes."""
        app = web.Application()
        app.router.add_get(f"{ROOT}/queues", self._queues)
        app.router.add_get(f"{ROOT}/queues/{{name}}", self._queue)
        app.router.add_get(f"{ROOT}/namespaces/{{namespace}}/queues/{{name}}", self._local_queue)
        app.router.add_get(f"{ROOT}/workloads/{{namespace}}/{{name}}", self._workloads)
        return app

    @asynccontextmanager
    async def serve(self, address: BindAddress) -> AsyncIterator[BindAddress]:
        """Serve while the context is open; where, with a chosen port filled in. Raises EndpointError."""
        runner = web.AppRunner(self.app(), access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await runner.setup()
        try:
            site = web.TCPSite(runner, address.host or None, address.port)
            try:
                await site.start()
            except OSError as error:
                raise EndpointError(
                    f"cannot serve visibility on {address}: {error.strerror or error}"
                ) from None
            yield BindAddress(address.host, runner.addresses[0][1])
        finally:
            await runner.cleanup()

    async def _queues(self, _: web.Request) -> web.Response:
        dispatcher = self._dispatcher
        return await self._answer(
            lambda views: views.queues(
                in_flight=len(dispatcher.book.in_flight),
                window=dispatcher.window.size,
                is_leader=dispatcher.controller.is_leading,
            )
        )

    async def _queue(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        offset, limit = _page(request)
        return await self._answer(
            lambda views: views.queue(name, offset, limit), f"there is no ClusterQueue {name}"
        )

    async def _local_queue(self, request: web.Request) -> web.Response:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        offset, limit = _page(request)
        return await self._answer(
            lambda views: views.local_queue(namespace, name, offset, limit),
            f"there is no LocalQueue {namespace}/{name}",
        )

    async def _workloads(self, request: web.Request) -> web.Response:
        namespace, name = request.match_info["namespace"], request.match_info["name"]
        return await self._answer(lambda views: views.workloads(namespace, name))

    async def _answer(self, make: Callable[[Views], msgspec.Struct | None], absent: str = "") -> web.Response:
        controller = self._dispatcher.controller
        if not controller.is_synced:
            return _problem(503, "the state of the control plane has not been read completely yet")
        await controller.settled()
        document = make(Views(self._dispatcher.book, controller.view, self._clock.now_ms()))
        if document is None:
            return _problem(404, absent)
        return web.Response(body=await asyncio.to_thread(_ENCODE, document), content_type="application/json")


def _page(request: web.Request) -> tuple[int, int]:
    """Offset and limit of a request. Raises HTTPBadRequest."""
    page = []
    for name, default, most in (("offset", 0, 1 << 31), ("limit", DEFAULT_LIMIT, MAX_LIMIT)):
        text = request.query.get(name, str(default))
        if not (text.isascii() and text.isdigit() and len(text) < 11 and int(text) <= most):
            raise web.HTTPBadRequest(text=f"{name}={text[:40]}: expected a whole number from 0 to {most}\n")
        page.append(int(text))
    return page[0], page[1]


def _problem(status: int, text: str) -> web.Response:
    return web.json_response({"error": text}, status=status)
