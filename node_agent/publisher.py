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


class Store(Protocol):
    """Where the object is kept."""

    async def read(self) -> NodeDevices | None:
        """What is there, None for nothing that can be used. Raises ReadFailed."""

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
        self._read_at_s = 0.0

    def looked(self, sample: Sample) -> None:
        """There is something new to decide about."""
        self._latest = sample
        self._looked.set()

    async def run(self) -> None:
        """Write until cancelled; nothing before it is known what there is to go on from."""
        knows = False
        while True:
            await self._looked.wait()
            self._looked.clear()
            if not knows:
                knows = await self._go_on()
                # What was seen before knows nothing of it.
                self._latest = None
            if self._latest is not None:
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
            self._publication.found(lasting(stored), age_s, self._clock())
        return True

    async def _consider(self, sample: Sample) -> None:
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
        self._publication.wrote(sample.lasting, self._clock())
        self._metrics.wrote(why)
