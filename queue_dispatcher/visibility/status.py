"""Statuses of queues, flavors and classes: counts, usage, whether they admit, what has no effect; seldom.

At most one write per queue in five seconds, and only where something has changed; never positions or reasons
of single workloads, which change with every admission (`queue_dispatcher.visibility` tells those).
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

import msgspec

from fairway.kube.client import KubeClient
from fairway.kube.errors import Denied, KubeError, NotFound, Refused, TooManyRequests
from fairway.kube.objects import KubeStruct, ObjectMeta
from fairway.kube.pace import Pace
from fairway.kube.resource import ResourceKind
from queue_dispatcher.api.effect import Stated, unshared, without_effect
from queue_dispatcher.api.history import History
from queue_dispatcher.api.kinds import CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS, SERVICE_CLASSES
from queue_dispatcher.api.local_queue import LocalQueue
from queue_dispatcher.api.reading.history import cluster_queue_history, local_queue_history
from queue_dispatcher.api.status import (
    ClusterQueueHistory,
    ClusterQueueStatus,
    ConditionsStatus,
    FlavorUsage,
    LocalQueueStatus,
    QueueCondition,
    ResourceUsage,
    active,
    effective,
    resource_usage,
    within_quota,
)
from queue_dispatcher.bindings.timestamp import format_ms, parse_ms
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.clock import SteadyClock
from queue_dispatcher.dispatcher import Dispatcher
from queue_dispatcher.visibility.activity import Refusal, local_refusal, problems_of, refusal, unplaced
from queue_dispatcher.visibility.usage import QueueUsage
from queue_dispatcher.visibility.views import exceeded, still_counted

logger = logging.getLogger(__name__)

EVERY_S = 5.0
HISTORY_MS = 60_000
"""How often what a queue has used is written where nothing else of its status has changed."""
DENIED_MS = 60_000
"""For how long what may not be written is not tried again."""
_MERGE = "application/merge-patch+json"


class _Stated(KubeStruct, frozen=True):
    """A queue as the API server has it."""

    metadata: ObjectMeta = ObjectMeta()
    status: msgspec.Raw = msgspec.Raw(b"null")


class _StatedList(KubeStruct, frozen=True):
    items: list[_Stated] | None = None


Status = ClusterQueueStatus | LocalQueueStatus | ConditionsStatus


class QueueStatuses:
    """Writes the statuses of one dispatcher's queues while it leads; ``observe``: kind and outcome."""

    def __init__(
        self,
        client: KubeClient,
        dispatcher: Dispatcher,
        clock: SteadyClock,
        observe: Callable[[str, str], None],
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._dispatcher = dispatcher
        self._clock = clock
        self._observe = observe
        self._sleep = sleep
        self._written: dict[str, Status] = {}
        # By kind of queue: until when not to try.
        self._denied_ms: dict[str, int] = {}
        # By path, until when one that was refused is left aside.
        self._refused_ms: dict[str, int] = {}

    async def run(self, may_write: Callable[[], bool]) -> None:
        """Write what has changed, every five seconds, until cancelled."""
        self._written.clear()
        is_read = False
        while True:
            await self._sleep(EVERY_S)
            try:
                if not self._dispatcher.controller.is_synced:
                    continue
                if not is_read:
                    # What a leader before us wrote need not be written again.
                    await self._read(CLUSTER_QUEUES.path, ClusterQueueStatus)
                    await self._read(LOCAL_QUEUES.path, LocalQueueStatus)
                    await self._read(RESOURCE_FLAVORS.path, ConditionsStatus)
                    await self._read(SERVICE_CLASSES.path, ConditionsStatus)
                    is_read = True
                await self._dispatcher.controller.settled()
                await self.write(may_write)
            except KubeError as error:
                logger.warning("statuses of queues: %s", error)
            except Exception:
                logger.exception("statuses of queues were not written")

    async def write(self, may_write: Callable[[], bool]) -> None:
        """Write each status that has changed, and let others run meanwhile. Raises KubeError."""
        pace = Pace(time.monotonic)
        for path, kind, status in self._statuses():
            if pace.is_due():
                await pace.pause()
            if not may_write():
                return
            if self._is_written(path, status):
                continue
            elapsed_ms = self._clock.elapsed_ms()
            if elapsed_ms < self._denied_ms.get(kind, 0) or elapsed_ms < self._refused_ms.get(path, 0):
                continue
            try:
                body = {"status": status}
                await self._client.patch(f"{path}/status", body, _Stated, content_type=_MERGE)
            except NotFound:
                self._observe(kind, "gone")
                continue
            except Denied as error:
                # The client has told; queues of the other kind go on.
                self._observe(kind, error.label)
                self._denied_ms[kind] = self._clock.elapsed_ms() + DENIED_MS
                continue
            except KubeError as error:
                self._observe(kind, error.label)
                # It may be this one alone, by an admission policy or webhook: the next round goes on past it.
                self._refused_ms[path] = self._clock.elapsed_ms() + DENIED_MS
                if isinstance(error, TooManyRequests) or not isinstance(error, Refused):
                    raise
                logger.warning("a status is not written, the others are: %s", error)
                continue
            self._refused_ms.pop(path, None)
            self._written[path] = status
            self._observe(kind, "written")

    async def _read(self, path: str, type: type[Status]) -> None:
        kind = ResourceKind(path, path, _Stated)
        stated = await self._client.get_json(path, _StatedList)
        for one in stated.items or ():
            try:
                status = msgspec.json.decode(one.status, type=type | None)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            if status is not None:
                self._written[kind.object_path(one.metadata.name, one.metadata.namespace)] = status

    def _is_written(self, path: str, status: Status) -> bool:
        """Whether what is written says the same, but for what time alone has added in a little while."""
        written = self._written.get(path)
        if written == status or written is None or isinstance(status, ConditionsStatus):
            return written == status
        if isinstance(written, ConditionsStatus) or written.history is None or status.history is None:
            return False
        if msgspec.structs.replace(status, history=None) != msgspec.structs.replace(written, history=None):
            return False
        same = msgspec.structs.replace(status.history, time=written.history.time) == written.history
        at_ms = parse_ms(written.history.time)
        now_ms = self._clock.now_ms()
        if not same and _displaced(status) != _displaced(written):
            # Who takes over cannot tell it of anything else.
            return False
        # What only fades is worked out by whoever reads it.
        is_idle = status.history.device_milliseconds == written.history.device_milliseconds
        return same or is_idle or (at_ms is not None and now_ms - HISTORY_MS < at_ms <= now_ms)

    def _statuses(self) -> Iterator[tuple[str, str, Status]]:
        dispatcher = self._dispatcher
        cache = dispatcher.cache
        now_ms = self._clock.now_ms()
        usages = QueueUsage(cache, dispatcher.controller.view.reservations, now_ms)
        tally = _tally(cache)
        queues = cache.queues.cluster_queues.values
        for name, queue in list(cache.queues.cluster_queues.values.items()):
            if name not in cache.resolved.tree.paths:
                continue
            path = CLUSTER_QUEUES.object_path(name)
            usage: dict[str, list[ResourceUsage]] = {}
            for one in usages.of(queue):
                of = resource_usage(one.resource, one.used, one.borrowed, one.reserved)
                usage.setdefault(one.flavor, []).append(of)
            notes = (*map(str, problems_of(cache, queue)), still_counted(cache, queue))
            yield (
                path,
                "ClusterQueue",
                ClusterQueueStatus(
                    pending=tally.pending[name],
                    admitted=tally.admitted[name],
                    conditions=self._conditions(
                        path, queue, refusal(cache, queue), notes, unplaced(cache, queue)
                    )
                    + self._within_quota(path, exceeded(cache, queue)),
                    flavors_usage=tuple(FlavorUsage(flavor, tuple(of)) for flavor, of in usage.items()),
                    history=cluster_queue_history(*_at(cache.usages.of_queue(name, now_ms)))
                    if cache.usages.is_counted(queue)
                    else None,
                ),
            )
        for key, local in list(cache.queues.local_queues.values.items()):
            path = LOCAL_QUEUES.object_path(local.name, local.namespace)
            notes = tuple(map(str, local.problems))
            yield (
                path,
                "LocalQueue",
                LocalQueueStatus(
                    pending=tally.local_pending[key],
                    admitted=tally.local_admitted[key],
                    conditions=self._conditions(path, local, local_refusal(cache, local), notes),
                    history=local_queue_history(*_at(cache.usages.of_local(key, now_ms)))
                    if (above := queues.get(local.cluster_queue)) and cache.usages.is_counted(above)
                    else None,
                ),
            )
        classes = cache.queues.service_classes.values
        others: list[tuple[str, Stated]] = [
            *((RESOURCE_FLAVORS.object_path(name), one) for name, one in cache.flavors.values.items()),
            *((SERVICE_CLASSES.object_path(name), one) for name, one in classes.items()),
        ]
        for path, stated in others:
            conditions = self._effective(path, stated)
            # Most have nothing to be told, and never had.
            if conditions or path in self._written:
                yield path, type(stated).__name__, ConditionsStatus(conditions)

    def _conditions(
        self, path: str, of: Stated, refused: Refusal | None, notes: Iterable[str], why_unplaced: str = ""
    ) -> tuple[QueueCondition, ...]:
        return (self._active(path, refused, notes), *self._effective(path, of, why_unplaced))

    def _effective(self, path: str, of: Stated, why_unplaced: str = "") -> tuple[QueueCondition, ...]:
        before = self._before(path)
        generation = next((one.observed_generation for one in before), 0)
        queues = self._dispatcher.cache.queues.queues.cluster_queues
        above = queues.get(of.cluster_queue) if isinstance(of, LocalQueue) else None
        told = without_effect(of, why_unplaced, unshared=unshared(above))
        return effective(told, generation, format_ms(self._clock.now_ms()), before)

    def _within_quota(self, path: str, told: str) -> tuple[QueueCondition, ...]:
        before = self._before(path)
        generation = next((one.observed_generation for one in before), 0)
        return within_quota(told, generation, format_ms(self._clock.now_ms()), before)

    def _active(self, path: str, refused: Refusal | None, notes: Iterable[str]) -> QueueCondition:
        before = self._before(path)
        reason, message = refused or (
            "Ready",
            "; ".join(filter(None, ("the queue admits workloads", *notes))),
        )
        now = format_ms(self._clock.now_ms())
        generation = next((one.observed_generation for one in before), 0)
        return active(refused is None, reason, message, generation, now, before)

    def _before(self, path: str) -> Sequence[QueueCondition]:
        written = self._written.get(path)
        return written.conditions if written is not None else ()


def _displaced(status: ClusterQueueStatus | LocalQueueStatus) -> str:
    history = status.history
    return history.displaced_device_milliseconds if isinstance(history, ClusterQueueHistory) else ""


def _at(history: History) -> tuple[History, str]:
    return history, format_ms(history.at_ms)


class _Tally:
    """How many wait and how many are charged, by ClusterQueue, and by LocalQueue as ``namespace/name``."""

    def __init__(self) -> None:
        self.pending: Counter[str] = Counter()
        self.admitted: Counter[str] = Counter()
        self.local_pending: Counter[str] = Counter()
        self.local_admitted: Counter[str] = Counter()


def _tally(cache: Cache) -> _Tally:
    tally = _Tally()
    for standing, count in cache.tally:
        if standing.queue:
            tally.pending[standing.queue] += count
            tally.local_pending[f"{standing.namespace}/{standing.local_queue}"] += count
        if standing.is_charged:
            tally.admitted[standing.charged] += count
            tally.local_admitted[f"{standing.namespace}/{standing.charged_local}"] += count
    return tally
