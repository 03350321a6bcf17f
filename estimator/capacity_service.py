"""The RPCs of fairway.capacity.v1, served beside Karmada's on the same port.

Here a request that cannot be read is an error, INVALID_ARGUMENT with the field, because its sender asks
Fairway alone and throws nothing else away for it.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from estimator.capacity.promises import Outranked
from estimator.capacity_answering import CapacityAnswering
from estimator.capacity_requests import read_bound, read_clusters, read_explain, read_place
from estimator.capacity_wire import encode_bound, encode_explanation, encode_placement, encode_summary
from estimator.metrics import CapacityRpc, EstimatorMetrics
from estimator.promise_requests import PromiseReader
from estimator.shared_usage import CrowdedError
from estimator.workload_requests import RequestError
from fairway.capacity.v1 import capacity_pb2 as pb

logger = logging.getLogger(__name__)

SERVICE = pb.DESCRIPTOR.services_by_name["Capacity"].full_name

DEFAULT_WITHIN_S, MAX_WITHIN_S = 10.0, 30.0
MOST_OF_ONE, MOST_OF_ALL = 256, 1024
"""Calls in hand, of one host and in all; each may hold a request of 16 MiB."""
_SHARE_OF_DEADLINE = 5 / 6
# Clients take 8 KiB of trailing metadata, in which a character may take up to twelve bytes.
_MAX_MESSAGE = 500
_M = TypeVar("_M", bound=Message)
_Q = TypeVar("_Q")
_A = TypeVar("_A")
_T = TypeVar("_T")

if TYPE_CHECKING:
    # Generic in its stubs, not at run time.
    _Context = grpc.aio.ServicerContext[bytes, bytes]


_Within = Callable[[], float]
_Method = Callable[[bytes, _Within], Awaitable[bytes]]


class CapacityService:
    """Handles calls; messages are decoded and encoded on threads of ``executor``, as they may be large."""

    def __init__(
        self,
        answering: CapacityAnswering,
        metrics: EstimatorMetrics,
        executor: Executor,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._answering = answering
        self._metrics = metrics
        self._executor = executor
        self._clock = clock
        self._in_hand: Counter[str] = Counter()

    def handlers(self) -> grpc.GenericRpcHandler:
        """What to register with a ``grpc.aio`` server."""
        ask, by, reader = self._asked, self._answering, PromiseReader()
        methods: dict[CapacityRpc, _Method] = {
            "Bound": partial(ask, pb.BoundRequest, read_bound, by.bound, encode_bound, pb.BoundResponse),
            "Promise": partial(
                ask, pb.PromiseRequest, reader.read, by.promise, encode_bound, pb.PromiseResponse
            ),
            "Place": partial(ask, pb.PlaceRequest, read_place, by.place, encode_placement, pb.PlaceResponse),
            "Explain": partial(
                ask, pb.ExplainRequest, read_explain, by.explain, encode_explanation, pb.ExplainResponse
            ),
            "Summary": partial(
                ask, pb.SummaryRequest, read_clusters, by.summaries, encode_summary, pb.SummaryResponse
            ),
        }
        handlers = {
            rpc: grpc.unary_unary_rpc_method_handler(partial(self._call, rpc, method))
            for rpc, method in methods.items()
        }
        handlers["Usage"] = grpc.unary_stream_rpc_method_handler(self._usage)
        generic: grpc.GenericRpcHandler = grpc.method_handlers_generic_handler(SERVICE, handlers)
        return generic

    async def _call(
        self,
        rpc: CapacityRpc,
        method: _Method,
        data: bytes,
        context: "_Context",
    ) -> bytes:
        async with self._one_more(rpc, context):
            return await method(data, lambda: _within_s(context.time_remaining()))

    async def _usage(self, data: bytes, context: "_Context") -> None:
        async def tell(pages: list[bytes]) -> None:
            for page in pages:
                await context.write(page)

        async with self._one_more("Usage", context):
            clusters = await self._on_thread(lambda: read_clusters(_parsed(pb.UsageRequest, data)))
            within_s = _within_s(context.time_remaining())
            try:
                async with asyncio.timeout(within_s / _SHARE_OF_DEADLINE):
                    await self._answering.usages(clusters, within_s, tell)
            except ExceptionGroup as group:
                if (crowded := group.subgroup(CrowdedError)) is not None:
                    await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(crowded.exceptions[0]))
                if group.split(grpc.aio.InternalError)[1] is not None:
                    raise
                # The client has gone while a page was on its way to it.
                raise asyncio.CancelledError from None
            except TimeoutError:
                await context.abort(
                    grpc.StatusCode.DEADLINE_EXCEEDED,
                    f"expected the answer to be taken within {within_s:.0f} s",
                )

    @asynccontextmanager
    async def _one_more(self, rpc: CapacityRpc, context: "_Context") -> AsyncIterator[None]:
        """Around a call: counted, measured, and refused where there are too many."""
        started_s = self._clock()
        ok = False
        host = context.peer().rpartition(":")[0]
        try:
            self._in_hand[host] += 1
            if self._in_hand[host] > MOST_OF_ONE or self._in_hand.total() > MOST_OF_ALL:
                await context.abort(
                    grpc.StatusCode.RESOURCE_EXHAUSTED,
                    f"expected {MOST_OF_ONE} calls of one host at once, {MOST_OF_ALL} of all: wait for them",
                )
            yield
            ok = True
        except RequestError as error:
            logger.debug("%s refused: %s", rpc, error)
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, _short(str(error)))
        except Outranked as error:
            self._metrics.promises_refused("outranked")
            logger.warning("promises refused: %s", error)
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, _short(str(error)))
        finally:
            self._in_hand[host] -= 1
            if not self._in_hand[host]:
                del self._in_hand[host]
            self._metrics.capacity_request(rpc, ok=ok, duration_s=self._clock() - started_s)

    async def _asked(
        self,
        request: type[_M],
        read: Callable[[_M], _Q],
        answer: Callable[[_Q, float], Awaitable[list[_A]]],
        encode: Callable[[_A], Message],
        response: type[Message],
        data: bytes,
        within_s: _Within,
    ) -> bytes:
        question = await self._on_thread(lambda: read(_parsed(request, data)))
        found = await answer(question, within_s())
        return await self._on_thread(lambda: response(clusters=map(encode, found)).SerializeToString())

    async def _on_thread(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)


def _within_s(remaining_s: float | None) -> float:
    """How long to work on the answer, so that it arrives in time."""
    if remaining_s is None:
        return DEFAULT_WITHIN_S
    return min(max(0.0, remaining_s * _SHARE_OF_DEADLINE), MAX_WITHIN_S)


def _parsed(message: type[_M], data: bytes) -> _M:
    try:
        return message.FromString(data)
    except DecodeError:
        raise RequestError(f"{len(data)} bytes are no {message.__name__} of fairway.capacity.v1") from None


def _short(message: str) -> str:
    return message if len(message) <= _MAX_MESSAGE else message[: _MAX_MESSAGE - 3] + "..."
