"""The nodes of one cluster as columns: one contiguous int64 vector of free amounts per resource.

A row is a node's slot. It outlives the node while pods are still bound to it, because pod and node
events come in any order: what a pod holds is kept on the row, and counts once the node is there.
Amounts are exact Python integers in the row; the columns hold ``max(0, allocatable - used)``, which
is what every answer needs, and are changed in place: an event costs as much as the resources it names.

Only names that some node has allocatable get a column, so a hostile pod cannot grow the table.
"""

from bisect import bisect_left, insort
from collections.abc import Hashable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from sys import intern
from types import MappingProxyType
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from estimator.cluster.broken_devices import Broken, Stated
from estimator.cluster.broken_rows import BrokenRows
from estimator.cluster.devices import DeviceColumns
from estimator.cluster.dra_state import DraState
from estimator.cluster.labels import LabelColumns
from estimator.cluster.occupancy import Occupancy, PodGroup
from fairway.accelerators.devices import NONE_UNHEALTHY, Scheme
from fairway.dra.cel import cel_when_needed
from fairway.dra.selection import Compile
from fairway.quantity import MAX_INT64
from fairway.resources import Amounts
from fairway.taints import Taint

IntVector = NDArray[np.int64]
# Most nodes have none of these: one empty mapping for all of them.
_NONE_BROKEN: Mapping[str, Broken] = MappingProxyType({})
_NONE_FILLED: Mapping[str, str] = MappingProxyType({})
BoolVector = NDArray[np.bool_]

_INITIAL_ROWS = 64
_MAX_EXCLUSIVE_LEVELS = 64
_ZONE_LABELS = (
    ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"),
    ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"),
)


@dataclass(slots=True)
class NodeRow:
    """One node's slot: what it has, what the pods on it use (``pods`` counts as a resource).

    ``allocatable``, ``unhealthy`` and ``labels`` are what the node says; ``broken`` and ``filled`` what its
    agent adds: devices that do not work, and labels that the node lacks.
    """

    name: str
    present: bool = False
    allocatable: Amounts = field(default_factory=dict)
    unhealthy: Mapping[str, int] = field(default_factory=lambda: NONE_UNHEALTHY)
    used: Amounts = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    broken: Mapping[str, Broken] = field(default_factory=lambda: _NONE_BROKEN)
    filled: Mapping[str, str] = field(default_factory=lambda: _NONE_FILLED)

    def in_use(self, resource: str) -> int:
        """What pods hold of what works, as far as it is known that some run on devices that do not."""
        used = self.used.get(resource, 0)
        broken = self.broken.get(resource)
        return used if broken is None else max(0, used - broken.held)


class NodeColumns:
    """All nodes of one cluster. Written by its `ClusterMirror` alone; answers read it or a `copy`."""

    def __init__(self, schemes: Iterable[Scheme] = (), compile_selector: Compile | None = None) -> None:
        self.rows: list[NodeRow | None] = []
        self.labels = LabelColumns(_INITIAL_ROWS)
        self.occupancy = Occupancy(_INITIAL_ROWS)
        self.devices = tuple(DeviceColumns(scheme) for scheme in schemes)
        self.dra = DraState(compile_selector or cel_when_needed())
        self.eligibility_version = 0
        """Changes whenever a row is added, or a node comes, goes or changes its labels or taints."""
        self.version = 0
        """Changes with `eligibility_version`, and whenever a free amount does."""
        # Vectors have room to spare; readers see as much of them as there are rows.
        self._present: BoolVector = np.zeros(_INITIAL_ROWS, dtype=np.bool_)
        self._taints: _Coded[tuple[Taint, ...]] = _Coded((), _INITIAL_ROWS)
        self._zones = _Coded(zone_of({}), _INITIAL_ROWS)
        self._free: dict[str, IntVector] = {}
        self._allocatable: dict[str, IntVector] = {}
        self._unhealthy: dict[str, IntVector] = {}
        self._exclusive: dict[str, IntVector] = {}
        self.broken = BrokenRows()
        """The devices that do not work, by row."""
        self._described: LabelColumns | None = None
        self._row_of: dict[str, int] = {}
        self._vacant: list[int] = []
        self._node_count = 0
        self._names: list[str] = []
        self._by_name: IntVector | None = None
        self._order: tuple[int, IntVector] | None = None

    @property
    def node_count(self) -> int:
        """How many nodes there are now."""
        return self._node_count

    @property
    def present(self) -> BoolVector:
        """Which rows are nodes. Not to be written or kept."""
        return self._present[: len(self.rows)]

    @property
    def taint_codes(self) -> NDArray[np.int32]:
        """Which of ``taint_sets`` each row carries. Not to be written or kept."""
        return self._taints.codes[: len(self.rows)]

    @property
    def taint_sets(self) -> Sequence[tuple[Taint, ...]]:
        """What the codes of ``taint_codes`` stand for."""
        return self._taints.values

    @property
    def resource_names(self) -> tuple[str, ...]:
        """The resources that have a column."""
        return tuple(self._free)

    def free(self, resource: str) -> IntVector:
        """Free amount per row, never negative, zero where there is no node. Not to be written or kept."""
        return self._read(self._free, resource)

    def allocatable(self, resource: str) -> IntVector:
        """Allocatable amount per row, zero where there is no node. Not to be written or kept."""
        return self._read(self._allocatable, resource)

    def unhealthy(self, resource: str) -> IntVector:
        """What each row has of the resource and cannot give: capacity less allocatable. Not to be written."""
        return self._read(self._unhealthy, resource)

    @property
    def described(self) -> LabelColumns:
        """The labels and, where one is missing, what the node's agent says in its place.

        They describe devices and where these are; what a selector selects are ``labels`` alone.
        """
        return self.labels if self._described is None else self._described

    def held_exclusively(self, level: str) -> BoolVector:
        """On which rows pods run that want the level's whole domain for their gang. A fresh vector."""
        return self._read(self._exclusive, level) > 0

    def row_of(self, node_name: str) -> int | None:
        """The row of the node of this name, if it is present."""
        index = self._row_of.get(node_name)
        return index if index is not None and self._present[index] else None

    def set_node(
        self,
        name: str,
        allocatable: Amounts,
        labels: Mapping[str, str],
        taints: tuple[Taint, ...],
        unhealthy: Mapping[str, int] = NONE_UNHEALTHY,
    ) -> None:
        """A node appeared or changed; ``unhealthy`` is what it has of a resource beyond ``allocatable``."""
        index = self._claim_row(name)
        row = self._row(index)
        is_new = not row.present
        if is_new:
            row.present = True
            self._present[index] = True
            self._node_count += 1
            insort(self._names, name)
            self._by_name = None
        if is_new or row.labels != labels:
            self._labels_changed(index, row, labels)
            self._touch()
        if is_new or row.taints != taints:
            self._taints_changed(index, row, taints)
            self._touch()
        changed = row.allocatable.keys() | allocatable.keys()
        row.allocatable = allocatable
        for resource in changed:
            self._write(index, row, resource)
        row.unhealthy = unhealthy
        self._write_unhealthy(index, row)

    def stated(self, node_name: str) -> Stated | None:
        """What the node of this name says of itself, None where it is not there."""
        index = self.row_of(node_name)
        if index is None:
            return None
        row = self._row(index)
        return Stated(row.allocatable, row.unhealthy, row.labels)

    def set_found(self, node_name: str, broken: Mapping[str, Broken], filled: Mapping[str, str]) -> None:
        """What the agent of a node that is there has found: ``broken`` devices, and labels that it lacks."""
        index = self._row_of[node_name]
        row = self._row(index)
        if row.broken != broken:
            changed = row.broken.keys() | broken.keys()
            row.broken = broken
            self.broken.put(index, broken)
            for resource in changed:
                self._write(index, row, resource)
            self._write_unhealthy(index, row)
        if row.filled != filled:
            row.filled = filled
            self._describe(index, row)
            self._touch()

    def remove_node(self, name: str) -> None:
        """A node is gone; what its pods hold stays noted until they go too."""
        index = self._row_of.get(name)
        if index is None or not self._present[index]:
            return
        row = self._row(index)
        resources = tuple(row.allocatable)
        row.present = False
        row.allocatable, row.unhealthy, row.taints = {}, NONE_UNHEALTHY, ()
        row.broken, row.filled = _NONE_BROKEN, _NONE_FILLED
        self.broken.put(index, row.broken)
        self._labels_changed(index, row, {})
        self._present[index] = False
        self._node_count -= 1
        del self._names[bisect_left(self._names, name)]
        self._by_name = None
        for resource in resources:
            self._write(index, row, resource)
        self._write_unhealthy(index, row)
        self._touch()
        self._release_row(index, row)

    def hold(self, node_name: str, amounts: Mapping[str, int], group: PodGroup | None = None) -> None:
        """A pod takes these amounts (its own slot among them, as ``pods``) of the node, known or not."""
        index = self._claim_row(node_name)
        if group is not None:
            self.occupancy.hold(index, group)
        row = self._row(index)
        for resource, amount in amounts.items():
            row.used[resource] = row.used.get(resource, 0) + amount
            self._write(index, row, resource)

    def release(self, node_name: str, amounts: Mapping[str, int], group: PodGroup | None = None) -> None:
        """A pod gives back exactly what `hold` took."""
        index = self._row_of[node_name]
        if group is not None:
            self.occupancy.release(index, group)
        row = self._row(index)
        for resource, amount in amounts.items():
            left = row.used[resource] - amount
            if left:
                row.used[resource] = left
            else:
                del row.used[resource]
            self._write(index, row, resource)
        self._release_row(index, row)

    def hold_exclusively(self, node_name: str, level: str, pods: int) -> None:
        """So many more pods (fewer, if negative) on the node want the level's whole domain for their gang."""
        column = self._exclusive.get(level)
        if column is None:
            if len(self._exclusive) >= _MAX_EXCLUSIVE_LEVELS:
                return
            column = self._exclusive[level] = np.zeros(self._capacity, dtype=np.int64)
        index = self._row_of[node_name]
        column[index] = max(0, int(column[index]) + pods)

    def first_fit_order(self) -> IntVector:
        """Rows of present nodes in an order that the stock estimator may walk them: zones in turn, by name.

        Mirrors the node tree of kube-scheduler 1.26, which Karmada's estimator lifted, filled from a list.
        It depends on the nodes alone, so that replicas and restarts of this process agree.
        """
        if self._order is None or self._order[0] != self.eligibility_version:
            self._order = (self.eligibility_version, self._zone_order())
        return self._order[1]

    def copy(self) -> "NodeColumns":
        """An independent snapshot for work on another thread; rows stay shared and must not be read there."""
        twin = NodeColumns.__new__(NodeColumns)
        twin.rows = list(self.rows)
        twin._present = self._present.copy()
        twin._taints = self._taints.copy()
        twin.labels = self.labels.copy()
        twin._described = None if self._described is None else self._described.copy()
        twin.broken = self.broken.copy()
        # What of it matters to a question is worked out before, see `surroundings`.
        twin.occupancy = Occupancy(0)
        twin.devices = tuple(table.copy() for table in self.devices)
        twin.dra = self.dra.copy()
        twin.eligibility_version, twin.version = self.eligibility_version, self.version
        twin._free, twin._allocatable, twin._unhealthy, twin._exclusive = (
            {name: column.copy() for name, column in columns.items()}
            for columns in (self._free, self._allocatable, self._unhealthy, self._exclusive)
        )
        twin._row_of = dict(self._row_of)
        twin._vacant = []
        twin._node_count = self._node_count
        twin._names, twin._by_name = [], None
        twin._zones = _Coded((), 0)
        twin._order = (self.eligibility_version, self.first_fit_order())
        return twin

    def vacated(
        self,
        free: Mapping[str, IntVector],
        exclusive: Mapping[str, IntVector],
        devices: tuple[DeviceColumns, ...],
    ) -> "NodeColumns":
        """A copy of a copy on which so much is ``free``, and so many pods want each level's whole domain.

        Of resources and levels that are not named as much as here, and all else is shared.
        """
        twin = copy(self)
        twin._free = {**self._free, **free}
        twin._exclusive = {**self._exclusive, **exclusive}
        twin.devices = devices
        return twin

    def exclusive_pods(self, level: str) -> IntVector:
        """How many pods on each row want the level's whole domain for their gang. Not to be written."""
        return self._read(self._exclusive, level)

    def _read(self, columns: Mapping[str, IntVector], name: str) -> IntVector:
        column = columns.get(name)
        return np.zeros(len(self.rows), dtype=np.int64) if column is None else column[: len(self.rows)]

    @property
    def _capacity(self) -> int:
        return len(self._present)

    def _row(self, index: int) -> NodeRow:
        row = self.rows[index]
        assert row is not None
        return row

    def _claim_row(self, name: str) -> int:
        index = self._row_of.get(name)
        if index is None:
            if self._vacant:
                index = self._vacant.pop()
                self.rows[index] = NodeRow(name)
            else:
                index = len(self.rows)
                self.rows.append(NodeRow(name))
                # Vectors have become longer, so that nothing computed before fits them any more.
                self._touch()
                if index >= self._capacity:
                    self._grow()
            self._row_of[name] = index
        return index

    def _release_row(self, index: int, row: NodeRow) -> None:
        if not row.present and not row.used:
            del self._row_of[row.name]
            self.rows[index] = None
            self._vacant.append(index)

    def _grow(self) -> None:
        size = self._capacity * 2
        self._present = _grown(self._present, size)
        self._taints.grow(size)
        self._zones.grow(size)
        self.labels.grow(size)
        if self._described is not None:
            self._described.grow(size)
        self.occupancy.grow(size)
        for columns in (self._free, self._allocatable, self._unhealthy, self._exclusive):
            columns.update({name: _grown(column, size) for name, column in columns.items()})

    def _write_unhealthy(self, index: int, row: NodeRow) -> None:
        unhealthy = row.unhealthy
        if row.broken:
            short = {resource: broken.short for resource, broken in row.broken.items() if broken.short}
            unhealthy = {
                name: unhealthy.get(name, 0) + short.get(name, 0) for name in unhealthy.keys() | short.keys()
            }
        for resource, amount in unhealthy.items():
            if resource not in self._unhealthy and resource in self._free:
                self._unhealthy[resource] = np.zeros(self._capacity, dtype=np.int64)
            if resource in self._unhealthy:
                self._unhealthy[resource][index] = min(MAX_INT64, amount)
        for resource, column in self._unhealthy.items():
            if resource not in unhealthy:
                column[index] = 0

    def _write(self, index: int, row: NodeRow, resource: str) -> None:
        column = self._free.get(resource)
        if column is None:
            if resource not in row.allocatable:
                return
            column = self._add_column(resource)
        has = row.allocatable.get(resource, 0)
        used = row.used.get(resource, 0)
        if row.broken and resource in row.broken:
            has, used = has - row.broken[resource].short, row.in_use(resource)
        self._allocatable[resource][index] = max(0, has)
        free = min(MAX_INT64, max(0, has - used))
        if column[index] != free:
            column[index] = free
            self.version += 1

    def _add_column(self, resource: str) -> IntVector:
        # Rows that lack the resource have none of it free, whatever their pods hold: zero is right for them.
        self._free[intern(resource)] = np.zeros(self._capacity, dtype=np.int64)
        self._allocatable[intern(resource)] = np.zeros(self._capacity, dtype=np.int64)
        return self._free[resource]

    def _labels_changed(self, index: int, row: NodeRow, labels: Mapping[str, str]) -> None:
        row.labels = labels
        self.labels.set_row(index, labels)
        self._describe(index, row)
        self._zones.put(index, zone_of(labels))

    def _describe(self, index: int, row: NodeRow) -> None:
        if self._described is None:
            if not row.filled:
                return
            self._described = LabelColumns(self._capacity)
            for other, at in enumerate(self.rows):
                if at is not None:
                    self._described.set_row(other, at.labels)
        self._described.set_row(index, {**row.filled, **row.labels} if row.filled else row.labels)

    def _taints_changed(self, index: int, row: NodeRow, taints: tuple[Taint, ...]) -> None:
        row.taints = taints
        self._taints.put(index, taints)

    def _touch(self) -> None:
        self.eligibility_version += 1
        self.version += 1

    def _zone_order(self) -> IntVector:
        if self._by_name is None:
            self._by_name = np.array([self._row_of[name] for name in self._names], dtype=np.int64)
        rows = self._by_name
        if not len(rows):
            return rows
        _, first, zone = np.unique(self._zones.codes[rows], return_index=True, return_inverse=True)
        # Zones count in the order of their first nodes; each in its turn gives its next one.
        zone = np.argsort(np.argsort(first))[zone]
        by_zone = np.argsort(zone, kind="stable")
        sizes = np.bincount(zone)
        turn = np.empty_like(rows)
        turn[by_zone] = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return rows[np.lexsort((zone, turn))]


def zone_of(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Region and zone of a node, empty where unlabelled; the older beta labels win, as in kube-scheduler."""
    return tuple(labels.get(beta) or labels.get(stable) or "" for stable, beta in _ZONE_LABELS)


_Value = TypeVar("_Value", bound=Hashable)
_Item = TypeVar("_Item", np.bool_, np.int32, np.int64)


def _grown(column: NDArray[_Item], size: int) -> NDArray[_Item]:
    grown = np.zeros(size, dtype=column.dtype)
    grown[: len(column)] = column
    return grown


class _Coded(Generic[_Value]):
    """A column of few distinct values, each row with the code of its own; those that are unused may go."""

    def __init__(self, first: _Value, size: int) -> None:
        self.values = [first]
        self.codes: NDArray[np.int32] = np.zeros(size, dtype=np.int32)
        self._code_of = {first: 0}

    def put(self, index: int, value: _Value) -> None:
        code = self._code_of.get(value)
        if code is None:
            if len(self.values) > 2 * len(self.codes):
                self._forget_unused()
            code = self._code_of[value] = len(self.values)
            self.values.append(value)
        self.codes[index] = code

    def grow(self, size: int) -> None:
        self.codes = _grown(self.codes, size)

    def copy(self) -> "_Coded[_Value]":
        """To be read alone."""
        twin = _Coded(self.values[0], 0)
        twin.values, twin.codes = list(self.values), self.codes.copy()
        return twin

    def _forget_unused(self) -> None:
        # Values that change without end must not make the table grow without end.
        used, codes = np.unique(self.codes, return_inverse=True)
        self.values = [self.values[code] for code in used.tolist()]
        self.codes = codes.astype(np.int32)
        self._code_of = {value: code for code, value in enumerate(self.values)}
