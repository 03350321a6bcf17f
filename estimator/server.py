"""The estimator process: everything put together, started in the right order, and ended cleanly.

The port is open before any cluster has been read: a call that comes early waits inside its own deadline,
while a refused connection would void every other cluster's answer.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
from google.protobuf.internal import api_implementation
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from estimator.answering import Answering, Policy
from estimator.anytime import BETTER_AT_ONCE, FIRST_AT_ONCE
from estimator.capacity.doubt import OnDoubt
from estimator.capacity.promises import Promises
from estimator.capacity.request import Component
from estimator.capacity.sets import integer_program
from estimator.capacity.topology.levels import Levels, levels_of
from estimator.capacity_answering import CapacityAnswering
from estimator.capacity_service import SERVICE as CAPACITY_SERVICE
from estimator.capacity_service import CapacityService
from estimator.cluster.freshness import Verdict, verdict
from estimator.cluster.mirror import ClusterMirror
from estimator.feature_gates import Gates
from estimator.karmada.templates import Found
from estimator.member import NODES, PODS, QUOTAS, REPLICA_SETS, MemberCluster
from estimator.metrics import ClusterReading, EstimatorMetrics
from estimator.pb import service_pb2
from estimator.service import SERVICE, EstimatorService
from estimator.settings import ApiSettings, LiveCluster, Settings, SnapshotCluster
from estimator.snapshot_source import SnapshotSource
from fairway.accelerators.builtin import extended_catalogue
from fairway.accelerators.catalogue import Catalogue, CatalogueError
from fairway.kube.denials import Denial
from fairway.kube.pace import take_turn
from fairway.service.http import Check
from fairway.service.lifecycle import freeze_long_lived, return_memory
from fairway.service.program import Program, StartError
from fairway.service.program import run as run_program
from fairway.service.tls import ServerCertificates
from fairway.service.version import release

if TYPE_CHECKING:
    from estimator.karmada.source import KarmadaSource
    from estimator.live_source import LiveSource
    from estimator.prometheus_source import PrometheusSource

logger = logging.getLogger(__name__)

MAX_REQUEST_BYTES = 16 << 20
MAX_STREAMS = 128
HANDSHAKE_WITHIN_MS = 10_000
CONNECTION_AGE_MS = 3_600_000
_STOP_WITHIN_S = 5.0
# Apart from each other, so that Karmada's questions never wait for long searches. One thread of each is left
# for messages; of our own, one searches and one sums up.
KARMADA_THREADS, OWN_THREADS = FIRST_AT_ONCE + BETTER_AT_ONCE + 1, 3
_OPTIONS = (
    # A second server on the same port must fail, not silently take every other connection.
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", MAX_REQUEST_BYTES),
    # What one connection may have in hand. Further calls wait at a client that knows the limit, but gRPC
    # counts a call until it has let go of it, a moment after the answer is sent: what comes sooner it refuses
    # unread (RST_STREAM with REFUSED_STREAM), and after one try more clients tell their caller UNAVAILABLE.
    ("grpc.max_concurrent_streams", MAX_STREAMS),
    ("grpc.server_handshake_timeout_ms", HANDSHAKE_WITHIN_MS),
    # A client's certificate is looked at when it connects: after this long it has to show a valid one again.
    # Clients are told in good time and lose no call.
    ("grpc.max_connection_age_ms", CONNECTION_AGE_MS),
    ("grpc.max_connection_age_grace_ms", 60_000),
)


_SayStopping = Callable[[], Awaitable[None]]


def run(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT; the exit code."""
    return run_program(settings.logs, lambda stop: serve(settings, stop))


async def serve(settings: Settings, stop: asyncio.Event, started: Callable[[int], None] | None = None) -> int:
    """Serve until ``stop`` is set, then finish the calls in flight.

    ``started`` is called with the port once the server listens. Raises StartError, EndpointError, TlsError.
    """
    if api_implementation.Type() != "upb":
        raise StartError("protobuf runs in pure Python, a hundred times too slow; install its binary wheel")
    program = Program(settings.endpoints, settings.notices)
    names = [cluster.name for cluster in settings.clusters]
    metrics = EstimatorMetrics(program.registry, names, version=release())
    members = [_Member(cluster, settings, metrics) for cluster in settings.clusters]
    metrics.watch_stalls(program.stalls.reading)
    async with AsyncExitStack() as stack:
        for_karmada = stack.enter_context(ThreadPoolExecutor(KARMADA_THREADS, thread_name_prefix="karmada"))
        own = stack.enter_context(ThreadPoolExecutor(OWN_THREADS, thread_name_prefix="capacity"))
        templates = None if settings.karmada is None else _Templates(settings.karmada, settings.api, metrics)
        program.tell_denied(lambda: _denied(members, templates))
        server, port, say_stopping = await _listen(settings, members, metrics, for_karmada, own, templates)
        stack.push_async_callback(server.stop, _STOP_WITHIN_S)
        await stack.enter_async_context(program.endpoints(lambda: [member.check() for member in members]))
        logger.info("serving", extra={"port": port, "tls": settings.tls is not None, "clusters": names})
        if started is not None:
            started(port)
        async with program.work() as work:
            for member in members:
                work.begin(member.name, member.run())
                work.begin(f"{member.name}/prometheus", member.follow_prometheus())
            if templates is not None:
                work.begin("templates", templates.run())
            # The first gang shall not wait for its solver to be loaded.
            work.begin("solver", asyncio.to_thread(integer_program.load))
            work.begin("freeze", _freeze_when_synced(members))
            await stop.wait()
            await say_stopping()
            await server.stop(_STOP_WITHIN_S)
    return 0


class _Member:
    """One cluster of this process with its source."""

    def __init__(
        self, cluster: LiveCluster | SnapshotCluster, settings: Settings, metrics: EstimatorMetrics
    ) -> None:
        self.name = cluster.name
        self._metrics = metrics
        self._stale_after_s = settings.stale_after_s
        self.member = MemberCluster(
            cluster.name,
            ClusterMirror(self._report),
            time.monotonic,
            _levels(settings, cluster.name),
            settings.accelerators.tolerations,
        )
        self._cluster = cluster
        self._settings = settings
        self._live: LiveSource | None = None
        self._prometheus: PrometheusSource | None = None
        metrics.watch_cluster(cluster.name, self._reading)

    async def run(self) -> None:
        """Keep the mirror up to date until cancelled."""
        if isinstance(self._cluster, SnapshotCluster):
            file = self._cluster.file
            await SnapshotSource(self.member, file, self._report, clock=time.monotonic).run()
        else:
            source, _ = await asyncio.to_thread(_sources)
            # A hundred clusters shall not be set up in one go.
            await take_turn()
            self._live = source.connect(
                self._cluster,
                self._settings.api,
                self.member,
                self._metrics.reflector(self.name),
                clock=time.monotonic,
                at_once=_needed_at_once(self._settings.gates),
            )
            await self._live.run()

    async def follow_prometheus(self) -> None:
        """Ask the cluster's Prometheus of its devices until cancelled, where there is one."""
        settings = self._settings.prometheus
        servers = settings.servers.get(self.name, ())
        if not servers:
            return
        kind_of_source = await asyncio.to_thread(_prometheus_source)
        self._prometheus = kind_of_source(
            self.member,
            servers,
            settings.every_s,
            self._report,
            lambda: self._metrics.prometheus_failed(self.name),
            clock=time.monotonic,
            wall_clock=time.time,
        )
        await self._prometheus.run()

    @property
    def denied(self) -> tuple[Denial, ...]:
        """What the cluster's API server does not let us read."""
        return () if self._live is None else self._live.denials.current()

    def check(self) -> Check:
        """Ready once the cluster has been read, or has failed for too long for others to wait for it."""
        freshness = self.member.freshness((NODES, PODS))
        gave_up = verdict(freshness, self._stale_after_s) is Verdict.DOUBT
        detail = freshness.detail or f"{self.member.mirror.columns.node_count} nodes"
        return Check(f"cluster {self.name}", freshness.synced or gave_up, detail)

    def _reading(self) -> ClusterReading:
        freshness = self.member.freshness((NODES, PODS))
        mirror = self.member.mirror
        return ClusterReading(
            synced=verdict(freshness, self._stale_after_s) is Verdict.ANSWER,
            staleness_s=freshness.lost_s or 0.0,
            nodes=mirror.columns.node_count,
            pods=len(mirror.pods.keys()),
            resources=len(mirror.columns.resource_names),
            watch_lag_s=self._live.watch_lag_s() if self._live else {},
            prometheus=None if self._prometheus is None else self._prometheus.reading(),
        )

    def _report(self, resource: str, key: str, problem: str) -> None:
        self._metrics.bad_object(self.name, resource)
        logger.warning("%s %s: %s", resource, key[:253], problem[:500], extra={"cluster": self.name})


class _Templates:
    """The templates on Karmada's API server; connects once it runs, and until then nothing is known."""

    def __init__(self, karmada: Path, api: ApiSettings, metrics: EstimatorMetrics) -> None:
        self._karmada = karmada
        self._api = api
        self._metrics = metrics
        self._connected: asyncio.Future[KarmadaSource] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Follow the templates until cancelled."""
        _, kind_of_source = await asyncio.to_thread(_sources)
        watches = self._metrics.reflector("karmada")
        source = kind_of_source.connect(self._karmada, self._api, watches, clock=time.monotonic)
        self._connected.set_result(source)
        await source.run()

    async def find(self, kind: str, namespace: str, name: str, within_s: float) -> Found:
        """See `Lookup`."""
        started_s = time.monotonic()
        await asyncio.wait((self._connected,), timeout=within_s)
        if not self._connected.done():
            return Found(doubt=f"the template of {kind} {namespace}/{name} is not known: still starting")
        left_s = within_s - (time.monotonic() - started_s)
        return await self._connected.result().find(kind, namespace, name, left_s)

    @property
    def denied(self) -> tuple[Denial, ...]:
        """What Karmada's API server does not let us read."""
        return self._connected.result().denials.current() if self._connected.done() else ()

    def with_claims(self, components: tuple[Component, ...]) -> tuple[Component, ...]:
        """See `KarmadaSource.with_claims`; nothing is known before it is connected."""
        return self._connected.result().with_claims(components) if self._connected.done() else components


def _denied(members: list[_Member], templates: _Templates | None) -> Iterator[tuple[str, str, str]]:
    """See `PermissionMetrics`."""
    for member in members:
        yield from ((member.name, one.verb, one.resource) for one in member.denied)
    if templates is not None:
        yield from (("karmada", one.verb, one.resource) for one in templates.denied)


def _needed_at_once(gates: Gates) -> tuple[str, ...]:
    """What questions are going to need as the gates are set, beside what they always need."""
    quotas = (QUOTAS,) if gates.resource_quota_estimate else ()
    # Assumed pods of a Deployment are told from those that are bound by its ReplicaSets.
    return (*quotas, REPLICA_SETS) if gates.scheduling_overcommit_protection else quotas


def _catalogue(file: Path | None) -> Catalogue:
    """The built-in catalogue, with the administrator's rules before it. Raises StartError."""
    try:
        return extended_catalogue(file)
    except CatalogueError as error:
        raise StartError(f"--catalogue: {error}") from None


def _levels(settings: Settings, cluster: str) -> Levels | None:
    """What the administrator says of the cluster's topology, None where nothing is said."""
    said = {override.cluster: override.levels for override in settings.accelerators.topology}
    keys = said.get(cluster, said.get(""))
    return None if keys is None else levels_of(keys)


def _sources() -> "tuple[type[LiveSource], type[KarmadaSource]]":
    # The official Kubernetes client takes a third of a second to import, in which the port shall be open.
    from estimator.karmada.source import KarmadaSource
    from estimator.live_source import LiveSource

    return LiveSource, KarmadaSource


def _prometheus_source() -> "type[PrometheusSource]":
    from estimator.prometheus_source import PrometheusSource

    return PrometheusSource


async def _listen(
    settings: Settings,
    members: list[_Member],
    metrics: EstimatorMetrics,
    for_karmada: Executor,
    own: Executor,
    templates: _Templates | None,
) -> tuple[grpc.aio.Server, int, _SayStopping]:
    policy = Policy(settings.gates, OnDoubt(settings.on_doubt), settings.stale_after_s)
    promises = Promises()
    answering = Answering(
        [member.member for member in members],
        policy,
        metrics,
        for_karmada,
        clock=time.monotonic,
        wall_clock=time.time,
        templates=templates,
        promises=promises,
    )
    metrics.watch_promises(lambda cluster: len(promises.of(cluster, time.monotonic()).promises))
    capacity = CapacityAnswering(
        [member.member for member in members],
        _catalogue(settings.accelerators.catalogue),
        settings.stale_after_s,
        own,
        heeds_quotas=settings.gates.resource_quota_estimate,
        clock=time.monotonic,
        with_claims=None if templates is None else templates.with_claims,
        promises=promises,
    )
    server = grpc.aio.server(options=_OPTIONS)
    server.add_generic_rpc_handlers(
        (
            EstimatorService(answering, policy.on_doubt, metrics, for_karmada).handlers(),
            CapacityService(capacity, metrics, own).handlers(),
        )
    )
    health_service = health.aio.HealthServicer()  # type: ignore[attr-defined]  # public, if not to mypy
    health_pb2_grpc.add_HealthServicer_to_server(health_service, server)
    for name in ("", SERVICE, CAPACITY_SERVICE):
        # Always serving while it listens: taking it out of a Service would void every other cluster's answer.
        await health_service.set(name, health_pb2.HealthCheckResponse.SERVING)
    reflection.enable_server_reflection(
        (
            service_pb2.DESCRIPTOR.services_by_name["Estimator"].full_name,
            CAPACITY_SERVICE,
            health_pb2.DESCRIPTOR.services_by_name["Health"].full_name,
            reflection.SERVICE_NAME,
        ),
        server,
    )
    address = f"[::]:{settings.server_port}"
    try:
        if settings.tls is None:
            port = server.add_insecure_port(address)
        else:
            certificates = ServerCertificates(settings.tls)
            metrics.watch_certificates(certificates.reading)
            port = server.add_secure_port(address, certificates.credentials())
    except RuntimeError as error:
        raise StartError(
            f"--server-port {settings.server_port}: cannot listen on {address} ({error}): "
            "is another process using it?"
        ) from None
    await server.start()
    return server, port, health_service.enter_graceful_shutdown


async def _freeze_when_synced(members: list[_Member]) -> None:
    """Take what was read out of the garbage collector's sight, whenever it has become a third more.

    Not only at the end, since some may never be read.
    """
    frozen = 0
    waits = asyncio.as_completed([member.member.synced((NODES, PODS)) for member in members])
    for read, synced in enumerate(waits, 1):
        await synced
        if 3 * read >= 4 * frozen or read == len(members):
            freeze_long_lived()
            frozen = read
    return_memory()
