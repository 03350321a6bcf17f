"""What does an event cost a dispatcher whose fleet is busy?

1,000 and 5,000 ClusterQueues, each a share of one flavor on 500 clusters; 100,000 workloads wait and 50,000
are placed. Each case is one thing that happens all the time, from the object as it is read to the cache being
up to date again, or one thing that people ask for. No process is started, and time is processor time of one
thread: what is measured is for how long the event loop is held.
"""

import heapq
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import msgspec

from benchmarks.cycle import SteadyFleet, collecting_as_the_dispatcher
from benchmarks.report import Case, Figure, Result, Target
from benchmarks.sides import Setting
from fairway.accelerators.builtin import builtin_catalogue
from fairway.scope import Scope
from queue_dispatcher.api.objects import ClusterQueueObject, LocalQueueObject, ResourceFlavorObject
from queue_dispatcher.bindings.binding import WorkloadReference
from queue_dispatcher.bindings.cluster import ClusterObject
from queue_dispatcher.bindings.objects import ResourceBinding
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.objects import TemplateObject
from queue_dispatcher.controller import SLICE, debounce_s
from queue_dispatcher.turn.events import Led, Saw, Wrote
from queue_dispatcher.turn.outcomes import hear
from queue_dispatcher.turn.preparation import prepare
from queue_dispatcher.turn.state import TurnState, View
from queue_dispatcher.turn.turn import Turned, turning
from queue_dispatcher.turn.window import ReleaseWindow
from queue_dispatcher.turn.writes import Fate, Write
from queue_dispatcher.visibility.views import Views

CLUSTERS = 500
GPUS = 1_000
"""Of each cluster."""
GPU = "nvidia.com/gpu"
NOW_MS = 1_800_000_000_000
CYCLES = 60
T = TypeVar("T")
Obj = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Scale:
    """How much there is of everything."""

    queues: int
    pending: int
    placed: int
    rounds: int


def measure(setting: Setting) -> Result:
    """Figures for each kind of event."""
    is_quick = setting.seconds <= 1.0
    cases: list[Case] = []
    for queues in (100, 500) if is_quick else (1_000, 5_000):
        amount = 10_000 if is_quick else 100_000
        scale = Scale(queues, amount, amount // 2, 10 if is_quick else 30)
        cases += _cycles(scale)
        cases += _events(scale)
    return Result("contention", "What an event costs on a busy fleet", cases)


def _case(scale: Scale, label: str, took_ms: Iterable[float], target_ms: float | None) -> Case:
    took = sorted(took_ms)
    target = Target(target_ms) if target_ms is not None else None
    figures = [
        Figure("p50", took[len(took) // 2], "ms"),
        Figure("p99", took[min(len(took) - 1, len(took) * 99 // 100)], "ms", target),
    ]
    return Case(f"{scale.queues:,} queues: {label}", figures)


def _took_ms(scale: Scale, act: Callable[[int], object]) -> list[float]:
    took = []
    for number in range(scale.rounds):
        began_s = time.process_time()
        act(number)
        took.append(1e3 * (time.process_time() - began_s))
    return took


# Cycles.


def _cycles(scale: Scale) -> list[Case]:
    """One after the other, each carried out: three workloads end and three fit, or ten of plenty start."""
    is_small = scale.queues <= 1_000
    cases = []
    for label, free, limit_ms in (
        ("three classes fit", 3 * 8, 20.0 if is_small else 60.0),
        ("10 tokens and plenty of quota", 8 * scale.pending, 10.0 if is_small else 30.0),
    ):
        fleet = SteadyFleet(scale.queues, scale.pending, free)
        with collecting_as_the_dispatcher():
            for _ in range(CYCLES):
                fleet.cycle(ends=3)
        first_s, *took_s = fleet.took_s
        cases.append(_case(scale, f"first cycle, {label}", [1e3 * first_s], None))
        cases.append(_case(scale, f"cycle, {label}", [1e3 * one for one in took_s], limit_ms))
        cases.append(_case(scale, f"longest step, {label}", [1e3 * fleet.longest_s], 20.0))
    return cases


# Events.


def _events(scale: Scale) -> list[Case]:
    fleet = _Fleet(scale)
    with collecting_as_the_dispatcher():
        return _cases(scale, fleet)


def _cases(scale: Scale, fleet: "_Fleet") -> list[Case]:
    cache = fleet.cache
    cases = [
        _case(scale, "Cluster status, pods come and go", _took_ms(scale, fleet.heartbeat), 1.0),
        _case(scale, "Cluster status, a node more", _took_ms(scale, fleet.node_added), None),
        _case(scale, "label of a cluster", fleet.labels_ms(scale), 50.0),
        _case(scale, "taint of a cluster", _took_ms(scale, fleet.tainted), 50.0),
        _case(scale, "a slice of a node more, or of a taint", fleet.slices_ms, 20.0),
    ]
    fleet.put_cluster(7, is_ready=False)
    fleet.settled()
    cases.append(
        _case(scale, "envelope, a cluster is lost", _took_ms(scale, lambda _: cache.envelope()), 1.0)
    )
    fleet.put_cluster(7)
    fleet.settled()
    waiting = len(cache.pending.queues["q0"])
    for place, offset in (("first", 0), ("last", waiting - 100)):
        pages = _took_ms(scale, partial(_page, cache, offset))
        cases.append(_case(scale, f"{place} 100 positions of {waiting:,}", pages, 50.0))
    took = _took_ms(
        scale, lambda number: _views(cache).workloads("team-0", f"w{scale.placed + 2 * number + 1}")
    )
    cases.append(_case(scale, "one workload and its position", took, 50.0))
    took = _took_ms(scale, lambda _: _views(cache).queues(in_flight=0, window=10, is_leader=True))
    cases.append(_case(scale, "all queues with their numbers", took, None))
    fleet.lead()
    return [*cases, _Steady(fleet, scale.rounds).case(scale)]


def _views(cache: Cache) -> Views:
    """As for each question: what another has worked out is not at hand."""
    return Views(cache, View(), NOW_MS)


def _page(cache: Cache, offset: int, _: int) -> None:
    _views(cache).queue("q0", offset, 100)


class _Fleet:
    """A cache with everything in it; half of what waits is in the first queue."""

    def __init__(self, scale: Scale) -> None:
        self.slices_ms: list[float] = []
        self._written: dict[str, dict[str, object]] = {}
        self._version = 1 << 40
        self.cache = Cache(Scope(builtin_catalogue()), lambda: None)
        self._queues, self._placed = scale.queues, scale.placed
        self._turns = TurnState(self.cache, None)
        jobs = self.cache.templates.kind_of(WorkloadReference("batch/v1", "Job", "", ""))
        for number in range(CLUSTERS):
            self.put_cluster(number)
        names = [f"m{number}" for number in range(CLUSTERS)]
        flavor = {"metadata": {"name": "f"}, "spec": {"clusterNames": names}}
        self.cache.flavors.upsert(_decoded(flavor, ResourceFlavorObject))
        share = f"{100 / scale.queues:.3f}%"
        for number in range(scale.queues):
            self._put_queue(f"q{number}", share)
        for number in range(scale.placed):
            self._put_binding(number)
        for number in range(scale.placed, scale.placed + scale.pending):
            queue = self._queue_of(number)
            self._put_binding(number)
            template = {"metadata": {"name": f"w{number}", "namespace": f"team-{queue}"}, "spec": {}}
            jobs.upsert(_decoded(template, TemplateObject))
        self.settled()

    def settled(self) -> None:
        """Bring all up to date."""
        self.cache.settle()

    def heartbeat(self, number: int) -> None:
        """A cluster reports, as each does every ten seconds."""
        self.put_cluster(9, allocated=number % 7)
        self.settled()
        self.cache.envelope()

    def node_added(self, number: int) -> None:
        """A node came or went."""
        self.put_cluster(9, gpus=GPUS + 8 * (number % 2 + 1))
        self._settled_in_slices()

    def labels_ms(self, scale: Scale) -> list[float]:
        """What labels take, and nothing else of the cluster."""
        self.put_cluster(9)
        self.settled()
        return _took_ms(scale, self.labelled)

    def labelled(self, number: int) -> None:
        """A label that nobody selects by."""
        self.put_cluster(9, labels={"x": str(number)})
        self.settled()

    def tainted(self, number: int) -> None:
        """A taint that nobody tolerates comes or goes."""
        self.put_cluster(9, taints=["maintenance"] if number % 2 == 0 else [])
        self._settled_in_slices()

    def _settled_in_slices(self) -> None:
        is_settled = False
        while not is_settled:
            began_s = time.process_time()
            is_settled = self.cache.settle(SLICE)
            self.slices_ms.append(1e3 * (time.process_time() - began_s))

    def put_cluster(
        self,
        number: int,
        *,
        gpus: int = GPUS,
        allocated: int = 0,
        is_ready: bool = True,
        labels: dict[str, str] | None = None,
        taints: Iterable[str] = (),
    ) -> None:
        """A cluster as it is from now on."""
        status = {
            "conditions": [{"type": "Ready", "status": str(is_ready)}],
            "resourceSummary": {
                "allocatable": {GPU: str(gpus), "cpu": "64000"},
                "allocated": {"cpu": str(allocated)},
            },
        }
        spec = {"taints": [{"key": key, "effect": "NoSchedule"} for key in taints]}
        name = f"m{number}"
        stated = {"metadata": {"name": name, "uid": name, "labels": labels or {}}, "spec": spec}
        self.cache.clusters.upsert(_decoded({**stated, "status": status}, ClusterObject))

    def _put_queue(self, name: str, share: str) -> None:
        quota = {"name": GPU, "nominalQuota": share}
        group = {"coveredResources": [GPU], "flavors": [{"name": "f", "resources": [quota]}]}
        queue = {"metadata": {"name": name}, "spec": {"resourceGroups": [group]}}
        self.cache.queues.cluster_queues.upsert(_decoded(queue, ClusterQueueObject))
        namespace = name.replace("q", "team-")
        local = {"metadata": {"name": "main", "namespace": namespace}, "spec": {"clusterQueue": name}}
        self.cache.queues.local_queues.upsert(_decoded(local, LocalQueueObject))

    def stated(self, uid: str, body: Obj) -> bytes:
        """The binding as the API server tells of it after another write."""
        return msgspec.json.encode(self._merge(uid, body))

    @property
    def turns(self) -> TurnState:
        """What turns are taken with."""
        return self._turns

    def lead(self) -> None:
        """From now on what is decided is written."""
        hear(self._turns, Led(is_leading=True), Moment(NOW_MS, 0))

    def _put_binding(self, number: int) -> None:
        self.cache.bindings.upsert(_decoded(self._first(number), ResourceBinding))

    def _first(self, number: int) -> dict[str, object]:
        """The binding as it is at first."""
        cluster = f"m{number % CLUSTERS}" if number < self._placed else ""
        return _binding(number, self._queue_of(number), cluster)

    def _merge(self, uid: str, body: Obj) -> dict[str, object]:
        number = int(uid.removeprefix("u"))
        known = self._written.get(uid) or self._first(number)
        self._version += 1
        merged = _patched(_patched(known, body), {"metadata": {"resourceVersion": str(self._version)}})
        self._written[uid] = merged
        return merged

    def _queue_of(self, number: int) -> int:
        return 0 if number % 2 and number >= self._placed else number % self._queues

    def key_of(self, number: int) -> str:
        """Namespace and name of the binding."""
        return f"team-{self._queue_of(number)}/w{number}-job"


class _Steady:
    """100 releases a second: as many end, are reported and deleted, and Karmada places one after the other.

    In virtual time, of which what the dispatcher computes takes as much as it does of a processor: while it
    is busy, what happens piles up. It takes turns as its controller does.
    """

    def __init__(self, fleet: _Fleet, seconds: int) -> None:
        self._fleet = fleet
        self._state = fleet.turns
        self._state.window = ReleaseWindow(start=PER_SECOND)
        self._seconds = seconds
        self._us = 0
        self._busy_us = 0
        self._longest_us = 0
        self._turns_us: list[int] = []
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._number = 0
        self._released: deque[str] = deque()
        self._placed = 0
        self._has_changed = True

    def case(self, scale: Scale) -> Case:
        """Processor time by virtual time, once the first seconds are over."""
        for number in range(PER_SECOND * (self._seconds + _WARM_S)):
            self._at(number * 1_000_000 // PER_SECOND, partial(self._finish, number))
            self._at(number * 1_000_000 // PER_SECOND, self._place)
        self._until(_WARM_S * 1_000_000)
        busy_us, placed, self._turns_us, self._longest_us = self._busy_us, self._placed, [], 0
        self._until((_WARM_S + self._seconds) * 1_000_000)
        share = (self._busy_us - busy_us) / (10_000 * self._seconds)
        rate = (self._placed - placed) / self._seconds
        took = sorted(self._turns_us)
        figures = [
            Figure("of a core", share, "%", Target(50.0)),
            Figure("turns", len(took) / self._seconds, "per s"),
            Figure("turn p50", took[len(took) // 2] / 1e3, "ms"),
            Figure("longest slice", self._longest_us / 1e3, "ms", Target(20.0)),
        ]
        told = [] if rate > 0.95 * PER_SECOND else [f"{rate:.0f} were placed in a second"]
        return Case(f"{scale.queues:,} queues: {PER_SECOND} releases a second", figures, told)

    def _at(self, us: int, happens: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._events, (us, self._number, happens))

    def _now(self) -> Moment:
        return Moment(NOW_MS + 100_000 + self._us // 1000, 100_000 + self._us // 1000)

    def _busy(self, act: Callable[[], T]) -> T:
        began_s = time.process_time()
        done = act()
        took_us = int(1e6 * (time.process_time() - began_s))
        self._us += took_us
        self._busy_us += took_us
        self._longest_us = max(self._longest_us, took_us)
        return done

    def _until(self, end_us: int) -> None:
        next_us = self._us
        while self._us < end_us:
            at_us = self._events[0][0]
            if self._has_changed and next_us <= max(at_us, self._us):
                self._us = max(self._us, next_us)
                began_us, self._has_changed = self._us, False
                self._turn()
                self._turns_us.append(self._us - began_us)
                next_us = self._us + int(1e6 * debounce_s((self._us - began_us) / 1e6))
                continue
            at_us, _, happens = heapq.heappop(self._events)
            self._us = max(self._us, at_us)
            happens()

    def _turn(self) -> None:
        self._busy(lambda: self._state.advance(self._now()))
        while not self._busy(lambda: self._state.cache.settle(SLICE)):
            pass
        steps = turning(self._state, (), self._now())
        while True:
            try:
                self._busy(lambda: next(steps))
            except StopIteration as stop:
                turned: Turned = stop.value
                break
        for write in turned.writes:
            self._at(self._us + ANSWER_US, partial(self._write, write))

    def _write(self, write: Write) -> None:
        prepared = self._busy(lambda: prepare(self._state, write, self._now()))
        if prepared is None or prepared.body is None:
            return
        told = self._fleet.stated(write.uid, prepared.body)
        self._at(self._us + ANSWER_US, partial(self._hear, write, told))

    def _hear(self, write: Write, told: bytes) -> None:
        def heard() -> None:
            hear(self._state, Saw(msgspec.json.decode(told, type=ResourceBinding)), self._now())
            hear(self._state, Wrote(write, Fate.APPLIED), self._now())

        self._busy(heard)
        self._watched(told)
        self._released.append(write.uid)

    def _watched(self, told: bytes) -> None:
        cache = self._state.cache
        self._busy(lambda: cache.bindings.upsert(msgspec.json.decode(told, type=ResourceBinding)))
        self._has_changed = True

    def _place(self) -> None:
        if self._released:
            self._placed += 1
            self._watched(self._fleet.stated(self._released.popleft(), {"spec": {"clusters": _shares("m1")}}))

    def _finish(self, number: int) -> None:
        status = {"clusterName": f"m{number % CLUSTERS}", "status": _COMPLETE}
        self._watched(self._fleet.stated(f"u{number}", {"status": {"aggregatedStatus": [status]}}))
        self._at(self._us + 1_000_000, partial(self._delete, number))

    def _delete(self, number: int) -> None:
        key = self._fleet.key_of(number)
        self._busy(lambda: self._state.cache.bindings.delete(key))
        self._has_changed = True


PER_SECOND = 100
ANSWER_US = 5_000
_WARM_S = 3
_COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}]}


def _binding(number: int, queue: int, cluster: str = "") -> dict[str, object]:
    """As the API server has it: held, or placed."""
    namespace, at_s = f"team-{queue}", number % 86_400
    clock = f"{at_s // 3600:02}:{at_s // 60 % 60:02}:{at_s % 60:02}"
    workload = {"apiVersion": "batch/v1", "kind": "Job", "namespace": namespace, "name": f"w{number}"}
    return {
        "metadata": {
            "name": f"w{number}-job",
            "namespace": namespace,
            "uid": f"u{number}",
            "resourceVersion": str(number + 1),
            "generation": 1,
            "creationTimestamp": f"2026-11-01T{clock}Z",
            "labels": {"fairway.dev/queue": "main"},
        },
        "spec": {
            "resource": workload,
            "replicas": 1,
            "placement": {"replicaScheduling": {"replicaSchedulingType": "Divided"}},
            "replicaRequirements": {"resourceRequest": {GPU: str(1 + number % 3)}},
            "clusters": _shares(cluster) if cluster else [],
            "suspension": {"scheduling": not cluster},
        },
        "status": {"aggregatedStatus": [{"clusterName": cluster, "status": _RUNS}] if cluster else []},
    }


_RUNS: Obj = {"active": 1, "ready": 1}


def _shares(cluster: str) -> list[Obj]:
    return [{"name": cluster, "replicas": 1}]


def _patched(stated: Obj, body: Obj) -> dict[str, object]:
    """A merge patch, applied."""
    merged = dict(stated)
    for name, value in body.items():
        before = merged.get(name)
        if isinstance(value, Mapping):
            merged[name] = _patched(before if isinstance(before, Mapping) else {}, value)
        elif value is None:
            merged.pop(name, None)
        else:
            merged[name] = value
    return merged


def _decoded(stated: Obj, type: type[T]) -> T:
    return msgspec.json.decode(msgspec.json.encode(stated), type=type)
