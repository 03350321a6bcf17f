"""Tells the estimators each second what is on its way, and sooner what is new, so that they keep room for it.

So it is with room that is reserved for what waits; of that no pods are counted.

Until an estimator knows of a release, others may be told that its room is free.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Final

from fairway.kube.errors import BadObject, Forbidden, Invalid, KubeError, NotFound
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.estimates.estimates import Estimates
from queue_dispatcher.estimates.promised import Lists, promised, unknown
from queue_dispatcher.estimates.questions import question_of

if TYPE_CHECKING:
    from queue_dispatcher.estimates.asking import Source

logger = logging.getLogger(__name__)

EVERY_S: Final = 1.0
SOON_S: Final = 0.25
"""What is released is told after so long at the latest."""
MOST_ADOPTED: Final = 100
"""Workloads of a leader before whose templates are read at once."""


Counts = Mapping[str, tuple[int | None, ...]]


Promise = Callable[[int, Lists], Awaitable[Counts]]
"""Promises this to the estimators, as one who leads since then, in epoch milliseconds.

By cluster of which the promises are kept: how many pods of each workload have nodes.
"""


class Promising:
    """``source`` has the templates of what others released, ``tell`` hears what a cluster has counted."""

    def __init__(
        self,
        estimates: Estimates,
        cache: Cache,
        source: "Source",
        promise: Promise,
        elapsed_ms: Callable[[], int],
        now_ms: Callable[[], int],
        tell: Callable[[str, Mapping[str, int | None]], None],
        *,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._estimates = estimates
        self._cache = cache
        self._source = source
        self._promise = promise
        self._elapsed_ms = elapsed_ms
        self._now_ms = now_ms
        self._tell = tell
        self._sleep = sleep
        self._told: frozenset[str] = frozenset()
        # Workloads of leaders before of which nothing can be asked, and so nothing promised.
        self._left_out: set[str] = set()
        self._counted: frozenset[tuple[str, str]] = frozenset()

    def is_counted(self, cluster: str, uid: str) -> bool:
        """Whether the cluster has just told how many pods of the binding have nodes."""
        return (cluster, uid) in self._counted

    async def run(self) -> None:
        """Promise until cancelled, as one who leads from now on."""
        since_ms, self._told = self._now_ms(), frozenset()
        waited_s, released = 0.0, self._estimates.releases
        while True:
            await self._sleep(SOON_S)
            waited_s += SOON_S
            if waited_s >= EVERY_S or released != self._estimates.releases:
                waited_s, released = 0.0, self._estimates.releases
                try:
                    await self.promise(since_ms)
                except Exception:
                    # Nothing is promised then; that is no reason to stop leading.
                    logger.exception("promising failed")

    async def adopt(self) -> None:
        """Find out, until cancelled, what is to be promised of what leaders before have released.

        Beside the promises: one read after the other may take longer than promises are kept.
        """
        self._left_out.clear()
        while True:
            try:
                await self._adopt()
            except Exception:
                # Less is promised then; that is no reason to stop leading.
                logger.exception("adopting failed")
            await self._sleep(EVERY_S)

    async def promise(self, since_ms: int) -> None:
        """Promise once what is on its way; nothing is sent while nothing is, nor was before."""
        lists = promised(self._estimates, self._cache, self._elapsed_ms())
        withdrawn = self._told - lists.keys()
        self._told = frozenset(lists)
        self._counted = frozenset()
        if not lists and not withdrawn:
            return
        found = await self._promise(since_ms, {**lists, **dict.fromkeys(sorted(withdrawn), ())})
        counted: set[tuple[str, str]] = set()
        for cluster, counts in found.items():
            of = lists.get(cluster, ())
            # Whoever waits for room in the cluster may run there too, as what grows.
            placed = {one.uid: count for one, count in zip(of, counts, strict=True) if not one.gang.waits}
            counted.update((cluster, uid) for uid in placed)
            if placed:
                self._tell(cluster, placed)
        self._counted = frozenset(counted)

    async def _adopt(self) -> None:
        uids = (uid for uid in unknown(self._estimates, self._cache) if uid not in self._left_out)
        for uid in tuple(islice(uids, MOST_ADOPTED)):
            entry = self._cache.entries.get(uid)
            if entry is None:
                # Gone while another one's template was read.
                continue
            binding = entry.binding
            try:
                source = await self._source.template(binding)
            except (NotFound, Forbidden, Invalid, BadObject) as error:
                logger.warning("%s lacks nodes, and its template cannot be read: %s", binding.key, error)
                self._left_out.add(uid)
                continue
            except KubeError as error:
                # The next would fail alike.
                logger.warning("%s lacks nodes, and its template cannot be read: %s", binding.key, error)
                return
            if uid not in self._cache.running.unbound:
                # It has its nodes meanwhile.
                continue
            clusters = frozenset(share.cluster for share in binding.placed)
            question = question_of(binding, clusters, len(clusters), source)
            if question is None:
                self._left_out.add(uid)
            else:
                self._estimates.adopt(
                    uid, binding.workload.name, question, binding.placed, self._elapsed_ms()
                )
