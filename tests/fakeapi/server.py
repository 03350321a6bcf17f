"""The HTTP side of the fake: requests, watches, and faults on request."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Self

import msgspec
from aiohttp import web

from tests.fakeapi import answers
from tests.fakeapi.paging import Pages
from tests.fakeapi.patching import PatchFailed, json_patch, merge_patch
from tests.fakeapi.selection import BadSelector, Selection, selection
from tests.fakeapi.store import ApiFault, Collection, Event, Obj, Store
from tests.fakeapi.targets import Target, target

_BATCH = 500
_TRUE = ("1", "true")
_PATCHES: Mapping[str, Callable[[Any, Any], Any]] = {
    "application/merge-patch+json": merge_patch,
    "application/json-patch+json": json_patch,
}


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    peer_certificate: Mapping[str, Any] | None

    @property
    def is_watch(self) -> bool:
        return self.params.get("watch") in _TRUE


@dataclass(slots=True)
class _Fault:
    code: int
    times: int
    concerns: Callable[[Seen], bool]
    retry_after_s: int | None


class FakeApi:
    """Serves on loopback from ``async with`` on; ``url`` stays the same over restarts, and so does the state.

    With ``tokens``, requests need one of them as bearer token. Paths are those of the API. ``seen`` lists
    the requests so far, ``watches`` counts the open ones.
    """

    def __init__(
        self,
        *,
        tokens: Iterable[str] | None = None,
        tls: ssl.SSLContext | None = None,
        port: int = 0,
        bookmark_every_s: float = 60.0,
    ) -> None:
        self.store = Store()
        self.tokens = None if tokens is None else set(tokens)
        self.seen: list[Seen] = []
        self.watches = 0
        self._tls, self._port, self._bookmark_every_s = tls, port, bookmark_every_s
        self._serves_watch_list = True
        self._cuts_initial_events = False
        self._watch_round = 0
        self._faults: list[_Fault] = []
        self._answering = asyncio.Event()
        self._answering.set()
        self._happened = asyncio.Event()
        self._pages = Pages(self.store)
        self._server: asyncio.Server | None = None

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
            change(obj)
            return obj

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
            self._server.close()
            self.drop_connections()
            self.answer()
            await self._http.shutdown(0)
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
        self,
        code: int,
        times: int = 1,
        *,
        when: Callable[[Seen], bool] = lambda seen: True,
        retry_after_s: int | None = None,
    ) -> None:
        """Answer the next ``times`` requests for which ``when`` holds with an error."""
        self._faults.append(_Fault(code, times, when, retry_after_s))

    def end_watches(self) -> None:
        """End every open watch in order, as if its time were up."""
        self._watch_round += 1
        for collection in self.store.collections.values():
            for wakeup in collection.wakeups:
                wakeup.set()

    def cut_initial_events(self) -> None:
        """The next initial list that is streamed breaks off just before its end mark."""
        self._cuts_initial_events = True

    def compact(self) -> None:
        """Forget the history and the continue tokens; open watches have seen everything already."""
        self.store.compact()
        self._pages.expire()

    def expire_tokens(self, *valid: str) -> None:
        """From now on only ``valid`` tokens count."""
        self.tokens = set(valid)

    def disable_watchlist(self) -> None:
        """Refuse ``sendInitialEvents``, as servers without that feature do."""
        self._serves_watch_list = False

    # HTTP.

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        peer = request.transport.get_extra_info("peercert") if request.transport else None
        seen = Seen(request.method, request.path, dict(request.query), request.headers, peer)
        self.seen.append(seen)
        self._happened.set()
        await self._answering.wait()
        try:
            self._admit(seen)
            if request.path in ("/version", "/healthz", "/livez", "/readyz"):
                return web.json_response({"gitVersion": "v1.36.0-fake", "major": "1", "minor": "36"})
            at = target(self.store, request.path)
            if request.method == "GET" and seen.is_watch:
                return await self._watch(request, at.collection, _selected(seen, at))
            if request.method == "GET" and at.key is None:
                page = self._pages.page(at.collection, _selected(seen, at), seen.params)
                return answers.json(200, page, seen.headers)
            return await self._object(request, at)
        except ApiFault as fault:
            return answers.failure(fault)
        except BadSelector as error:
            return answers.failure(ApiFault(400, "BadRequest", str(error)))
        except PatchFailed as error:
            return answers.failure(ApiFault(422, "Invalid", str(error)))
        except (msgspec.DecodeError, AttributeError) as error:
            return answers.failure(ApiFault(400, "BadRequest", f"the body is no object: {error}"))

    def _admit(self, seen: Seen) -> None:
        if self.tokens is not None:
            scheme, _, token = seen.headers.get("Authorization", "").partition(" ")
            if scheme.lower() != "bearer" or token not in self.tokens:
                raise ApiFault(401, "Unauthorized", "Unauthorized")
        for fault in self._faults:
            if fault.times > 0 and fault.concerns(seen):
                fault.times -= 1
                reason = answers.REASONS.get(fault.code, "Failure")
                raise ApiFault(fault.code, reason, "a fault was asked for", fault.retry_after_s)

    async def _object(self, request: web.BaseRequest, at: Target) -> web.Response:
        collection, body = at.collection, await request.read()
        if request.method == "POST" and at.key is None:
            obj = msgspec.json.decode(body)
            if collection.name != "nodes":
                # Whoever creates does not say how it went; nodes are registered together with their status.
                obj.pop("status", None)
            if collection.name == "pods":
                obj["status"] = {"phase": "Pending"}
            record = self.store.create(collection, at.namespace, obj)
            return answers.json(201, collection.typed(record))
        key = at.object_key
        part = "status" if at.part == "status" else "spec"
        match request.method:
            case "GET":
                record = self.store.get(collection, key)
            case "PUT":
                replacement = msgspec.json.decode(body)
                record = self.store.update(collection, key, lambda _: replacement, part)
            case "PATCH":
                apply = _PATCHES.get(request.content_type)
                if apply is None:
                    raise ApiFault(415, "UnsupportedMediaType", f"patch type {request.content_type}")
                patch = msgspec.json.decode(body)
                record = self.store.update(collection, key, lambda obj: apply(obj, patch), part)
            case "DELETE":
                wanted = (msgspec.json.decode(body) if body else {}).get("preconditions") or {}
                record = self.store.delete(collection, key, wanted)
                if key not in collection.records:
                    return answers.json(200, answers.SUCCESS)
            case other:
                raise ApiFault(405, "MethodNotAllowed", f"{other} is not supported")
        return answers.json(200, collection.typed(record))

    async def _watch(
        self, request: web.BaseRequest, collection: Collection, wanted: Selection
    ) -> web.StreamResponse:
        wakeup = asyncio.Event()
        first, number = self._opening(collection, wanted, request.query)
        if cut := self._cuts_initial_events and "sendInitialEvents" in request.query:
            self._cuts_initial_events = False
            first.pop()
        collection.wakeups.add(wakeup)
        self.watches += 1
        self._happened.set()
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        try:
            await response.prepare(request)
            for start in range(0, len(first), _BATCH):
                await response.write(b"".join(first[start : start + _BATCH]))
            if cut:
                return response
            news = self._news(collection, wanted, number, wakeup, request.query)
            async with aclosing(news):
                async for lines in news:
                    await self._answering.wait()
                    await response.write(lines)
            await response.write_eof()
        except ConnectionResetError:
            # The client left.
            return response
        finally:
            collection.wakeups.discard(wakeup)
            self.watches -= 1
            self._happened.set()
        return response

    def _opening(
        self, collection: Collection, wanted: Selection, params: Mapping[str, str]
    ) -> tuple[list[bytes], int]:
        """The first lines of a watch, and the number of the event with which it goes on."""
        initial = params.get("sendInitialEvents") in _TRUE
        if initial and not self._serves_watch_list:
            raise ApiFault(422, "Invalid", "sendInitialEvents: Forbidden: not enabled on this server")
        if initial and params.get("resourceVersionMatch") != "NotOlderThan":
            raise ApiFault(422, "Invalid", "resourceVersionMatch: Forbidden: must be NotOlderThan")
        asked = params.get("resourceVersion", "")
        if not initial and asked not in ("", "0"):
            if not asked.isdecimal():
                raise ApiFault(500, "InternalError", f"resourceVersion: Invalid value: {asked!r}")
            # Too old a version is told within the stream.
            return [], collection.event_after(int(asked))
        lines = [
            answers.event("ADDED", collection.typed(record))
            for _, record in sorted(collection.records.items())
            if wanted.matches(record)
        ]
        if initial:
            lines.append(answers.bookmark(collection, self.store.version, ends_initial_events=True))
        return lines, collection.next_event

    async def _news(
        self,
        collection: Collection,
        wanted: Selection,
        number: int,
        wakeup: asyncio.Event,
        params: Mapping[str, str],
    ) -> AsyncGenerator[bytes, None]:
        """What a watch is told from event ``number`` on, until its time is up or it was too slow."""
        loop, watch_round = asyncio.get_running_loop(), self._watch_round
        deadline_s = loop.time() + float(params.get("timeoutSeconds", 1800))
        while watch_round == self._watch_round:
            wakeup.clear()
            try:
                events = collection.events_from(number)
            except ApiFault as fault:
                yield answers.event("ERROR", answers.status(fault))
                return
            number = collection.next_event
            if lines := b"".join(answers.change(collection, wanted, event) for event in events):
                yield lines
            left_s = deadline_s - loop.time()
            try:
                async with asyncio.timeout(max(0.0, min(left_s, self._bookmark_every_s))):
                    await wakeup.wait()
            except TimeoutError:
                if params.get("allowWatchBookmarks") in _TRUE:
                    yield answers.bookmark(collection, self.store.version)
                if left_s <= self._bookmark_every_s:
                    return


def _selected(seen: Seen, at: Target) -> Selection:
    return selection(at.namespace, seen.params.get("labelSelector", ""), seen.params.get("fieldSelector", ""))
