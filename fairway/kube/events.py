"""Events about objects, as ``kubectl describe`` shows them: never in the way of what they tell about.

The one idea: an event is worth one write and no trouble. Recording only notes it; a task of its own sends
what has been noted. What repeats is counted and told with the next write about it; what comes too fast, what
does not fit and what fails is dropped and counted.

Aggregation and rates follow client-go ``tools/record/events_cache.go``, v0.36, with fewer writes for what
repeats.
"""

import asyncio
import logging
import random
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar

from fairway.kube.backoff import Backoff
from fairway.kube.client import KubeClient
from fairway.kube.errors import (
    Conflict,
    Denied,
    KubeError,
    NotFound,
    Refused,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from fairway.kube.event_series import EventType, Regarding, Series, cut_message, cut_reason, event_name
from fairway.kube.objects import KubeStruct
from fairway.kube.throttle import TokenBucket

logger = logging.getLogger(__name__)

_T = TypeVar("_T")
_Key = tuple[str, str, str]
_MERGE = "application/merge-patch+json"
_PASSING = (Unreachable, TooManyRequests, ServerError)
"""What may be over when the same write is tried again."""


@dataclass(frozen=True, slots=True)
class EventLimits:
    """How much is written at most, and how much is remembered.

    Of one object: ``object_burst`` different events, then one every ``object_period_s``. Of all: ``burst``
    writes, then ``qps``. An event that repeats is written again after ``repeat_s`` at the earliest, and as a
    new one after ``forget_s`` of silence (servers keep events for an hour). ``attempts``: for one write.
    """

    object_burst: int = 10
    object_period_s: float = 60.0
    qps: float = 5.0
    burst: int = 50
    repeat_s: float = 300.0
    forget_s: float = 3000.0
    queue: int = 1000
    remembered: int = 10_000
    attempts: int = 4


class EventMetrics(Protocol):
    """What is counted; must not raise."""

    def event(self, outcome: str) -> None:
        """What became of an event.

        It was ``written``, ``counted`` as a repetition, or dropped: ``fast``, ``overflow``, ``failed``.
        """


class NullEventMetrics:
    """Counts nothing."""

    def event(self, outcome: str) -> None:
        """Nothing."""


class _Written(KubeStruct, frozen=True):
    """Of the answer nothing matters but that it is one."""


class EventWriter:
    """Records events of ``component`` (what ``kubectl describe`` shows under From).

    ``instance`` names this process. Call `record` from the event loop; `run` sends. ``clock`` is monotonic,
    ``wall_clock`` in seconds since the epoch.
    """

    def __init__(
        self,
        client: KubeClient,
        component: str,
        instance: str,
        *,
        limits: EventLimits | None = None,
        metrics: EventMetrics | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: random.Random | None = None,
    ) -> None:
        self._client = client
        self._component, self._instance = component, instance
        self._limits = limits or EventLimits()
        self._metrics: EventMetrics = metrics or NullEventMetrics()
        self._clock, self._wall_clock, self._sleep = clock, wall_clock, sleep
        self._bucket = TokenBucket(self._limits.qps, self._limits.burst, clock)
        self._series: OrderedDict[_Key, Series] = OrderedDict()
        self._objects: OrderedDict[_Key, TokenBucket] = OrderedDict()
        self._queue: deque[Series] = deque()
        self._news = asyncio.Event()
        self._backoff = Backoff(rng or random.Random())
        self._problem = ""

    def record(self, regarding: Regarding, type: EventType, reason: str, message: str) -> None:
        """Note an event; never waits and never fails.

        ``reason`` is one word in CamelCase; the same reason for the same object is the same event, whatever
        the message, of which the latest is kept; what is too long for the server is cut.
        """
        reason, message = cut_reason(reason), cut_message(message)
        now_s, wall_s = self._clock(), self._wall_clock()
        key = (regarding.kind, regarding.uid or f"{regarding.namespace}/{regarding.name}", reason)
        series = self._series.get(key)
        if series is None or now_s - series.last_s > self._limits.forget_s:
            if not self._is_in_time(key):
                self._metrics.event("fast")
                return
            series = Series(regarding, reason, type, message, wall_s, wall_s, now_s, event_name(regarding))
            self._remember(self._series, key, series)
            self._enqueue(series)
            return
        self._series.move_to_end(key)
        series.type, series.message = type, message
        series.last_s, series.last_wall_s = now_s, wall_s
        series.count += 1
        if series.is_queued or now_s - series.written_s < self._limits.repeat_s:
            self._metrics.event("counted")
        else:
            self._enqueue(series)

    async def run(self) -> None:
        """Send what is recorded until cancelled."""
        while True:
            while not self._queue:
                self._news.clear()
                await self._news.wait()
            wait_s = self._bucket.reserve()
            if wait_s > 0:
                await self._sleep(wait_s)
            # Whatever was first may have been dropped meanwhile.
            if self._queue:
                await self._sleep(await self._send(self._queue.popleft()))

    def _is_in_time(self, key: _Key) -> bool:
        about = (key[0], key[1], "")
        bucket = self._objects.get(about)
        if bucket is None:
            limits = self._limits
            bucket = TokenBucket(1.0 / limits.object_period_s, limits.object_burst, self._clock)
        self._remember(self._objects, about, bucket)
        if bucket.reserve() <= 0:
            return True
        bucket.give_back()
        return False

    def _remember(self, table: OrderedDict[_Key, _T], key: _Key, it: _T) -> None:
        table[key] = it
        table.move_to_end(key)
        if len(table) > self._limits.remembered:
            table.popitem(last=False)

    def _enqueue(self, series: Series) -> None:
        series.is_queued = True
        self._queue.append(series)
        if len(self._queue) > self._limits.queue:
            self._queue.popleft().is_queued = False
            self._metrics.event("overflow")
        self._news.set()

    async def _send(self, series: Series) -> float:
        """Write one event; how long to wait before the next, in seconds."""
        series.is_queued = False
        try:
            await self._write(series)
        except KubeError as error:
            return self._failed(series, error)
        series.written_s, series.failures = self._clock(), 0
        self._backoff.reset()
        self._metrics.event("written")
        return 0.0

    def _failed(self, series: Series, error: KubeError) -> float:
        # Of what is not allowed the client has told, once for all namespaces.
        if str(error) != self._problem and not isinstance(error, Denied):
            logger.warning("an event was not written: %s", error)
        self._problem = str(error)
        series.failures += 1
        if isinstance(error, _PASSING) and series.failures < self._limits.attempts:
            series.is_queued = True
            self._queue.appendleft(series)
            return self._backoff.next_s(error.retry_after_s if isinstance(error, Refused) else None)
        series.failures = 0
        self._metrics.event("failed")
        return 0.0

    async def _write(self, series: Series) -> None:
        if series.is_created:
            try:
                await self._client.patch(series.path, series.repetition(), _Written, content_type=_MERGE)
                return
            except NotFound:
                # The server has forgotten it.
                series.is_created, series.name = False, event_name(series.regarding)
        # Conflict: an earlier attempt got through, and only its answer did not.
        with suppress(Conflict):
            await self._client.post(series.collection, series.new(self._component, self._instance), _Written)
        series.is_created = True
