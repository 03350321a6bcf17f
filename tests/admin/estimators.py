"""An estimator of canned answers, as the command sees one."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import grpc

from estimator.capacity.gangs.placements import ClusterExplanation
from estimator.capacity.summary import Summary
from estimator.capacity.usage import UsageAnswer
from estimator.capacity_wire import encode_explanation, encode_summary
from estimator.usage_wire import encode_pages
from fairway.capacity.v1 import capacity_pb2 as pb

if TYPE_CHECKING:
    Context = grpc.aio.ServicerContext[bytes, bytes]


@dataclass
class FakeEstimator:
    """Answers with these summaries and usages, to `Explain` with these verdicts; knows what it was asked."""

    summaries: tuple[Summary, ...] = ()
    explanations: tuple[ClusterExplanation, ...] = ()
    usages: tuple[UsageAnswer, ...] = ()
    asked: list[pb.ExplainRequest] = field(default_factory=list)
    address: str = ""

    async def summary(self, data: bytes, _: "Context") -> bytes:
        wanted = pb.SummaryRequest.FromString(data).clusters
        chosen = (each for each in self.summaries if not wanted or each.cluster in wanted)
        return pb.SummaryResponse(clusters=map(encode_summary, chosen)).SerializeToString()

    async def explain(self, data: bytes, _: "Context") -> bytes:
        request = pb.ExplainRequest.FromString(data)
        self.asked.append(request)
        chosen = (
            each
            for each in self.explanations
            if not request.clusters or each.placement.cluster in request.clusters
        )
        return pb.ExplainResponse(clusters=map(encode_explanation, chosen)).SerializeToString()

    async def usage(self, data: bytes, context: "Context") -> None:
        wanted = pb.UsageRequest.FromString(data).clusters
        for each in self.usages:
            if not wanted or each.usage.cluster in wanted:
                for page in encode_pages(each.usage.cluster, [each.usage], each.age_s, each.doubt):
                    await context.write(page)


@asynccontextmanager
async def serving(
    estimator: FakeEstimator,
    credentials: grpc.ServerCredentials | None = None,
    methods: Collection[str] = ("Summary", "Explain", "Usage"),
) -> AsyncIterator[FakeEstimator]:
    """The estimator on a port of its own; ``methods`` are those that it has."""
    known = {"Summary": estimator.summary, "Explain": estimator.explain}
    handlers = {name: grpc.unary_unary_rpc_method_handler(known[name]) for name in methods if name in known}
    if "Usage" in methods:
        handlers["Usage"] = grpc.unary_stream_rpc_method_handler(estimator.usage)
    server = grpc.aio.server()
    generic = grpc.method_handlers_generic_handler("fairway.capacity.v1.Capacity", handlers)
    server.add_generic_rpc_handlers((generic,))
    if credentials is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    estimator.address = f"127.0.0.1:{port}"
    try:
        yield estimator
    finally:
        await server.stop(None)
