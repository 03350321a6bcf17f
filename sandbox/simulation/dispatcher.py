"""The real dispatcher as processes of the simulation: cache, turns and writes in virtual time.

What is the process' own here is only what waits: watches, requests, sleeping. All that decides is the code
that runs in production.
"""

import random
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final, Protocol

import msgspec
from prometheus_client import CollectorRegistry

from fairway.accelerators.catalogue import Catalogue
from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.kube.reflector import Sink
from fairway.kube.resource import ResourceKind
from fairway.scope import Scope
from fairway.visibility import QueueList
from fairway.workloads.registry import KNOWN_KINDS
from queue_dispatcher.api.kinds import CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS, SERVICE_CLASSES
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.cluster import CLUSTERS
from queue_dispatcher.bindings.objects import CLUSTER_RESOURCE_BINDINGS, RESOURCE_BINDINGS
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.objects import (
    CLUSTER_PROPAGATION_POLICIES,
    NAMESPACES,
    PRIORITY_CLASSES,
    PROPAGATION_POLICIES,
    TemplateObject,
)
from queue_dispatcher.cache.tally import state_name
from queue_dispatcher.cache.templates import TemplateKind
from queue_dispatcher.clock import SteadyClock
from queue_dispatcher.controller import DEBOUNCE_S, Controller
from queue_dispatcher.cycle.actions import Decision
from queue_dispatcher.cycle.decide import AdmissionCycles
from queue_dispatcher.cycle.reasons import Reason
from queue_dispatcher.cycle.snapshot import Snapshot
from queue_dispatcher.estimates.asking import Asking
from queue_dispatcher.estimates.cluster_room import ClusterRoom
from queue_dispatcher.estimates.estimates import Estimates
from queue_dispatcher.estimates.questions import StatedBinding, is_readable
from queue_dispatcher.metrics import DispatcherMetrics
from queue_dispatcher.release.executor import Executor
from queue_dispatcher.turn.notices import Notice
from queue_dispatcher.turn.state import TurnState
from queue_dispatcher.visibility.notes import notes_of
from queue_dispatcher.visibility.views import Views
from queue_dispatcher.visibility.waiting import waiting_of
from sandbox.simulation.api_server import ApiServer
from sandbox.simulation.bindings_api import BindingsApi, kube_error
from sandbox.simulation.candidate import Candidate
from sandbox.simulation.coroutines import Later, Mailbox, Started
from sandbox.simulation.errors import ApiError
from sandbox.simulation.following import Decoder, Following
from sandbox.simulation.process import Host, Process
from sandbox.simulation.timeline import Timer

_WRITERS: Final = 8
_ASKERS: Final = 4
_FLOOR_MS: Final = 5_000
"""At the latest so long after the last one comes a turn: longer than where time is real."""
_STOPS: Final = 0.2
"""After how many of the steps of a turn others come first: far more often than where time is real."""


class Estimators(Protocol):
    """The estimators of all members, as `queue_dispatcher.estimates.estimators.Estimators` asks them."""

    def place(
        self, clusters: Sequence[str], gang: pb.Gang, assumed: Mapping[str, Sequence[pb.Gang]]
    ) -> tuple[ClusterRoom, ...]:
        """A room for each cluster, in their order, as of now."""

    def delay_ms(self, clusters: Sequence[str]) -> int:
        """How long the answer about these clusters takes from now."""


@cache
def _metrics() -> DispatcherMetrics:
    # Nobody scrapes it: one for all.
    return DispatcherMetrics(CollectorRegistry(), version="simulated")


class _Turns(Controller):
    """The controller, woken by the timeline instead of an event loop."""

    wake: Callable[[], None]
    soon: Callable[[Callable[[], None]], None]
    is_turning = False
    """Whether a turn has begun and not ended yet."""

    def __init__(
        self, state: TurnState, metrics: DispatcherMetrics, clock: SteadyClock, is_synced: Callable[[], bool]
    ) -> None:
        super().__init__(state, metrics, clock, is_synced, _untold)
        self._resting: list[Later[None]] = []

    def changed(self) -> None:
        """See `Controller.changed`."""
        self.wake()

    @property
    def next_due_ms(self) -> int | None:
        """When time alone calls for a turn, by its own clock."""
        return self._next_due_ms

    def take(self) -> Iterator[None]:
        """What `Controller.step` does, in steps between which others may be let run."""
        if not self._is_synced():
            return
        self.settle()
        if not self._is_synced():
            return
        self.is_turning = True
        yield from self._turn()
        self.is_turning = False
        resting, self._resting = self._resting, []
        for one in resting:
            self.soon(partial(one.set, None))

    def settle(self) -> None:
        """As `Controller.settled`."""
        self.state.advance(self.now())
        self.state.cache.settle()

    async def at_rest(self) -> None:
        """See `Controller.at_rest`."""
        while self.is_turning:
            later = Later[None]()
            self._resting.append(later)
            await later


class _Cycles(AdmissionCycles):
    """Admission cycles, each of which somebody is told of."""

    def __init__(self, tell: Callable[[Snapshot, Decision, int], None]) -> None:
        super().__init__()
        self._tell = tell

    def steps(self, snapshot: Snapshot, now_ms: int) -> Generator[None, None, Decision]:
        """See `AdmissionCycles.steps`."""
        decision = yield from super().steps(snapshot, now_ms)
        self._tell(snapshot, decision, now_ms)
        return decision


def _unseen(snapshot: Snapshot, decision: Decision, now_ms: int) -> None:
    """Nobody looks."""


def _unheard(replica: str) -> None:
    """Nobody listens."""


def _untold(notice: Notice) -> None:
    """Nobody is told."""


class _Run:
    """One process of a replica, from its start to its end."""

    def __init__(self, replica: "Replica", number: int) -> None:
        self._replica = replica
        host, api, rng, decoder = replica.host, replica.api, replica.rng, replica.decoder
        self.process = process = Process(host)
        self._client = api.client(replica.name)
        clock = SteadyClock(host.wall_s, host.elapsed_s)
        estimators = replica.estimators
        self.clock = clock
        self._timer: Timer | None = None
        self._is_starting = True
        self._is_woken = False
        self.cache = Cache(
            Scope(replica.catalogue),
            self._wake,
            probes=estimators is not None,
        )
        state = TurnState(self.cache, Estimates(replica.wait_s) if estimators is not None else None)
        state.cycles = _Cycles(lambda *decided: replica.decided(*decided))
        self._working: list[Started] = []
        self.turns = _Turns(state, _metrics(), clock, lambda: self.is_synced)
        self.turns.wake, self.turns.soon = self._wake, partial(process.after, 0)
        self._asking: Asking | None = None
        if state.estimates is not None:
            self._asking = Asking(state.estimates, self._ask, self, clock.elapsed_ms, self.turns.hear)
            self.turns.questions = self._asking
        self._was_synced = False
        self._needed = [self._follow(kind, sink) for kind, sink in _sources(self.cache)]
        self._following = [*self._needed]
        self._term = 0
        self.cache.templates.appeared = self._appeared
        identity = f"{replica.name}_{number}"
        self.candidate = Candidate(process, self._client, identity, decoder, rng, self._elected, self._lost)
        self.turns.led_by(lambda: self.candidate.leader)
        self._bindings = BindingsApi(process, self._client, decoder, replica.delay_ms)
        for one in self._following:
            one.begin()
        self.candidate.begin()
        self._is_starting = False

    @property
    def is_synced(self) -> bool:
        """As `queue_dispatcher.sources.Sources.is_synced`."""
        self._was_synced = self._was_synced or all(one.is_synced for one in self._following)
        return self._was_synced

    @property
    def is_current(self) -> bool:
        """Whether it has heard of all that there is, and is about to write nothing."""
        is_idle = not any(one.is_writing or one.record is not None for one in self.cache.entries.values())
        return (
            self.is_synced
            and is_idle
            and not self.turns.is_turning
            and all(one.is_current for one in self._following)
        )

    def settled(self) -> Cache:
        """The cache, up to date unless a turn is under way."""
        if not self.turns.is_turning:
            self.turns.settle()
        return self.cache

    def _follow(self, kind: ResourceKind[Any], sink: Sink[Any]) -> Following[Any]:
        replica = self._replica
        return Following(self.process, self._client, kind, sink, replica.decoder, replica.rng, self._wake)

    def _appeared(self, kind: TemplateKind) -> None:
        plural = f"{kind.kind.lower()}s"
        group, name = kind.name
        resource = ResourceKind(
            plural, f"/apis/{group}/{plural}", TemplateObject, metadata_only=(name, group) not in KNOWN_KINDS
        )
        following = self._follow(resource, kind)
        self._following.append(following)
        following.begin()

    # Cycles.

    def _wake(self) -> None:
        if self._is_starting:
            return
        if self.turns.is_turning:
            self._is_woken = True
            return
        at_ms = self.process.host.timeline.now_ms + int(DEBOUNCE_S * 1000)
        if self._timer is None or not self._timer.is_set or self._timer.at_ms > at_ms:
            self._cycle_at(at_ms)

    def _cycle_at(self, at_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.process.host.timeline.at(at_ms, lambda: self.process.act(self._cycle))

    def _cycle(self) -> None:
        if self.turns.is_turning:
            self._is_woken = True
            return
        self._is_woken = False
        self._replica.turned(self._replica.name)
        self._go_on(self.turns.take())

    def _go_on(self, steps: Iterator[None]) -> None:
        """Take steps of a turn; after some of them others have their turn first."""
        for _ in steps:
            if self._replica.rng.random() < _STOPS:
                self.process.after(1, partial(self._go_on, steps))
                return
        floor_ms = _FLOOR_MS
        due_ms = self.turns.next_due_ms
        if due_ms is not None:
            floor_ms = min(floor_ms, max(1, due_ms - self.clock.now_ms()))
        if self._timer is None or not self._timer.is_set:
            self._cycle_at(self.process.host.timeline.now_ms + floor_ms)
        if self._is_woken:
            self._wake()

    # Leading.

    def _elected(self) -> None:
        """Catch up with what there is, as `Dispatcher.lead` does, and then lead."""
        self._term += 1
        term, behind = self._term, set(range(len(self._needed)))

        def caught_up(number: int) -> None:
            behind.discard(number)
            if not behind and term == self._term:
                self._lead()

        for number, one in enumerate(self._needed):
            one.catch_up(partial(caught_up, number))

    def _lead(self) -> None:
        def soon(action: Callable[[], None]) -> None:
            self.process.after(0, action)

        executor = Executor(
            self._bindings,
            self.turns,
            self.candidate.may_write,
            observe=self._replica.observe,
            clock=lambda: self.clock.elapsed_ms() / 1000,
            sleep=self.process.sleep,
            rng=self._replica.rng,
        )
        executor._ready = Mailbox(soon)  # type: ignore[assignment]  # what is used of a queue, in virtual time
        self._working = [Started(executor._work()) for _ in range(_WRITERS)]
        if self._asking is not None:
            self._asking._waiting = Mailbox(soon)  # type: ignore[assignment]  # likewise
            self._working += [Started(self._asking._work()) for _ in range(_ASKERS)]
        self.turns.lead(executor)

    def _lost(self) -> None:
        self._term += 1
        for one in self._working:
            one.stop()
        self._working = []
        self.turns.lead(None)

    # What the estimators are asked.

    async def template(self, binding: Binding) -> bytes | StatedBinding:
        """See `queue_dispatcher.estimates.asking.Source`."""
        workload = binding.workload
        kind = RESOURCE_BINDINGS if binding.namespace else CLUSTER_RESOURCE_BINDINGS
        try:
            if is_readable(binding):
                key = f"{workload.namespace}/{workload.name}"
                obj = self._client.get(f"{workload.kind.lower()}s", key)
                return msgspec.json.encode({**obj, "apiVersion": workload.api_version, "kind": workload.kind})
            stated = self._client.get(kind.name.partition(".")[0], binding.key)
        except ApiError as error:
            raise kube_error(binding.key, error) from None
        return msgspec.convert(stated, StatedBinding)

    async def _ask(
        self, clusters: tuple[str, ...], gang: pb.Gang, assumed: Mapping[str, list[pb.Gang]]
    ) -> tuple[ClusterRoom, ...]:
        estimators = self._replica.estimators
        assert estimators is not None
        later = Later[tuple[ClusterRoom, ...]]()
        told = {cluster: tuple(gangs) for cluster, gangs in assumed.items()}

        def answer() -> None:
            rooms = estimators.place(clusters, gang, told)
            self.process.act(lambda: later.set(rooms))

        self.process.host.timeline.after(estimators.delay_ms(clusters), answer)
        return await later

    def end(self) -> None:
        """Killed."""
        self.process.kill()
        for one in self._following:
            one.stop()
        for started in self._working:
            started.stop()


class Replica:
    """One replica of the dispatcher: a process that is started anew when it ended. ``rng`` is its chance.

    ``observe`` is told the purpose and the outcome of each write; ``wait_s``: see `Estimates`.
    """

    def __init__(
        self,
        name: str,
        api: ApiServer,
        catalogue: Catalogue,
        decoder: Decoder,
        rng: random.Random,
        *,
        estimators: Estimators | None = None,
        wait_s: float = 60.0,
        observe: Callable[[str, str], None] = lambda purpose, outcome: None,
    ) -> None:
        self.name, self.api, self.catalogue, self.decoder, self.rng = name, api, catalogue, decoder, rng
        self.estimators, self.wait_s, self.observe = estimators, wait_s, observe
        self.host = Host(api.timeline)
        self.slow_ms = 0
        self.decided = _unseen
        """Told of each decision: from what, what, and when."""
        self.turned: Callable[[str], None] = _unheard
        """Told its name at the beginning of each turn."""
        self._starts = 0
        self._run: _Run | None = None

    def start(self) -> None:
        """Begin a process, unless there is one."""
        if self._run is None:
            self._starts += 1
            self._run = _Run(self, self._starts)

    def kill(self) -> None:
        """End the process where it stands."""
        if self._run is not None:
            self._run.end()
            self._run = None

    def restart_after(self, delay_ms: int) -> None:
        """Kill it, and let another come up."""
        self.kill()
        self.api.timeline.after(delay_ms, self.start)

    def pause(self) -> None:
        """Stop the process without ending it."""
        if self._run is not None:
            self._run.process.pause()

    def go_on(self) -> None:
        """Let a paused process go on."""
        if self._run is not None:
            self._run.process.go_on()

    def delay_ms(self) -> int:
        """How long the next request, or its answer, is on its way."""
        return self.rng.randint(1, 8) + (self.rng.randint(0, self.slow_ms) if self.slow_ms else 0)

    @property
    def is_leading(self) -> bool:
        """Whether its process believes that it leads, and may write."""
        return self._run is not None and self._run.candidate.may_write()

    @property
    def is_up(self) -> bool:
        """Whether there is a process, and it is not paused."""
        return self._run is not None and not self._run.process.is_paused

    def waits(self) -> dict[str, Reason]:
        """Why each binding waits, by key, as the process says now."""
        if self._run is None:
            return {}
        cache, view, now_ms = self._run.settled(), self._run.turns.view, self._run.clock.now_ms()
        told = ((entry, waiting_of(cache, view, entry, now_ms)) for entry in cache.entries.values())
        return {entry.binding.key: reason for entry, reason in told if reason is not None}

    def states(self) -> dict[str, str]:
        """What whoever looks is told of each binding, by key: its state in one word, and notes."""
        if self._run is None:
            return {}
        cache, now_ms = self._run.settled(), self._run.clock.now_ms()
        return {
            entry.binding.key: f"{state_name(entry)}: {notes_of(entry, now_ms)}"
            for entry in cache.entries.values()
        }

    def queues(self) -> QueueList | None:
        """What it tells of queues; None while it has not heard of all that there is, or is writing."""
        if self._run is None or not self._run.is_current:
            return None
        cache, turns = self._run.settled(), self._run.turns
        views = Views(cache, turns.view, self._run.clock.now_ms())
        window = turns.state.window.size
        return views.queues(in_flight=len(cache.running.in_flight), window=window, is_leader=turns.is_leading)


def _sources(cache: Cache) -> list[tuple[ResourceKind[Any], Sink[Any]]]:
    """As `queue_dispatcher.sources.Sources` follows them."""
    queues = cache.queues
    return [
        (RESOURCE_BINDINGS, cache.bindings),
        (CLUSTER_RESOURCE_BINDINGS, cache.cluster_bindings),
        (CLUSTERS, cache.clusters),
        (RESOURCE_FLAVORS, cache.flavors),
        (CLUSTER_QUEUES, queues.cluster_queues),
        (LOCAL_QUEUES, queues.local_queues),
        (SERVICE_CLASSES, queues.service_classes),
        (PRIORITY_CLASSES, queues.priority_classes),
        (NAMESPACES, queues.known_namespaces),
        (PROPAGATION_POLICIES, queues.policies),
        (CLUSTER_PROPAGATION_POLICIES, queues.cluster_policies),
    ]
