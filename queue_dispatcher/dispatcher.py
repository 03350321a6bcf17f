"""Dispatcher: cache, turns, questions and writes put together, with everything from outside as arguments.

What it talks to (the API server's bindings, the estimators, who is told) comes in, so that the whole of it
runs in a test on a clock of its own.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from fairway.kube.client import KubeClient
from fairway.kube.patching import PatchResult, merge_patch
from fairway.kube.preconditions import Preconditions
from fairway.scope import Scope
from queue_dispatcher.bindings.objects import ResourceBinding
from queue_dispatcher.bindings.reading import KARMADA_SCHEDULERS, BindingReader
from queue_dispatcher.bindings.requeue import Cause
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.entry import (
    Entry,
    FinishedNotice,
    MaxWaitMissedNotice,
    ReachedNotice,
    RestartedNotice,
)
from queue_dispatcher.clock import SteadyClock
from queue_dispatcher.controller import Controller
from queue_dispatcher.cycle.reasons import max_runtime_exceeded
from queue_dispatcher.estimates.asking import Ask, Asking, Source
from queue_dispatcher.estimates.counting import Count, Counting, nobody_counts, unbound
from queue_dispatcher.estimates.estimates import Estimates
from queue_dispatcher.estimates.promised import Lists
from queue_dispatcher.estimates.promising import Counts, Promising
from queue_dispatcher.metrics import DispatcherMetrics
from queue_dispatcher.observing import Observing
from queue_dispatcher.release.companions import ensure
from queue_dispatcher.release.executor import Api, Executor
from queue_dispatcher.turn.events import Counted
from queue_dispatcher.turn.notices import (
    AdmittedNotice,
    AnsweredNotice,
    EvictedNotice,
    FailedNotice,
    FulfilledNotice,
    GivenUpNotice,
    LostNotice,
    Notice,
    PlaceGivenUpNotice,
    RefusedNotice,
    ReservedNotice,
    StaleNotice,
    TakenBackNotice,
    YieldedNotice,
)
from queue_dispatcher.turn.state import TurnState
from queue_dispatcher.turn.switching import NOT_HEEDED
from queue_dispatcher.turn.window import ReleaseWindow
from queue_dispatcher.turn.writes import Companion
from queue_dispatcher.workloads.choice import Choice

logger = logging.getLogger(__name__)


_ALONE = "dispatcher"
"""As whom promises are made where nobody is elected."""


class Teller(Protocol):
    """Who tells people what happens to their workloads; never raises, never waits."""

    def tell(self, entry: Entry, reason: str, message: str, *, is_warning: bool = False) -> None:
        """Something happened to the binding; ``reason`` is one CamelCase word."""


class Nobody:
    """Tells nothing."""

    def tell(self, entry: Entry, reason: str, message: str, *, is_warning: bool = False) -> None:
        """See `Teller`."""


class BindingApi:
    """Bindings on Karmada's API server."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def patch(
        self, path: str, body: Mapping[str, object], when: Preconditions
    ) -> PatchResult[ResourceBinding]:
        """See `queue_dispatcher.release.executor.Api`."""
        return await merge_patch(self._client, path, body, ResourceBinding, when)

    async def read(self, path: str) -> ResourceBinding:
        """See `queue_dispatcher.release.executor.Api`."""
        return await self._client.get_json(path, ResourceBinding)

    async def ensure(self, companion: Companion) -> None:
        """See `queue_dispatcher.release.executor.Api`."""
        await ensure(self._client, companion)


PromiseAs = Callable[[str, int, Lists], Awaitable[Counts]]
"""As `Estimators.promise`."""


async def nobody_keeps(holder: str, since_ms: int, lists: Lists) -> Counts:
    """Where no estimator keeps promises."""
    return {}


@dataclass(frozen=True, slots=True)
class Estimation:
    """How estimators are asked, also to ``count`` pods, and told what they are promised.

    ``wait_s`` is how long a workload waits for those that do not answer.
    """

    ask: Ask
    source: Source
    wait_s: float
    count: Count = nobody_counts
    promise: PromiseAs = nobody_keeps


class Dispatcher:
    """One process's dispatcher. Its ``cache`` has the sinks to feed; ``controller.run`` has to run.

    ``is_synced`` tells whether all sinks have been fed completely once; ``caught_up`` returns once they have
    been fed with all that there was when it was called. With ``observe`` bindings are taken as if all were
    held, and no write reaches ``api``.
    """

    def __init__(
        self,
        api: Api[ResourceBinding],
        scope: Scope,
        metrics: DispatcherMetrics,
        clock: SteadyClock,
        is_synced: Callable[[], bool],
        caught_up: Callable[[], Awaitable[None]],
        *,
        estimation: Estimation | None = None,
        teller: Teller | None = None,
        preplaces: bool = True,
        guides: bool = True,
        volcano: bool = False,
        schedulers: Collection[str] = KARMADA_SCHEDULERS,
        observe: bool = False,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        rng: random.Random | None = None,
    ) -> None:
        reader = BindingReader(schedulers=schedulers)
        observing = Observing(reader.read) if observe else None
        self.observes = observe
        self._api: Api[ResourceBinding] = observing or api
        self._caught_up = caught_up
        self._metrics = metrics
        self._clock = clock
        self._sleep = sleep
        self._rng = rng
        self.executor: Executor[ResourceBinding] | None = None
        self.cache = Cache(
            scope,
            lambda: self.controller.changed(),
            probes=estimation is not None,
            # What is only observed goes where Karmada has placed it.
            preplaces=preplaces and not observe,
            guides=guides,
            volcano=volcano,
            observes=observe,
            read=reader.read if observing is None else observing.shown,
            forget=observing.forget if observing is not None else None,
        )
        self.state = TurnState(self.cache, Estimates(estimation.wait_s) if estimation is not None else None)
        self.controller = Controller(
            self.state, metrics, clock, is_synced, NoticeTeller(metrics, teller or Nobody()).tell, sleep=sleep
        )
        self._asking: Asking | None = None
        self._counting: Counting | None = None
        self._promising: Promising | None = None
        if estimation is not None and self.state.estimates is not None:
            self._asking = Asking(
                self.state.estimates,
                estimation.ask,
                estimation.source,
                clock.elapsed_ms,
                self.controller.hear,
                sleep=sleep,
            )
            self.controller.questions = self._asking
            estimates, promise = self.state.estimates, estimation.promise
            self._promising = promising = Promising(
                estimates,
                self.cache,
                estimation.source,
                lambda since_ms, lists: promise(self.state.leader or _ALONE, since_ms, lists),
                clock.elapsed_ms,
                clock.now_ms,
                lambda cluster, bound: self.controller.hear(Counted(cluster, bound)),
                sleep=sleep,
            )
            self._counting = Counting(
                lambda: unbound(self.cache, estimates.settling(), promising.is_counted),
                estimation.count,
                lambda cluster, bound: self.controller.hear(Counted(cluster, bound)),
                sleep=sleep,
            )

    @property
    def window(self) -> ReleaseWindow:
        """How much may be released and not placed."""
        return self.state.window

    async def lead(self, may_write: Callable[[], bool]) -> None:
        """Write, until cancelled, what is decided; ``may_write`` is asked before each write."""
        await self._caught_up()
        executor = self.executor = Executor(
            self._api,
            self.controller,
            may_write,
            observe=lambda purpose, outcome: self._metrics.write(purpose, outcome),
            clock=lambda: self._clock.elapsed_ms() / 1000,
            sleep=self._sleep,
            rng=self._rng,
        )
        self.controller.lead(executor)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(executor.run(), name="writes")
                if self._asking is not None:
                    group.create_task(self._asking.run(), name="questions")
                if self._counting is not None:
                    group.create_task(self._counting.run(), name="counting")
                if self._promising is not None:
                    group.create_task(self._promising.run(), name="promising")
                    group.create_task(self._promising.adopt(), name="adopting")
        finally:
            self.executor = None
            self.controller.lead(None)


def _told(choice: Choice | None) -> str:
    """Where to, and why there; where Karmada chooses, nothing."""
    if choice is None:
        return ""
    places = ", ".join(
        f"{place.cluster} ({place.replicas})" if len(choice.places) > 1 else place.cluster
        for place in choice.places
    )
    guided = ", ".join(one.cluster for one in choice.guidance)
    told = f"; its pods are told which nodes to prefer in {guided}" if guided else ""
    return f"; placed on {places}: {choice.reason}{told}"


class NoticeTeller:
    """Tells metrics, people and the log what turns have noticed."""

    def __init__(self, metrics: DispatcherMetrics, teller: Teller) -> None:
        self._metrics = metrics
        self._teller = teller

    def tell(self, notice: Notice) -> None:
        """Tell one."""
        metrics = self._metrics
        match notice:
            case AdmittedNotice(entry, record, waited_ms, choice, passes):
                metrics.admitted(record.queue, record.service_class, waited_ms / 1000, passes=passes)
                if choice is not None and choice.guidance:
                    metrics.guided(record.queue)
                flavors = ", ".join(sorted({name for _, names in record.flavors for name in names}))
                charged = f", charged to {flavors}" if flavors else ""
                after = f"after {waited_ms // 1000} s in the line"
                told = f"admitted by ClusterQueue {record.queue}{charged}, {after}{_told(choice)}"
                self._teller.tell(entry, "Admitted", told)
            case ReachedNotice(queue, reached, took_ms):
                metrics.reached(queue, reached, took_ms / 1000)
            case FinishedNotice(_, queue):
                metrics.finished(queue)
            case MaxWaitMissedNotice(_, queue, service_class):
                metrics.max_wait_missed(queue, service_class)
            case RestartedNotice(entry, queue):
                told = (
                    "it had ended, and Karmada has started it anew elsewhere: charged to ClusterQueue "
                    f"{queue} again, without having waited"
                )
                self._teller.tell(entry, "Restarted", told, is_warning=True)
            case TakenBackNotice(entry, queue, requeue):
                metrics.taken_back(queue, "StartTimeout")
                told = f"did not start ({requeue.reason}), time {requeue.count}; waits again, in its place"
                self._teller.tell(entry, "TakenBack", told, is_warning=True)
            case LostNotice(entry, queue, reason):
                metrics.taken_back(queue, "ClusterLost")
                told = f"taken back whole: {reason}; waits again, in its place"
                if not reason:
                    stays = ", ".join(share.cluster for share in entry.binding.placed)
                    told = (
                        f"off a cluster that cannot be reached; runs on in {stays}, the rest is placed anew"
                    )
                self._teller.tell(entry, "ClusterLost", told, is_warning=True)
            case YieldedNotice(entry, queue, reason):
                metrics.shrunk(queue)
                left = sum(share.replicas for share in entry.binding.placed)
                told = f"runs on with {left} of its {entry.binding.demand.replicas} pods: {reason}"
                self._teller.tell(entry, "PodsGivenUp", told, is_warning=True)
            case EvictedNotice(entry, queue, requeue):
                metrics.taken_back(queue, requeue.cause)
                waits = "waits, in its place"
                match requeue.cause:
                    case Cause.MAX_RUNTIME:
                        waits = f"stays held: {max_runtime_exceeded(requeue.reason).unblock}"
                    case Cause.DRAINED:
                        waits += ", until that queue goes on"
                stay = requeue.suspended
                done = "taken back" if stay is None else f"suspended in cluster {stay.cluster}"
                told = f"{done}: {requeue.reason}; {waits}"
                self._teller.tell(entry, requeue.cause, told, is_warning=True)
            case PlaceGivenUpNotice(entry, requeue):
                why = NOT_HEEDED if requeue.reason == NOT_HEEDED else "it found no room there in time"
                told = f"taken off the cluster where it was suspended, as {why}"
                self._teller.tell(entry, "PlaceGivenUp", told, is_warning=True)
            case ReservedNotice(entry, queue, told):
                metrics.reserved(queue, "made")
                self._teller.tell(entry, "Reserved", told)
            case GivenUpNotice(entry, queue, told):
                metrics.reserved(queue, "given_up")
                self._teller.tell(entry, "ReservationGivenUp", told, is_warning=True)
            case FulfilledNotice(queue):
                metrics.reserved(queue, "fulfilled")
            case RefusedNotice(entry, purpose, message):
                self._teller.tell(entry, "WriteRefused", f"{purpose}: {message}", is_warning=True)
            case FailedNotice(entry, purpose, message):
                self._teller.tell(entry, "WriteFailed", f"{purpose}: {message}", is_warning=True)
            case StaleNotice(entry):
                told = "the watch never told of our write; the older state counts"
                logger.warning("binding %s: %s", entry.binding.key, told)
            case AnsweredNotice(answer, took_ms, unknown):
                metrics.probe(answer, took_ms / 1000)
                if answer == "without":
                    logger.warning("released without an estimate: %s", "; ".join(unknown))
