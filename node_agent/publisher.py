"""Writes what the sampler saw, when `Publication` says so; a write that hangs holds up no look."""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from fairway.kube.node_devices import NodeDevices
from node_agent.document import lasting
from node_agent.publishing import Publication, Why
from node_agent.sampling import Sample
from node_agent.writer import WriteFailed

logger = logging.getLogger(__name__)


class Store(Protocol):
    """Where the object is kept."""

    async def read(self) -> NodeDevices | None:
        """What is there, None for nothing."""

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
        resume: Callable[[NodeDevices], float],
        metrics: WriteMetrics,
    ) -> None:
        self._publication, self._store = publication, store
        self._clock, self._resume, self._metrics = clock, resume, metrics
        self._latest: Sample | None = None
        self._looked = asyncio.Event()

    def looked(self, sample: Sample) -> None:
        """There is something new to decide about."""
        self._latest = sample
        self._looked.set()

    async def run(self) -> None:
        """Write until cancelled."""
        stored = await self._store.read()
        if stored is not None:
            self._publication.found(lasting(stored), self._resume(stored), self._clock())
        while True:
            await self._looked.wait()
            self._looked.clear()
            if self._latest is not None:
                await self._consider(self._latest)

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
