"""Asks an estimator over gRPC as karmada-scheduler does, and for its reasons as well."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import grpc
import msgspec

from estimator.demo.questions import Question
from estimator.pb import estimator_pb2 as pb
from estimator.service import EXPLAIN_KEY, OBJECT_KEY, REASONS_KEY, SERVICE

if TYPE_CHECKING:
    Channel = grpc.aio.Channel

# Karmada gives 3 s; the first call also waits for the files to be read, on machines of any speed.
_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class Reply:
    """The number an estimator answered, and why it is not larger."""

    value: int
    reasons: tuple[str, ...]


async def ask(channel: "Channel", question: Question, cluster: str) -> Reply:
    """One question about one cluster. Raises grpc.aio.AioRpcError."""
    request = question.about(cluster)
    metadata = ((OBJECT_KEY, question.workload), (EXPLAIN_KEY, "1"))
    # Without serializers, a method takes and gives bytes.
    method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(f"/{SERVICE}/{question.rpc}")
    call = method(request.SerializeToString(), timeout=_TIMEOUT_S, metadata=metadata)
    value = _value(question.rpc, await call)
    trailing = dict(await call.trailing_metadata())
    return Reply(value, tuple(msgspec.json.decode(trailing.get(REASONS_KEY, "[]"), type=list[str])))


def _value(rpc: str, data: bytes) -> int:
    match rpc:
        case "MaxAvailableReplicas":
            return pb.MaxAvailableReplicasResponse.FromString(data).max_replicas
        case "MaxAvailableComponentSets":
            return pb.MaxAvailableComponentSetsResponse.FromString(data).max_sets
        case _:
            return pb.UnschedulableReplicasResponse.FromString(data).unschedulable_replicas
