"""The estimators of the member clusters as the dispatcher asks them: `Place` of fairway.capacity.v1.

One connection per address, opened when first used and kept; estimators that serve several clusters are asked
about all of them in one call. An estimator that does not answer is no error: the rooms of its clusters are
then not known, and why is told.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import grpc
from google.protobuf.message import DecodeError

from fairway.capacity.v1 import capacity_pb2 as pb
from queue_dispatcher.settings import EstimatorSettings, EstimatorTls

if TYPE_CHECKING:
    # Generic in their stubs, not at run time.
    Channel = grpc.aio.Channel
    Method = grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]

logger = logging.getLogger(__name__)

_SUMMARY_TIMEOUT_S: Final = 30.0
SERVICE: Final = "fairway.capacity.v1.Capacity"
_MAX_BYTES: Final = 16 << 20
_DOUBT: Final = "doubt"
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", _MAX_BYTES),
    ("grpc.enable_http_proxy", 0),
    # An estimator that is back is to be noticed within seconds, not after gRPC's two minutes.
    ("grpc.max_reconnect_backoff_ms", 5_000),
)
_REMEDIES: Final = {
    grpc.StatusCode.UNAVAILABLE: "is it running there, and are the TLS flags as it needs them?",
    grpc.StatusCode.UNIMPLEMENTED: "expected fairway.capacity.v1: it is no Fairway estimator, or an old one",
    grpc.StatusCode.DEADLINE_EXCEEDED: "expected an answer in time: see --scheduler-estimator-timeout",
    grpc.StatusCode.INVALID_ARGUMENT: "it cannot read the question: is it of another version?",
}


class EstimatorTlsError(ValueError):
    """A file of the TLS flags cannot be read; the message names it."""


@dataclass(frozen=True, slots=True)
class Room:
    """What is known of one cluster: how many copies fit there now, or why that is not known.

    ``unknown``: not empty where nobody can tell. ``why``: the most decisive reason that not more fit.
    """

    cluster: str
    fits: int
    unknown: str = ""
    why: str = ""


class Estimators:
    """All estimators; use it as an async context manager, or close it."""

    def __init__(self, settings: EstimatorSettings) -> None:
        """Nothing is sent yet. Raises EstimatorTlsError."""
        self._settings = settings
        self._credentials = _credentials(settings.tls)
        self._channels: dict[str, Channel] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        channels, self._channels = self._channels, {}
        for channel in channels.values():
            await channel.close()

    def has(self, cluster: str) -> bool:
        """Whether an estimator of the cluster is configured."""
        return self._settings.address(cluster) is not None

    async def place(
        self, clusters: Sequence[str], gang: pb.Gang, assumed: Mapping[str, Sequence[pb.Gang]]
    ) -> tuple[Room, ...]:
        """How many copies of ``gang`` fit each of the clusters, beside what is ``assumed`` to be on its way.

        A room for each cluster, in their order. Never raises for what an estimator does.
        """
        rooms: dict[str, Room] = {}
        # Clusters of one estimator share a question, but for those with something assumed of their own.
        asked: dict[tuple[str, str], list[str]] = {}
        for cluster in clusters:
            address = self._settings.address(cluster)
            if address is None:
                rooms[cluster] = Room(cluster, 0, unknown="no estimator of it is configured")
            else:
                asked.setdefault((address, cluster if assumed.get(cluster) else ""), []).append(cluster)
        calls = [
            self._ask(address, names, gang, assumed.get(alone, ()))
            for (address, alone), names in asked.items()
        ]
        for answers in await asyncio.gather(*calls):
            rooms.update((room.cluster, room) for room in answers)
        return tuple(rooms[cluster] for cluster in clusters)

    async def counts(self, clusters: Iterable[str]) -> dict[str, dict[str, int]]:
        """By cluster that answers: how many devices of each resource there are, healthy and not cordoned."""
        asked: dict[str, list[str]] = {}
        for cluster in clusters:
            address = self._settings.address(cluster)
            if address is not None:
                asked.setdefault(address, []).append(cluster)
        found: dict[str, dict[str, int]] = {}
        for counted in await asyncio.gather(*(self._count(address, of) for address, of in asked.items())):
            found.update(counted)
        return found

    async def _count(self, address: str, clusters: list[str]) -> dict[str, dict[str, int]]:
        request = pb.SummaryRequest(clusters=clusters)
        method: Method = self._channel(address).unary_unary(f"/{SERVICE}/Summary")
        try:
            data = await method(request.SerializeToString(), timeout=_SUMMARY_TIMEOUT_S)
            response = pb.SummaryResponse.FromString(data)
        except (grpc.aio.AioRpcError, DecodeError) as error:
            logger.warning("estimator %s: no summary of %s: %s", address, ", ".join(clusters), error)
            return {}
        return {summary.cluster: _devices(summary) for summary in response.clusters if not summary.doubt}

    async def _ask(
        self, address: str, clusters: list[str], gang: pb.Gang, assumed: Sequence[pb.Gang]
    ) -> list[Room]:
        request = pb.PlaceRequest(clusters=clusters, gang=gang, assumed=assumed)
        method: Method = self._channel(address).unary_unary(f"/{SERVICE}/Place")
        try:
            data = await method(request.SerializeToString(), timeout=self._settings.timeout_s)
            response = pb.PlaceResponse.FromString(data)
        except grpc.aio.AioRpcError as error:
            remedy = _REMEDIES.get(error.code(), "look at its log")
            told = f"estimator {address}: {error.code().name.lower()}: {_short(error.details())}; {remedy}"
            return [Room(cluster, 0, unknown=told) for cluster in clusters]
        except DecodeError as error:
            told = f"estimator {address}: an answer that is no PlaceResponse ({_short(str(error))})"
            return [Room(cluster, 0, unknown=told) for cluster in clusters]
        answered = {placement.cluster: _room(placement) for placement in response.clusters}
        return [
            answered.get(cluster, Room(cluster, 0, unknown=f"estimator {address}: no answer about {cluster}"))
            for cluster in clusters
        ]

    def _channel(self, address: str) -> "Channel":
        channel = self._channels.get(address)
        if channel is None:
            if self._credentials is None:
                channel = grpc.aio.insecure_channel(address, _OPTIONS)
            else:
                channel = grpc.aio.secure_channel(address, self._credentials, _OPTIONS)
            self._channels[address] = channel
        return channel


def _room(placement: pb.ClusterPlacement) -> Room:
    doubt = next((reason.text for reason in placement.reasons if reason.kind == _DOUBT), "")
    why = next((reason.text for reason in placement.reasons if reason.kind != _DOUBT), "")
    # A doubt beside room is about more than what was found.
    unknown = _short(doubt) if doubt and not placement.fits else ""
    return Room(placement.cluster, max(0, placement.fits), unknown, _short(why))


def _devices(summary: pb.ClusterSummary) -> dict[str, int]:
    total: dict[str, int] = {}
    for product in summary.products:
        usable = (product.total - product.unhealthy - product.cordoned) * max(
            1, product.advertised_per_device
        )
        total[product.resource] = total.get(product.resource, 0) + max(0, usable)
    return total


def _credentials(tls: EstimatorTls) -> grpc.ChannelCredentials | None:
    if tls.ca is None:
        return None
    files = [None if file is None else _read(file) for file in (tls.ca, tls.key, tls.certificate)]
    credentials: grpc.ChannelCredentials = grpc.ssl_channel_credentials(*files)
    return credentials


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise EstimatorTlsError(f"{file}: {error.strerror or error}; expected a PEM file") from None


def _short(text: str | None) -> str:
    return (text or "")[:300]
