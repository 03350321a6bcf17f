"""A placement that breaks up as little as possible: pods go where they fit best, not where most is free.

Best fit decreasing: the largest pods first, each on the fullest node that still takes it. Full is meant in
the device that is scarcest for the pods; nodes on which all of it is free come last, so that they stay whole
for pods that need them whole. Pods without devices go where the fewest devices are free. It is a heuristic
about where, never about how many: where it does not place all sets, the placement that proved them stands.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from estimator.capacity.budget import Expired
from estimator.capacity.request import Component
from estimator.capacity.room import Room, demand
from estimator.capacity.sets.bounds import Needed, pods_per_shape
from estimator.capacity.sets.first_fit import Placement
from estimator.capacity.sets.packing import Packed, by_component
from estimator.cluster.columns import IntVector
from estimator.fit.pod_shape import PodShape
from fairway.resources import CPU, is_extended

# Shapes times rows in one packing: at most some tens of milliseconds.
_MOST_WORK = 500_000


def best_fit(room: Room, needed: Needed, sets: int, known: Placement, expired: Expired) -> Placement:
    """A placement of so many sets that breaks up the fewest nodes, ``known`` at the worst.

    ``known``: one of as many sets. The room is left unchanged.
    """
    per_shape = pods_per_shape(needed)
    if not sets or len(per_shape) * room.nodes.node_count > _MOST_WORK:
        return known
    packings = (_packed(room, per_shape, order, sets, expired) for order in _orders(room, per_shape))
    found = [by_component(packed, needed, sets) for packed in packings if packed is not None]
    # Where equally many nodes are broken up, best fit is better for what is left of the others.
    return min((*found, known), key=lambda placement: _broken_up(room, per_shape, placement))


def further(
    room: Room, components: Sequence[Component], sets: int, first: Placement, expired: Expired
) -> Iterator[tuple[Room, Placement]]:
    """Placements of so many sets, each beside the ``first`` and those before, in the room that these leave.

    As long as there are more, and time; none of sets of several shapes. The room is left unchanged.
    """
    needed: Needed = [(index, part) for index, part in enumerate(components) if part.replicas > 0]
    per_shape = pods_per_shape(needed)
    if len(per_shape) != 1 or room.nodes.node_count > _MOST_WORK:
        return
    (shape,) = per_shape
    placement = first
    while not expired():
        placed = np.zeros_like(room.fits(shape))
        for (_, row), count in placement.items():
            placed[row] += count
        room = room.fork()
        room.take(shape, placed)
        packed = _packed(room, per_shape, (shape,), sets, expired)
        if packed is None:
            return
        placement = by_component(packed, needed, sets)
        yield room, placement


def fullest_first(room: Room, shape: PodShape) -> IntVector:
    """The rows of all nodes in the order in which pods of the shape should take them."""
    rows = room.nodes.first_fit_order()
    # From the last that counts to the first.
    keys: list[IntVector] = [room.free(CPU)[rows]]
    device = _scarcest(room, shape)
    if device is not None or shape.names_device:
        # Devices that are shared out one by one have no amount that tells; how many pods fit does.
        keys.append(room.fits(shape)[rows])
    else:
        keys.append(sum((room.free(name)[rows] for name in _devices(room)), np.zeros_like(rows)))
    if device is not None:
        free = room.free(device)[rows]
        keys += [free, (free >= room.nodes.allocatable(device)[rows]).astype(np.int64)]
    return rows[np.lexsort(keys)]


def _devices(room: Room) -> Iterator[str]:
    return (name for name in room.nodes.resource_names if is_extended(name))


def sizes(room: Room, shapes: Iterable[PodShape]) -> dict[PodShape, float]:
    """How large a pod of each shape is: the largest share that it takes of what is free of any resource."""
    asked = {shape: demand(shape) for shape in shapes}
    total = {
        name: max(1.0, float(room.free(name).sum(dtype=np.float64)))
        for name in {name for amounts in asked.values() for name, _ in amounts}
    }
    return {shape: max(amount / total[name] for name, amount in amounts) for shape, amounts in asked.items()}


def _packed(
    room: Room, per_shape: Mapping[PodShape, int], order: Iterable[PodShape], sets: int, expired: Expired
) -> Packed | None:
    """So many sets, the shapes in this order; None where they do not all find room, or the time is up."""
    room = room.fork()
    found: Packed = {}
    for shape in order:
        if expired():
            return None
        placed = room.place(shape, room.fits(shape), per_shape[shape] * sets, fullest_first(room, shape))
        if placed is None:
            return None
        room.take(shape, placed)
        used = np.flatnonzero(placed)
        found[shape] = used, placed[used]
    return found


def _orders(room: Room, per_shape: Mapping[PodShape, int]) -> tuple[tuple[PodShape, ...], ...]:
    """By what a pod takes, and by what all pods of a set take, of what there is; the most first."""
    size = sizes(room, per_shape)
    by_pod = tuple(sorted(per_shape, key=lambda shape: -size[shape]))
    by_set = tuple(sorted(per_shape, key=lambda shape: -size[shape] * per_shape[shape]))
    return (by_pod,) if by_pod == by_set else (by_pod, by_set)


def _scarcest(room: Room, shape: PodShape) -> str | None:
    """The device that the shape asks for of which a pod takes the largest share of all that is free."""
    asked = [(name, amount) for name, amount in shape.requests if is_extended(name) and amount]
    if len(asked) < 2:
        return asked[0][0] if asked else None
    return max(asked, key=lambda one: one[1] / max(1.0, float(room.free(one[0]).sum(dtype=np.float64))))[0]


def _broken_up(room: Room, per_shape: Mapping[PodShape, int], placement: Placement) -> int:
    """How many nodes the placement uses of which all devices of some kind are free.

    Of the kinds that it asks for; of any kind where it asks for none.
    """
    names = {device for shape in per_shape if (device := _scarcest(room, shape)) is not None}
    rows = np.unique([row for _, row in placement])
    whole = np.zeros(len(rows), dtype=np.bool_)
    for name in names or _devices(room):
        has = room.nodes.allocatable(name)[rows]
        whole |= (has > 0) & (room.free(name)[rows] >= has)
    return int(np.count_nonzero(whole))
