"""The HTTP side of the fake: requests, watches, and faults on request."""

import asyncio
import ssl
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Self

import msgspec
import yaml
from aiohttp import web

from sandbox.fakeapi import answers, discovery
from sandbox.fakeapi.access import Access
from sandbox.fakeapi.admission import Admission
from sandbox.fakeapi.authorization import Authorization
from sandbox.fakeapi.faults import ConnectionCut, Cut, Fault, Faults
from sandbox.fakeapi.forms import form_of
from sandbox.fakeapi.listening import stop_listening
from sandbox.fakeapi.objects import Objects
from sandbox.fakeapi.paging import Pages
from sandbox.fakeapi.patching import PatchFailed
from sandbox.fakeapi.seen import Seen, Which, any_request
from sandbox.fakeapi.selection import BadSelector, Selection, selection
from sandbox.fakeapi.self_reviews import SelfReviews
from sandbox.fakeapi.store import ApiFault, Event, Obj, Store
from sandbox.fakeapi.targets import Target, target
from sandbox.fakeapi.watching import Watches
from sandbox.fakeapi.writes import WriteLog

COUNTS_PATH = "/fake/counts"
"""Where other processes read what `WriteLog.counts` has: ``{"total": n, "counts": [[..., n], ...]}``."""


class FakeApi:
    """Serves on loopback from ``async with`` on; ``url`` stays the same over restarts, and so does the state.

    With ``tokens``, requests need one of them as bearer token. Paths are those of the API. ``seen`` lists the
    requests so far and ``writes`` those that changed something (counts only, without ``keeps_requests``);
    ``watches`` counts the open ones; ``admission`` calls the webhooks whose configurations are stored;
    ``access`` answers who somebody is and what that one may do.
    """

    def __init__(
        self,
        *,
        tokens: Iterable[str] | None = None,
        tls: ssl.SSLContext | None = None,
        port: int = 0,
        bookmark_every_s: float = 60.0,
        keeps_requests: bool = True,
    ) -> None:
        self.store = Store()
        self.tokens = None if tokens is None else set(tokens)
        self.seen: list[Seen] = []
        self.writes = WriteLog(keeps_entries=keeps_requests)
        self.faults = Faults()
        self.admission = Admission(self.store)
        self.authorization: Authorization | None = None
        self.access = Access()
        self.self_reviews = SelfReviews()
        self._tls, self._port, self._keeps_requests = tls, port, keeps_requests
        self._answering = asyncio.Event()
        self._answering.set()
        self._happened = asyncio.Event()
        self._pages = Pages(self.store)
        self._objects = Objects(self.store, self.admission, self.writes)
        self._watches = Watches(self.store, bookmark_every_s, self._happened)
        self._server: asyncio.Server | None = None

    @property
    def watches(self) -> int:
        return self._watches.open

    @property
    def url(self) -> str:
        return f"{'http' if self._tls is None else 'https'}://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.refuse()

    # State, without the detour over HTTP.

    def create(self, path: str, obj: Obj) -> Obj:
        """``path`` of the collection; a status is kept."""
        at = target(self.store, path)
        return self.store.create(at.collection, at.namespace, dict(obj)).decode()

    def update(self, path: str, change: Callable[[Obj], object]) -> Obj:
        """``change`` edits the object in place; spec and status alike."""
        at = target(self.store, path)

        def changed(obj: Obj) -> Obj:
            edited = deepcopy(obj)
            change(edited)
            return edited

        return self.store.update(at.collection, at.object_key, changed, "all").decode()

    def delete(self, path: str) -> None:
        at = target(self.store, path)
        self.store.delete(at.collection, at.object_key, {})

    def load(self, path: str, objects: Iterable[Obj]) -> None:
        """Many at once, without events; namespaces are taken from the objects."""
        self.store.load(target(self.store, path).collection, objects)

    def emit(self, path: str, line: bytes) -> None:
        """Send ``line`` to every open watch of the collection, as it is."""
        target(self.store, path).collection.record_event(Event(self.store.version, verbatim=line + b"\n"))

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something that a request, or the begin or end of a watch, makes true."""
        async with asyncio.timeout(20):
            while not condition():
                self._happened.clear()
                await self._happened.wait()

    # Faults.

    async def start(self) -> None:
        """Listen (again)."""
        server = web.Server(self._handle, access_log=None, handler_cancellation=True)
        self._http = server
        self._server = await asyncio.get_running_loop().create_server(
            server, "127.0.0.1", self._port, ssl=self._tls, reuse_address=True
        )
        self._port = self._server.sockets[0].getsockname()[1]

    async def refuse(self) -> None:
        """Stop listening and cut every connection, until ``start``."""
        if self._server is not None:
            await stop_listening(self._server)
            self.drop_connections()
            self.answer()
            await self._http.shutdown(0)
            await self.admission.close()
            self._server = None

    def drop_connections(self) -> None:
        """Cut every connection as a crash would."""
        for connection in self._http.connections:
            if connection.transport is not None:
                connection.transport.abort()

    def hang(self) -> None:
        """Accept and stay silent, also on open watches, until ``answer``."""
        self._answering.clear()

    def answer(self) -> None:
        """End ``hang``."""
        self._answering.set()

    def fail(
        self, code: int, times: int = 1, *, when: Which = any_request, retry_after_s: int | None = None
    ) -> None:
        """Answer the next ``times`` requests for which ``when`` holds with an error."""
        self.faults.add(Fault(when, times, code=code, retry_after_s=retry_after_s))

    def delay(self, delay_s: float, times: int = 1, *, when: Which = any_request) -> None:
        """Heed the next ``times`` requests for which ``when`` holds only after ``delay_s``."""
        self.faults.add(Fault(when, times, delay_s=delay_s))

    def cut(self, cut: Cut, times: int = 1, *, when: Which = any_request) -> None:
        """Cut the connection of the next ``times`` requests for which ``when`` holds."""
        self.faults.add(Fault(when, times, cut=cut))

    def part(self, when: Which) -> None:
        """Neither hear these requests nor answer those under way, nor their watches, until ``heal``."""
        self.faults.part(when)

    def heal(self) -> None:
        """End ``part``: what was held up arrives now."""
        self.faults.heal()

    def serve(self, path: str, *, served: bool = True) -> None:
        """Serve a collection, or with ``served`` False do not, as if its CRD were absent."""
        group_version, _, resource = path.removeprefix("/apis/").removeprefix("/api/").rpartition("/")
        self.store.collection(group_version, resource).is_served = served
        self.end_watches()

    def end_watches(self) -> None:
        """End every open watch in order, as if its time were up."""
        self._watches.end()

    def cut_initial_events(self) -> None:
        """The next initial list that is streamed breaks off just before its end mark."""
        self._watches.cuts_initial_events = True

    def compact(self) -> None:
        """Forget the history and the continue tokens; open watches have seen everything already."""
        self.store.compact()
        self._pages.expire()

    def expire_tokens(self, *valid: str) -> None:
        """From now on only ``valid`` tokens count."""
        self.tokens = set(valid)

    def disable_watchlist(self) -> None:
        """Refuse ``sendInitialEvents``, as servers without that feature do."""
        self._watches.serves_initial_events = False

    # HTTP.

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        peer = request.transport.get_extra_info("peercert") if request.transport else None
        seen = Seen(request.method, request.path, dict(request.query), request.headers, peer)
        if self._keeps_requests:
            self.seen.append(seen)
        self._happened.set()
        await self._answering.wait()
        try:
            self._authenticate(seen)
            if self.authorization is not None:
                self.authorization.check(seen)
            cut = await self.faults.before(seen)
            answer = await self._answered(request, seen)
            if cut is Cut.AFTER:
                raise ConnectionCut
            await self.faults.reachable(seen)
        except ConnectionCut:
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        except ApiFault as fault:
            return answers.failure(fault)
        except BadSelector as error:
            return answers.failure(ApiFault(400, "BadRequest", str(error)))
        except PatchFailed as error:
            return answers.failure(ApiFault(422, "Invalid", str(error)))
        except (msgspec.DecodeError, yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
            return answers.failure(ApiFault(400, "BadRequest", f"the body is no object: {error!r}"))
        return answer

    async def _answered(self, request: web.BaseRequest, seen: Seen) -> web.StreamResponse:
        if seen.path in ("/version", "/healthz", "/livez", "/readyz"):
            return web.json_response({"gitVersion": "v1.36.0-fake", "major": "1", "minor": "36"})
        if seen.path == COUNTS_PATH:
            counts = [[*what, count] for what, count in sorted(self.writes.counts.items())]
            return answers.json(200, msgspec.json.encode({"total": self.writes.total, "counts": counts}))
        if seen.method == "POST":
            body = await request.read()
            review = self.access.answer(seen.path, body) or self.self_reviews.answer(seen.path, body)
            if review is not None:
                return answers.json(201, review)
        group_version = discovery.group_version_of(seen.path)
        if group_version is not None and seen.method == "GET":
            return answers.json(200, discovery.resources(self.store, group_version))
        at = target(self.store, seen.path)
        if seen.method == "GET" and seen.is_watch:
            return await self._watches.serve(request, seen, at.collection, _selected(seen, at), self._gate)
        if seen.method == "GET" and at.key is None:
            page = self._pages.page(at.collection, form_of(seen.headers), _selected(seen, at), seen.params)
            return answers.json(200, page, seen.headers)
        return await self._objects.answer(seen, at, await request.read())

    def _authenticate(self, seen: Seen) -> None:
        if self.tokens is not None:
            scheme, _, token = seen.headers.get("Authorization", "").partition(" ")
            if scheme.lower() != "bearer" or token not in self.tokens:
                raise ApiFault(401, "Unauthorized", "Unauthorized")

    async def _gate(self, seen: Seen) -> None:
        await self._answering.wait()
        await self.faults.reachable(seen)


def _selected(seen: Seen, at: Target) -> Selection:
    return selection(at.namespace, seen.params.get("labelSelector", ""), seen.params.get("fieldSelector", ""))
