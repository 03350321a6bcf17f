"""Has the pods counted of what is placed and has yet to start, every two seconds, while there is any."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from queue_dispatcher.bindings.binding import WorkloadReference
from queue_dispatcher.cache.cache import Cache

EVERY_S: Final = 2.0
MOST: Final = 2_000
"""Workloads of one cluster that are asked about at once; the others are, when these have started."""

Count = Callable[[Mapping[str, Sequence[WorkloadReference]]], Awaitable[Mapping[str, tuple[int | None, ...]]]]


async def nobody_counts(
    asked: Mapping[str, Sequence[WorkloadReference]],
) -> Mapping[str, tuple[int | None, ...]]:
    """Where no estimator counts pods."""
    return {}


class Unbound(NamedTuple):
    """A binding of which pods may lack nodes, and the clusters where it is."""

    uid: str
    workload: WorkloadReference
    clusters: tuple[str, ...]


def unbound(
    cache: Cache, settling: Iterable[str] = (), is_counted: Callable[[str, str], bool] = lambda *_: False
) -> Iterator[Unbound]:
    """Whose pods are to be counted, ``settling`` among them; but for clusters that have just told of them."""
    running = cache.running
    for uid in sorted(running.unbound | running.uncounted | cache.entries.keys() & set(settling)):
        binding = cache.entries[uid].binding
        clusters = (share.cluster for share in binding.placed if not is_counted(share.cluster, uid))
        yield Unbound(uid, binding.workload, tuple(clusters))


class Counting:
    """``unbound`` gives what to ask about, ``count`` asks, ``tell`` hears what a cluster has counted."""

    def __init__(
        self,
        unbound: Callable[[], Iterable[Unbound]],
        count: Count,
        tell: Callable[[str, Mapping[str, int | None]], None],
        *,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._unbound = unbound
        self._count = count
        self._tell = tell
        self._sleep = sleep

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            await self._sleep(EVERY_S)
            await self.ask()

    async def ask(self) -> None:
        """Ask once."""
        asked: dict[str, list[Unbound]] = {}
        for one in self._unbound():
            for cluster in one.clusters:
                of = asked.setdefault(cluster, [])
                if len(of) < MOST:
                    of.append(one)
        if not asked:
            return
        found = await self._count({name: [one.workload for one in of] for name, of in asked.items()})
        for cluster, counts in found.items():
            self._tell(cluster, {one.uid: count for one, count in zip(asked[cluster], counts, strict=True)})
