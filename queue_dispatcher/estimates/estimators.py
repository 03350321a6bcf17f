"""The estimators of the member clusters as the dispatcher asks them: `Place` of fairway.capacity.v1.

One connection per address, opened when first used and kept until the certificates change (see
`queue_dispatcher.estimates.connections`); estimators that serve several clusters are asked about all of them
in one call. An estimator that does not answer is no error: the rooms of its clusters are then not known, and
why is told.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, Self, TypeVar

import grpc
from google.protobuf.message import DecodeError

from fairway.capacity.v1 import capacity_pb2 as pb
from queue_dispatcher.bindings.binding import WorkloadReference
from queue_dispatcher.cache.leaving import Departure
from queue_dispatcher.estimates.cluster_room import ClusterRoom
from queue_dispatcher.estimates.connections import Connections
from queue_dispatcher.estimates.endpoints import Endpoints
from queue_dispatcher.estimates.estimates import Departures
from queue_dispatcher.estimates.placements import PLACEMENTS, clear_nonsense, room_of, short
from queue_dispatcher.estimates.promise_requests import Told, named, requests_of
from queue_dispatcher.estimates.promised import Lists
from queue_dispatcher.settings import EstimatorSettings

logger = logging.getLogger(__name__)

_T = TypeVar("_T")

_SUMMARY_TIMEOUT_S: Final = 30.0
SERVICE: Final = "fairway.capacity.v1.Capacity"
_MOST_ENDINGS: Final = 10_000
"""Workloads of one cluster of which is told when they end."""
_KEEPS_NONE_S: Final = 60.0
_PROMISE_TIMEOUT_S: Final = 3.0
_PATIENCE_S: Final = 1.0
"""One that does not answer keeps the others from being told no longer: what they keep runs out."""
_REFUSALS: Final = (
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
)
_REMEDIES: Final = {
    grpc.StatusCode.UNAVAILABLE: "is it running there, and are the TLS flags as it needs them?",
    grpc.StatusCode.UNIMPLEMENTED: "expected fairway.capacity.v1: it is no Fairway estimator, or an old one",
    grpc.StatusCode.DEADLINE_EXCEEDED: "expected an answer in time: see --scheduler-estimator-timeout",
    grpc.StatusCode.INVALID_ARGUMENT: "it cannot read the question: is it of another version?",
}

_IN_WORDS: Final = {
    grpc.StatusCode.UNAVAILABLE: "it cannot be reached",
    grpc.StatusCode.UNIMPLEMENTED: "it does not know the question",
    grpc.StatusCode.DEADLINE_EXCEEDED: "it takes too long",
    grpc.StatusCode.INVALID_ARGUMENT: "it cannot read the question",
}


class Estimators:
    """All estimators; use it as an async context manager, or close it."""

    def __init__(self, settings: EstimatorSettings, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing is sent yet; ``clock`` gives seconds and paces the looks at the files. Raises TlsError."""
        self._settings = settings
        self._connections = Connections(settings.tls, clock=clock)
        self._endpoints = Endpoints(clock)
        self._clock = clock
        # Addresses of estimators that keep no promises, and when they are told again.
        self._keep_none: dict[str, float] = {}
        # Endpoints that are being told.
        self._telling: dict[str, asyncio.Task[dict[str, tuple[int | None, ...]]]] = {}
        # By cluster, what was told last of when its workloads end, and how.
        self._told: dict[str, tuple[Sequence[Departure], pb.Endings]] = {}
        # By address, what was wrong when it was asked last, which is logged when it changes.
        self._troubles: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        for task in self._telling.values():
            task.cancel()
        self._endpoints.close()
        await self._connections.close()

    def has(self, cluster: str) -> bool:
        """Whether an estimator of the cluster is configured."""
        return self._settings.address(cluster) is not None

    async def place(
        self,
        clusters: Sequence[str],
        gang: pb.Gang,
        assumed: Mapping[str, Sequence[pb.Gang]],
        want_placement: bool = False,
        endings: Departures | None = None,
        of_choice: bool = False,
    ) -> tuple[ClusterRoom, ...]:
        """How many copies of ``gang`` fit each of the clusters, beside what is ``assumed`` to be on its way.

        ``want_placement``: they have witnesses. ``endings``: they tell the earliest moment, if what runs in a
        cluster ends so; of what ends last no more is told than an estimator reads, which is as if nobody knew
        when that ends. ``of_choice``: these can be ended, the earlier the rather, and they tell which have
        to. A room for each cluster, in their order. Never raises for what an estimator does.
        """
        rooms: dict[str, ClusterRoom] = {}
        # Clusters of one estimator share a question, but for those with something assumed of their own.
        asked: dict[tuple[str, str], list[str]] = {}
        for cluster in clusters:
            address = self._settings.address(cluster)
            if address is None:
                rooms[cluster] = ClusterRoom(cluster, 0, unknown="no estimator of it is configured")
            else:
                is_alone = assumed.get(cluster) or (endings and endings.get(cluster))
                asked.setdefault((address, cluster if is_alone else ""), []).append(cluster)
        calls = [
            self._ask(
                address,
                names,
                gang,
                assumed.get(alone, ()),
                want_placement,
                None if endings is None else self._endings(alone, endings.get(alone, ()), of_choice),
            )
            for (address, alone), names in asked.items()
        ]
        for answers in await asyncio.gather(*calls):
            rooms.update((room.cluster, room) for room in answers)
        return tuple(rooms[cluster] for cluster in clusters)

    def _endings(self, cluster: str, endings: Sequence[Departure], of_choice: bool) -> pb.Endings:
        """When its workloads end, as a message: the same for all questions of one turn when they fit, as it
        is of thousands. Whom to end is a question of its own for each.
        """
        if of_choice:
            return _endings(endings, of_choice)
        told = self._told.get(cluster)
        if told is None or told[0] is not endings:
            told = self._told[cluster] = (endings, _endings(endings, of_choice))
        return told[1]

    async def bound(
        self, asked: Mapping[str, Sequence[WorkloadReference]]
    ) -> dict[str, tuple[int | None, ...]]:
        """By cluster that answers: how many pods of each workload are bound there, None where it cannot tell
        them by it. Never raises for what an estimator does.
        """
        return await _gathered(self._bound(*one) for one in self._by_address(asked).items())

    async def _bound(
        self, address: str, asked: Mapping[str, Sequence[WorkloadReference]]
    ) -> dict[str, tuple[int | None, ...]]:
        clusters = [
            pb.ClusterWorkloads(cluster=cluster, workloads=[named(one) for one in workloads])
            for cluster, workloads in asked.items()
        ]
        request = pb.BoundRequest(clusters=clusters)
        try:
            data = await self._connections.ask(
                address, f"/{SERVICE}/Bound", request.SerializeToString(), self._settings.timeout_s
            )
            response = pb.BoundResponse.FromString(data)
        except (grpc.aio.AioRpcError, DecodeError) as error:
            logger.debug("estimator %s: does not count pods: %s", address, error)
            return {}
        return _counts(response.clusters, {cluster: len(of) for cluster, of in asked.items()})

    async def promise(self, holder: str, since_ms: int, lists: Lists) -> dict[str, tuple[int | None, ...]]:
        """Tell every replica of the clusters' estimators what is on its way there, as ``holder``.

        By cluster that keeps it: how many pods of each workload are bound there, None where it cannot tell.
        One that has not answered the last of it yet is left alone, and keeps the others from being told for a
        second at the most. Never raises for what an estimator does.
        """
        by_address = self._by_address(lists)
        found = await asyncio.gather(*map(self._endpoints.of, by_address))
        begun = []
        for (address, of), endpoints in zip(by_address.items(), found, strict=True):
            told = requests_of(holder, since_ms, of)
            for endpoint in endpoints:
                if endpoint not in self._telling:
                    calls = [self._promise(address, endpoint, one) for one in told]
                    self._telling[endpoint] = task = asyncio.create_task(self._tell(endpoint, calls))
                    begun.append(task)
        if begun:
            await asyncio.wait(begun, timeout=_PATIENCE_S)
        answered = (task.result() for task in begun if task.done())
        return {cluster: counts for one in answered for cluster, counts in one.items()}

    async def _tell(
        self, endpoint: str, calls: Iterable[Awaitable[Mapping[str, tuple[int | None, ...]]]]
    ) -> dict[str, tuple[int | None, ...]]:
        try:
            return await _gathered(calls)
        finally:
            del self._telling[endpoint]

    async def _promise(self, address: str, endpoint: str, told: Told) -> dict[str, tuple[int | None, ...]]:
        if self._keep_none.get(endpoint, 0.0) > self._clock():
            return {}
        name = "" if endpoint == address else address.rpartition(":")[0]
        timeout_s = min(_PROMISE_TIMEOUT_S, self._settings.timeout_s)
        try:
            data = await self._connections.ask(
                endpoint, f"/{SERVICE}/Promise", told.data, timeout_s, named=name
            )
            response = pb.PromiseResponse.FromString(data)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                # An older one: what is on its way is told it with each question.
                self._keep_none[endpoint] = self._clock() + _KEEPS_NONE_S
            elif error.code() in _REFUSALS:
                logger.warning("estimator %s: refuses promises: %s", endpoint, short(error.details()))
            else:
                logger.debug("estimator %s: keeps no promises: %s", endpoint, error)
            return {}
        except DecodeError as error:
            logger.debug("estimator %s: an answer that is no PromiseResponse: %s", endpoint, error)
            return {}
        return _counts(response.clusters, told.counted)

    async def counts(self, clusters: Iterable[str]) -> dict[str, dict[str, int]]:
        """By cluster that answers: how many devices of each resource there are, healthy and not cordoned."""
        asked = self._by_address(dict.fromkeys(clusters))
        return await _gathered(self._count(address, list(of)) for address, of in asked.items())

    async def _count(self, address: str, clusters: list[str]) -> dict[str, dict[str, int]]:
        request = pb.SummaryRequest(clusters=clusters)
        method = f"/{SERVICE}/Summary"
        try:
            data = await self._connections.ask(
                address, method, request.SerializeToString(), _SUMMARY_TIMEOUT_S
            )
            response = pb.SummaryResponse.FromString(data)
        except (grpc.aio.AioRpcError, DecodeError) as error:
            logger.warning("estimator %s: no summary of %s: %s", address, ", ".join(clusters), error)
            return {}
        return {summary.cluster: _devices(summary) for summary in response.clusters if not summary.doubt}

    async def _ask(
        self,
        address: str,
        clusters: list[str],
        gang: pb.Gang,
        assumed: Sequence[pb.Gang],
        want_placement: bool,
        endings: pb.Endings | None,
    ) -> list[ClusterRoom]:
        request = pb.PlaceRequest(
            clusters=clusters,
            gang=gang,
            assumed=assumed,
            want_placement=want_placement,
            placements=PLACEMENTS if want_placement else 0,
            endings=endings,
        )
        method = f"/{SERVICE}/Place"
        try:
            data = await self._connections.ask(
                address, method, request.SerializeToString(), self._settings.timeout_s
            )
            response = pb.PlaceResponse.FromString(data)
        except grpc.aio.AioRpcError as error:
            remedy = _REMEDIES.get(error.code(), "look at its log")
            what = error.code().name.lower()
            self._trouble(address, clusters, f"{what}: {short(error.details())}; {remedy}")
            return [_unanswered(cluster, _IN_WORDS.get(error.code(), what)) for cluster in clusters]
        except DecodeError as error:
            self._trouble(address, clusters, f"an answer that is no PlaceResponse ({short(str(error))})")
            return [_unanswered(cluster, "its answer cannot be read") for cluster in clusters]
        wrong = clear_nonsense(response.clusters, endings)
        if wrong:
            self._trouble(address, clusters, wrong)
        else:
            self._troubles.pop(address, None)
        answered = {one.cluster: room_of(one, max(1, gang.copies), assumed) for one in response.clusters}
        return [
            answered.get(cluster) or _unanswered(cluster, "it says nothing of that cluster")
            for cluster in clusters
        ]

    def _by_address(self, asked: Mapping[str, _T]) -> dict[str, dict[str, _T]]:
        """What each estimator is asked, by cluster; clusters of which none is configured are left out."""
        found: dict[str, dict[str, _T]] = {}
        for cluster, what in asked.items():
            address = self._settings.address(cluster)
            if address is not None:
                found.setdefault(address, {})[cluster] = what
        return found

    def _trouble(self, address: str, clusters: Sequence[str], what: str) -> None:
        """Log it once, for those who run estimators."""
        if self._troubles.get(address) != what:
            self._troubles[address] = what
            logger.warning("estimator %s of %s: %s", address, ", ".join(clusters[:8]), what)


async def _gathered(calls: Iterable[Awaitable[Mapping[str, _T]]]) -> dict[str, _T]:
    """What all calls, made side by side, have said of their clusters."""
    return {cluster: said for found in await asyncio.gather(*calls) for cluster, said in found.items()}


def _counts(told: Iterable[pb.ClusterBound], asked: Mapping[str, int]) -> dict[str, tuple[int | None, ...]]:
    """By cluster that counts all that were asked about: bound pods, None where they cannot be told."""
    return {
        one.cluster: tuple(pods.bound if pods.known else None for pods in one.workloads)
        for one in told
        if not one.doubt and len(one.workloads) == asked.get(one.cluster)
    }


def _unanswered(cluster: str, what: str) -> ClusterRoom:
    return ClusterRoom(cluster, 0, unknown=f"the estimator of {cluster} gives no answer: {what}")


def _endings(endings: Sequence[Departure], of_choice: bool) -> pb.Endings:
    soonest = sorted(endings, key=lambda one: one.at_ms)[:_MOST_ENDINGS]
    told = [
        pb.Ending(workload=named(one.workload), at_ms=one.at_ms, surplus=one.surplus, kept=one.kept)
        for one in soonest
    ]
    return pb.Endings(endings=told, of_choice=of_choice)


def _devices(summary: pb.ClusterSummary) -> dict[str, int]:
    total: dict[str, int] = {}
    for product in summary.products:
        usable = (product.total - product.unhealthy - product.cordoned) * max(
            1, product.advertised_per_device
        )
        total[product.resource] = total.get(product.resource, 0) + max(0, usable)
    return total
