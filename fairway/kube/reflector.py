"""Keeps a sink equal to one resource of an API server: list once, watch for ever after.

The one idea: a position in the resource's history. With a position the reflector watches from there;
without one it reads a complete list, deletes from the sink what the list did not contain, and takes the
list's position. Every failure is one question: is the position still good?

The initial list comes as a stream where the server offers that (WatchList: ``sendInitialEvents``, ended by
an annotated bookmark), else in pages. Decoding takes turns with whatever else is decoded on the loop, so that
questions are answered in between. Objects are handed to the sink and not kept.

Mirrors client-go ``tools/cache/reflector.go`` v0.36, except that deletions missed while disconnected are
synthesised here and not in a store behind it.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Collection
from typing import Generic, Protocol, TypeVar

from fairway.kube.backoff import Backoff
from fairway.kube.client import JSON, METADATA, METADATA_LIST, KubeClient
from fairway.kube.decoding import Bookmark, Broken, Change, ListPage, ObjectDecoder, Removal, Upsert
from fairway.kube.errors import BadObject, Denied, Forbidden, KubeError, Refused, Silent, Unreachable
from fairway.kube.list_limit import ListInHand
from fairway.kube.objects import object_key
from fairway.kube.observation import NullReflectorMetrics, Phase, ReflectorMetrics, ReflectorState
from fairway.kube.pace import Pace, take_turn
from fairway.kube.position import Position
from fairway.kube.recovery import means_no_watch_list, relist_reason
from fairway.kube.resource import KubeObjectLike, ResourceKind
from fairway.kube.status import Status, refusal_from_status

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=KubeObjectLike)
T_contra = TypeVar("T_contra", contravariant=True)

PAGE_SIZE = 500
IDLE_TIMEOUT_S = 90.0
CATCH_UP_S = 5
"""How long a watch may take to catch up before all is listed anew."""
_HURRIED_S = 3
"""A server sends a bookmark two seconds before a watch ends (apiserver, cacher.nextBookmarkTime)."""
_WATCH_S = (300, 600)
_ABRUPT_S = 1.0
_STABLE_S = 10.0


class Sink(Protocol[T_contra]):
    """Where a reflector puts objects. It is called on the event loop, by this reflector only."""

    def keys(self) -> Collection[str]:
        """The `object_key` of everything now held; cheap, such as a dictionary's key view."""

    def upsert(self, obj: T_contra) -> None:
        """The object exists and looks like this; it may be unchanged."""

    def delete(self, key: str) -> None:
        """The object is gone; the key may be unknown."""


class Reflector(Generic[T]):
    """Feeds ``sink`` with ``resource`` until cancelled.

    ``on_state`` is called when the phase, the sync state or the error changes, not for every event. A stream
    that is silent for ``idle_timeout_s`` is taken for half-open (a server sends a bookmark about once a
    minute). ``metrics`` and ``on_state`` must not raise. ``clock`` is monotonic.
    """

    def __init__(
        self,
        client: KubeClient,
        resource: ResourceKind[T],
        sink: Sink[T],
        *,
        metrics: ReflectorMetrics | None = None,
        on_state: Callable[[ReflectorState], None] | None = None,
        idle_timeout_s: float = IDLE_TIMEOUT_S,
        page_size: int = PAGE_SIZE,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: random.Random | None = None,
    ) -> None:
        self._client = client
        self._resource = resource
        self._sink = sink
        self._metrics: ReflectorMetrics = metrics or NullReflectorMetrics()
        self._on_state = on_state
        self._idle_timeout_s = idle_timeout_s
        self._page_size = page_size
        self._clock = clock
        self._sleep = sleep
        self._rng = rng or random.Random()
        self._decoder = ObjectDecoder(resource)
        self._backoff = Backoff(self._rng)
        self._position = Position()
        self._streams_initial = True
        self._silent_streams = 0
        self._phase = Phase.CONNECTING
        self._since_s = clock()
        self._synced_once = False
        self._last_contact_s: float | None = None
        self._last_error: str | None = None
        self._is_forbidden = False
        self._following: asyncio.Task[None] | None = None
        self._hurries = False
        self._moved = asyncio.Event()

    @property
    def state(self) -> ReflectorState:
        """How it is doing at this moment."""
        return ReflectorState(
            resource=self._resource.name,
            phase=self._phase,
            synced_once=self._synced_once,
            since_s=self._since_s,
            last_contact_s=self._last_contact_s,
            last_error=self._last_error,
            resource_version=self._position.resource_version,
            objects=len(self._sink.keys()),
            is_forbidden=self._is_forbidden,
        )

    async def run(self) -> None:
        """Follow the resource until cancelled; every failure is reported, waited out and tried again."""
        while True:
            self._following = asyncio.create_task(self._follow())
            try:
                await self._following
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or task.cancelling() or not self._following.cancelled():
                    raise
                # Begun anew by `catch_up`.
            except KubeError as error:
                await self._sleep(self._failed(error))
            except Exception as error:
                # A defect here or in the sink: what was applied is unknown, so begin again from a list.
                logger.exception("%s: reflector failed", self._resource.name)
                self._metrics.error(self._resource.name, "internal")
                self._give_up_position("internal")
                self._disconnected(f"{type(error).__name__}: {error}")
                await self._sleep(self._backoff.next_s())

    async def catch_up(self) -> None:
        """Return once the sink has all that the server had when this was called, as a consistent read tells.

        A stream can be half-open, or lag behind, without any sign of it. So what is not known yet is fetched
        by a new stream from where the old one stood; if that does not get there soon, by a list. Raises
        KubeError where the server does not say how far it is.
        """
        params = {**self._resource.params, "limit": "1"}
        page = await self._client.get_json(self._resource.path, ListPage, params, accept=METADATA_LIST)
        version = page.metadata.resource_version
        if self._position.is_at(version):
            return
        self._begin_anew()
        try:
            async with asyncio.timeout(CATCH_UP_S):
                await self._reached(version)
        except TimeoutError:
            self._give_up_position("behind")
            self._begin_anew()
            await self._reached(version)

    def _begin_anew(self) -> None:
        """End the stream there is; the next one is short, so that it soon tells how far it is."""
        self._hurries = True
        if self._phase is not Phase.LISTING and self._following is not None:
            self._following.cancel()

    async def _reached(self, resource_version: str) -> None:
        while not self._position.is_at(resource_version):
            if self._is_forbidden:
                raise Forbidden(self._where, 403, "its watch is refused")
            self._moved.clear()
            await self._moved.wait()

    async def _follow(self) -> None:
        # Many may begin at once, and each opens a connection.
        await take_turn()
        if self._position.resource_version:
            self._enter(Phase.CONNECTING)
            await self._watch(None)
        elif self._streams_initial:
            self._enter(Phase.LISTING)
            try:
                await self._watch(set())
            except Refused as error:
                if self._position.resource_version or not means_no_watch_list(error):
                    raise
                await self._list()
                # Only now: a resource that is not served at all refuses the stream as well.
                self._streams_initial = False
        else:
            self._enter(Phase.LISTING)
            await self._list()

    async def _list(self) -> None:
        started_s = self._clock()
        first = {**self._resource.params, "limit": str(self._page_size)}
        accept = METADATA_LIST if self._resource.metadata_only else JSON
        params, seen, resource_version = first, set[str](), ""
        while True:
            with ListInHand() as in_hand:
                page = await self._client.get_json(
                    self._resource.path, ListPage, params, accept=accept, began=in_hand.begin
                )
                self._last_contact_s = self._clock()
                # The version of the first page is the moment all pages show.
                resource_version = resource_version or page.metadata.resource_version
                await self._take(page, seen)
            if not page.metadata.continue_:
                break
            params = {**first, "continue": page.metadata.continue_}
        if not resource_version:
            raise BadObject(
                f"{self._where}: a list without metadata.resourceVersion; expected one to watch from: "
                "is this an API server?"
            )
        await self._complete_list(seen, resource_version, started_s)

    async def _take(self, page: ListPage, seen: set[str]) -> None:
        pace = Pace(self._clock)
        for raw in page.items or ():
            if pace.is_due():
                await pace.pause()
            item = self._decoder.item(raw)
            if isinstance(item, Broken):
                self._skip(item, seen)
            else:
                self._sink.upsert(item)
                seen.add(object_key(item.metadata))

    async def _watch(self, seen: set[str] | None) -> None:
        """Follow one stream to its end.

        ``seen`` is None to go on from the position. Otherwise the stream begins with the initial list, whose
        keys are collected in ``seen``, and the position is only taken when that list is complete.
        """
        started_s, received = self._clock(), 0
        stream = self._client.stream(
            self._resource.path,
            self._watch_params(seen is not None),
            idle_timeout_s=self._idle_timeout_s,
            accept=METADATA if self._resource.metadata_only else JSON,
        )
        with ListInHand() as in_hand:
            async with stream as lines:
                self._last_contact_s = opened_s = self._clock()
                if seen is None:
                    self._enter(Phase.WATCHING)
                else:
                    await in_hand.begin()
                pace = Pace(self._clock)
                try:
                    async for line in lines:
                        if pace.is_due():
                            await pace.pause()
                        received += 1
                        self._silent_streams = 0
                        self._last_contact_s = self._clock()
                        change = self._decoder.event(line)
                        if seen is None:
                            self._backoff.reset()
                            self._apply(change)
                        elif isinstance(change, Bookmark) and change.ends_initial_events:
                            await self._complete_list(seen, change.resource_version, started_s)
                            in_hand.end()
                            self._enter(Phase.WATCHING)
                            seen = None
                        else:
                            self._collect(change, seen)
                finally:
                    if seen is None and self._clock() - opened_s >= _STABLE_S:
                        self._backoff.reset()
        if seen is not None:
            raise Unreachable(
                f"{self._where}: the stream ended within the initial list; expected its end mark"
            )
        if received == 0 and self._clock() - opened_s < _ABRUPT_S:
            raise Unreachable(f"{self._where}: the watch ended at once; expected it to stay open: retrying")

    def _watch_params(self, with_initial_list: bool) -> dict[str, str]:
        params = {
            **self._resource.params,
            "watch": "1",
            "allowWatchBookmarks": "true",
            # Spread, so that not all watches of a server end in the same second.
            "timeoutSeconds": str(self._rng.randint(*_WATCH_S)),
        }
        if self._hurries and not with_initial_list:
            self._hurries = False
            params["timeoutSeconds"] = str(_HURRIED_S)
        if with_initial_list:
            return params | {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        return params | {"resourceVersion": self._position.resource_version}

    def _collect(self, change: Change[T], seen: set[str]) -> None:
        """Take one event before the end of the initial list; these come in the order of keys, not of time."""
        match change:
            case Upsert():
                self._sink.upsert(change.obj)
                seen.add(object_key(change.obj.metadata))
            case Removal():
                key = object_key(change.metadata)
                self._sink.delete(key)
                seen.discard(key)
            case Broken():
                self._skip(change, seen)
            case Status():
                raise refusal_from_status(self._where, change)

    def _apply(self, change: Change[T]) -> None:
        match change:
            case Upsert():
                if self._is_new(change.obj.metadata.resource_version):
                    self._sink.upsert(change.obj)
                    self._metrics.event(self._resource.name, change.type)
            case Removal():
                if self._is_new(change.metadata.resource_version):
                    self._sink.delete(object_key(change.metadata))
                    self._metrics.event(self._resource.name, "DELETED")
            case Bookmark():
                # Often repeats the last version, which is no duplicate of anything.
                self._position.advance(change.resource_version)
                self._moved.set()
                self._metrics.event(self._resource.name, "BOOKMARK")
            case Broken():
                self._skip(change, set())
            case Status():
                raise refusal_from_status(self._where, change)

    def _is_new(self, resource_version: str) -> bool:
        is_new = self._position.advance(resource_version)
        self._moved.set()
        if not is_new:
            self._metrics.dropped(self._resource.name)
        return is_new

    def _skip(self, broken: Broken, seen: set[str]) -> None:
        """Report it; what the sink holds of that object from before stays, as it does exist."""
        logger.warning("%s", broken.message)
        self._metrics.undecodable(self._resource.name)
        if broken.key is not None:
            seen.add(broken.key)

    async def _complete_list(self, seen: set[str], resource_version: str, started_s: float) -> None:
        """Delete what vanished while nobody watched, and stand where the list stands."""
        pace, deleted = Pace(self._clock), 0
        for key in tuple(self._sink.keys()):
            if pace.is_due():
                await pace.pause()
            if key not in seen:
                self._sink.delete(key)
                deleted += 1
        self._position.restart(resource_version)
        self._moved.set()
        self._metrics.listed(self._resource.name, len(seen), deleted, self._clock() - started_s)
        self._synced_once = True
        self._notify()

    def _failed(self, error: KubeError) -> float:
        """Take note of a failure and answer how long to wait, in seconds."""
        self._metrics.error(self._resource.name, error.label)
        if isinstance(error, Silent):
            self._silent_streams += 1
            self._metrics.half_open(self._resource.name)
        pause_s = self._backoff.next_s(error.retry_after_s if isinstance(error, Refused) else None)
        reason = relist_reason(error, self._silent_streams, self._backoff.failures)
        if reason is not None:
            self._give_up_position(reason)
        if not isinstance(error, Denied):
            # What is not allowed has been told by the client, once. A server that has nothing to tell, not
            # even bookmarks, is as silent as one that is gone; of the latter the next attempt tells.
            is_usual = reason == "expired" or isinstance(error, Silent)
            logger.log(logging.INFO if is_usual else logging.WARNING, "%s", error)
        self._disconnected(str(error), is_forbidden=isinstance(error, Forbidden))
        return pause_s

    def _give_up_position(self, reason: str) -> None:
        # What fails before the first position, such as a resource that is not served, is no relist.
        if self._position.resource_version or reason == "expired":
            self._metrics.relist(self._resource.name, reason)
        self._position.restart("")
        self._silent_streams = 0

    def _disconnected(self, error: str, *, is_forbidden: bool = False) -> None:
        self._last_error, self._is_forbidden = error, is_forbidden
        self._moved.set()
        self._enter(Phase.DISCONNECTED)

    def _enter(self, phase: Phase) -> None:
        if phase is Phase.WATCHING:
            self._last_error, self._is_forbidden = None, False
        self._phase = phase
        self._since_s = self._clock()
        self._notify()

    def _notify(self) -> None:
        if self._on_state is not None:
            self._on_state(self.state)

    @property
    def _where(self) -> str:
        return f"{self._client.server}: GET {self._resource.path}"
