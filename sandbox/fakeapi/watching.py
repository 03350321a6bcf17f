"""Watches: what was there at the beginning, then everything that happens, until their time is up."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing

from aiohttp import web

from sandbox.fakeapi import answers
from sandbox.fakeapi.forms import Form, form_of
from sandbox.fakeapi.seen import TRUE, Seen
from sandbox.fakeapi.selection import Selection
from sandbox.fakeapi.store import ApiFault, Collection, Store

Gate = Callable[[Seen], Awaitable[None]]
"""What lets through, now or later, what is to be told to whoever asked this."""

_BATCH = 500
_BOOKMARK_BEFORE_END_S, _LEAST_PAUSE_S = 2.0, 0.001
"""As apiserver/pkg/storage/cacher (cacheWatcher.nextBookmarkTime)."""


class Watches:
    """``open`` counts those that are being served; ``changed`` is set when that changes."""

    def __init__(self, store: Store, bookmark_every_s: float, changed: asyncio.Event) -> None:
        self.open = 0
        self.serves_initial_events = True
        self.cuts_initial_events = False
        self._store, self._bookmark_every_s, self._changed = store, bookmark_every_s, changed
        self._round = 0

    def end(self) -> None:
        """End every open watch in order, as if its time were up."""
        self._round += 1
        for collection in self._store.collections.values():
            for wakeup in collection.wakeups:
                wakeup.set()

    async def serve(
        self,
        request: web.BaseRequest,
        seen: Seen,
        collection: Collection,
        wanted: Selection,
        gate: Gate,
    ) -> web.StreamResponse:
        wakeup, form = asyncio.Event(), form_of(seen.headers)
        first, number = self._opening(collection, wanted, form, seen.params)
        if cut := self.cuts_initial_events and "sendInitialEvents" in seen.params:
            self.cuts_initial_events = False
            first.pop()
        collection.wakeups.add(wakeup)
        self.open += 1
        self._changed.set()
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        try:
            await response.prepare(request)
            for start in range(0, len(first), _BATCH):
                await response.write(b"".join(first[start : start + _BATCH]))
            if cut:
                return response
            news = self._news(collection, wanted, form, number, wakeup, seen.params)
            async with aclosing(news):
                async for lines in news:
                    await gate(seen)
                    await response.write(lines)
            await response.write_eof()
        except ConnectionResetError:
            # The client left.
            return response
        finally:
            collection.wakeups.discard(wakeup)
            self.open -= 1
            self._changed.set()
        return response

    def _opening(
        self, collection: Collection, wanted: Selection, form: Form, params: Mapping[str, str]
    ) -> tuple[list[bytes], int]:
        """The first lines of a watch, and the number of the event with which it goes on."""
        initial = params.get("sendInitialEvents") in TRUE
        if initial and not self.serves_initial_events:
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
            answers.event("ADDED", form.single(collection, record))
            for _, record in sorted(collection.records.items())
            if wanted.matches(record)
        ]
        if initial:
            lines.append(answers.bookmark(collection, form, self._store.version, ends_initial_events=True))
        return lines, collection.next_event

    async def _news(
        self,
        collection: Collection,
        wanted: Selection,
        form: Form,
        number: int,
        wakeup: asyncio.Event,
        params: Mapping[str, str],
    ) -> AsyncGenerator[bytes, None]:
        """What a watch is told from event ``number`` on, until its time is up or it was too slow."""
        loop, watch_round = asyncio.get_running_loop(), self._round
        deadline_s = loop.time() + float(params.get("timeoutSeconds", 1800))
        while watch_round == self._round:
            wakeup.clear()
            try:
                events = collection.events_from(number)
            except ApiFault as fault:
                yield answers.event("ERROR", answers.status(fault))
                return
            number = collection.next_event
            if lines := b"".join(answers.change(collection, form, wanted, event) for event in events):
                yield lines
            left_s = deadline_s - loop.time()
            before_end_s = left_s - _BOOKMARK_BEFORE_END_S
            # Clocks of floats never come to an end by steps that are too small to count.
            pause_s = min(before_end_s if before_end_s > _LEAST_PAUSE_S else left_s, self._bookmark_every_s)
            try:
                async with asyncio.timeout(max(0.0, pause_s)):
                    await wakeup.wait()
            except TimeoutError:
                if params.get("allowWatchBookmarks") in TRUE:
                    yield answers.bookmark(collection, form, self._store.version)
                if left_s <= pause_s:
                    return
