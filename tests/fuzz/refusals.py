"""Calls that the server refuses unread, because a connection has too many in hand; clients try them again.

gRPC's server counts a call of a connection until it has let go of it, which is a moment after the client has
the answer. So a client that keeps to the limit and sends the next call at once may still be refused.
"""

import asyncio

import grpc

_TRIES, _APART_S = 200, 0.05


class Refusals:
    """How often one call was refused."""

    def __init__(self) -> None:
        self._left = _TRIES

    async def again(self, code: grpc.StatusCode, details: str | None) -> bool:
        """Whether a call that ended like this is to be tried again, now; waits for a moment before."""
        is_refused = code is grpc.StatusCode.UNAVAILABLE and "RST_STREAM with error code 7" in (details or "")
        if not is_refused or self._left == 0:
            return False
        self._left -= 1
        await asyncio.sleep(_APART_S)
        return True
