"""How many whole sets are surely placed by a scheduler that knows nothing of sets, however their pods come.

Which pods come first is up to whoever makes them: one component after the other as the template states them,
or several at once, so that they mix. What becomes whole depends on that, so it is tried in several orders,
with equally good nodes taken in several ways, and the least counts. Pods that are all alike become whole in
every order.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from estimator.capacity.budget import Expired
from estimator.capacity.request import Component
from estimator.capacity.room import Room
from estimator.capacity.sets.best_fit import broken_up, sizes, whole_rows
from estimator.capacity.sets.first_fit import Placement
from estimator.capacity.sets.pod_by_pod import PodByPod, Ties
from estimator.fit.pod_shape import PodShape

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


def spread_breaks(
    room: Room, components: tuple[Component, ...], placement: Placement, sets: int, expired: Expired
) -> int:
    """How many nodes more so many sets break up that come in the order stated than the ``placement`` does.

    Of a node that is broken up all devices of some kind were free. 0 where that is too much work, or not
    known.
    """
    needed = [component for component in components if component.replicas > 0]
    shapes = tuple(dict.fromkeys(component.shape for component in needed))
    pods = sum(component.replicas for component in needed)
    least = broken_up(room, shapes, (row for _, row in placement))
    if pods * sets > _MOST_PODS or len(shapes) * room.nodes.node_count > _MOST_SCORES:
        return 0
    if pods * sets == least or not room.separable(shapes):
        return 0
    whole = whole_rows(room, shapes)
    rows = PodByPod(room, shapes).rows(_in_turn(needed), sets, expired, whole)
    return 0 if rows is None else max(0, broken_up(room, shapes, rows) - least)


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
