"""The dispatcher's own turns before a full fleet, in virtual time.

The cache is fed with objects as a watch tells of them; whatever a turn writes is carried out at once, and
whatever it asks is answered before the next (`benchmarks.turns.members`). What a turn costs is processor time
of the thread that takes it: nothing in it waits, and whatever else the machine does does not count.
"""

import time
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

import msgspec

from benchmarks.streams.fleet import Json
from benchmarks.streams.objects import COMPLETE, patched
from benchmarks.turns import fleet as objects
from benchmarks.turns.fleet import EPOCH_MS, Fleet, Job
from benchmarks.turns.members import Members
from fairway.accelerators.builtin import builtin_catalogue
from fairway.kube.reflector import Sink
from fairway.kube.resource import KubeObjectLike
from fairway.scope import Scope
from fairway.service.lifecycle import collect_young
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
from queue_dispatcher.estimates.estimates import Estimates
from queue_dispatcher.turn.events import Led, Saw, Wrote
from queue_dispatcher.turn.outcomes import hear
from queue_dispatcher.turn.preparation import prepare
from queue_dispatcher.turn.state import TurnState
from queue_dispatcher.turn.turn import Turned, turning
from queue_dispatcher.turn.writes import Fate, Purpose, Write

K = TypeVar("K", bound=KubeObjectLike)
T = TypeVar("T")
ROUND_MS: Final = 200
"""Between two events."""
_MOST_TURNS: Final = 50
"""After one event; who is asked about again and again would take more."""


@dataclass(slots=True)
class Taken:
    """One turn: seconds of processor time of all of it and of its longest step, the first of which settles
    the cache; how many it admitted, evicted and asked about, and for how many it began to displace others.
    """

    took_s: float
    longest_s: float
    has_decided: bool
    admitted: int
    evicted: int
    asked: int
    begun: int


class World:
    """One dispatcher, leading, with all of the fleet in its cache."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.now_ms = 0
        self.taken: list[Taken] = []
        self.faults: list[str] = []
        self.jobs: dict[str, Job] = {}
        self.running: dict[str, None] = {}
        """Uids of what runs, in no order that means anything."""
        self.cache = Cache(Scope(builtin_catalogue()), lambda: None, probes=True)
        self.state = TurnState(self.cache, Estimates(60.0))
        self._templates = self.cache.templates.kind_of(WorkloadReference("batch/v1", "Job", "", ""))
        self._bindings: dict[str, bytes] = {}
        self._sources: dict[str, bytes] = {}
        self._version = self._came = 0
        self._members = Members()
        self.filled_s = self._feed()
        """Seconds of processor time for which the cache was fed and settled at the beginning, as it is when a
        process starts; not those for which objects were decoded.
        """
        hear(self.state, Led(is_leading=True), self.now())

    def now(self) -> Moment:
        """By both clocks."""
        return Moment(EPOCH_MS + self.now_ms, 1_000_000 + self.now_ms)

    def lead(self, spec: Json, *, is_asking: bool = True) -> None:
        """As if another process had just come to lead, which has read everything; with ``spec`` said of each
        queue besides its quotas. ``is_asking``: it asks estimators.
        """
        hear(self.state, Led(is_leading=False), self.now())
        self.fleet.spec = spec
        _upsert(self.cache.queues.cluster_queues, ClusterQueueObject, self.fleet.cluster_queues())
        self._find_problems()
        self.cache.settle()
        self.state = TurnState(self.cache, Estimates(60.0) if is_asking else None)
        hear(self.state, Led(is_leading=True), self.now())

    def next_number(self) -> int:
        """Of a workload that comes: no two have the same."""
        self._came += 1
        return self._came

    def _feed(self) -> float:
        cache, queues, fleet = self.cache, self.cache.queues, self.fleet
        clusters = [objects.cluster(name, gpus) for name, gpus in fleet.room.items()]
        _upsert(cache.clusters, ClusterObject, clusters)
        _upsert(cache.flavors, ResourceFlavorObject, objects.flavors())
        _upsert(queues.service_classes, ServiceClassObject, objects.service_classes())
        _upsert(queues.cluster_queues, ClusterQueueObject, fleet.cluster_queues())
        _upsert(queues.local_queues, LocalQueueObject, fleet.local_queues())
        self._find_problems()
        read = [self._read(job) for job in (*fleet.running, *fleet.waiting)]
        for job in fleet.running:
            self.running[job.uid] = None
            self._members.hold(job.uid, {job.cluster: job.has})
        began_s = time.thread_time()
        for template, binding in read:
            self._templates.upsert(template)
            cache.bindings.upsert(binding)
        cache.settle()
        return time.thread_time() - began_s

    def _find_problems(self) -> None:
        for problems in (one.problems for one in self.cache.queues.queues.cluster_queues.values()):
            self.faults += map(str, problems)

    # What happens.

    def submit(self, job: Job) -> None:
        """It is created."""
        template, binding = self._read(job)
        self._templates.upsert(template)
        self.cache.bindings.upsert(binding)

    def _read(self, job: Job) -> tuple[TemplateObject, ResourceBinding]:
        """Its own object and its binding, as they are watched."""
        self.jobs[job.uid] = job
        source = self._sources[job.uid] = msgspec.json.encode(objects.template(job))
        return msgspec.json.decode(source, type=TemplateObject), self._stated(job, objects.binding(job))

    def finish(self, uid: str) -> None:
        """It has ended, and is deleted."""
        job = self.jobs[uid]
        self._members.place(uid, {})
        del self.running[uid]
        known = msgspec.json.decode(self._bindings[uid], type=dict[str, object])
        told = known.get("status")
        assert isinstance(told, Mapping)
        reports = [{**one, "status": COMPLETE} for one in told.get("aggregatedStatus", ())]
        self._change(job, {"status": {"aggregatedStatus": reports}})
        self.withdraw(uid)

    def withdraw(self, uid: str) -> None:
        """It is deleted."""
        job = self.jobs.pop(uid)
        del self._bindings[uid], self._sources[uid]
        self.cache.bindings.delete(f"{job.queue}/{uid}-job")
        self._templates.delete(f"{job.queue}/{uid}")

    def _change(self, job: Job, body: Json) -> ResourceBinding:
        read = self._stated(job, body)
        self.cache.bindings.upsert(read)
        return read

    def _stated(self, job: Job, body: Json) -> ResourceBinding:
        """Its binding after a patch."""
        self._version += 1
        known = self._bindings.get(job.uid)
        before: Json = msgspec.json.decode(known) if known is not None else {}
        version: Json = {"metadata": {"resourceVersion": str(self._version)}}
        stated = self._bindings[job.uid] = msgspec.json.encode(patched(patched(before, body), version))
        return msgspec.json.decode(stated, type=ResourceBinding)

    # Turns.

    def turns(self) -> None:
        """Turns until nothing is written or asked any more; then it is a little later."""
        for _ in range(_MOST_TURNS):
            if not self.step():
                break
        self.now_ms += ROUND_MS

    def step(self) -> bool:
        """One turn, carried out; whether anything follows from it."""
        turned, estimates = self.turn(), self.state.estimates
        for write in turned.writes:
            self._write(write)
        for probing in turned.probings:
            assert estimates is not None
            source = self._sources[probing.subjects[0].binding.uid]
            hear(self.state, self._members.answered(probing, source, estimates.releases), self.now())
        return bool(turned.writes or turned.probings)

    def turn(self) -> Turned:
        """One turn, measured."""
        before = set(self.state.displacements)
        began_s = last_s = time.thread_time()
        longest_s = 0.0
        steps: Generator[None, None, Turned] = turning(self.state, (), self.now())
        while True:
            try:
                next(steps)
            except StopIteration as stop:
                turned: Turned = stop.value
                break
            finally:
                at_s = time.thread_time()
                longest_s, last_s = max(longest_s, at_s - last_s), at_s
        took_s = time.thread_time() - began_s
        self.state.notices.clear()
        purposes = [write.purpose for write in turned.writes]
        self.taken.append(
            Taken(
                took_s,
                longest_s,
                turned.has_decided,
                purposes.count(Purpose.ADMIT),
                purposes.count(Purpose.EVICT),
                len(turned.probings),
                len(self.state.displacements.keys() - before),
            )
        )
        # As whoever takes turns does between them.
        collect_young()
        return turned

    def _write(self, write: Write) -> None:
        prepared = prepare(self.state, write, self.now())
        if prepared is None:
            return
        job = self.jobs[write.uid]
        body = msgspec.json.decode(msgspec.json.encode(prepared.body), type=dict[str, object])
        told = self._change(job, body)
        hear(self.state, Saw(told), self.now())
        hear(self.state, Wrote(write, Fate.APPLIED), self.now())
        entry = self.cache.entries[job.uid]
        there = {share.cluster: share.replicas for share in entry.binding.placed if share.replicas}
        has_room = self._members.place(job.uid, there)
        if there:
            self.running[job.uid] = None
        else:
            self.running.pop(job.uid, None)
        shares: list[Json] = [{"name": cluster, "replicas": pods} for cluster, pods in there.items()]
        stated = (
            objects.placed(job, shares, self.now().day_ms) if shares else {"status": {"aggregatedStatus": []}}
        )
        self._change(job, {**stated, "spec": {}} if shares else stated)
        if not has_room:
            self.faults.append(f"{write.purpose} {write.uid}: more pods than GPUs at {self.now_ms} ms")


def _upsert(sink: Sink[K], type: type[K], stated: Iterable[Json]) -> None:
    for one in stated:
        sink.upsert(msgspec.json.decode(msgspec.json.encode(one), type=type))
