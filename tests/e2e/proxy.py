"""Karmada's API server behind a proxy of the test's own, which can hold back what watches tell, and writes.

A program that is given `Proxy.kubeconfig` sees an API server that answers every question, and whose streams
are silent without being broken: what a connection that is half-open, or a cache that lags, looks like. After
so many of its writes it hears nothing more of them, so that it can be killed there.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import aiohttp
from aiohttp import web

from tests.e2e.api_server import ApiServer
from tests.e2e.process import LOOPBACK, free_port
from tests.e2e.watching import PATIENCE_S, eventually

# What concerns one connection only, and not the question.
_OF_A_HOP: Final = frozenset(
    ("connection", "keep-alive", "transfer-encoding", "content-length", "host", "te", "upgrade")
)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that came through."""

    method: str
    path: str
    query: Mapping[str, str]

    @property
    def is_watch(self) -> bool:
        return "watch" in self.query

    def reads_consistently(self, resource: str) -> bool:
        """Whether it asks how far the server is with that resource, whatever it has in its caches."""
        is_list = self.method == "GET" and self.path.endswith(f"/{resource}") and not self.is_watch
        return is_list and not self.query.get("resourceVersion")

    def streams_all(self, resource: str) -> bool:
        """Whether it asks for all there is of it, as a stream."""
        return self.is_watch and self.path.endswith(f"/{resource}") and "sendInitialEvents" in self.query

    def writes(self, resource: str) -> bool:
        """Whether it changes an object of that resource."""
        return self.method in ("PATCH", "PUT") and f"/{resource}/" in self.path


@dataclass(slots=True)
class Proxy:
    """``asked``: everything, in order."""

    kubeconfig: Path
    upstream: str
    trust: ssl.SSLContext
    session: aiohttp.ClientSession
    asked: list[Asked] = field(default_factory=list)
    _held: str = ""
    _new_ones_too: bool = False
    _flows: asyncio.Event = field(default_factory=asyncio.Event)
    _cut_within: str = ""
    _left: int = 0
    _unanswered: int = 0
    _is_cut: asyncio.Event = field(default_factory=asyncio.Event)

    def hold_back(self, resource: str, *, new_ones_too: bool) -> None:
        """Tell nothing more on watches of it; on those only that are open now, or on new ones as well."""
        self._held, self._new_ones_too = resource, new_ones_too
        self._flows = asyncio.Event()

    def flow(self) -> None:
        """Tell everything again, what was held back first."""
        self._held = ""
        self._flows.set()

    def cut(self, within: str, writes: int) -> None:
        """Of writes below this path, hand on so many more; not tell the answer to the last, nor hand on any
        after it.
        """
        self._cut_within, self._left, self._unanswered = within, writes, writes

    async def until_cut(self) -> None:
        """Wait until the last of them is written; of none, until the first is tried."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._is_cut.wait()
        except TimeoutError:
            raise AssertionError(f"{self._unanswered} writes below {self._cut_within} never came") from None

    async def until_asked(self, wanted: Callable[[Asked], bool], since: int) -> int:
        """Wait until such a thing has been asked, of ``asked`` from that place on; the first one's place."""

        def places() -> Iterator[int]:
            return (place for place, one in enumerate(self.asked) if place >= since and wanted(one))

        async def asked() -> bool:
            return next(places(), None) is not None

        await eventually(asked, "asked for through the proxy")
        return next(places())

    async def relay(self, request: web.Request) -> web.StreamResponse:
        """Hand a request on, and its answer back as it comes."""
        asked = Asked(request.method, request.path, dict(request.query))
        self.asked.append(asked)
        opened_before = self._flows
        is_counted = bool(self._cut_within) and asked.method == "PATCH" and self._cut_within in asked.path
        if is_counted and not self._left:
            await self._never()
        self._left -= is_counted
        kept = {name: value for name, value in request.headers.items() if name.lower() not in _OF_A_HOP}
        async with self.session.request(
            request.method,
            f"{self.upstream}{request.raw_path}",
            headers=kept,
            data=await request.read() or None,
            ssl=self.trust,
            allow_redirects=False,
        ) as answer:
            self._unanswered -= is_counted
            if is_counted and not self._unanswered:
                await self._never()
            back = {name: value for name, value in answer.headers.items() if name.lower() not in _OF_A_HOP}
            response = web.StreamResponse(status=answer.status, headers=back)
            await response.prepare(request)
            # Whoever asked may have gone meanwhile.
            with suppress(ConnectionError):
                async for piece in answer.content.iter_any():
                    await self._until_told(asked, opened_before)
                    await response.write(piece)
                await response.write_eof()
            return response

    async def _never(self) -> None:
        if not self._unanswered:
            self._is_cut.set()
        await asyncio.Event().wait()

    async def _until_told(self, asked: Asked, opened_before: asyncio.Event) -> None:
        is_held = asked.is_watch and self._held and asked.path.endswith(f"/{self._held}")
        if is_held and (self._new_ones_too or opened_before is not self._flows):
            await self._flows.wait()


@asynccontextmanager
async def proxied(api: ApiServer, name: str) -> AsyncIterator[Proxy]:
    """A proxy in front of an API server; ``name``: of whoever goes through it, with the same identity."""
    port, pki = free_port(), api.pki
    identity = api.kubeconfig_named(name).read_text("utf-8")
    kubeconfig = api.programs.folder / f"{api.name}-{name}-proxied.kubeconfig"
    kubeconfig.write_text(identity.replace(api.url, f"https://{LOOPBACK}:{port}"))
    trust = ssl.create_default_context(cafile=str(pki.ca))
    shown = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    shown.load_cert_chain(pki.file("server.crt"), pki.file("server.key"))
    # Watches stay open for minutes, and many at once; what is packed is handed on as it is.
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=None),
        auto_decompress=False,
    )
    async with session:
        proxy = Proxy(kubeconfig, api.url, trust, session)
        app = web.Application(client_max_size=16 << 20)
        app.router.add_route("*", "/{path:.*}", proxy.relay)
        # With 0 it would wait for all that is under way, for ever.
        runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, LOOPBACK, port, ssl_context=shown).start()
            yield proxy
        finally:
            proxy.flow()
            await runner.cleanup()
