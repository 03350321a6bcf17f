"""Whether what is in lost clusters has room elsewhere, beside all else that is about to go there.

Another cluster has to be there for a while that its policy permits, in flavors of which its queue has quota
left once it gives back its own; and Karmada has to count free there as much as it asks for. From both comes
off what is about to go there: what was taken off lost clusters before and still waits, and from what Karmada
counts also what was released a moment ago.
"""

from collections.abc import Iterable
from functools import cached_property
from typing import Final

from queue_dispatcher.api.cluster_queue import ClusterQueue
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.turn.spare_quota import SpareQuota
from queue_dispatcher.workloads.demand import Placed
from queue_dispatcher.workloads.elastic import sized
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
        # There is hardly ever more, so what does not fit once is left alone for now.
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
        took = self._part(entry, clusters) if stays else self._whole(entry, clusters)
        if not took:
            self._refused.add(key)
        return took

    def _part(self, entry: Entry, clusters: tuple[str, ...]) -> bool:
        """Whether there is room for what of it is there. What it was admitted with it keeps."""
        demand = entry.binding.demand
        gone = [share for share in entry.binding.placed if share.cluster in clusters]
        pods: Pods = tuple(part for share in gone for part in demand.at(share))
        return self._free.take(self._open_to(entry), pods, in_one=False)

    def _whole(self, entry: Entry, clusters: tuple[str, ...]) -> bool:
        """Whether there are room and quota for all of it, which are then taken, and its own given back."""
        binding, queue = entry.binding, self._queue_of(entry)
        if queue is None:
            return False
        elastic, demand = entry.elastic, binding.demand
        if elastic is not None:
            # It starts anew with as few as it needs.
            demand = sized(demand, elastic.least)
        pods: Pods = tuple((one, one.replicas) for one in demand.components)
        gives = {one.cluster: demand.held((one,)) for one in binding.placed if one.cluster not in clusters}
        free = self._free
        with self._quota.without(entry.uid):
            charges = self._quota.charges(queue, demand, self._open_to(entry))
        took = free.take(charges.keys(), pods, in_one=_is_one(entry, binding.placed), gives=gives)
        if took:
            self._quota.settle(entry.uid, queue.name, next(iter(charges.values())))
        return took

    @cached_property
    def _free(self) -> SpareRoom:
        """What is free, but for what all else is about to take, of which the quota is taken too."""
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
            queue, names = self._queue_of(entry), self._open_to(entry)
            if queue is not None and uid in running.gone:
                charges = self._quota.charges(queue, entry.binding.demand, names)
                if charges:
                    self._quota.settle(uid, queue.name, next(iter(charges.values())))
            is_one = not entry.binding.placed and _is_one(entry, ())
            room.take(names, _unplaced(entry), in_one=is_one)
        return room

    @cached_property
    def _quota(self) -> SpareQuota:
        return SpareQuota(self._cache)

    def _queue_of(self, entry: Entry) -> ClusterQueue | None:
        queue = entry.queue
        if not isinstance(queue, Resolved):
            return None
        return self._cache.queues.queues.cluster_queues.get(queue.cluster_queue)

    def _open_to(self, entry: Entry) -> frozenset[str]:
        """The settled clusters that its policy permits and that are in the flavors of its queue."""
        fleet, placement, queue = self._cache.fleet, entry.binding.placement, self._queue_of(entry)
        if queue is None or placement is None:
            return frozenset()
        names, offers = fleet.permitted(placement) & self._settled, offered(queue)
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
