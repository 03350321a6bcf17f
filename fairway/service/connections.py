"""How many connections an HTTP server keeps at once: in all, and of one peer.

The limit of one peer is what keeps one client from taking every place: whoever is beyond it is cut off at
once, while others still find room. Heads that never arrive are the server's own ``keepalive_timeout``.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from aiohttp import web

UNKNOWN: Final = ""


def limited(
    server: web.Server, *, most: int, most_of_one: int, refused: Callable[[], None]
) -> Callable[[], asyncio.Protocol]:
    """A protocol factory for ``loop.create_server``; ``refused`` is called for each connection cut off."""
    return lambda: _Arrival(server, most, most_of_one, refused)


def host_of(peername: object) -> str:
    """The address in what a transport calls its peer; UNKNOWN where there is none."""
    return str(peername[0]) if isinstance(peername, tuple) and peername else UNKNOWN


class _Arrival(asyncio.Protocol):
    """A connection until it is let in; who it is, is known no earlier."""

    def __init__(self, server: web.Server, most: int, most_of_one: int, refused: Callable[[], None]) -> None:
        self._server, self._most, self._most_of_one, self._refused = server, most, most_of_one, refused

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        here = self._server.connections
        host = host_of(transport.get_extra_info("peername"))
        if len(here) >= self._most or sum(host_of(one.peername) == host for one in here) >= self._most_of_one:
            self._refused()
            transport.abort()
            return
        handler = self._server()
        transport.set_protocol(handler)
        handler.connection_made(transport)
