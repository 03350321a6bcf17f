"""Nodes as bins: all that limits pods of several shapes on each node, in integers as small as they can be.

A node takes ``x`` pods of the shapes if ``x <= caps`` and ``x @ takes <= free``. Reduced, amounts are divided
by what all requests have in common, what can never be used is cut off, and resources that limit nothing are
left out: then nodes that differ in what does not matter are equal, and numbers are exact in floating point.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from estimator.capacity.room import Room, demand
from estimator.capacity.sets.packing import Packed
from estimator.cluster.columns import IntVector
from estimator.fit.pod_shape import PodShape
from fairway.quantity import MAX_INT64

IntMatrix = NDArray[np.int64]

Groups = Sequence[Sequence[int]]
"""Shapes that count as one, by index."""

# Integers up to here are exact in floating point.
_EXACT = 2.0**53


@dataclass(frozen=True, slots=True)
class Bins:
    """Nodes by row; ``caps`` is bins by shapes, ``takes`` shapes by resources, ``free`` bins by resources."""

    rows: IntVector
    caps: IntMatrix
    takes: IntMatrix
    free: IntMatrix

    def reduced(self, most: Sequence[int]) -> "Bins | None":
        """The same for no more than ``most`` pods of each of the first shapes, as small as it gets.

        Without bins that take none of these. None where numbers are too large to count on.
        """
        caps = np.minimum(self.caps[:, : len(most)], np.array([min(pods, MAX_INT64) for pods in most]))
        used = np.flatnonzero(caps.max(axis=1, initial=0))
        caps, free = caps[used], self.free[used]
        # A shape that fits nowhere would only spoil what the others have in common.
        takes = self.takes[: len(most)] * (caps.max(axis=0, initial=0) > 0)[:, np.newaxis]
        asked = np.flatnonzero(takes.max(axis=0, initial=0))
        takes, free = takes[:, asked], free[:, asked]
        common = np.gcd.reduce(takes, axis=0)
        takes, free = takes // common, free // common
        roughly = caps.astype(np.float64) @ takes.astype(np.float64)
        free = np.where(roughly < _EXACT, np.minimum(free, caps @ takes), free)
        limits = np.flatnonzero(np.count_nonzero(roughly > free, axis=0))
        bins = Bins(self.rows[used], caps, takes[:, limits], free[:, limits])
        return bins if int(bins.free.max(initial=0)) < _EXACT else None

    def merged_up(self, groups: Groups) -> "Bins":
        """Each group of shapes as one that takes the most of each resource: where it fits, they all do."""
        takes = np.stack([self.takes[group].max(axis=0) for group in groups])
        caps = np.stack([self.caps[:, group].min(axis=1) for group in groups], axis=1)
        return Bins(self.rows, caps, takes, self.free)

    def merged_down(self, groups: Groups) -> "Bins":
        """Each group of shapes as one that takes the least of each resource: where any fits, it does."""
        takes = np.stack([self.takes[group].min(axis=0) for group in groups])
        caps = np.stack([self.caps[:, group].sum(axis=1) for group in groups], axis=1)
        for shape, resource in np.argwhere(takes).tolist():
            np.minimum(caps[:, shape], self.free[:, resource] // takes[shape, resource], out=caps[:, shape])
        return Bins(self.rows, caps, takes, self.free)

    def hold(self, pods: IntMatrix) -> bool:
        """Whether each bin takes its row of ``pods``."""
        caps, takes = self.caps[:, : pods.shape[1]], self.takes[: pods.shape[1]]
        return bool((pods >= 0).all() and (pods <= caps).all() and (pods @ takes <= self.free).all())

    def packed(self, shapes: Sequence[PodShape], pods: IntMatrix) -> Packed:
        """A placement of ``pods`` of each of the shapes on each bin, by rows."""
        packed: Packed = {}
        for shape, column in zip(shapes, pods.T, strict=True):
            used = np.flatnonzero(column)
            packed[shape] = (self.rows[used], column[used])
        return packed


def bins_of(room: Room, shapes: Sequence[PodShape]) -> Bins:
    """The nodes as bins for pods of the shapes."""
    rows = room.nodes.first_fit_order()
    names = sorted({name for shape in shapes for name, _ in demand(shape)})
    asked = [dict(demand(shape)) for shape in shapes]
    # What is beyond 64 bits is beyond any node, and its cap is 0.
    takes = [[min(amounts.get(name, 0), MAX_INT64) for name in names] for amounts in asked]
    return Bins(
        rows,
        np.stack([room.fits(shape)[rows] for shape in shapes], axis=1),
        np.array(takes, dtype=np.int64),
        np.stack([room.free(name)[rows] for name in names], axis=1),
    )
