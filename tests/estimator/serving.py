"""A real estimator server inside a test, and a caller that speaks to it as karmada-scheduler does."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import grpc

from estimator.capacity.usage import UsageAnswer
from estimator.capacity_service import SERVICE as CAPACITY_SERVICE
from estimator.feature_gates import Gates
from estimator.pb import estimator_pb2 as pb
from estimator.server import serve
from estimator.service import EXPLAIN_KEY, OBJECT_KEY, REASONS_KEY, SERVICE
from estimator.settings import ApiSettings, ClusterSource, LiveCluster, Settings, SnapshotCluster
from estimator.usage_wire import answers_of
from fairway.capacity.v1 import capacity_pb2
from fairway.service.common_flags import EndpointSettings, LogSettings

DEFAULTS = Settings(
    clusters=(),
    server_port=0,
    tls=None,
    api=ApiSettings(qps=-1, burst=0),
    endpoints=EndpointSettings(health=None, metrics=None, profiling=None),
    gates=Gates(),
    on_doubt="auto",
    stale_after_s=120.0,
    logs=LogSettings(format="text", verbosity=0),
    notices=(),
)


def snapshot(name: str, file: Path) -> SnapshotCluster:
    return SnapshotCluster(name, file)


def live(name: str, url: str) -> LiveCluster:
    return LiveCluster(name, None, url)


@dataclass(frozen=True)
class Reply:
    """An answer as the caller sees it."""

    value: int
    reasons: tuple[str, ...]


class Caller:
    """One client connection."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel = channel

    async def raw(
        self,
        rpc: str,
        data: bytes,
        *,
        timeout_s: float | None = 10.0,
        object_text: str | None = None,
        explain: bool = False,
    ) -> tuple[bytes, Mapping[str, str]]:
        """Bytes in, bytes and trailing metadata out. Raises grpc.aio.AioRpcError."""
        metadata = [(EXPLAIN_KEY, "1")] if explain else []
        if object_text is not None:
            metadata.append((OBJECT_KEY, object_text))
        method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self.channel.unary_unary(f"/{SERVICE}/{rpc}")
        call = method(data, timeout=timeout_s, metadata=metadata)
        answer = await call
        trailing = {str(key): str(value) for key, value in await call.trailing_metadata() or ()}
        return answer, trailing

    async def replicas(
        self,
        request: pb.MaxAvailableReplicasRequest,
        *,
        timeout_s: float | None = 10.0,
        object_text: str | None = None,
    ) -> Reply:
        data, trailing = await self.raw(
            "MaxAvailableReplicas",
            request.SerializeToString(),
            timeout_s=timeout_s,
            object_text=object_text,
            explain=True,
        )
        return Reply(pb.MaxAvailableReplicasResponse.FromString(data).max_replicas, _reasons(trailing))

    async def sets(
        self, request: pb.MaxAvailableComponentSetsRequest, *, object_text: str | None = None
    ) -> Reply:
        data, trailing = await self.raw(
            "MaxAvailableComponentSets", request.SerializeToString(), object_text=object_text, explain=True
        )
        return Reply(pb.MaxAvailableComponentSetsResponse.FromString(data).max_sets, _reasons(trailing))

    async def unschedulable(self, request: pb.UnschedulableReplicasRequest) -> Reply:
        data, trailing = await self.raw("GetUnschedulableReplicas", request.SerializeToString(), explain=True)
        value = pb.UnschedulableReplicasResponse.FromString(data).unschedulable_replicas
        return Reply(value, _reasons(trailing))


class CapacityCaller:
    """One client connection to Fairway's own service."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._channel = channel

    def call(
        self, rpc: str, data: bytes, *, timeout_s: float | None = 20.0
    ) -> grpc.aio.UnaryUnaryCall[bytes, bytes]:
        """A call in flight; its result is bytes, or grpc.aio.AioRpcError is raised."""
        method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(
            f"/{CAPACITY_SERVICE}/{rpc}"
        )
        return method(data, timeout=timeout_s)

    async def place(
        self, request: capacity_pb2.PlaceRequest, *, timeout_s: float | None = 20.0
    ) -> list[capacity_pb2.ClusterPlacement]:
        data = await self.call("Place", request.SerializeToString(), timeout_s=timeout_s)
        return list(capacity_pb2.PlaceResponse.FromString(data).clusters)

    async def explain(
        self, request: capacity_pb2.ExplainRequest, *, timeout_s: float | None = 20.0
    ) -> list[capacity_pb2.ClusterExplanation]:
        data = await self.call("Explain", request.SerializeToString(), timeout_s=timeout_s)
        return list(capacity_pb2.ExplainResponse.FromString(data).clusters)

    async def summary(
        self, *clusters: str, timeout_s: float | None = 20.0
    ) -> list[capacity_pb2.ClusterSummary]:
        request = capacity_pb2.SummaryRequest(clusters=clusters)
        data = await self.call("Summary", request.SerializeToString(), timeout_s=timeout_s)
        return list(capacity_pb2.SummaryResponse.FromString(data).clusters)

    def pages(self, *clusters: str, timeout_s: float | None = 20.0) -> grpc.aio.UnaryStreamCall[bytes, bytes]:
        """A call of `Usage` in flight."""
        method: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = self._channel.unary_stream(
            f"/{CAPACITY_SERVICE}/Usage"
        )
        request = capacity_pb2.UsageRequest(clusters=clusters)
        return method(request.SerializeToString(), timeout=timeout_s)

    async def usage(self, *clusters: str, timeout_s: float | None = 20.0) -> tuple[UsageAnswer, ...]:
        pages = [page async for page in self.pages(*clusters, timeout_s=timeout_s)]
        return answers_of(map(capacity_pb2.UsagePage.FromString, pages))


def _reasons(trailing: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(json.loads(trailing[REASONS_KEY]))


@asynccontextmanager
async def estimator(*clusters: ClusterSource, **changes: object) -> AsyncIterator[Caller]:
    """A server for these clusters, ended with the context; ``changes`` are fields of its settings."""
    settings = replace(DEFAULTS, clusters=clusters, **changes)  # type: ignore[arg-type]  # fields of Settings
    async with running(settings) as (port, _), grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield Caller(channel)


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[tuple[int, asyncio.Event]]:
    """A server; its port, and the event that stops it."""
    stop = asyncio.Event()
    started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    server = asyncio.create_task(serve(settings, stop, started.set_result))
    await asyncio.wait((server, started), return_when=asyncio.FIRST_COMPLETED)
    if server.done():
        server.result()
    try:
        yield await started, stop
    finally:
        stop.set()
        assert await server == 0


def replicas_request(
    cluster: str, requests: Mapping[str, str], namespace: str = ""
) -> pb.MaxAvailableReplicasRequest:
    """How many more pods with these requests, as Karmada 1.19 asks."""
    request = pb.MaxAvailableReplicasRequest(cluster=cluster)
    request.replica_requirements.namespace = namespace
    for name, quantity in requests.items():
        data = pb.Quantity(string=quantity).SerializeToString()
        request.replica_requirements.resource_request_bytes[name] = data
    return request


def kubeconfig(file: Path, url: str) -> Path:
    """A kubeconfig that names this server and no user."""
    named = {"name": "karmada", "cluster": {"server": url}}
    context = {"name": "karmada", "context": {"cluster": "karmada"}}
    file.write_text(json.dumps({"current-context": "karmada", "clusters": [named], "contexts": [context]}))
    return file


def write_dump(file: Path, objects: Iterable[tuple[str, Mapping[str, object]]]) -> Path:
    """A ``kubectl get -o json`` file of (kind, object) pairs."""
    items = [{"apiVersion": "v1", "kind": kind, **obj} for kind, obj in objects]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return file


def gpu_node(name: str, gpus: int, **labels: str) -> tuple[str, dict[str, object]]:
    """A node with so many GPUs and plenty of everything else."""
    size = {"cpu": "96", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": str(gpus)}
    return "Node", {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": size}}


def gpu_pod(name: str, node: str, gpus: int, namespace: str = "default") -> tuple[str, dict[str, object]]:
    """A running pod that holds so many GPUs."""
    container = {"name": "main", "resources": {"requests": {"nvidia.com/gpu": str(gpus)}}}
    return "Pod", {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"nodeName": node, "containers": [container]},
        "status": {"phase": "Running"},
    }
