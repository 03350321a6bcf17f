"""What the estimators are promised, decided from the state as it is and never from what was told before.

That is what waits to be placed, and what is placed and has pods that lack nodes. So a new leader goes on with
what the one before has released, as soon as it knows that pods of it lack nodes. Behind all that comes what
waits and has a reservation: room is held for it that nobody else is to be placed on. Pure.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from fairway.capacity.v1 import capacity_pb2 as pb
from queue_dispatcher.bindings.binding import Binding, WorkloadReference
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.estimates.estimates import Estimates
from queue_dispatcher.estimates.on_its_way import OnItsWay

HOLDS_S: Final = 10.0
"""For so long a promise is kept that is not told again."""
MOST: Final = 2_000
"""Workloads that are promised one cluster at once."""


class Promised(NamedTuple):
    """One workload on its way to a cluster, or waiting for room there, with all of its pods there."""

    uid: str
    workload: WorkloadReference
    gang: pb.Gang


Lists = Mapping[str, Sequence[Promised]]


def promised(estimates: Estimates, cache: Cache, elapsed_ms: int) -> dict[str, list[Promised]]:
    """By cluster, what is on its way there, and then what waits for room that is held there."""
    lists: dict[str, list[Promised]] = {}
    coming = dict(estimates.on_their_way(elapsed_ms))
    # A workload is named once in a cluster: of one that grows while pods of it are on their way, those count.
    waiting = (
        (uid, one.waiting)
        for uid, one in estimates.reservations()
        if uid not in coming or one.earliest.cluster not in coming[uid].gangs
    )
    for uid, way in (*coming.items(), *waiting):
        entry = cache.entries.get(uid)
        if entry is None:
            continue
        for cluster, gang in way.gangs.items():
            of = lists.setdefault(cluster, [])
            if len(of) < MOST:
                of.append(Promised(uid, entry.binding.workload, _in_all(entry.binding, way, cluster, gang)))
    return lists


def unknown(estimates: Estimates, cache: Cache) -> list[str]:
    """What is placed and lacks nodes, and was released by a leader before this one."""
    return sorted(uid for uid in cache.running.unbound if not estimates.is_on_its_way(uid))


def _in_all(binding: Binding, way: OnItsWay, cluster: str, gang: pb.Gang) -> pb.Gang:
    """The gang with all pods that the workload has in the cluster but those that have ended there.

    Of growth only the difference is on its way; by the workload's name all of its pods are known.
    """
    if not way.question.is_of_alike_pods:
        return gang
    copies = gang.copies
    if way.is_growth:
        there = next((share.replicas for share in binding.placed if share.cluster == cluster), 0)
        copies = there if way.placed_ms is not None else there + copies
    copies -= dict(binding.progress.ended).get(cluster, 0)
    if copies == gang.copies:
        return gang
    whole = pb.Gang()
    whole.CopyFrom(gang)
    # No copies at all would stand for one.
    whole.copies = max(1, copies)
    return whole
