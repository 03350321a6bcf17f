"""An estimator asked as karmada-scheduler would ask it: whether it answers, and for which cluster.

First Fairway's own question, which tells what it knows of the cluster; a server that does not know it is
Karmada's own estimator, and is asked for room for nothing in particular.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import grpc
from google.protobuf.message import DecodeError

from admin.doctor.estimator_address import Address
from admin.doctor.evidence import Reached
from admin.doctor.platform.estimators import STOCK
from admin.doctor.tls_probe import Unresolved, peek, resolve
from admin.remote import Tls, open_channel
from admin.sources import EstimatorSource
from estimator.pb import estimator_pb2
from fairway.capacity.v1 import capacity_pb2 as pb

if TYPE_CHECKING:
    Channel = grpc.aio.Channel

OURS: Final = "fairway"
_TIMEOUT_S: Final = 10.0
_SUMMARY: Final = "/fairway.capacity.v1.Capacity/Summary"
_REPLICAS: Final = "/github.com.karmada_io.karmada.pkg.estimator.service.Estimator/MaxAvailableReplicas"


async def ask_estimator(cluster: str, addresses: Sequence[Address], tls: Tls) -> Reached | None:
    """What came of it, at the first address that exists here; None where none does, or TLS files lack.

    Raises RemoteError for a TLS file that cannot be read.
    """
    for address in addresses:
        try:
            await resolve(address.host, address.port)
        except Unresolved:
            continue
        return await _ask(cluster, address, tls)
    return None


async def _ask(cluster: str, address: Address, tls: Tls) -> Reached | None:
    seen = await peek(address.host, address.port, alpn="h2")
    if seen.problem:
        return Reached(str(address), seen.problem)
    certificate = seen.certificate
    if certificate is not None and not tls.is_given:
        return None
    if certificate is None and tls.is_given:
        return Reached(str(address), "answers in plaintext, and is asked over TLS")
    names, not_after_ms = (certificate.names, certificate.not_after_ms) if certificate else ((), 0)
    async with open_channel(EstimatorSource(cluster, str(address)), tls) as channel:
        detail, problem = await _answer(channel, cluster)
    return Reached(str(address), problem, names, not_after_ms, detail)


async def _answer(channel: "Channel", cluster: str) -> tuple[str, str]:
    """Whose estimator it is, and what is wrong with it."""
    request = pb.SummaryRequest(clusters=[cluster]).SerializeToString()
    try:
        response = pb.SummaryResponse.FromString(await _call(channel, _SUMMARY, request))
    except grpc.aio.AioRpcError as error:
        if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
            return OURS, _told(error)
    except DecodeError:
        return OURS, "an answer that is none"
    else:
        found = [each for each in response.clusters if each.cluster == cluster]
        return OURS, found[0].doubt if found else f"tells nothing of {cluster}"
    asked = estimator_pb2.MaxAvailableReplicasRequest(cluster=cluster).SerializeToString()
    try:
        estimator_pb2.MaxAvailableReplicasResponse.FromString(await _call(channel, _REPLICAS, asked))
    except grpc.aio.AioRpcError as error:
        return STOCK, _told(error)
    except DecodeError:
        return STOCK, "an answer that is none"
    return STOCK, ""


async def _call(channel: "Channel", method: str, request: bytes) -> bytes:
    # Without serializers, a method takes and gives bytes.
    call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(method)
    return await call(request, timeout=_TIMEOUT_S)


def _told(error: grpc.aio.AioRpcError) -> str:
    return f"{error.code().name.lower()}: {error.details()}"
