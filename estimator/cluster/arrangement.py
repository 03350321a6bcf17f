"""The devices of one scheme as they are arranged on nodes, whatever is used of them.

Working out how many pods fit takes the devices of a node side by side, and of what kind each is. Neither
changes as pods come and go, so both are worked out when first asked for and kept until a device changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from estimator.cluster.alike import BoolVector, IntVector
from fairway.accelerators.devices import Device, DeviceFilter

_NUMA_NODES = 64


@dataclass(frozen=True, slots=True)
class Block:
    """Groups of equally many devices.

    ``nodes``: the node row of each group. ``devices``: in each column the rows of the devices of a group;
    adding up columns is several times faster than adding up short rows.
    """

    nodes: IntVector
    devices: IntVector


Layout = tuple[Block, ...]
"""All devices that are on nodes, in groups that lie side by side."""


class Arrangement:
    """Which devices there are: ``node`` and ``numa`` of each, by the device's row. Never changes."""

    def __init__(self, devices: Sequence[Device | None], node: IntVector, numa: IntVector) -> None:
        self._devices = tuple(devices)
        self._node = node.copy()
        self._numa = numa.copy()
        self._layouts: dict[bool, Layout] = {}
        self._kinds: tuple[IntVector, tuple[Device, ...]] | None = None

    def layout(self, *, by_numa: bool = False) -> Layout:
        """The devices of each node side by side, or those of each NUMA node. Not to be written."""
        layout = self._layouts.get(by_numa)
        if layout is None:
            layout = self._layouts[by_numa] = tuple(self._blocks(by_numa))
        return layout

    def allowed(self, filter: DeviceFilter) -> BoolVector:
        """Which devices the filter lets through, by the device's row. A fresh vector."""
        if self._kinds is None:
            self._kinds = self._read_kinds()
        of_kind, kinds = self._kinds
        by_kind = replace(filter, ids=(), not_ids=())
        allowed: BoolVector = np.array([*map(by_kind.allows, kinds), False], dtype=np.bool_)[of_kind]
        if filter.ids:
            wanted = frozenset(filter.ids)
            allowed &= np.array([d is not None and d.id in wanted for d in self._devices], dtype=np.bool_)
        if filter.not_ids:
            unwanted = frozenset(filter.not_ids)
            allowed &= np.array([d is None or d.id not in unwanted for d in self._devices], dtype=np.bool_)
        return allowed

    def _blocks(self, by_numa: bool) -> list[Block]:
        devices = np.flatnonzero(self._node >= 0)
        group = self._node[devices]
        if by_numa:
            group = group * _NUMA_NODES + self._numa[devices] % _NUMA_NODES
        order = np.argsort(group, kind="stable")
        devices = devices[order]
        _, first, size = np.unique(group[order], return_index=True, return_counts=True)
        blocks: list[Block] = []
        for width in np.unique(size).tolist():
            side_by_side = devices[np.arange(width)[:, None] + first[size == width]]
            blocks.append(Block(self._node[side_by_side[0]], side_by_side))
        return blocks

    def _read_kinds(self) -> tuple[IntVector, tuple[Device, ...]]:
        # Where there is no device the kind is the last one, which no filter lets through.
        codes: dict[tuple[str, str], int] = {}
        kinds: list[Device] = []
        of_kind = np.full(len(self._devices), -1, dtype=np.int64)
        for row, device in enumerate(self._devices):
            if device is not None:
                code = codes.setdefault((device.product, device.mode), len(kinds))
                if code == len(kinds):
                    kinds.append(device)
                of_kind[row] = code
        return of_kind, tuple(kinds)
