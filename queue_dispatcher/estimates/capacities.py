"""Has the estimators count what there is, for flavors whose capacity is to come from them.

Accelerators as their nodes have them, without those that are unhealthy or on cordoned nodes; all other
resources are as Karmada sums them up. A cluster whose estimator does not answer keeps its last count.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping

from queue_dispatcher.cache.cache import Cache

logger = logging.getLogger(__name__)

EVERY_S = 30.0

Counts = Callable[[Iterable[str]], Awaitable[Mapping[str, Mapping[str, int]]]]
"""Asks about clusters: by cluster that answered, amounts by resource."""


class Capacities:
    """Keeps the cache's counts up to date."""

    def __init__(
        self, counts: Counts, cache: Cache, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._counts = counts
        self._cache = cache
        self._sleep = sleep

    async def run(self) -> None:
        """Ask again and again until cancelled."""
        while True:
            try:
                await self.refresh()
            except Exception:
                logger.exception("capacities were not counted")
            await self._sleep(EVERY_S)

    async def refresh(self) -> None:
        """Ask once."""
        clusters = self._cache.fleet.asks_estimators()
        if not clusters:
            return
        for cluster, amounts in (await self._counts(sorted(clusters))).items():
            self._cache.fleet.estimated(cluster, amounts)
