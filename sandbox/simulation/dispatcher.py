"""One process of the real dispatcher in the simulation: cache, turns and writes in virtual time.

What is the process' own here is only what waits: watches, requests, sleeping. All that decides is the code
that runs in production.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from fairway.capacity.v1 import capacity_pb2 as pb
from fairway.kube.reflector import Sink
from fairway.kube.resource import ResourceKind
from fairway.scope import Scope
from fairway.workloads.registry import KNOWN_KINDS
from queue_dispatcher.api.kinds import CLUSTER_QUEUES, LOCAL_QUEUES, RESOURCE_FLAVORS, SERVICE_CLASSES
from queue_dispatcher.bindings.binding import Binding, WorkloadReference
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
from queue_dispatcher.cache.overrides import OVERRIDE_POLICIES as OTHERS_POLICIES
from queue_dispatcher.cache.templates import TemplateKind
from queue_dispatcher.clock import SteadyClock
from queue_dispatcher.controller import DEBOUNCE_S
from queue_dispatcher.estimates.asking import Asking
from queue_dispatcher.estimates.cluster_room import ClusterRoom
from queue_dispatcher.estimates.counting import Counting, Unbound, unbound
from queue_dispatcher.estimates.estimates import Departures, Estimates
from queue_dispatcher.estimates.promised import Lists
from queue_dispatcher.estimates.promising import Promising
from queue_dispatcher.estimates.questions import StatedBinding, is_readable
from queue_dispatcher.release.executor import FINDERS, Executor
from queue_dispatcher.turn.events import Counted
from queue_dispatcher.turn.state import TurnState
from sandbox.simulation.bindings_api import BindingsApi, kube_error
from sandbox.simulation.candidate import Candidate
from sandbox.simulation.coroutines import Later, Mailbox, Started
from sandbox.simulation.errors import ApiError
from sandbox.simulation.following import Following
from sandbox.simulation.process import Process
from sandbox.simulation.timeline import Timer
from sandbox.simulation.turns import Cycles, Turns

if TYPE_CHECKING:
    from sandbox.simulation.replica import Replica

_WRITERS: Final = 8
_ASKERS: Final = 4
_FLOOR_MS: Final = 5_000
"""At the latest so long after the last one comes a turn: longer than where time is real."""
_STOPS: Final = 0.2
"""After how many of the steps of a turn others come first: far more often than where time is real."""


class Estimators(Protocol):
    """The estimators of all members, as `queue_dispatcher.estimates.estimators.Estimators` asks them."""

    def place(
        self,
        clusters: Sequence[str],
        gang: pb.Gang,
        assumed: Mapping[str, Sequence[pb.Gang]],
        want_placement: bool,
        endings: Departures | None = None,
        of_choice: bool = False,
    ) -> tuple[ClusterRoom, ...]:
        """A room for each cluster, in their order, as of now."""

    def bound(self, asked: Mapping[str, Sequence[WorkloadReference]]) -> Mapping[str, tuple[int | None, ...]]:
        """By cluster that answers, how many pods of each workload have nodes there, as of now."""

    def promise(
        self, holder: str, since_ms: int, lists: Lists, now_ms: int
    ) -> Mapping[str, tuple[int | None, ...]]:
        """As `queue_dispatcher.estimates.estimators.Estimators.promise`, as of now."""

    def delay_ms(self, clusters: Sequence[str]) -> int:
        """How long the answer about these clusters takes from now."""


class Run:
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
            preplaces=replica.preplaces,
            guides=replica.guides,
        )
        state = TurnState(self.cache, Estimates(replica.wait_s) if estimators is not None else None)
        state.cycles = Cycles(lambda *decided: replica.decided(*decided))
        self._working: list[Started] = []
        self.turns = Turns(state, clock, lambda: self.is_synced)
        self.turns.wake, self.turns.soon = self._wake, partial(process.after, 0)
        self.turns.submitted = lambda *made: replica.submitted(*made)
        self._asking: Asking | None = None
        if state.estimates is not None:
            self._asking = Asking(
                state.estimates,
                self._ask,
                self,
                clock.elapsed_ms,
                self.turns.hear,
                sleep=process.sleep,
            )
            self.turns.questions = self._asking
        self._promising: Promising | None = None
        if state.estimates is not None:
            self._promising = Promising(
                state.estimates,
                self.cache,
                self,
                self._promise,
                clock.elapsed_ms,
                clock.now_ms,
                lambda cluster, bound: self.turns.hear(Counted(cluster, bound)),
                sleep=process.sleep,
            )
        self._counting = Counting(
            self._uncounted,
            self._count,
            lambda cluster, bound: self.turns.hear(Counted(cluster, bound)),
            sleep=process.sleep,
        )
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
        sequences = executor.sequences
        sequences.ready = Mailbox(soon)  # type: ignore[assignment]  # what is used of a queue, in virtual time
        sequences.firsts = Mailbox(soon)  # type: ignore[assignment]  # likewise
        executor.left_open = Mailbox(soon)  # type: ignore[assignment]  # likewise
        self._working = [Started(executor._work()) for _ in range(_WRITERS)]
        self._working += [Started(executor._guide()) for _ in range(_WRITERS)]
        self._working += [Started(executor._find_out()) for _ in range(FINDERS)]
        if self._asking is not None:
            self._asking._waiting = Mailbox(soon)  # type: ignore[assignment]  # likewise
            self._working += [Started(self._asking._work()) for _ in range(_ASKERS)]
            self._working.append(Started(self._counting.run()))
        if self._promising is not None:
            self._working.append(Started(self._promising.run()))
            self._working.append(Started(self._promising.adopt()))
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
        self,
        clusters: tuple[str, ...],
        gang: pb.Gang,
        assumed: Mapping[str, list[pb.Gang]],
        want_placement: bool,
        endings: Departures | None = None,
        of_choice: bool = False,
    ) -> tuple[ClusterRoom, ...]:
        estimators = self._replica.estimators
        assert estimators is not None
        later = Later[tuple[ClusterRoom, ...]]()
        told = {cluster: tuple(gangs) for cluster, gangs in assumed.items()}

        def answer() -> None:
            rooms = estimators.place(clusters, gang, told, want_placement, endings, of_choice)
            self.process.act(lambda: later.set(rooms))

        self.process.host.timeline.after(estimators.delay_ms(clusters), answer)
        return await later

    def _uncounted(self) -> Iterator[Unbound]:
        estimates, promising = self.turns.state.estimates, self._promising
        if estimates is None or promising is None:
            return unbound(self.cache)
        return unbound(self.cache, estimates.settling(), promising.is_counted)

    async def _promise(self, since_ms: int, lists: Lists) -> Mapping[str, tuple[int | None, ...]]:
        estimators = self._replica.estimators
        assert estimators is not None
        later = Later[Mapping[str, tuple[int | None, ...]]]()

        def answer() -> None:
            now_ms = self.process.host.timeline.now_ms
            found = estimators.promise(self._replica.name, since_ms, lists, now_ms)
            self.process.act(lambda: later.set(found))

        self.process.host.timeline.after(estimators.delay_ms(tuple(lists)), answer)
        return await later

    async def _count(
        self, asked: Mapping[str, Sequence[WorkloadReference]]
    ) -> Mapping[str, tuple[int | None, ...]]:
        estimators = self._replica.estimators
        assert estimators is not None
        later = Later[Mapping[str, tuple[int | None, ...]]]()

        def answer() -> None:
            found = estimators.bound(asked)
            self.process.act(lambda: later.set(found))

        self.process.host.timeline.after(estimators.delay_ms(tuple(asked)), answer)
        return await later

    def end(self) -> None:
        """Killed."""
        self.process.kill()
        for one in self._following:
            one.stop()
        for started in self._working:
            started.stop()


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
        (OTHERS_POLICIES, cache.overrides.policies),
    ]
