"""The room on the nodes while an answer is worked out: the free columns, less what the answer has taken.

Columns are copied when first taken from, so asking costs nothing and the mirror's own columns never change.
"""

import numpy as np

from estimator.capacity.eligibility import Eligibility, EligibilityCache
from estimator.capacity.request import PodShape
from estimator.cluster.columns import IntVector, NodeColumns
from fairway.resources import PODS

Demand = tuple[tuple[str, int], ...]


def demand(shape: PodShape) -> Demand:
    """What one pod of the shape takes of a node: its requests and its own slot."""
    return (*shape.requests, (PODS, 1))


class Room:
    """Free amounts per resource and row, private to one answer."""

    def __init__(self, nodes: NodeColumns, eligible: EligibilityCache) -> None:
        self.nodes = nodes
        self._eligible = eligible
        self._taken: dict[str, IntVector] = {}

    def eligible(self, shape: PodShape) -> Eligibility:
        """The rows that pods of this shape may use."""
        return self._eligible.of(self.nodes, shape.claim)

    def free(self, resource: str) -> IntVector:
        """Free amount per row, never negative. Not to be written."""
        taken = self._taken.get(resource)
        return self.nodes.free(resource) if taken is None else taken

    def fits(self, shape: PodShape) -> IntVector:
        """How many pods of the shape fit on each row, zero on rows they may not use. A fresh vector."""
        fits = self.free(PODS) * self.eligible(shape).mask
        for resource, amount in shape.requests:
            np.minimum(fits, self.free(resource) // amount, out=fits)
        return fits

    def place(self, shape: PodShape, fits: IntVector, count: int, order: IntVector) -> IntVector | None:
        """Pods per row when ``count`` go to the first rows of ``order`` with room; None if too few fit."""
        in_order = fits[order]
        before = np.cumsum(in_order) - in_order
        taken = np.clip(count - before, 0, in_order)
        if int(taken.sum()) < count:
            return None
        placed = np.zeros_like(fits)
        placed[order] = taken
        return placed

    def take(self, shape: PodShape, placed: IntVector) -> None:
        """Take the room of ``placed[row]`` pods of the shape from every row; negative counts give it back."""
        for resource, amount in demand(shape):
            column = self._taken.get(resource)
            if column is None:
                column = self._taken[resource] = self.nodes.free(resource).copy()
            column -= placed * amount

    def fork(self) -> "Room":
        """A copy to try something on."""
        twin = Room(self.nodes, self._eligible)
        twin._taken = {resource: column.copy() for resource, column in self._taken.items()}
        return twin
