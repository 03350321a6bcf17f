"""A given number of sets placed component by component, the hardest first, on the least contested nodes."""

import numpy as np

from estimator.capacity.first_fit import Expired
from estimator.capacity.request import PodShape
from estimator.capacity.room import Room, demand
from estimator.cluster.columns import IntVector

Packed = dict[PodShape, tuple[IntVector, IntVector]]
"""For each shape the rows that its pods are on, and how many are on each."""


class Packer:
    """Packs sets on the room as it is, which it leaves unchanged."""

    def __init__(self, room: Room, per_shape: dict[PodShape, int]) -> None:
        self._room = room
        rows = room.nodes.first_fit_order()
        total = {
            name: max(1, int(room.free(name)[rows].sum(dtype=np.float64)))
            for shape in per_shape
            for name, _ in demand(shape)
        }
        contested = np.zeros(len(rows), dtype=np.int64)
        for shape in per_shape:
            contested += room.fits(shape)[rows] > 0
        self._order: IntVector = rows[np.argsort(contested, kind="stable")]
        self._shapes = sorted(
            per_shape.items(),
            key=lambda item: max(amount / total[name] for name, amount in demand(item[0])),
            reverse=True,
        )

    def pack(self, sets: int, expired: Expired) -> Packed | None:
        """A placement of so many sets, or None if this way of packing fails or the time is up."""
        room = self._room.fork()
        found: Packed = {}
        for shape, replicas in self._shapes:
            if expired():
                return None
            placed = room.place(shape, room.fits(shape), replicas * sets, self._order)
            if placed is None:
                return None
            room.take(shape, placed)
            used = np.flatnonzero(placed)
            found[shape] = (used, placed[used])
        return found
