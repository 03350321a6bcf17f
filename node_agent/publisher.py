"""Writes what the sampler saw, when `Publication` says so; a write that hangs holds up no look."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from fairway.kube.node_devices import NodeDevices
from node_agent.document import lasting
from node_agent.publishing import Publication, Why
from node_agent.sampling import Sample
from node_agent.writer import ReadFailed, WriteFailed

logger = logging.getLogger(__name__)

LOOK_AFTER_S = 60.0
"""How often it is looked whether the object is still there, while it is not written."""


class Store(Protocol):
    """Where the object is kept."""

    async def read(self) -> NodeDevices | None:
        """What is there, None for nothing that can be used. Raises ReadFailed."""

    async def is_there(self) -> bool:
        """False only where it is known that there is nothing."""

    async def write(self, made: NodeDevices) -> None:
        """Raises WriteFailed."""


class WriteMetrics(Protocol):
    """What is counted of writes."""

    def wrote(self, why: Why) -> None:
        """It is stored."""

    def failed(self, reason: str) -> None:
        """It is not."""


class Publisher:
    """``resume`` goes on from what was stored before, and answers how old it is, in seconds."""

    def __init__(
        self,
        publication: Publication,
        store: Store,
        *,
        clock: Callable[[], float],
        resume: Callable[[NodeDevices], Awaitable[float]],
        metrics: WriteMetrics,
    ) -> None:
        self._publication, self._store = publication, store
        self._clock, self._resume, self._metrics = clock, resume, metrics
        self._latest: Sample | None = None
        self._looked = asyncio.Event()
        self._seen_s = 0.0
        self._read_at_s = 0.0
        self.asked = asyncio.Event()
        """Set once it was asked what was stored before, whether there was an answer or not."""

    def looked(self, sample: Sample) -> None:
        """There is something new to decide about."""
        self._latest = sample
        self._looked.set()

    async def run(self) -> None:
        """Write until cancelled; nothing before it is known what there is to go on from."""
        knows = await self._go_on()
        self.asked.set()
        while True:
            await self._looked.wait()
            self._looked.clear()
            if not knows:
                knows = await self._go_on()
            if knows and self._latest is not None and self._latest.settled:
                await self._consider(self._latest)

    async def _go_on(self) -> bool:
        now_s = self._clock()
        if now_s < self._read_at_s:
            return False
        try:
            stored = await self._store.read()
        except ReadFailed as failure:
            self._read_at_s = now_s + self._publication.failed(now_s, failure.retry_after_s)
            self._metrics.failed(failure.label)
            return False
        if stored is not None:
            age_s = await self._resume(stored)
            self._seen_s = self._clock()
            self._publication.found(lasting(stored), age_s, self._seen_s)
        # What was seen before knows nothing of it.
        self._latest = None
        return True

    async def _consider(self, sample: Sample) -> None:
        why = self._publication.decide(sample.lasting, self._clock())
        if why is None and await self._was_deleted():
            why = self._publication.decide(sample.lasting, self._clock())
        if why is None:
            return
        try:
            await self._store.write(sample.made)
        except WriteFailed as failure:
            wait_s = self._publication.failed(self._clock(), failure.retry_after_s)
            self._metrics.failed(failure.label)
            logger.debug("tried again in %d s", wait_s)
            return
        self._seen_s = self._clock()
        self._publication.wrote(sample.lasting, self._seen_s)
        self._metrics.wrote(why)

    async def _was_deleted(self) -> bool:
        """Whether somebody took the object away since it was written or seen."""
        now_s = self._clock()
        if not self._publication.is_stored or now_s < self._seen_s + LOOK_AFTER_S:
            return False
        self._seen_s = now_s
        if await self._store.is_there():
            return False
        logger.info("what was written is not there any more, and is written anew")
        self._publication.lost()
        return True
