"""A gRPC server that gives back what it gets, for the caller to be tried on."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import grpc

from benchmarks.caller import Address

if TYPE_CHECKING:
    # Generic in its stubs, not at run time.
    Context = grpc.aio.ServicerContext[bytes, bytes]

ECHO, REFUSE, METADATA, REMAINING = "/try.It/Echo", "/try.It/Refuse", "/try.It/Metadata", "/try.It/Remaining"
_T = TypeVar("_T")


async def _echo(request: bytes, _: "Context") -> bytes:
    return request


async def _refuse(_: bytes, context: "Context") -> bytes:
    await context.abort(grpc.StatusCode.UNAVAILABLE, "not today")


async def _metadata(request: bytes, context: "Context") -> bytes:
    found = dict(context.invocation_metadata() or ())
    return str(found.get(request.decode(), "")).encode()


async def _remaining(_: bytes, context: "Context") -> bytes:
    return str(context.time_remaining()).encode()


@asynccontextmanager
async def _server() -> AsyncIterator[Address]:
    handlers = {"Echo": _echo, "Refuse": _refuse, "Metadata": _metadata, "Remaining": _remaining}
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(
        (
            grpc.method_handlers_generic_handler(
                "try.It",
                {n: grpc.unary_unary_rpc_method_handler(h) for n, h in handlers.items()},
            ),
        )
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield Address("127.0.0.1", port)
    finally:
        await server.stop(None)


def on_server(ask: Callable[[Address], _T]) -> _T:
    """What ``ask``, on a thread of its own, makes of the server."""

    async def scenario() -> _T:
        async with _server() as address:
            return await asyncio.to_thread(ask, address)

    return asyncio.run(scenario())
