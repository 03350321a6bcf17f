"""How many whole sets of several components fit: a placement is found, counted and kept as witness.

Packing sets exactly is NP-hard, so the answer is a bracket. From below: first-fit exactly as the stock
estimator does it (components in the given order, nodes in its order), then, while that may be improved,
placements that put the hardest component first and each pod on the node that fewest others could use.
From above: each component alone, and each resource's total. Where both meet the answer is proven.

Two ideas make first-fit cheap. Free room only shrinks while sets are placed, so a node that cannot take a
pod of a component never will again: each component keeps a pointer that only moves forward. And while no
pointer moves, every set takes the same from the same nodes, so many sets are placed in one step.
Mirrors pkg/estimator/scheduling_simulator_components.go of Karmada 1.19.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from estimator.capacity.answer import NO_LIMIT, UNBOUNDED, Answer, GangLimit, Reason, exactly
from estimator.capacity.replicas import max_replicas
from estimator.capacity.request import Component, PodShape
from estimator.capacity.room import Room, demand
from estimator.cluster.columns import IntVector

Expired = Callable[[], bool]
"""Tells whether the time for the answer is up; what has been found by then is the answer."""

Placement = dict[tuple[int, int], int]
"""Pods per (component index, row)."""


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
    packer = _Packer(room, per_shape)
    packed = packer.pack(bound)
    if packed is not None:
        return Sets(exactly(bound, *reasons), _by_component(packed, needed, bound))
    value, placement = first_fit(room, needed, expired)
    high = bound - 1
    while value < high and not expired():
        # The first step up is by one: where that fails, this way of packing has little to offer.
        sets = value + 1 if packed is None else (value + high + 1) // 2
        found = packer.pack(sets)
        if found is not None:
            value, packed = sets, found
        elif packed is None:
            break
        else:
            high = sets - 1
    if packed is not None:
        placement = _by_component(packed, needed, value)
    return Sets(Answer(value, bound, value == bound, reasons), placement)


def first_fit(room: Room, needed: list[tuple[int, Component]], expired: Expired) -> tuple[int, Placement]:
    """Sets placed one after the other, each pod on the first node that takes it. O(components x nodes)."""
    nodes = _OrderedNodes(room, {name for _, component in needed for name, _ in demand(component.shape)})
    walkers = [_Walker(index, component, nodes) for index, component in needed]
    placed: Placement = {}
    sets = 0
    positions = -1
    while sets < UNBOUNDED - 1:
        one_set = _place_set(walkers, expired)
        if one_set is None:
            break
        before, positions = positions, sum(walker.at for walker in walkers)
        times = 1 + (_repeat(walkers, one_set) if positions == before else 0)
        for key, pods in one_set.items():
            placed[key] = placed.get(key, 0) + pods * times
        sets += times
    return sets, {(index, nodes.rows[position]): pods for (index, position), pods in placed.items()}


_CHUNK_BITS = 6


class _OrderedNodes:
    """The free amounts of the nodes, by their position in first-fit order, as lists of exact integers.

    Positions stand in chunks; ``peaks`` holds for each chunk an amount that none of its nodes exceeds, so
    that a component passes over many exhausted nodes in one step. Room only shrinks: an old peak stays true.
    """

    def __init__(self, room: Room, resources: set[str]) -> None:
        self._room = room
        self._order = room.nodes.first_fit_order()
        self._fitting: dict[PodShape, list[int]] = {}
        self.rows: list[int] = self._order.tolist()
        self.free: dict[str, list[int]] = {}
        self.peaks: dict[str, list[int]] = {}
        starts = np.arange(0, len(self.rows), 1 << _CHUNK_BITS)
        for resource in resources:
            column = room.free(resource)[self._order]
            self.free[resource] = column.tolist()
            self.peaks[resource] = np.maximum.reduceat(column, starts).tolist()

    def fitting(self, shape: PodShape) -> list[int]:
        """Positions that held at least one pod of the shape at the outset; found when first needed."""
        known = self._fitting.get(shape)
        if known is None:
            fits = self._room.fits(shape)[self._order]
            known = self._fitting[shape] = np.flatnonzero(fits).tolist()
        return known


class _Walker:
    """One component on its way over the nodes; no candidate before ``at`` can take another of its pods."""

    __slots__ = ("at", "candidates", "index", "nodes", "replicas", "shape", "takes")

    def __init__(self, index: int, component: Component, nodes: _OrderedNodes) -> None:
        self.index = index
        self.replicas = component.replicas
        self.shape = component.shape
        self.nodes = nodes
        self.at = 0
        self.candidates: list[int] | None = None
        # Devices last in name order are first to run out: looking at them first ends most looks at once.
        self.takes = [
            (nodes.free[name], amount, nodes.peaks[name]) for name, amount in reversed(demand(self.shape))
        ]

    def skip(self) -> None:
        """Go on to the next candidate that its chunk's peaks do not rule out."""
        assert self.candidates is not None
        candidates, takes = self.candidates, self.takes
        left = candidates[self.at] >> _CHUNK_BITS
        at = self.at + 1
        if at == len(candidates) or candidates[at] >> _CHUNK_BITS != left:
            self._refresh(left)
            while at < len(candidates):
                chunk = candidates[at] >> _CHUNK_BITS
                if all(peaks[chunk] >= amount for _, amount, peaks in takes):
                    break
                at = bisect_left(candidates, (chunk + 1) << _CHUNK_BITS, at)
        self.at = at

    def _refresh(self, chunk: int) -> None:
        start = chunk << _CHUNK_BITS
        for column, _, peaks in self.takes:
            peaks[chunk] = max(column[start : start + (1 << _CHUNK_BITS)])


def _place_set(walkers: list[_Walker], expired: Expired) -> Placement | None:
    placed: Placement = {}
    for walker in walkers:
        if expired():
            return None
        candidates = walker.candidates
        if candidates is None:
            candidates = walker.candidates = walker.nodes.fitting(walker.shape)
        left, takes = walker.replicas, walker.takes
        while left:
            if walker.at == len(candidates):
                return None
            position = candidates[walker.at]
            fits = left
            for column, amount, _ in takes:
                room = column[position] // amount
                if room < fits:
                    fits = room
                    if not fits:
                        break
            if not fits:
                walker.skip()
                continue
            for column, amount, _ in takes:
                column[position] -= amount * fits
            placed[walker.index, position] = fits
            left -= fits
    return placed


def _repeat(walkers: list[_Walker], one_set: Placement) -> int:
    """How many more sets go exactly where the last one went, no walker having moved; takes their room."""
    per_set: dict[tuple[int, int], tuple[list[int], int, int]] = {}
    for walker in walkers:
        assert walker.candidates is not None
        position = walker.candidates[walker.at]
        pods = one_set[walker.index, position]
        for column, amount, _ in walker.takes:
            key = (id(column), position)
            taken = per_set[key][2] if key in per_set else 0
            per_set[key] = (column, position, taken + amount * pods)
    times = min(column[position] // taken for column, position, taken in per_set.values())
    for column, position, taken in per_set.values():
        column[position] -= taken * times
    return times


class _Packer:
    """Packs a given number of sets component by component, hardest first, on the least contested nodes."""

    def __init__(self, room: Room, per_shape: dict[PodShape, int]) -> None:
        self._room = room
        rows = room.nodes.first_fit_order()
        total = {
            name: max(1, int(room.free(name)[rows].sum(dtype=np.float64)))
            for shape in per_shape
            for name, _ in demand(shape)
        }
        fits = {shape: room.fits(shape) for shape in per_shape}
        contested = sum((vector[rows] > 0).astype(np.int64) for vector in fits.values())
        self._order: IntVector = rows[np.argsort(contested, kind="stable")]
        self._shapes = sorted(
            per_shape.items(),
            key=lambda item: max(amount / total[name] for name, amount in demand(item[0])),
            reverse=True,
        )

    def pack(self, sets: int) -> dict[PodShape, IntVector] | None:
        """Pods per row of each shape in a placement of so many sets, or None if this way of packing fails."""
        room = self._room.fork()
        found: dict[PodShape, IntVector] = {}
        for shape, replicas in self._shapes:
            placed = room.place(shape, room.fits(shape), replicas * sets, self._order)
            if placed is None:
                return None
            room.take(shape, placed)
            found[shape] = placed
        return found


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
        # In Python integers: a sum over many nodes of very large amounts must not wrap around.
        total = sum(room.free(resource)[usable].tolist())
        bound = min(bound, total // amount)
    return min(bound, UNBOUNDED - 1), (limit, *alone[scarce].reasons)


def _by_component(
    found: dict[PodShape, IntVector], needed: list[tuple[int, Component]], sets: int
) -> Placement:
    placement: Placement = {}
    left = {
        shape: [(row, int(placed[row])) for row in np.flatnonzero(placed).tolist()]
        for shape, placed in found.items()
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
