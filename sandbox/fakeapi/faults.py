"""What goes wrong on request: errors, slow answers, cut connections, and clients that are cut off.

A fault concerns the next so many requests for which its predicate holds; several may concern one request.
Waiting is asyncio's, so a loop in virtual time skips it.
"""

import asyncio
from dataclasses import dataclass
from enum import Enum

from sandbox.fakeapi import answers
from sandbox.fakeapi.seen import Seen, Which
from sandbox.fakeapi.store import ApiFault


class Cut(Enum):
    """When a connection breaks."""

    BEFORE = "before the request is heeded"
    AFTER = "after it was heeded, and before it is answered"


@dataclass(slots=True)
class Fault:
    """``code`` 0: no error answer. ``times`` counts down."""

    concerns: Which
    times: int
    code: int = 0
    retry_after_s: int | None = None
    delay_s: float = 0.0
    cut: Cut | None = None


class ConnectionCut(Exception):
    """The connection is to be broken, without an answer."""


class Faults:
    """The faults asked for, and the clients that hear nothing."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._partitions: list[Which] = []
        self._reachable = asyncio.Event()
        self._reachable.set()

    def add(self, fault: Fault) -> None:
        self._faults.append(fault)

    def clear(self) -> None:
        self._faults.clear()

    def part(self, concerns: Which) -> None:
        """Requests that this concerns wait, and so does what open watches have to say, until `heal`."""
        self._partitions.append(concerns)
        self._reachable.clear()

    def heal(self) -> None:
        self._partitions.clear()
        self._reachable.set()

    async def before(self, seen: Seen) -> Cut | None:
        """Wait as long as asked for, or raise what was asked for; when to cut the connection, if at all."""
        await self.reachable(seen)
        cut = None
        for fault in tuple(self._faults):
            if not fault.concerns(seen):
                continue
            fault.times -= 1
            if fault.times <= 0:
                self._faults.remove(fault)
            if fault.delay_s:
                await asyncio.sleep(fault.delay_s)
            if fault.code:
                reason = answers.REASONS.get(fault.code, "Failure")
                raise ApiFault(fault.code, reason, "a fault was asked for", fault.retry_after_s)
            cut = fault.cut or cut
        if cut is Cut.BEFORE:
            raise ConnectionCut
        return cut

    async def reachable(self, seen: Seen) -> None:
        """Wait while this client is cut off."""
        while any(concerns(seen) for concerns in self._partitions):
            await self._reachable.wait()
