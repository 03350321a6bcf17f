"""The nodes of one cluster as they will be once some of its pods have left, one after the other.

Made of copies, for work on another thread. What pods use is added up from the pods themselves, since a node
on which they hold more than it has (it has shrunk, or devices broke) gives nothing back before that much is
gone. Of devices that do not work it is not known which pods would leave them: those are taken to leave first,
which never gives back too much. Devices that pods have claimed stay as they are, as claims may outlive pods.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from estimator.cluster.columns import IntVector, NodeColumns
from estimator.cluster.device_use import Use
from estimator.cluster.devices import DeviceColumns
from estimator.cluster.pods import HeldByPod
from fairway.accelerators.devices import DeviceUse

# More than any pod asks for, and little enough for sums over all pods.
_MOST = 2**44


class Vacating:
    """What there is when some of the ``pods``, the ``leaving`` in their order, have left ``nodes``.

    ``nodes`` is a copy, of the moment that ``pods`` are of. Each of ``leaving`` is one of the ``pods``, not
    only equal to it, and has a node. ``rows``: of these nodes, -1 where one is not there.
    """

    def __init__(self, nodes: NodeColumns, pods: Collection[HeldByPod], leaving: Sequence[HeldByPod]) -> None:
        self._nodes = nodes
        self._leaving = leaving
        amounts = _Amounts(nodes)
        rows, kinds = amounts.read(pods)
        self.rows, self._kinds = amounts.read(leaving)
        self._amounts = {name: amounts.of(name) for name in nodes.resource_names}
        self._used = {name: self._summed(rows, of[kinds]) for name, of in self._amounts.items()}
        self._broken = {name: self._held_of_broken(name) for name in nodes.resource_names}
        self._sharers = [held for held in pods if held.devices]
        self._sharing = _where(held.devices for held in leaving)
        self._exclusive = _where(held.exclusive_level for held in leaving)

    def amounts(self, resource: str) -> IntVector:
        """How much of the resource each pod that leaves holds."""
        of = self._amounts.get(resource)
        return np.zeros(len(self.rows), dtype=np.int64) if of is None else of[self._kinds]

    def without(self, gone: IntVector) -> NodeColumns:
        """The nodes without these of those that leave, by their places in that order, each once.

        Not to be written.
        """
        free = {name: self._free(name, gone) for name in self._amounts}
        return self._nodes.vacated(free, self._exclusive_pods(gone), self._devices(gone))

    def _free(self, resource: str, gone: IntVector) -> IntVector:
        given = self._summed(self.rows[gone], self._amounts[resource][self._kinds[gone]])
        in_use = np.maximum(self._used[resource] - np.maximum(given, self._broken[resource]), 0)
        # Where pods that stay are not all known the columns know better.
        return np.maximum(self._nodes.allocatable(resource) - in_use, self._nodes.free(resource))

    def _summed(self, rows: IntVector, amounts: IntVector) -> IntVector:
        total = np.zeros(len(self._nodes.rows) + 1, dtype=np.int64)
        # The last, one too many, is that of pods whose node is not there.
        np.add.at(total, rows, amounts)
        return total[:-1]

    def _held_of_broken(self, resource: str) -> IntVector:
        """How much of each row pods are known to hold of devices that do not work."""
        held = np.zeros(len(self._nodes.rows), dtype=np.int64)
        for row in self._nodes.broken:
            broken = self._nodes.broken.on(row).get(resource)
            if broken is not None:
                held[row] = broken.held
        return held

    def _exclusive_pods(self, gone: IntVector) -> Mapping[str, IntVector]:
        left: dict[str, IntVector] = {}
        for index in _common(gone, self._exclusive):
            if self.rows[index] >= 0:
                level = self._leaving[index].exclusive_level
                if level not in left:
                    left[level] = self._nodes.exclusive_pods(level).copy()
                left[level][self.rows[index]] -= 1
        return left

    def _devices(self, gone: IntVector) -> tuple[DeviceColumns, ...]:
        """The tables of devices that pods share, less what those pods use."""
        users = [self._leaving[index] for index in _common(gone, self._sharing)]
        if not users:
            return self._nodes.devices
        left = {place: Use() for held in users for place, _ in self._uses(held)}
        leaves = {id(held) for held in users}
        for held in self._sharers:
            if id(held) not in leaves:
                for place, uses in self._uses(held):
                    if place in left:
                        left[place].add(uses, 1)
        by_scheme: dict[str, dict[tuple[int, str], Use]] = {}
        for (scheme, row, device), use in left.items():
            by_scheme.setdefault(scheme, {})[row, device] = use
        return tuple(
            table.vacated(by_scheme[table.scheme.name]) if table.scheme.name in by_scheme else table
            for table in self._nodes.devices
        )

    def _uses(self, held: HeldByPod) -> Iterator[tuple[tuple[str, int, str], DeviceUse]]:
        """What it uses of devices, by the name of their scheme, the row of their node, and their id."""
        row = self._nodes.row_of(held.node)
        if row is not None:
            for table, uses in held.devices:
                for use in uses:
                    yield (table.scheme.name, row, use.device), use


def _common(gone: IntVector, some: IntVector) -> list[int]:
    # Mostly there are none, and that costs nothing.
    found: list[int] = np.intersect1d(gone, some).tolist() if len(some) else []
    return found


def _where(told: Iterable[object]) -> IntVector:
    return np.array([index for index, one in enumerate(told) if one], dtype=np.int64)


class _Amounts:
    """What pods hold, by kinds of pods that hold the same, since most do."""

    def __init__(self, nodes: NodeColumns) -> None:
        self._nodes = nodes
        self._kind_of: dict[int, int] = {}
        self._footprints: list[Mapping[str, int]] = []

    def read(self, pods: Iterable[HeldByPod]) -> tuple[IntVector, IntVector]:
        """The row of each pod's node, -1 where that is not there, and the pod's kind."""
        row_of: dict[str, int] = {}
        rows, kinds = [], []
        for held in pods:
            row = row_of.get(held.node)
            if row is None:
                known = self._nodes.row_of(held.node)
                row = row_of[held.node] = -1 if known is None else known
            # Footprints of pods that hold the same are mostly the same object.
            kind = self._kind_of.get(id(held.footprint))
            if kind is None:
                kind = self._kind_of[id(held.footprint)] = len(self._footprints)
                self._footprints.append(held.footprint)
            rows.append(row)
            kinds.append(kind)
        return np.array(rows, dtype=np.int64), np.array(kinds, dtype=np.int64)

    def of(self, resource: str) -> IntVector:
        """How much of the resource pods of each kind hold."""
        return np.array([min(_MOST, one.get(resource, 0)) for one in self._footprints], dtype=np.int64)
