"""Plays a stream before the dispatcher's own turns, in virtual time.

The cache is fed with objects as a watch tells of them, and turns are taken whenever something has happened or
one is due. There is no Karmada between: what is written is carried out at once, and what is released is
placed and runs from the same moment. So what is measured is what is decided, and nothing else.
"""

import heapq
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

import msgspec

from benchmarks.cycle import collecting_as_the_dispatcher
from benchmarks.streams import objects
from benchmarks.streams.fleet import (
    NAMESPACE,
    Choice,
    Fleet,
    Json,
    cluster,
    cluster_queues,
    flavor,
    local_queues,
    service_classes,
)
from benchmarks.streams.jobs import Stream
from fairway.accelerators.builtin import builtin_catalogue
from fairway.kube.reflector import Sink
from fairway.kube.resource import KubeObjectLike
from fairway.scope import Scope
from queue_dispatcher.api.objects import (
    ClusterQueueObject,
    LocalQueueObject,
    ResourceFlavorObject,
    ServiceClassObject,
)
from queue_dispatcher.bindings.binding import WorkloadReference
from queue_dispatcher.bindings.cluster import ClusterObject
from queue_dispatcher.bindings.objects import ResourceBinding
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.objects import TemplateObject
from queue_dispatcher.turn.events import Led, Saw, Wrote
from queue_dispatcher.turn.outcomes import hear
from queue_dispatcher.turn.preparation import prepare
from queue_dispatcher.turn.state import TurnState
from queue_dispatcher.turn.turn import turn
from queue_dispatcher.turn.writes import Fate, Purpose, Write

EPOCH_MS: Final = 1_800_000_000_000
K = TypeVar("K", bound=KubeObjectLike)
T = TypeVar("T")
_MOST_TURNS: Final = 10_000
"""So many at one moment are without end."""


@dataclass(slots=True)
class Played:
    """When each job started, in milliseconds from the beginning, by its number; -1 for never.

    ``faults``: what must not happen. ``took_s``: of processor time.
    """

    starts_ms: list[int]
    faults: list[str] = field(default_factory=list)
    turns: int = 0
    took_s: float = 0.0


def play(stream: Stream, fleet: Fleet, choice: Choice) -> Played:
    """The stream from its first job to the end of the last."""
    began_s = time.process_time()
    with collecting_as_the_dispatcher():
        played = _Player(stream, fleet, choice).play()
    played.took_s = time.process_time() - began_s
    return played


class _Player:
    def __init__(self, stream: Stream, fleet: Fleet, choice: Choice) -> None:
        self._jobs, self._fleet = stream.jobs, fleet
        self._played = Played([-1] * len(stream.jobs))
        self._now_ms = 0
        self._version = 0
        self._used = 0
        self._bindings: dict[str, Json] = {}
        self._happens: list[tuple[int, int, Callable[[], None]]] = []
        """By time; what ends before what comes, and in the order of their numbers."""
        self._cache = Cache(Scope(builtin_catalogue()), lambda: None)
        self._state = TurnState(self._cache, None)
        self._templates = self._cache.templates.kind_of(WorkloadReference("batch/v1", "Job", "", ""))
        self._feed(choice)
        for number, job in enumerate(self._jobs):
            self._at(job.arrives_ms, len(self._jobs) + number, partial(self._submit, number))

    def play(self) -> Played:
        """All of it."""
        hear(self._state, Led(is_leading=True), self._now())
        due_ms: int | None = None
        while self._happens:
            at_ms = self._happens[0][0]
            self._now_ms = at_ms if due_ms is None else min(at_ms, max(due_ms, self._now_ms + 1))
            while self._happens and self._happens[0][0] <= self._now_ms:
                heapq.heappop(self._happens)[2]()
            due_ms = self._turns()
        never = sum(start_ms < 0 for start_ms in self._played.starts_ms)
        if never:
            self._fault(f"{never} jobs never started")
        return self._played

    def _now(self) -> Moment:
        return Moment(EPOCH_MS + self._now_ms, 1_000_000 + self._now_ms)

    def _at(self, at_ms: int, order: int, happens: Callable[[], None]) -> None:
        heapq.heappush(self._happens, (at_ms, order, happens))

    def _fault(self, text: str) -> None:
        self._played.faults.append(f"{text} ({self._now_ms / 1000:.0f} s)")

    # What happens.

    def _feed(self, choice: Choice) -> None:
        cache, queues = self._cache, self._cache.queues
        _upsert(cache.clusters, ClusterObject, [cluster(self._fleet)])
        _upsert(cache.flavors, ResourceFlavorObject, [flavor()])
        _upsert(queues.service_classes, ServiceClassObject, service_classes(self._fleet))
        _upsert(queues.cluster_queues, ClusterQueueObject, cluster_queues(self._fleet, choice))
        _upsert(queues.local_queues, LocalQueueObject, local_queues(self._fleet))
        self._cache.settle()
        for queue in queues.queues.cluster_queues.values():
            for problem in queue.problems:
                self._fault(f"ClusterQueue {queue.name}: {problem}")

    def _submit(self, number: int) -> None:
        job = self._jobs[number]
        _upsert(self._templates, TemplateObject, [objects.template(number, job)])
        made = objects.binding(number, job, self._fleet.resource, EPOCH_MS + self._now_ms)
        self._change(objects.uid(number), made)

    def _finish(self, number: int) -> None:
        self._used -= self._jobs[number].amount
        uid = objects.uid(number)
        self._change(uid, objects.finished())
        del self._bindings[uid]
        self._cache.bindings.delete(objects.key(number))
        self._templates.delete(f"{NAMESPACE}/{uid}")

    def _change(self, uid: str, body: Json) -> ResourceBinding:
        """Somebody writes the binding, and the watch tells."""
        self._version += 1
        version: Json = {"metadata": {"resourceVersion": str(self._version)}}
        stated = objects.patched(objects.patched(self._bindings.get(uid, {}), body), version)
        self._bindings[uid] = stated
        read = _decoded(stated, ResourceBinding)
        self._cache.bindings.upsert(read)
        return read

    # Turns.

    def _turns(self) -> int | None:
        """Turns until nothing is written any more; when the next one is due by itself."""
        for _ in range(_MOST_TURNS):
            turned = turn(self._state, (), self._now())
            self._played.turns += 1
            self._state.notices.clear()
            for write in turned.writes:
                self._write(write)
            if not turned.writes:
                return None if turned.next_due_ms is None else turned.next_due_ms - EPOCH_MS
        raise AssertionError(f"turns without end at {self._now_ms} ms")

    def _write(self, write: Write) -> None:
        prepared = prepare(self._state, write, self._now())
        if prepared is None or prepared.body is None:
            return
        number = objects.number_of(write.uid)
        body = _decoded(prepared.body, dict[str, object])
        told = self._change(write.uid, body)
        hear(self._state, Saw(told), self._now())
        hear(self._state, Wrote(write, Fate.APPLIED), self._now())
        if write.purpose is Purpose.ADMIT:
            self._start(number)
        else:
            self._fault(f"{write.uid}: {write.purpose} was not to be written")

    def _start(self, number: int) -> None:
        job = self._jobs[number]
        if self._played.starts_ms[number] >= 0:
            self._fault(f"{objects.uid(number)} started twice")
        self._played.starts_ms[number] = self._now_ms
        self._used += job.amount
        if self._used > self._fleet.capacity:
            self._fault(f"{self._used} of {self._fleet.capacity} {self._fleet.resource} in use")
        self._change(objects.uid(number), objects.placed(job, EPOCH_MS + self._now_ms))
        self._at(self._now_ms + job.runs_ms, number, partial(self._finish, number))


def _upsert(sink: Sink[K], type: type[K], stated: Iterable[Json]) -> None:
    for one in stated:
        sink.upsert(_decoded(one, type))


def _decoded(stated: Mapping[str, object], type: type[T]) -> T:
    return msgspec.json.decode(msgspec.json.encode(stated), type=type)
