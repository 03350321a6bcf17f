"""Room kept for gangs that wait for more of it: of the nodes that they are to have, what is free there.

A node that has three of eight devices free, and is to take a pod that asks for eight, has all three of them
kept, and its cpu, memory and slots for pods in the same way. Devices that pods share, or claim, are kept for
whole pods alone: which of them a part of a pod would take is not known.
"""

from collections.abc import Iterable

import numpy as np

from estimator.capacity.room import Room, demand
from estimator.cluster.columns import IntVector
from estimator.fit.pod_shape import PodShape
from fairway.resources import is_extended


def keep(room: Room, shape: PodShape, count: int, where: Iterable[tuple[str, int]]) -> None:
    """Take what is free for ``count`` pods of the shape on the nodes where they are to go.

    Of each node the lesser of what is free and of what the pods ask for that go there, whether or not the
    node takes pods now; nothing anywhere else. Where fewer pods are left than places, as some have nodes by
    now, those places are left out that have the least for them.
    """
    pods = _on_rows(room, where)
    if int(pods.sum()) > count:
        pods = _as_many(room, shape, pods, count)
    whole = np.minimum(pods, room.fits(shape))
    room.take(shape, whole)
    room.take_what_is_free(shape, pods - whole)


def _on_rows(room: Room, where: Iterable[tuple[str, int]]) -> IntVector:
    pods = np.zeros(len(room.nodes.rows), dtype=np.int64)
    for node, count in where:
        row = room.nodes.row_of(node)
        if row is not None:
            pods[row] += count
    return pods


def _as_many(room: Room, shape: PodShape, pods: IntVector, count: int) -> IntVector:
    """So many of the pods: on the rows with room for whole ones first, then where most devices are free."""
    devices = [name for name, _ in demand(shape) if is_extended(name)]
    free = sum((np.minimum(room.free(name), 2**32) for name in devices), np.zeros_like(pods))
    fits = np.minimum(room.fits(shape), pods)
    order = np.lexsort((-free, -fits))
    before = np.cumsum(pods[order]) - pods[order]
    kept = np.zeros_like(pods)
    kept[order] = np.clip(count - before, 0, pods[order])
    return kept
