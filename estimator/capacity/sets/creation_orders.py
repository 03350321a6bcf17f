"""How many whole sets are surely placed by a scheduler that knows nothing of sets, however their pods come.

Which pods come first is up to whoever makes them: one component after the other as the template states them,
or several at once, so that they mix. What becomes whole depends on that, so it is tried in several orders,
with equally good nodes taken in several ways, and the least counts. Pods that are all alike become whole in
every order.
"""

from collections.abc import Iterator, Mapping, Sequence

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


def spread_sets(
    room: Room, components: tuple[Component, ...], limit_sets: int, expired: Expired
) -> int | None:
    """The least number of whole sets that is placed in any of `creation_orders`, ``limit_sets`` at the most.

    None where that is too much work, the time is up, or shapes draw on the same devices.
    """
    needed = [component for component in components if component.replicas > 0]
    if not needed or limit_sets <= 0:
        return max(0, limit_sets)
    shapes = tuple(dict.fromkeys(component.shape for component in needed))
    pods = sum(component.replicas for component in needed)
    if len(shapes) == 1:
        # However they are spread, a node takes as many.
        return min(limit_sets, int(room.fits(shapes[0]).sum()) // pods)
    if pods * limit_sets > _MOST_PODS or len(shapes) * room.nodes.node_count > _MOST_SCORES:
        return None
    if not room.separable(shapes) or expired():
        return None
    scheduler = PodByPod(room, shapes)
    least = limit_sets
    for order, ties in creation_orders(room, needed):
        found = scheduler.sets(order, least, expired, ties=ties)
        if found is None or found == 0:
            return found
        least = found
    return least


def packs(
    room: Room, components: tuple[Component, ...], placement: Placement, sets: int, expired: Expired
) -> bool:
    """Whether the ``placement`` of so many sets leaves free devices more together than spreading them might.

    The more the squares of what is left on each node add up to, the more of it is together. False where that
    is too much work, or not known.
    """
    needed = [component for component in components if component.replicas > 0]
    pods = sum(component.replicas for component in needed)
    devices = {one.shape: devices_asked(one.shape.requests) for one in needed}
    if not any(devices.values()) or pods * sets > _MOST_PODS:
        return False
    if len(devices) * room.nodes.node_count > _MOST_SCORES or not room.separable(devices):
        return False
    names = {name for shape in devices for name, _ in shape.requests if is_extended(name)}
    free = np.sum([room.free(name) for name in names], axis=0)
    spread = PodByPod(room, devices).taken(_in_turn(needed), sets, expired, devices, free)
    if spread is None:
        return False
    packed: dict[int, int] = {}
    for (index, row), count in placement.items():
        packed[row] = packed.get(row, 0) + count * devices[components[index].shape]
    return _together(free, packed) > _together(free, spread)


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
