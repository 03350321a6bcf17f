"""The dispatcher process: everything put together, started in the right order, and ended cleanly.

Every replica watches and answers questions; the one that holds the Lease writes. The election has a
connection and a request budget of its own, so that a busy leader still renews in time.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from fairway.kube.client import KubeClient
from fairway.kube.denials import Denials
from fairway.kube.election import Election, Leadership
from fairway.kube.errors import BadConfig, KubeError
from fairway.kube.events import EventWriter
from fairway.kube.lease import Timing
from fairway.kube.pace import in_slices
from fairway.scope_flags import read_scope
from fairway.service.addresses import BindAddress
from fairway.service.http import Check
from fairway.service.https import following_context
from fairway.service.lifecycle import freeze_long_lived
from fairway.service.program import CANNOT_WORK, Program
from fairway.service.program import run as run_program
from fairway.service.version import release
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.clock import SteadyClock
from queue_dispatcher.dispatcher import BindingApi, Dispatcher, Estimation, Nobody
from queue_dispatcher.estimates.capacities import Capacities
from queue_dispatcher.estimates.estimators import Estimators
from queue_dispatcher.estimates.questions import StatedBinding
from queue_dispatcher.metrics import DispatcherMetrics
from queue_dispatcher.permissions import PERMISSIONS
from queue_dispatcher.settings import ApiSettings, Settings, VisibilitySettings
from queue_dispatcher.sources import Sources
from queue_dispatcher.visibility.etas import Etas
from queue_dispatcher.visibility.events import BindingEvents
from queue_dispatcher.visibility.readings import reading
from queue_dispatcher.visibility.reviews import Reviews
from queue_dispatcher.visibility.server import VisibilityServer
from queue_dispatcher.visibility.status import QueueStatuses

logger = logging.getLogger(__name__)

COMPONENT = "fairway-dispatcher"
_ELECTION_PACE = (10.0, 20)
# Apart from that of admissions, so that whoever looks does not keep anybody waiting.
_REVIEW_PACE = (100.0, 400)
_COMPLAIN_EVERY_S = 10.0
_LOOK_S = 0.5


def run(settings: Settings) -> int:
    """Dispatch until SIGTERM or SIGINT; the exit code."""
    return run_program(settings.logs, lambda stop: serve(settings, stop))


async def serve(
    settings: Settings, stop: asyncio.Event, started: Callable[[Dispatcher], None] | None = None
) -> int:
    """Dispatch until ``stop`` is set; the exit code, which is 2 for a configuration that can never work.

    ``started`` is called once all endpoints listen. Raises StartError, EndpointError, TlsError.
    """
    program = Program(settings.endpoints, settings.notices)
    metrics = DispatcherMetrics(program.registry, version=release())
    clock = SteadyClock()
    metrics.watch_stalls(program.stalls.reading)
    denials = Denials(PERMISSIONS)
    program.tell_denied(lambda: [("karmada", one.verb, one.resource) for one in denials.current()])
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(_client(settings.api, denials))
        try:
            await client.check_configuration()
        except BadConfig as error:
            logger.error("cannot start: %s", error)
            return CANNOT_WORK
        estimators = (
            await stack.enter_async_context(Estimators(settings.estimators))
            if settings.estimators.asks and not settings.observe
            else None
        )
        writer = EventWriter(client, COMPONENT, settings.election.identity, metrics=metrics)
        events = (
            BindingEvents(writer, clock.elapsed_ms, clock.now_ms)
            if settings.writes_events and not settings.observe
            else None
        )
        parts = _Parts(settings, client, metrics, clock, estimators, events)
        dispatcher, sources = parts.dispatcher, parts.sources

        async def read() -> None:
            metrics.readings = await in_slices(reading(dispatcher, sources, clock))

        checks = program.endpoints(lambda: [_synced(sources), _permitted(denials)], read)
        await stack.enter_async_context(checks)
        if settings.visibility is not None:
            reviewer = _client(settings.api, denials, _REVIEW_PACE)
            await stack.enter_async_context(
                _visibility(settings.visibility, reviewer, dispatcher, clock, metrics)
            )
        if started is not None:
            started(dispatcher)
        async with program.work() as work:
            work.begin("sources", sources.run())
            work.begin("cycles", dispatcher.controller.run())
            work.begin("election", parts.campaign())
            work.begin("etas", Etas(dispatcher.controller).run())
            work.begin("freeze", _freeze_when_synced(sources))
            if events is not None:
                work.begin("events", writer.run())
            if estimators is not None:
                work.begin("capacities", Capacities(estimators.counts, dispatcher.cache).run())
            await stop.wait()
    return 0


class _Parts:
    """What depends on the settings."""

    def __init__(
        self,
        settings: Settings,
        client: KubeClient,
        metrics: DispatcherMetrics,
        clock: SteadyClock,
        estimators: Estimators | None,
        events: BindingEvents | None,
    ) -> None:
        self._settings = settings
        self._denials = client.denials
        self._events = events
        estimation = None
        if estimators is not None:
            estimation = Estimation(
                estimators.place, self, settings.estimators.wait_s, estimators.bound, estimators.promise
            )
        self.dispatcher = Dispatcher(
            BindingApi(client),
            read_scope(settings.scope),
            metrics,
            clock,
            lambda: self.sources.is_synced,
            lambda: self.sources.catch_up(),
            estimation=estimation,
            teller=events or Nobody(),
            preplaces=settings.preplaces,
            guides=settings.guides,
            volcano=settings.volcano_queues,
            schedulers=settings.schedulers,
            observe=settings.observe,
        )
        self.sources = Sources(
            client,
            self.dispatcher.cache,
            metrics.reflector(),
            self.dispatcher.controller.changed,
            volcano=settings.volcano_queues,
            clock=time.monotonic,
        )
        self._statuses = QueueStatuses(client, self.dispatcher, clock, metrics.status)

    async def template(self, binding: Binding) -> bytes | StatedBinding:
        """See `queue_dispatcher.estimates.asking.Source`; the sources are there before anything is asked."""
        return await self.sources.template(binding)

    async def campaign(self) -> None:
        """Lead whenever this process is elected, until cancelled."""
        election = self._settings.election
        if not election.is_on:
            await self._lead(lambda: True)
            return
        timing = Timing(int(election.lease_duration_s), election.renew_deadline_s, election.retry_period_s)
        async with _client(self._settings.api, self._denials, _ELECTION_PACE) as client:
            candidate = Election(client, election.namespace, election.name, election.identity, timing=timing)
            self.dispatcher.controller.led_by(lambda: candidate.leader)
            await candidate.run(self._led)

    async def _led(self, leadership: Leadership) -> None:
        await self._lead(leadership.may_write)

    async def _lead(self, may_write: Callable[[], bool]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.dispatcher.lead(may_write), name="lead")
            if not self._settings.observe:
                group.create_task(self._statuses.run(may_write), name="statuses")
            if self._events is not None:
                group.create_task(self._events.watch(self.dispatcher), name="reasons")


@asynccontextmanager
async def _visibility(
    settings: VisibilitySettings,
    reviewer: KubeClient,
    dispatcher: Dispatcher,
    clock: SteadyClock,
    metrics: DispatcherMetrics,
) -> AsyncIterator[BindAddress]:
    """Visibility served. Raises EndpointError, TlsError."""
    tls = None if settings.tls is None else following_context(settings.tls)
    async with AsyncExitStack() as stack:
        reviews = None
        if settings.authorizes:
            client = await stack.enter_async_context(reviewer)
            reviews = Reviews(client, _Complaints().tell)
        server = VisibilityServer(dispatcher, clock, reviews, observe=metrics.visibility_request)
        yield await stack.enter_async_context(server.serve(settings.address, tls))


class _Complaints:
    """Says that the API server cannot be asked who somebody is, but not for each request."""

    def __init__(self) -> None:
        self._said_s = -_COMPLAIN_EVERY_S

    def tell(self, error: KubeError) -> None:
        now_s = time.monotonic()
        if now_s - self._said_s >= _COMPLAIN_EVERY_S:
            self._said_s = now_s
            logger.warning("visibility: nobody's rights can be looked up, so nothing is shown: %s", error)


def _client(api: ApiSettings, denials: Denials, pace: tuple[float, int] | None = None) -> KubeClient:
    """A connection to Karmada's API server, at the pace given or that of the flags; nothing is sent yet."""
    qps, burst = pace if pace is not None else (api.qps, api.burst)
    return KubeClient.from_flags(
        api.kubeconfig, api.master, context=api.context, qps=qps, burst=burst, denials=denials
    )


def _permitted(denials: Denials) -> Check:
    """What is not allowed is told and gone without; it makes nobody unready by itself."""
    return Check("permissions", True, "; ".join(str(one) for one in denials.current()))


def _synced(sources: Sources) -> Check:
    """Ready once everything has been read: a follower may be asked, and may take over."""
    missing = sources.missing()
    return Check("synced", not missing, f"not read yet: {', '.join(missing)}" if missing else "")


async def _freeze_when_synced(sources: Sources) -> None:
    """Take what was just read out of the garbage collector's sight, once."""
    while not sources.is_synced:  # noqa: ASYNC110 - asked once, at the start
        await asyncio.sleep(_LOOK_S)
    freeze_long_lived()
