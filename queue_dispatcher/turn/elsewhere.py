"""Whether what is in lost clusters has room elsewhere, beside all else that is about to go there.

Another cluster has to be there for a while that its policy permits and that has the flavors of its queue; and
Karmada has to count free there as much as it asks for. From that comes off what Karmada does not count yet:
what was released a moment ago, and what was taken off lost clusters before and still waits.
"""

from collections.abc import Iterable
from typing import Final

from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.workloads.demand import Placed, Requests
from queue_dispatcher.workloads.flavors import offered
from queue_dispatcher.workloads.queue_of import Resolved
from queue_dispatcher.workloads.spare import Pods, SpareRoom

COUNTED_MS: Final = 30_000
"""So long after it was placed Karmada counts what runs: its sums are up to ten seconds old, and its pods have
to be there first."""


def counted(cache: Cache, now: Moment) -> int | None:
    """Forget what was placed so long ago that Karmada counts it; how long until the next one is, None if all
    are.
    """
    recent = cache.running.recent
    while recent:
        uid = next(iter(recent))
        left_ms = COUNTED_MS - (now.elapsed_ms - cache.entries[uid].seen.since_ms)
        if left_ms > 0:
            return left_ms
        del recent[uid]
    return None


class Elsewhere:
    """As of one moment. ``beside_others``: whether all else that is about to go there comes first."""

    def __init__(self, cache: Cache, now: Moment, *, beside_others: bool = True) -> None:
        self._cache = cache
        self._settled = cache.fleet.outages.settled(now.elapsed_ms)
        self._beside_others = beside_others
        self._room: SpareRoom | None = None
        # There is only ever less room, so what does not fit once does not fit later.
        self._refused: set[tuple[object, ...]] = set()

    def could_take(self, entry: Entry, clusters: tuple[str, ...], stays: tuple[Placed, ...]) -> bool:
        """Whether there is room for what of it is in the lost ``clusters``, which is then taken; for all of
        it where nothing of it ``stays``.
        """
        binding, queue = entry.binding, entry.queue
        if not isinstance(queue, Resolved) or binding.placement is None:
            # It would stand in no line.
            return False
        stopped = queue.stopped or self._cache.resolved.refusal(queue.cluster_queue)
        if not stays and stopped:
            return False
        # Bindings share equal demands and placements as one object.
        key = (
            queue,
            bool(entry.facts.gang_pods),
            id(binding.demand),
            id(binding.placement),
            binding.placed,
            clusters,
        )
        if key in self._refused:
            return False
        if self._room is None:
            self._room = self._spare()
        demand, gone = binding.demand, set(clusters)
        pods: Pods = tuple((one, one.replicas) for one in demand.components)
        gives: dict[str, Requests] = {}
        if stays:
            pods = tuple(
                part for share in binding.placed if share.cluster in gone for part in demand.at(share)
            )
        else:
            gives = {one.cluster: demand.held((one,)) for one in binding.placed if one.cluster not in gone}
        is_one = not stays and _is_one(entry, binding.placed)
        took = self._room.take(self._open_to(entry, queue), pods, in_one=is_one, gives=gives)
        if not took:
            self._refused.add(key)
        return took

    def _spare(self) -> SpareRoom:
        cache, running = self._cache, self._cache.running
        room = SpareRoom(cache.fleet.clusters.values(), cache.is_accelerator)
        if not self._beside_others:
            return room
        for uid in running.recent:
            entry = cache.entries[uid]
            for share in entry.binding.placed:
                room.fill(share.cluster, entry.binding.demand.held((share,)))
        for uid in sorted({*running.unplaced, *running.gone}):
            entry = cache.entries[uid]
            binding, queue = entry.binding, entry.queue
            if isinstance(queue, Resolved) and binding.placement is not None:
                is_one = not binding.placed and _is_one(entry, ())
                room.take(self._open_to(entry, queue), _unplaced(entry), in_one=is_one)
        return room

    def _open_to(self, entry: Entry, queue: Resolved) -> frozenset[str]:
        """The settled clusters that its policy permits and that are in the flavors of its queue."""
        fleet, placement = self._cache.fleet, entry.binding.placement
        known = self._cache.queues.queues.cluster_queues.get(queue.cluster_queue)
        if known is None or placement is None:
            return frozenset()
        names, offers = fleet.permitted(placement) & self._settled, offered(known)
        for resource, _ in entry.binding.demand.total():
            if resource in offers:
                reaches = (fleet.reaches.get(flavor) for flavor in offers[resource])
                names &= frozenset().union(*(reach.clusters for reach in reaches if reach is not None))
        return names


def _is_one(entry: Entry, placed: Iterable[Placed]) -> bool:
    """Whether one cluster has to hold all of it; a gang, unless it is in several as it is."""
    binding, placement = entry.binding, entry.binding.placement
    if binding.demand.is_set or (placement is not None and placement.is_duplicated):
        return True
    is_one = placement is not None and placement.max_clusters == 1
    return is_one or (bool(entry.facts.gang_pods) and len(tuple(placed)) <= 1)


def _unplaced(entry: Entry) -> Pods:
    """The pods of it that have no cluster."""
    binding = entry.binding
    placed = sum(share.replicas for share in binding.placed)
    return tuple((one, max(0, one.replicas - placed)) for one in binding.demand.components)
