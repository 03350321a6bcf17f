"""A given number of sets placed component by component: the hardest first, where they harm the others least.

Which component is hardest, and which node hurts least, has no single good answer: there are several
strategies, each a component order and a node preference. A pod goes by preference

- to nodes that the fewest other components could use at all, or
- to nodes with the most of what it takes the most of, or
- to nodes on which it costs the others the least room, as a share of what they have in all.

The second balances what is left where many small pods fill whole nodes. The third is best where few large
ones do not add up; it looks at every pair of components, and is left out where that would be too much.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from estimator.capacity.answer import Answer
from estimator.capacity.budget import Expired
from estimator.capacity.room import Room, demand
from estimator.capacity.sets.bounds import Needed
from estimator.capacity.sets.first_fit import Placement, deal
from estimator.cluster.columns import IntVector
from estimator.fit.pod_shape import PodShape

Packed = dict[PodShape, tuple[IntVector, IntVector]]
"""For each shape the rows that its pods are on, and how many are on each."""

# Rows looked at in all packings of one answer: at most some tens of milliseconds.
_MOST_WORK = 1_000_000


@dataclass(frozen=True, slots=True)
class Strategy:
    """Shapes in the order in which they are placed, and the rows that each takes first in a room.

    ``pairs``: finding these looks at every pair of shapes.
    """

    shapes: tuple[PodShape, ...]
    rows: Callable[[Room, PodShape], IntVector]
    pairs: bool = False


class Packer:
    """Packs sets of ``per_shape`` pods each on the room as it is, which it leaves unchanged.

    ``alone`` says how many pods of each shape would fit with the room to themselves.
    """

    def __init__(
        self, room: Room, per_shape: Mapping[PodShape, int], alone: Mapping[PodShape, Answer]
    ) -> None:
        self._room = room
        self._per_shape = per_shape
        self._alone = alone
        self._rows = room.nodes.first_fit_order()
        self._work_left = _MOST_WORK
        self._total = {
            name: max(1.0, float(room.free(name)[self._rows].sum(dtype=np.float64)))
            for shape in per_shape
            for name, _ in demand(shape)
        }
        contested = np.zeros(len(self._rows), dtype=np.int64)
        for shape in per_shape:
            contested += room.fits(shape)[self._rows] > 0
        self._uncontested_first: IntVector = self._rows[np.argsort(contested, kind="stable")]

    def strategies(self) -> tuple[Strategy, ...]:
        """All that are worth a try: first the two that most often place all there is room for."""
        by_pod = self._ordered(lambda shape: -max(self._shares(shape)))
        by_set = self._ordered(lambda shape: -max(self._shares(shape)) * self._per_shape[shape])
        by_room = self._ordered(lambda shape: self._alone[shape].value / self._per_shape[shape])
        by_sum = self._ordered(lambda shape: -sum(self._shares(shape)))
        orders = tuple(dict.fromkeys((by_pod, by_set, by_room)))
        uncontested, *others = (Strategy(order, lambda *_: self._uncontested_first) for order in orders)
        abundant = Strategy(by_sum, self._abundant_first)
        in_order = Strategy(tuple(self._per_shape), lambda *_: self._rows)
        least_harm = (Strategy(order, self._least_harm_first, pairs=True) for order in orders)
        return (uncontested, abundant, *others, in_order, *least_harm)

    def pack(self, sets: int, strategy: Strategy, expired: Expired) -> Packed | None:
        """A placement of so many sets; None if the strategy finds none, or time or work are used up."""
        width = len(self._rows) * len(strategy.shapes)
        self._work_left -= width * len(strategy.shapes) if strategy.pairs else width
        if self._work_left < 0:
            return None
        room = self._room.fork()
        found: Packed = {}
        for shape in strategy.shapes:
            if expired():
                return None
            order = strategy.rows(room, shape)
            placed = room.place(shape, room.fits(shape), self._per_shape[shape] * sets, order)
            if placed is None:
                return None
            room.take(shape, placed)
            used = np.flatnonzero(placed)
            found[shape] = (used, placed[used])
        return found

    def _ordered(self, key: Callable[[PodShape], float]) -> tuple[PodShape, ...]:
        return tuple(sorted(self._per_shape, key=key))

    def _shares(self, shape: PodShape) -> list[float]:
        """The share of all there is of each resource that one pod takes."""
        return [amount / self._total[name] for name, amount in demand(shape)]

    def _abundant_first(self, room: Room, shape: PodShape) -> IntVector:
        """By what each row has free, as shares of the total, weighed by the shares that a pod takes."""
        abundance = np.zeros(len(self._rows))
        for (name, _), share in zip(demand(shape), self._shares(shape), strict=True):
            abundance += room.free(name)[self._rows] * (share / self._total[name])
        return self._rows[np.argsort(-abundance, kind="stable")]

    def _least_harm_first(self, room: Room, shape: PodShape) -> IntVector:
        """By what a pod of the shape on each row takes from all the others, as a share of what they have."""
        taken = dict(demand(shape))
        harm = np.zeros(len(self._rows))
        for other in self._per_shape:
            if other is shape:
                continue
            before = after = np.full(len(self._rows), np.inf)
            for name, amount in demand(other):
                free = room.free(name)[self._rows]
                before = np.minimum(before, free / amount)
                after = np.minimum(after, np.maximum(free - taken.get(name, 0), 0) / amount)
            lost = (before - after) * room.eligible(other).mask[self._rows]
            harm += lost / max(1, self._alone[other].value)
        return self._rows[np.argsort(harm, kind="stable")]


def by_component(found: Packed, needed: Needed, sets: int) -> Placement:
    """So many packed sets, their pods dealt out to the components."""
    placement: Placement = {}
    left = {
        shape: list(zip(rows.tolist(), pods.tolist(), strict=True)) for shape, (rows, pods) in found.items()
    }
    for index, component in needed:
        deal(left[component.shape], index, component.replicas * sets, placement)
    return placement
