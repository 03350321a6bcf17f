"""Whole sets placed one after the other, each pod on the first node that takes it: what upstream does.

Three ideas make it cheap. Free room only shrinks while sets are placed, so a node that cannot take a pod of a
component never will again: each component keeps a pointer that only moves forward. While no pointer moves,
every set takes the same from the same nodes, so many sets are placed in one step. And all amounts of a node
are one integer, side by side with a bit to borrow from between them: whether a pod fits is one subtraction.
Mirrors pkg/estimator/scheduling_simulator_components.go of Karmada 1.19.
"""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np

from estimator.capacity.answer import NO_BOUND
from estimator.capacity.budget import Expired
from estimator.capacity.request import Component
from estimator.capacity.room import Room, demand
from estimator.cluster.columns import IntVector
from estimator.fit.pod_shape import PodShape

# So many pods are rather tried one by one.
_FEW = 6

Placement = dict[tuple[int, int], int]
"""Pods per (component index, row)."""


def deal(rows: list[tuple[int, int]], index: int, pods: int, placement: Placement) -> None:
    """Give so many pods of a component the last of these places, each a row and the pods that it takes."""
    while pods:
        row, there = rows.pop()
        take = min(there, pods)
        placement[index, row] = take
        pods -= take
        if take < there:
            rows.append((row, there - take))


@dataclass(frozen=True, slots=True)
class Walked:
    """So many sets, as `first_fit` places them; where, is worked out when asked for."""

    sets: int
    rows: Sequence[int]
    walkers: Sequence["_Walker"]

    def placement(self) -> Placement:
        """Where their pods are."""
        placed: Placement = {}
        for walker in self.walkers:
            left = self.sets * walker.replicas
            for position, pods in walker.placed.items():
                if left:
                    placed[walker.index, self.rows[position]] = min(pods, left)
                    left -= min(pods, left)
        return placed


def first_fit(
    room: Room,
    needed: Sequence[tuple[int, Component]],
    order: IntVector,
    expired: Expired,
    most: int = NO_BOUND,
) -> Walked:
    """Up to ``most`` sets placed one after the other, each pod on the first node that takes it.

    Shapes must compete for nothing but the amounts of resources. O(components x nodes).
    """
    nodes = _Nodes(room, order, needed)
    walkers: list[_Walker] = []
    for index, component in needed:
        if expired():  # finding the candidates of thousands of components takes seconds
            return Walked(0, nodes.rows, ())
        walkers.append(_Walker(index, component, nodes))
    sets = 0
    while sets < most and not expired():
        nodes.moved = False
        for walker in walkers:
            if not walker.place_set():
                return Walked(sets, nodes.rows, walkers)
        sets += 1
        if not nodes.moved:
            sets += _repeat(nodes, walkers, most - sets)
    return Walked(sets, nodes.rows, walkers)


@dataclass(frozen=True, slots=True)
class _Field:
    """Where the amount of one resource stands in the integer of a node: ``bits`` of it, and one above.

    It counts in units that divide what any component asks for, which keeps the integers small.
    """

    unit: int
    shift: int
    bits: int


class _Nodes:
    """The free amounts of the nodes by their position in the order; a bit above each is always set."""

    def __init__(self, room: Room, order: IntVector, needed: Iterable[tuple[int, Component]]) -> None:
        self._room = room
        self._order = order
        self._candidates: dict[PodShape, Sequence[int]] = {}
        self._of_devices: dict[PodShape, list[int] | None] = {}
        self.rows: list[int] = order.tolist()
        self.moved = False
        self.fields: dict[str, _Field] = {}
        units: dict[str, int] = {}
        for _, component in needed:
            for resource, amount in demand(component.shape):
                units[resource] = gcd(amount, units.get(resource, 0))
        columns = {resource: room.free(resource)[order] // unit for resource, unit in sorted(units.items())}
        self.borrowable = shift = 0
        for resource, column in columns.items():
            field = _Field(units[resource], shift, int(column.max(initial=0)).bit_length())
            self.fields[resource] = field
            self.borrowable |= 1 << shift + field.bits
            shift += field.bits + 1
        # Python's integers have no end.
        packed = np.full(len(self.rows), self.borrowable, np.int64 if shift < 64 else object)
        for resource, column in columns.items():
            packed |= column.astype(packed.dtype) << self.fields[resource].shift
        self.free: list[int] = packed.tolist()

    def candidates(self, shape: PodShape) -> Sequence[int]:
        """Positions that hold at least one pod of the shape at the outset.

        Compact, because a request may name thousands of shapes.
        """
        known = self._candidates.get(shape)
        if known is None:
            fits = self._room.fits(shape)[self._order]
            known = self._candidates[shape] = array("i", np.flatnonzero(fits).astype(np.intc).tobytes())
        return known

    def of_devices(self, shape: PodShape) -> list[int] | None:
        """How many pods the shared devices of each node allow; None where they do not matter."""
        if shape not in self._of_devices:
            limited = any(True for _ in self._room.device_limits(shape))
            self._of_devices[shape] = self._room.fits(shape)[self._order].tolist() if limited else None
        return self._of_devices[shape]

    def holds(self, node: int, amounts: Mapping[_Field, int]) -> int:
        """How many times the amounts fit."""
        return min((node >> at.shift & (1 << at.bits) - 1) // amount for at, amount in amounts.items())


class _Walker:
    """One component on its way over the nodes; no candidate before ``at`` can take another of its pods."""

    def __init__(self, index: int, component: Component, nodes: _Nodes) -> None:
        self.index = index
        self.replicas = component.replicas
        self.nodes = nodes
        self.at = 0
        self.candidates = nodes.candidates(component.shape)
        self.of_devices = nodes.of_devices(component.shape)
        fields = ((nodes.fields[name], amount) for name, amount in demand(component.shape))
        self.amounts = {field: amount // field.unit for field, amount in fields}
        # Beyond what any node has there is no candidate, and else room for it in each field.
        self.takes = sum(amount << field.shift for field, amount in self.amounts.items())
        # So many pods at once overflow no field.
        self.safe = min((1 << field.bits) // amount for field, amount in self.amounts.items())
        self.placed: dict[int, int] = {}
        """Pods by position, in the order of the sets that they belong to."""

    def place_set(self) -> bool:
        """Place the pods of one set; False if not all of them fit."""
        free, borrowable, takes = self.nodes.free, self.nodes.borrowable, self.takes
        candidates, of_devices = self.candidates, self.of_devices
        left = self.replicas
        for at in range(self.at, len(candidates)):
            position = candidates[at]
            node = free[position]
            if (node - takes) & borrowable != borrowable:
                continue
            before = left
            if left <= _FEW and of_devices is None:
                while left and (rest := node - takes) & borrowable == borrowable:
                    node = rest
                    left -= 1
            else:
                pods = self._pods(node, left if of_devices is None else min(left, of_devices[position]))
                node -= pods * takes
                left -= pods
                if of_devices is not None:
                    of_devices[position] -= pods
            if left < before:
                free[position] = node
                self.placed[position] = self.placed.get(position, 0) + before - left
                if not left:
                    self.nodes.moved |= at != self.at
                    self.at = at
                    return True
        self.at = len(candidates)
        return False

    def _pods(self, node: int, most: int) -> int:
        """How many pods fit into a node, ``most`` at the most."""
        takes, borrowable = self.takes, self.nodes.borrowable
        fit, too_many = 0, min(most, self.safe) + 1
        pods = too_many - 1
        while too_many - fit > 1:
            if (node - pods * takes) & borrowable == borrowable:
                fit = pods
            else:
                too_many = pods
            pods = (fit + too_many) // 2
        return fit


def _repeat(nodes: _Nodes, walkers: list[_Walker], most: int) -> int:
    """How many more sets go exactly where the last one went, no walker having moved; takes their room."""
    amounts: dict[int, dict[_Field, int]] = {}
    takes: dict[int, int] = {}
    times = most
    for walker in walkers:
        position = walker.candidates[walker.at]
        of_position = amounts.setdefault(position, {})
        for field, amount in walker.amounts.items():
            of_position[field] = of_position.get(field, 0) + amount * walker.replicas
        takes[position] = takes.get(position, 0) + walker.takes * walker.replicas
    for position, of_position in amounts.items():
        times = min(times, nodes.holds(nodes.free[position], of_position))
    limits: dict[tuple[int, int], int] = {}
    for walker in walkers:
        if walker.of_devices is not None:
            key = id(walker.of_devices), walker.candidates[walker.at]
            limits[key] = limits.get(key, 0) + walker.replicas
            times = min(times, walker.of_devices[key[1]] // limits[key])
    for position, taken in takes.items():
        nodes.free[position] -= taken * times
    for walker in walkers:
        position = walker.candidates[walker.at]
        walker.placed[position] = walker.placed.get(position, 0) + walker.replicas * times
        if walker.of_devices is not None:
            walker.of_devices[position] -= walker.replicas * times
    return times
