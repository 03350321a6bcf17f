"""Etas: when what waits is expected to start, kept up to date for readers, and told in their words.

It is worked out in a thread, on a copy, and so seldom that it takes a twentieth of a core at most: what is
told is as old as that. While a turn is taken the thread stands still, as it would take half of the time from
it.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import Final

from fairway.kube.pace import in_slices
from fairway.visibility import EtaView
from queue_dispatcher.bindings.timestamp import format_ms
from queue_dispatcher.controller import Controller
from queue_dispatcher.cycle.eta import Confidence, Eta, etas
from queue_dispatcher.turn.outlook import outlook

logger = logging.getLogger(__name__)

EVERY_S: Final = 15.0
"""So often it is worked out,"""
PART: Final = 20
"""or so many times as long after as that took."""
YIELDS_S: Final = 0.005
"""For so long the thread stands still before it looks again whether the turn has ended."""


class Etas:
    """Of one dispatcher."""

    def __init__(
        self, controller: Controller, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._controller = controller
        self._sleep = sleep

    async def run(self) -> None:
        """Work it out again and again, until cancelled."""
        took_s = 0.0
        while True:
            await self._sleep(max(EVERY_S, PART * took_s))
            began_s = time.monotonic()
            try:
                await self.look()
            except Exception:
                logger.exception("when workloads would start was not worked out")
            took_s = time.monotonic() - began_s

    async def look(self) -> None:
        """Work it out once."""
        controller = self._controller
        if not controller.is_synced:
            return
        await controller.settled()
        if not controller.state.cache.pending.queues:
            controller.state.etas = {}
            return
        seen = await in_slices(outlook(controller.state, controller.now()))
        is_off = threading.Event()
        try:
            controller.state.etas = await asyncio.to_thread(
                worked_out, etas(seen), is_off, lambda: controller.is_turning
            )
        finally:
            # The thread is not waited for when this is cancelled.
            is_off.set()


def worked_out(
    steps: Generator[None, None, Mapping[str, Eta]], is_off: threading.Event, is_busy: Callable[[], bool]
) -> Mapping[str, Eta]:
    """What the steps come to; nothing once nobody waits for it. None is taken while others are busy."""
    while not is_off.is_set():
        if is_busy():
            is_off.wait(YIELDS_S)
            continue
        try:
            next(steps)
        except StopIteration as stop:
            found: Mapping[str, Eta] = stop.value
            return found
    return {}


def eta_view(eta: Eta) -> EtaView:
    """What readers are told of it."""
    if eta.at_ms is None:
        return EtaView(confidence=eta.confidence, text=f"not known: {eta.why}")
    at, by = format_ms(eta.at_ms), format_ms(eta.by_ms) if eta.by_ms is not None else ""
    told = f"if all in its way runs for as long as it may: about {by}" if by else ""
    if eta.confidence is Confidence.BOUND:
        return EtaView(at, by, eta.confidence, told)
    earlier = f"by how long earlier runs took: about {at}"
    return EtaView(at, by, eta.confidence, "; ".join(filter(None, (earlier, told))))
