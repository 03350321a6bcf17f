"""An estimator as a source of answers: the three calls of `fairway.capacity.v1` that the command makes.

The estimator works on state that it keeps up to date anyway, so this is the cheapest way to ask, and the only
one that needs no access to the cluster.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import grpc

from admin.sources import EstimatorSource
from estimator.capacity.gangs.placements import ClusterExplanation
from estimator.capacity.summary import Summary
from estimator.capacity.usage import UsageAnswer
from estimator.capacity_wire import explanation_of, summary_of
from estimator.usage_wire import answers_of
from fairway.capacity.v1 import capacity_pb2 as pb

if TYPE_CHECKING:
    Channel = grpc.aio.Channel

_SERVICE = "fairway.capacity.v1.Capacity"
_TIMEOUT_S = 30.0
_MAX_BYTES = 256 << 20
_REMEDIES = {
    grpc.StatusCode.UNAVAILABLE: "is it running there, and are the TLS flags as it needs them?",
    grpc.StatusCode.UNIMPLEMENTED: "expected fairway.capacity.v1: it is no Fairway estimator, or an old one",
    grpc.StatusCode.DEADLINE_EXCEEDED: f"expected an answer within {_TIMEOUT_S:.0f} s",
}


class RemoteError(Exception):
    """An estimator gave no answer; the message names it, and says what to do."""


class DoesNotTell(RemoteError):
    """The estimator knows no such call; it may know the others."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Files for TLS; None for each that is not given. With none of them the connection is plaintext."""

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    @property
    def is_given(self) -> bool:
        """Whether to use TLS at all."""
        return bool(self.ca or self.certificate or self.key)


PLAINTEXT = Tls()


async def remote_summaries(source: EstimatorSource, tls: Tls) -> tuple[Summary, ...]:
    """What the estimator knows of its clusters, or of the one that the source names. Raises RemoteError."""
    request = pb.SummaryRequest(clusters=_clusters(source))
    data = await _call(source, tls, "Summary", request.SerializeToString())
    response = pb.SummaryResponse.FromString(data)
    return _named(source, tuple(summary_of(cluster) for cluster in response.clusters))


async def remote_explanations(
    source: EstimatorSource, tls: Tls, gang: pb.Gang, clusters: tuple[str, ...] = ()
) -> tuple[ClusterExplanation, ...]:
    """Whether the gang fits its clusters, and why not. Raises RemoteError."""
    request = pb.ExplainRequest(clusters=clusters or _clusters(source), gang=gang)
    data = await _call(source, tls, "Explain", request.SerializeToString())
    response = pb.ExplainResponse.FromString(data)
    return tuple(explanation_of(cluster) for cluster in response.clusters)


async def remote_usages(source: EstimatorSource, tls: Tls) -> tuple[UsageAnswer, ...]:
    """Who uses what in its clusters, or in the one that the source names. Raises RemoteError."""
    request = pb.UsageRequest(clusters=_clusters(source))
    async with open_channel(source, tls) as channel:
        method: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(f"/{_SERVICE}/Usage")
        try:
            pages = [page async for page in method(request.SerializeToString(), timeout=_TIMEOUT_S)]
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                raise DoesNotTell(f"{source}: {_TELLS_NO_USAGE}") from None
            raise _failed(source, error) from None
    # A fleet takes a second of work, in which other clusters' answers come in.
    return await asyncio.to_thread(lambda: answers_of(map(pb.UsagePage.FromString, pages)))


_TELLS_NO_USAGE = (
    "it does not tell who uses what: it is no Fairway estimator, or one older than this command. Update it, "
    "or give the cluster's kubeconfig, or a dump of its nodes, pods and nodedevices"
)


def _clusters(source: EstimatorSource) -> list[str]:
    return [source.name] if source.name else []


def _named(source: EstimatorSource, summaries: tuple[Summary, ...]) -> tuple[Summary, ...]:
    if not summaries:
        what = f"no cluster {source.name!r}" if source.name else "no cluster at all"
        raise RemoteError(f"{source}: knows {what}")
    return summaries


async def _call(source: EstimatorSource, tls: Tls, rpc: str, request: bytes) -> bytes:
    async with open_channel(source, tls) as channel:
        # Without serializers, a method takes and gives bytes.
        method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(f"/{_SERVICE}/{rpc}")
        try:
            return await method(request, timeout=_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            raise _failed(source, error) from None


def _failed(source: EstimatorSource, error: grpc.aio.AioRpcError) -> RemoteError:
    remedy = _REMEDIES.get(error.code(), "look at its log")
    code = error.code().name.lower().replace("_", " ")
    return RemoteError(f"{source}: {code}: {error.details()}; {remedy}")


@asynccontextmanager
async def open_channel(source: EstimatorSource, tls: Tls) -> AsyncIterator["Channel"]:
    """A connection to the estimator for a while. Raises RemoteError for a TLS file that cannot be read."""
    options = [("grpc.max_receive_message_length", _MAX_BYTES), ("grpc.enable_http_proxy", 0)]
    if tls.is_given:
        credentials = grpc.ssl_channel_credentials(_read(tls.ca), _read(tls.key), _read(tls.certificate))
        channel = grpc.aio.secure_channel(source.address, credentials, options)
    else:
        channel = grpc.aio.insecure_channel(source.address, options)
    async with channel:
        yield channel


def _read(file: Path | None) -> bytes | None:
    try:
        return None if file is None else file.read_bytes()
    except OSError as error:
        raise RemoteError(f"{file}: {error.strerror or error}; expected a PEM file") from None
