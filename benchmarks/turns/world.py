"""The dispatcher's own turns before a full fleet, in virtual time.

The cache is fed with objects as a watch tells of them; whatever a turn writes is carried out at once, and
whatever it asks is answered before the next, by estimators that know how many GPUs are free and nothing of
nodes. What a turn costs is processor time of the thread that takes it: nothing in it waits, and whatever else
the machine does does not count.
"""

import time
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import msgspec

from benchmarks.streams.fleet import Json
from benchmarks.streams.objects import COMPLETE, patched
from benchmarks.turns import fleet as objects
from benchmarks.turns.fleet import CLUSTERS, EPOCH_MS, Fleet, Job
from fairway.accelerators.builtin import builtin_catalogue
from fairway.kube.reflector import Sink
from fairway.kube.resource import KubeObjectLike
from fairway.scope import Scope
from fairway.service.lifecycle import collect_young
from fairway.workloads.workload_name import WorkloadName
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
from queue_dispatcher.cycle.earliest import Earliest
from queue_dispatcher.cycle.snapshot import Verdict
from queue_dispatcher.estimates.cluster_room import ClusterRoom
from queue_dispatcher.estimates.estimates import Answered, Estimates, Probing
from queue_dispatcher.estimates.promise_requests import name_of
from queue_dispatcher.estimates.questions import Question, verdict_of
from queue_dispatcher.estimates.subjects import question_about
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
        self._version = 0
        self._places: dict[str, dict[str, int]] = {}
        self._free = dict.fromkeys(CLUSTERS, 0)
        self._feed()
        hear(self.state, Led(is_leading=True), self.now())
        self.cache.settle()

    def now(self) -> Moment:
        """By both clocks."""
        return Moment(EPOCH_MS + self.now_ms, 1_000_000 + self.now_ms)

    def _feed(self) -> None:
        cache, queues, fleet = self.cache, self.cache.queues, self.fleet
        clusters = [objects.cluster(name, gpus) for name, gpus in fleet.room.items()]
        _upsert(cache.clusters, ClusterObject, clusters)
        _upsert(cache.flavors, ResourceFlavorObject, objects.flavors())
        _upsert(queues.service_classes, ServiceClassObject, objects.service_classes())
        _upsert(queues.cluster_queues, ClusterQueueObject, fleet.cluster_queues())
        _upsert(queues.local_queues, LocalQueueObject, fleet.local_queues())
        for problems in (one.problems for one in queues.queues.cluster_queues.values()):
            self.faults += map(str, problems)
        for job in (*fleet.running, *fleet.waiting):
            self.submit(job)
            if job.since_ms:
                self.running[job.uid] = None
                self._places[job.uid] = {job.cluster: job.has}

    # What happens.

    def submit(self, job: Job) -> None:
        """It is created, or was there from the beginning."""
        self.jobs[job.uid] = job
        stated = objects.template(job)
        self._sources[job.uid] = msgspec.json.encode(stated)
        _upsert(self._templates, TemplateObject, [stated])
        self._change(job, objects.binding(job))

    def finish(self, uid: str) -> None:
        """It has ended, and is deleted."""
        job = self.jobs.pop(uid)
        for cluster, pods in self._places.pop(uid).items():
            self._free[cluster] += pods
        del self.running[uid]
        known = msgspec.json.decode(self._bindings[uid], type=dict[str, object])
        told = known.get("status")
        assert isinstance(told, Mapping)
        reports = [{**one, "status": COMPLETE} for one in told.get("aggregatedStatus", ())]
        self._change(job, {"status": {"aggregatedStatus": reports}})
        del self._bindings[uid], self._sources[uid]
        self.cache.bindings.delete(f"{job.queue}/{uid}-job")
        self._templates.delete(f"{job.queue}/{uid}")

    def _change(self, job: Job, body: Json) -> ResourceBinding:
        self._version += 1
        known = self._bindings.get(job.uid)
        before: Json = msgspec.json.decode(known) if known is not None else {}
        version: Json = {"metadata": {"resourceVersion": str(self._version)}}
        stated = self._bindings[job.uid] = msgspec.json.encode(patched(patched(before, body), version))
        read = msgspec.json.decode(stated, type=ResourceBinding)
        self.cache.bindings.upsert(read)
        return read

    # Turns.

    def turns(self) -> None:
        """Turns until nothing is written or asked any more; then it is a little later."""
        for _ in range(_MOST_TURNS):
            turned = self.turn()
            for write in turned.writes:
                self._write(write)
            for probing in turned.probings:
                hear(self.state, self._answered(probing), self.now())
            if not (turned.writes or turned.probings):
                break
        self.now_ms += ROUND_MS

    def turn(self) -> Turned:
        """One turn, measured."""
        before = len(self.state.displacements)
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
                len(self.state.displacements) - before,
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
        before = self._places.pop(job.uid, {})
        for cluster, pods in before.items():
            self._free[cluster] += pods
        for cluster, pods in there.items():
            self._free[cluster] -= pods
        if there:
            self._places[job.uid] = there
            self.running[job.uid] = None
        else:
            self.running.pop(job.uid, None)
        shares: list[Json] = [{"name": cluster, "replicas": pods} for cluster, pods in there.items()]
        stated = (
            objects.placed(job, shares, self.now().day_ms) if shares else {"status": {"aggregatedStatus": []}}
        )
        self._change(job, {**stated, "spec": {}} if shares else stated)
        if min(self._free.values()) < 0:
            self.faults.append(f"{write.purpose} {write.uid}: more pods than GPUs at {self.now_ms} ms")

    # Estimators.

    def _answered(self, probing: Probing) -> Answered:
        estimates = self.state.estimates
        assert estimates is not None
        (subject,) = probing.subjects
        question = question_about(subject, self._sources[subject.binding.uid])
        assert question is not None
        wanted = question.needed if question.adds_up else question.needed * subject.binding.demand.replicas
        rooms = tuple(self._room(question, cluster, wanted, probing) for cluster in question.clusters)
        verdict, unknown = verdict_of(question, rooms)
        verdicts: tuple[Verdict, ...] = () if verdict is None or probing.endings is not None else (verdict,)
        return Answered(probing, (question,), verdicts, unknown, "", 0, estimates.releases, rooms)

    def _room(self, question: Question, cluster: str, wanted: int, probing: Probing) -> ClusterRoom:
        free = self._free[cluster]
        fits = free if question.adds_up else question.needed * int(free >= wanted)
        endings = (probing.endings or {}).get(cluster, ())
        if probing.endings is None or free >= wanted:
            return ClusterRoom(cluster, fits, why="no GPU is free" if free < wanted else "")
        lacking, last_ms = wanted - free, EPOCH_MS
        # Of each that has to go, how many of its pods, 0 for all.
        gives: dict[WorkloadName, int] = {}
        for one in sorted(endings, key=lambda ending: ending.at_ms):
            if lacking <= 0:
                break
            name = name_of(one.workload)
            pods = self._places.get(one.workload.name, {}).get(cluster, 0) - gives.get(name, 0)
            if pods > 0:
                gives[name] = min(one.surplus, lacking)
                lacking -= gives[name] or pods
                last_ms = one.at_ms
        if lacking > 0:
            return ClusterRoom(cluster, fits, why="no GPU is free")
        found = Earliest(cluster, last_ms, wanted)
        if probing.of_choice:
            found = replace(found, workloads=tuple(gives), gives=tuple(gives.values()))
        return ClusterRoom(cluster, fits, why="no GPU is free", earliest=found)


def _upsert(sink: Sink[K], type: type[K], stated: Iterable[Json]) -> None:
    for one in stated:
        sink.upsert(msgspec.json.decode(msgspec.json.encode(one), type=type))
