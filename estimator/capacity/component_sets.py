"""How many whole sets of several components fit: a placement is found, counted and kept as witness.

Packing sets exactly is NP-hard, so the answer is a bracket. From below: first-fit exactly as the stock
estimator does it (components in the given order, nodes in its order), then, while that may be improved,
placements that put the hardest component first and each pod where it harms the others least.
From above: each component alone, and each resource's total. Where both meet the answer is proven.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import gcd

import numpy as np

from estimator.capacity.answer import NO_LIMIT, UNBOUNDED, Answer, GangLimit, Reason, exactly
from estimator.capacity.first_fit import Expired, Placement, first_fit
from estimator.capacity.packing import Packed, Packer, Strategy
from estimator.capacity.replicas import max_replicas
from estimator.capacity.request import Component, PodShape
from estimator.capacity.room import Room, demand
from estimator.cluster.columns import IntVector
from fairway.quantity import MAX_INT64

# Rows times components up to which first-fit is tried in other orders too: some ten milliseconds each.
_MOST_STREWN = 25_000


@dataclass(frozen=True, slots=True)
class Sets:
    """An answer in whole sets, with a placement of that many sets (None where nothing needs a node)."""

    answer: Answer
    placement: Placement | None


def max_sets(room: Room, components: tuple[Component, ...], expired: Expired) -> Sets:
    """The largest number of whole sets found, its bound, and where the pods would go.

    Never below what first-fit finds, unless ``expired`` cuts it short. Components without replicas need
    nothing; a set of nothing fits without limit.
    """
    needed = [(index, c) for index, c in enumerate(components) if c.replicas > 0]
    if not needed:
        return Sets(NO_LIMIT, None)
    per_shape: dict[PodShape, int] = {}
    for _, component in needed:
        per_shape[component.shape] = per_shape.get(component.shape, 0) + component.replicas
    alone: dict[PodShape, Answer] = {}
    for shape in per_shape:
        if expired():
            return Sets(Answer(0, UNBOUNDED - 1, False, ()), {})
        alone[shape] = max_replicas(room, shape)
    bound, reasons = _upper_bound(room, needed, per_shape, alone)
    if bound == 0:
        return Sets(exactly(0, *reasons), {})
    packer = Packer(room, per_shape, alone)
    strategies = tuple(packer.strategies())
    packed = packer.pack(bound, strategies[0], expired)
    if packed is not None:
        return Sets(exactly(bound, *reasons), _by_component(packed, needed, bound))
    value, placement = first_fit(room, needed, room.nodes.first_fit_order(), expired)
    for strategy in strategies:
        found = _more(packer, strategy, value, bound, expired)
        if found is not None:
            value, packed = found
            placement = _by_component(packed, needed, value)
        if value == bound:
            break
    for order in _other_orders(room.nodes.first_fit_order(), len(needed)):
        if value == bound or expired():
            break
        more, found_placement = first_fit(room, needed, order, expired)
        if more > value:
            value, placement = more, found_placement
    return Sets(Answer(value, bound, value == bound, reasons), placement)


def _other_orders(order: IntVector, components: int) -> Iterator[IntVector]:
    """The nodes strewn in a few other ways, as long as that is not too much work.

    Upstream's order of nodes is another at each start, and which one finds most is chance: several are
    seldom all worse. Taking every k-th node, k near the golden section, strews without any randomness.
    """
    size = len(order)
    if size < 2 or size * components > _MOST_STREWN:
        return
    for share in (0.618, 0.382, 0.764, 0.146):
        step = max(1, int(size * share))
        while gcd(step, size) != 1:
            step += 1
        yield order[np.arange(size) * step % size]


def _more(
    packer: Packer, strategy: Strategy, value: int, bound: int, expired: Expired
) -> tuple[int, Packed] | None:
    """The most sets above ``value`` that the strategy places; None where it cannot place one more."""
    best: tuple[int, Packed] | None = None
    low, high = value, bound
    while low < high and not expired():
        # By one at first: where that fails, the strategy has nothing to offer.
        sets = low + 1 if best is None else (low + high + 1) // 2
        packed = packer.pack(sets, strategy, expired)
        if packed is not None:
            best, low = (sets, packed), sets
        elif best is None:
            return None
        else:
            high = sets - 1
    return best


def _upper_bound(
    room: Room,
    needed: Iterable[tuple[int, Component]],
    per_shape: dict[PodShape, int],
    alone: dict[PodShape, Answer],
) -> tuple[int, tuple[Reason, ...]]:
    bound = min(alone[shape].value // replicas for shape, replicas in per_shape.items())
    scarce = min(per_shape, key=lambda shape: alone[shape].value // per_shape[shape])
    name = next(component.name for _, component in needed if component.shape == scarce)
    limit = GangLimit(name, per_shape[scarce], alone[scarce].value)
    usable = np.zeros(len(room.nodes.present), dtype=np.bool_)
    per_set: dict[str, int] = {}
    for shape, replicas in per_shape.items():
        usable |= room.eligible(shape).mask
        for resource, amount in demand(shape):
            per_set[resource] = per_set.get(resource, 0) + amount * replicas
    for resource, amount in per_set.items():
        bound = min(bound, _total(room.free(resource)[usable]) // amount)
    return min(bound, UNBOUNDED - 1), (limit, *alone[scarce].reasons)


def _total(column: IntVector) -> int:
    """The exact sum: in Python's integers where it might not fit into 64 bits."""
    if len(column) and int(column.max()) > MAX_INT64 // len(column):
        return sum(column.tolist())
    return int(column.sum())


def _by_component(found: Packed, needed: list[tuple[int, Component]], sets: int) -> Placement:
    placement: Placement = {}
    left = {
        shape: list(zip(rows.tolist(), pods.tolist(), strict=True)) for shape, (rows, pods) in found.items()
    }
    for index, component in needed:
        want = component.replicas * sets
        rows = left[component.shape]
        while want:
            row, pods = rows.pop()
            take = min(pods, want)
            placement[index, row] = placement.get((index, row), 0) + take
            want -= take
            if take < pods:
                rows.append((row, pods - take))
    return placement
