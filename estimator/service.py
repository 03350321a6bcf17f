"""The three RPCs of Karmada's estimator, as bytes in and bytes out.

Requests are decoded here and not by gRPC, so that even one that cannot be read gets an answer: an error from
one cluster makes karmada-scheduler throw away the answers of all clusters. A caller that sends the metadata
``fairway-explain`` gets the reasons back in the trailing metadata ``fairway-reasons``, a JSON list of texts.
"""

import asyncio
import json
import logging
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import grpc

from estimator.answering import Answering
from estimator.capacity.answer import Answer
from estimator.capacity.doubt import OnDoubt, doubtful
from estimator.capacity.request import Question
from estimator.metrics import EstimatorMetrics, ExtensionPoint, Rpc
from estimator.reasons import DOUBT, Reason, in_doubt
from estimator.wire import (
    WireError,
    decode_replicas,
    decode_sets,
    decode_unschedulable,
    encode_replicas,
    encode_sets,
    encode_unschedulable,
)

logger = logging.getLogger(__name__)

SERVICE = "github.com.karmada_io.karmada.pkg.estimator.service.Estimator"
OBJECT_KEY, EXPLAIN_KEY, REASONS_KEY = "object", "fairway-explain", "fairway-reasons"

DEFAULT_WITHIN_S = 2.5
# karmada-scheduler gives 3 s; answering by 2.5 s leaves the rest for the way and for slow clocks.
_SHARE_OF_DEADLINE = 5 / 6
_INLINE_BYTES = 128 << 10
_MAX_REASONS_BYTES = 4096


@dataclass(frozen=True, slots=True)
class _Method:
    rpc: Rpc
    point: ExtensionPoint | None
    decode: Callable[[bytes, str | None], Question]
    encode: Callable[[int], bytes]


_METHODS = (
    _Method("MaxAvailableReplicas", "estimate_replicas", decode_replicas, encode_replicas),
    _Method("MaxAvailableComponentSets", "estimate_components", decode_sets, encode_sets),
    _Method(
        "GetUnschedulableReplicas", None, lambda data, _: decode_unschedulable(data), encode_unschedulable
    ),
)


if TYPE_CHECKING:
    # Generic in its stubs, not at run time.
    _Context = grpc.aio.ServicerContext[bytes, bytes]


class EstimatorService:
    """Handles calls; everything that happens is counted, and doubts are logged, though not each alone."""

    def __init__(
        self,
        answering: Answering,
        on_doubt: OnDoubt,
        metrics: EstimatorMetrics,
        executor: Executor,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._answering = answering
        self._on_doubt = on_doubt
        self._metrics = metrics
        self._executor = executor
        self._clock = clock
        self._doubt_log = _DoubtLog(clock)

    def handlers(self) -> grpc.GenericRpcHandler:
        """What to register with a ``grpc.aio`` server."""
        # Without a deserializer, a handler gets and gives bytes.
        handlers = {m.rpc: grpc.unary_unary_rpc_method_handler(partial(self._call, m)) for m in _METHODS}
        generic: grpc.GenericRpcHandler = grpc.method_handlers_generic_handler(SERVICE, handlers)
        return generic

    async def _call(self, method: _Method, data: bytes, context: "_Context") -> bytes:
        started_s = self._clock()
        object_text, explain = _metadata(context)
        cluster = ""
        try:
            question = await self._decode(method, data, object_text)
            cluster = question.cluster
            answer = await self._answering.answer(question, _within_s(context.time_remaining()))
        except WireError as error:
            answer = self._unreadable(method, in_doubt("malformed", str(error)), error.names_device)
        except Exception as error:
            # The last line of defence: a defect here must not void every other cluster's answer.
            logger.exception("%s failed", method.rpc, extra={"cluster": cluster})
            answer = self._unreadable(method, in_doubt("internal", f"{type(error).__name__}: {error}"), True)
        self._note(method, cluster, object_text, answer)
        if explain:
            context.set_trailing_metadata(((REASONS_KEY, _reasons(answer)),))
        duration_s = self._clock() - started_s
        self._metrics.request(method.rpc, ok=True, duration_s=duration_s)
        if method.point is not None:
            self._metrics.extension_point(method.point, duration_s)
        return method.encode(answer.value)

    async def _decode(self, method: _Method, data: bytes, object_text: str | None) -> Question:
        if len(data) <= _INLINE_BYTES:
            return method.decode(data, object_text)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, method.decode, data, object_text)

    def _unreadable(self, method: _Method, doubt: Reason, names_device: bool) -> Answer:
        return doubtful(self._on_doubt, doubt, None if method.point is None else names_device)

    def _note(self, method: _Method, cluster: str, object_text: str | None, answer: Answer) -> None:
        doubt = next((reason for reason in answer.reasons if reason.kind == DOUBT), None)
        if doubt is not None:
            self._metrics.doubt(cluster, method.rpc, doubt.cause)
            self._doubt_log.warn(method.rpc, cluster, object_text, doubt, answer.value)
        kind = "doubt" if doubt else "proven" if answer.proven else "bound"
        if answer.value == 0 and not doubt:
            kind = answer.reasons[0].kind if answer.reasons else "nothing"
        self._metrics.answer(cluster, method.rpc, kind)
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug(
                "answered",
                extra={
                    "rpc": method.rpc,
                    "cluster": cluster,
                    "object": object_text,
                    "value": answer.value,
                    "upper_bound": answer.upper_bound,
                    "reasons": [str(reason) for reason in answer.reasons],
                },
            )


class _DoubtLog:
    """Says each kind of doubt at most once every few seconds, with how often it came in between."""

    _EVERY_S = 10.0

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last: dict[tuple[str, str], tuple[float, int]] = {}

    def warn(self, rpc: Rpc, cluster: str, object_text: str | None, doubt: Reason, value: int) -> None:
        now_s = self._clock()
        # By cause and not by cluster: a caller may make up any number of cluster names.
        key = (rpc, doubt.cause)
        last_s, unsaid = self._last.get(key, (-self._EVERY_S, 0))
        if now_s - last_s < self._EVERY_S:
            self._last[key] = (last_s, unsaid + 1)
            return
        self._last[key] = (now_s, 0)
        logger.warning(
            "answered in doubt: %s",
            doubt.detail,
            extra={
                "rpc": rpc,
                "cluster": cluster[:63],
                "object": object_text,
                "cause": doubt.cause,
                "value": value,
                "more_since_last": unsaid,
            },
        )


def _metadata(context: "_Context") -> tuple[str | None, bool]:
    object_text, explain = None, False
    for key, value in context.invocation_metadata() or ():
        if key == OBJECT_KEY and isinstance(value, str):
            object_text = value
        elif key == EXPLAIN_KEY:
            explain = True
    return object_text, explain


def _within_s(remaining_s: float | None) -> float:
    return DEFAULT_WITHIN_S if remaining_s is None else max(0.0, remaining_s * _SHARE_OF_DEADLINE)


def _reasons(answer: Answer) -> str:
    """As many reasons as metadata may hold, as JSON in the printable ASCII that metadata may consist of."""
    told: list[str] = []
    left = _MAX_REASONS_BYTES - len("[]")
    for reason in answer.reasons:
        # JSON leaves the one control character alone that ASCII has beyond its letters.
        text = json.dumps(str(reason)).replace("\x7f", "\\u007f")
        if len(text) + len(", ") > left:
            if told:
                break
            text = json.dumps(str(reason)[: _MAX_REASONS_BYTES // 8]).replace("\x7f", "\\u007f")
        told.append(text)
        left -= len(text) + len(", ")
    return f"[{', '.join(told)}]"
