"""Whole sets placed one after the other, each pod on the first node that takes it: what upstream does.

Two ideas make it cheap. Free room only shrinks while sets are placed, so a node that cannot take a pod of a
component never will again: each component keeps a pointer that only moves forward. And while no pointer
moves, every set takes the same from the same nodes, so many sets are placed in one step.
Mirrors pkg/estimator/scheduling_simulator_components.go of Karmada 1.19.
"""

from array import array
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from estimator.capacity.answer import UNBOUNDED
from estimator.capacity.budget import Expired
from estimator.capacity.request import Component
from estimator.capacity.room import Room, demand
from estimator.cluster.columns import IntVector
from estimator.fit.pod_shape import PodShape
from fairway.resources import PODS

Placement = dict[tuple[int, int], int]
"""Pods per (component index, row)."""

_CHUNK_BITS = 7


def first_fit(
    room: Room,
    needed: Sequence[tuple[int, Component]],
    order: IntVector,
    expired: Expired,
    most: int = UNBOUNDED - 1,
) -> tuple[int, Placement]:
    """Up to ``most`` sets placed one after the other, each pod on the first node that takes it.

    Shapes must compete for nothing but the amounts of resources. O(components x nodes).
    """
    nodes = _OrderedNodes(
        room, order, {name for _, component in needed for name, _ in demand(component.shape)}
    )
    walkers = [_Walker(index, component, nodes) for index, component in needed]
    placed: Placement = {}
    sets = 0
    positions = -1
    while sets < most:
        one_set = _place_set(walkers, expired)
        if one_set is None:
            break
        before, positions = positions, sum(walker.at for walker in walkers)
        times = 1 + (_repeat(walkers, one_set, most - sets - 1) if positions == before else 0)
        for key, pods in one_set.items():
            placed[key] = placed.get(key, 0) + pods * times
        sets += times
    return sets, {(index, nodes.rows[position]): pods for (index, position), pods in placed.items()}


class _OrderedNodes:
    """The free amounts of the nodes, by their position in first-fit order, as lists of exact integers.

    Positions stand in chunks; ``peaks`` holds for each chunk an amount that none of its nodes exceeds, so
    that a component passes over many exhausted nodes in one step. Room only shrinks: an old peak stays true.
    """

    def __init__(self, room: Room, order: IntVector, resources: set[str]) -> None:
        self._room = room
        self._order = order
        self._fitting: dict[PodShape, Sequence[int]] = {}
        self._of_devices: dict[PodShape, _Take | None] = {}
        self.rows: list[int] = self._order.tolist()
        self.free: dict[str, list[int]] = {}
        self.peaks: dict[str, list[int]] = {}
        self._starts = np.arange(0, len(self.rows), 1 << _CHUNK_BITS)
        for resource in resources:
            self.free[resource], self.peaks[resource] = self._walkable(room.free(resource))

    def fitting(self, shape: PodShape) -> Sequence[int]:
        """Positions that held at least one pod of the shape at the outset; found when first needed.

        Compact, because a request may name thousands of shapes.
        """
        known = self._fitting.get(shape)
        if known is None:
            fits = self._room.fits(shape)[self._order]
            known = self._fitting[shape] = array("i", np.flatnonzero(fits).astype(np.intc).tobytes())
        return known

    def of_devices(self, shape: PodShape) -> "_Take | None":
        """What a pod takes of the pods that the shared devices of each node allow; None where they do not."""
        if shape not in self._of_devices:
            limited = any(True for _ in self._room.device_limits(shape))
            column, peaks = self._walkable(self._room.fits(shape)) if limited else ([], [])
            self._of_devices[shape] = (column, 1, peaks) if limited else None
        return self._of_devices[shape]

    def _walkable(self, column: IntVector) -> tuple[list[int], list[int]]:
        ordered = column[self._order]
        return ordered.tolist(), np.maximum.reduceat(ordered, self._starts).tolist()


_Take = tuple[list[int], int, list[int]]
"""What is free by position, how much of it a pod takes, and the peak of each chunk."""


class _Walker:
    """One component on its way over the nodes; no candidate before ``at`` can take another of its pods."""

    __slots__ = ("at", "candidates", "index", "nodes", "replicas", "shape", "takes")

    def __init__(self, index: int, component: Component, nodes: _OrderedNodes) -> None:
        self.index = index
        self.replicas = component.replicas
        self.shape = component.shape
        self.nodes = nodes
        self.at = 0
        self.candidates: Sequence[int] | None = None
        # Devices, late in name order, are first to run out: looking at them first ends most looks at once.
        self.takes: list[_Take] = [
            (nodes.free[name], amount, nodes.peaks[name])
            for name, amount in (*reversed(self.shape.requests), (PODS, 1))
        ]
        shared = nodes.of_devices(self.shape)
        if shared is not None:
            self.takes.insert(0, shared)

    def skip(self) -> None:
        """Go on to the next candidate that its chunk's peaks do not rule out."""
        assert self.candidates is not None
        candidates, takes = self.candidates, self.takes
        at = self.at + 1
        end = len(candidates)
        chunk_end = ((candidates[self.at] >> _CHUNK_BITS) + 1) << _CHUNK_BITS
        while at < end and (position := candidates[at]) < chunk_end:
            for column, amount, _ in takes:
                if column[position] < amount:
                    break
            else:
                self.at = at
                return
            at += 1
        self._refresh(candidates[self.at] >> _CHUNK_BITS)
        while at < end:
            chunk = candidates[at] >> _CHUNK_BITS
            for _, amount, peaks in takes:
                if peaks[chunk] < amount:
                    break
            else:
                break
            at = bisect_left(candidates, (chunk + 1) << _CHUNK_BITS, at)
        self.at = at

    def _refresh(self, chunk: int) -> None:
        start = chunk << _CHUNK_BITS
        for column, _, peaks in self.takes:
            peaks[chunk] = max(column[start : start + (1 << _CHUNK_BITS)])


def _place_set(walkers: list[_Walker], expired: Expired) -> Placement | None:
    placed: Placement = {}
    if expired():
        return None
    for walker in walkers:
        candidates = walker.candidates
        if candidates is None:
            if expired():  # finding them for thousands of components takes seconds
                return None
            candidates = walker.candidates = walker.nodes.fitting(walker.shape)
        left, takes = walker.replicas, walker.takes
        while left:
            if walker.at == len(candidates):
                return None
            position = candidates[walker.at]
            for column, amount, _ in takes:
                if column[position] < amount:
                    walker.skip()
                    break
            else:
                fits = min(left, *(column[position] // amount for column, amount, _ in takes))
                for column, amount, _ in takes:
                    column[position] -= amount * fits
                placed[walker.index, position] = fits
                left -= fits
    return placed


def _repeat(walkers: list[_Walker], one_set: Placement, most: int) -> int:
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
    times = min(most, *(column[position] // taken for column, position, taken in per_set.values()))
    for column, position, taken in per_set.values():
        column[position] -= taken * times
    return times
