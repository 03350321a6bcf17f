"""A kubelet's PodResources API on a real unix socket."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import grpc

from node_agent.pb import podresources_pb2 as pb

if TYPE_CHECKING:
    _Context = grpc.aio.ServicerContext[bytes, bytes]

SERVICE = "v1.PodResourcesLister"


class Kubelet:
    """Answers what it is told to; ``asked`` counts the questions."""

    def __init__(self) -> None:
        self.pods = pb.ListPodResourcesResponse()
        self.allocatable = pb.AllocatableResourcesResponse()
        self.asked = 0
        self.raw: bytes | None = None
        self.refuses: tuple[grpc.StatusCode, str] | None = None
        self.hangs = False
        self.knows_allocatable = True

    def give(
        self, pod: str, container: str, *ids: str, resource: str = "nvidia.com/gpu", claims: str = ""
    ) -> None:
        """The container of the pod (``namespace/name``) has these devices; ``claims``: driver/pool/device."""
        namespace, _, name = pod.partition("/")
        of = next(
            (one for one in self.pods.pod_resources if (one.namespace, one.name) == (namespace, name)), None
        )
        of = of or self.pods.pod_resources.add(name=name, namespace=namespace)
        within = of.containers.add(name=container)
        if ids:
            within.devices.add(resource_name=resource, device_ids=ids)
        if claims:
            driver, pool, device = claims.split("/")
            claim = within.dynamic_resources.add(claim_name="gpus", claim_namespace=namespace)
            claim.claim_resources.add(driver_name=driver, pool_name=pool, device_name=device)

    async def _answer(self, answer: bytes, context: "_Context") -> bytes:
        self.asked += 1
        if self.hangs:
            await asyncio.Event().wait()
        if self.refuses is not None:
            await context.abort(*self.refuses)
        return answer if self.raw is None else self.raw

    async def list(self, data: bytes, context: "_Context") -> bytes:
        return await self._answer(self.pods.SerializeToString(), context)

    async def get_allocatable(self, data: bytes, context: "_Context") -> bytes:
        if not self.knows_allocatable:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "unknown method GetAllocatableResources")
        return await self._answer(self.allocatable.SerializeToString(), context)

    @asynccontextmanager
    async def on(self, socket: Path, service: str = SERVICE) -> AsyncIterator[None]:
        """Serve there; the socket goes with it."""
        methods: dict[str, Callable[[bytes, _Context], Awaitable[bytes]]] = {
            "List": self.list,
            "GetAllocatableResources": self.get_allocatable,
        }
        handlers = {name: grpc.unary_unary_rpc_method_handler(method) for name, method in methods.items()}
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
        server.add_insecure_port(f"unix:{socket}")
        await server.start()
        try:
            yield
        finally:
            await server.stop(None)
