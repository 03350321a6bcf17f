"""How many whole sets are surely placed by a scheduler that knows nothing of sets, however their pods come.

Which pods come first is up to whoever makes them: one component after the other as the template states them,
or several at once, so that they mix. What becomes whole depends on that, so it is tried in several orders,
with equally good nodes taken in several ways, and the least counts. Pods that are all alike become whole in
every order.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from estimator.capacity.budget import Expired
from estimator.capacity.request import Component
from estimator.capacity.room import Room
from estimator.capacity.sets.best_fit import sizes
from estimator.capacity.sets.first_fit import Placement
from estimator.capacity.sets.pod_by_pod import PodByPod, Ties
from estimator.cluster.columns import IntVector
from estimator.fit.pod_shape import PodShape
from fairway.resources import devices_asked, is_extended

# Pods, and shapes times nodes: some hundred milliseconds each.
_MOST_PODS = 20_000
_MOST_SCORES = 200_000


Order = tuple[PodShape, ...]
"""The pods of one set, by their shapes."""


class Spreading:
    """Sets of these components as a scheduler that knows nothing of sets places them, in a room that stays.

    Not worked out are some ten thousand pods, and shapes that draw on the same devices.
    """

    def __init__(self, room: Room, components: tuple[Component, ...]) -> None:
        self._room = room
        self._components = components
        self._needed = [component for component in components if component.replicas > 0]
        self._pods = sum(component.replicas for component in self._needed)
        self._devices = {one.shape: devices_asked(one.shape.requests) for one in self._needed}

    @cached_property
    def _scheduler(self) -> PodByPod | None:
        """Where all nodes are scored, which is done once."""
        room, shapes = self._room, self._devices
        if len(shapes) * room.nodes.node_count > _MOST_SCORES or not room.separable(shapes):
            return None
        return PodByPod(room, shapes)

    def sets(self, limit_sets: int, expired: Expired) -> int | None:
        """The least number of whole sets that is placed in any of `creation_orders`, ``limit_sets`` at most.

        None where that is not worked out, or the time is up.
        """
        if not self._needed or limit_sets <= 0:
            return max(0, limit_sets)
        if len(self._devices) == 1:
            # However they are spread, a node takes as many.
            (shape,) = self._devices
            return min(limit_sets, int(self._room.fits(shape).sum()) // self._pods)
        if self._pods * limit_sets > _MOST_PODS or expired() or self._scheduler is None:
            return None
        least = limit_sets
        for order, ties in creation_orders(self._room, self._needed):
            found = self._scheduler.sets(order, least, expired, ties=ties)
            if found is None or found == 0:
                return found
            least = found
        return least

    def leaves_less_together(self, placements: Sequence[Placement], sets: int, expired: Expired) -> bool:
        """Whether it might leave free devices less together than the first of the ``placements``, or than the
        first few together, each of so many sets.

        The more the squares of what is left on each node add up to, the more of it is together. False where
        that is not worked out, or the time is up.
        """
        devices = self._devices
        pods = self._pods * sets * len(placements)
        if not any(devices.values()) or pods > _MOST_PODS or self._scheduler is None:
            return False
        names = {name for shape in devices for name, _ in shape.requests if is_extended(name)}
        free = np.sum([self._room.free(name) for name in names], axis=0)
        taken = self._scheduler.taken(_in_turn(self._needed), sets, expired, devices, free)
        packed: dict[int, int] = {}
        for placement, spread in zip(placements, taken, strict=False):
            for (index, row), count in placement.items():
                packed[row] = packed.get(row, 0) + count * devices[self._components[index].shape]
            if _together(free, packed) > _together(free, spread):
                return True
        return False


def _together(free: IntVector, taken: Mapping[int, int]) -> int:
    """By how much the squares of what is free grow, below 0, if so much is taken by row."""
    return sum(amount * (amount - 2 * int(free[row])) for row, amount in taken.items())


def creation_orders(room: Room, needed: Sequence[Component]) -> Iterator[tuple[Order, Ties]]:
    """Orders in which the pods of a set may come, each with which of equally good nodes is taken.

    As stated, the smallest pods first, which leaves the least room to large ones, and mixed.
    """
    stated = _in_turn(needed)
    for ties in Ties:
        yield stated, ties
    size = sizes(room, [component.shape for component in needed])
    smallest_first = _in_turn(sorted(needed, key=lambda component: size[component.shape]))
    if smallest_first != stated:
        yield smallest_first, Ties.EVENLY
    for seed, ties in enumerate(Ties, 1):
        yield tuple(stated[index] for index in _mixed(len(stated), seed)), ties


def _in_turn(components: Sequence[Component]) -> Order:
    return tuple(component.shape for component in components for _ in range(component.replicas))


def _mixed(count: int, seed: int) -> list[int]:
    """The numbers below ``count`` in an order without a pattern: by their hashes in SplitMix64."""
    mixed = (np.arange(count, dtype=np.uint64) + np.uint64(seed << 32)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    order: list[int] = np.argsort(mixed ^ (mixed >> np.uint64(31)), kind="stable").tolist()
    return order
