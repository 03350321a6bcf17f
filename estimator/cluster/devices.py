"""The shared devices of one cluster as columns: one row per device, for each sharing scheme.

What pods use of a device is kept by node and device id whatever the order of events, and counts once the
node says that it has the device. Where a scheme opens devices as pods need them (KAI reserves a whole GPU for
the first fraction), the ids that pods name are the devices. Amounts are exact integers; an event costs as
much as the devices of its node.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from struct import Struct

import numpy as np

from estimator.cluster.alike import NO_KIND, Alike, BoolVector, IntVector, reaching
from estimator.cluster.arrangement import Arrangement
from estimator.cluster.device_use import NUMBERS, UNUSED, Use
from fairway.accelerators.devices import Device, DeviceUse, Scheme

_PACKED = Struct(f"{1 + len(NUMBERS)}q")
_MOST_REMEMBERED = 64


@dataclass(slots=True)
class _NodeDevices:
    row: int | None = None
    inventory: dict[str, Device] = field(default_factory=dict)
    template: Device | None = None
    used: dict[str, Use] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    broken: frozenset[str] = frozenset()


class DeviceColumns:
    """All devices of one scheme in one cluster. Written by `ClusterMirror` alone; answers read it or a copy.

    A row is a device's slot; ``node`` says on which row of `NodeColumns` it is, -1 where there is none.
    ``participates`` and ``new_memory`` are by row of `NodeColumns`.
    """

    def __init__(self, scheme: Scheme) -> None:
        self.scheme = scheme
        self.version = 0
        """Changes with every change of a node, of a device or of what is used of it."""
        self.devices: list[Device | None] = []
        # What tells each device from others but for its id: its numbers, its product and its mode.
        self._looks: list[bytes] = []
        self._node = np.zeros(0, dtype=np.int64)
        self._numbers: IntVector = np.zeros((len(NUMBERS), 0), dtype=np.int64)
        self._alike = Alike()
        self._new_memory: IntVector = np.zeros(0, dtype=np.int64)
        self._nodes: dict[str, _NodeDevices] = {}
        self._vacant: list[int] = []
        self._participants = 0
        self._arrangement: Arrangement | None = None
        self._remembered: dict[Hashable, IntVector] = {}
        self._remembered_version = 0
        self._one_of_each: tuple[int, DeviceColumns] | None = None
        # False where what is used of devices is no more what makes nodes alike.
        self._is_alike_known = True

    @property
    def is_used(self) -> bool:
        """Whether any node takes part in the scheme."""
        return self._participants > 0

    @property
    def node(self) -> IntVector:
        """The row of each device's node. Not to be written or kept."""
        return self._node[: len(self.devices)]

    @property
    def numbers(self) -> IntVector:
        """A row for each of `NUMBERS`, by device. Not to be written or kept."""
        return self._numbers[:, : len(self.devices)]

    def number(self, name: str) -> IntVector:
        """One of `NUMBERS` of each device; nothing is free on one that takes no pods. Not to be written."""
        number: IntVector = self.numbers[NUMBERS.index(name)]
        return number

    def arrangement(self) -> Arrangement:
        """Which devices there are and where, whatever is used of them."""
        if self._arrangement is None:
            self._arrangement = Arrangement(self.devices, self.node, self.number("numa"))
        return self._arrangement

    def remembered(self, question: Hashable, work_out: Callable[[], IntVector]) -> IntVector:
        """What was worked out of the devices as they are, kept until they change. Not to be written.

        The same is asked again and again while Karmada places the replicas of one workload.
        """
        if self._remembered_version != self.version:
            self._remembered.clear()
            self._remembered_version = self.version
        known = self._remembered.get(question)
        if known is None:
            if len(self._remembered) >= _MOST_REMEMBERED:
                del self._remembered[next(iter(self._remembered))]
            known = self._remembered[question] = work_out()
        return known

    def participates(self, rows: int) -> BoolVector:
        """Which of so many node rows take part in the scheme. A fresh vector."""
        takes_part: BoolVector = self.kind_of(rows) != NO_KIND
        return takes_part

    def kind_of(self, rows: int) -> IntVector:
        """A number for each node row that those with like devices, used alike, share; `NO_KIND`: has none."""
        return self._alike.kind_of(rows)

    @property
    def kinds(self) -> int:
        """Kinds of nodes are numbered below this."""
        return self._alike.kinds

    def one_of_each(self) -> "DeviceColumns | None":
        """A table that has the kinds of nodes for nodes, by their number; None where few are alike.

        Devices of different nodes differ in their ids, which are those of any one node there.
        """
        if not self._is_alike_known or 2 * self.kinds > self._participants:
            return None
        version = self._alike.version
        if self._one_of_each is None or self._one_of_each[0] != version:
            self._one_of_each = (version, self._chosen())
        return self._one_of_each[1]

    def new_memory(self, rows: int) -> IntVector:
        """The memory of a device that would be opened on each of so many node rows, 0 where none can be."""
        return reaching(self._new_memory, rows, 0)[:rows]

    def set_node(
        self, name: str, row: int, inventory: Iterable[Device] | None, template: Device | None
    ) -> None:
        """A node is present on this row and has these devices; None: it takes no part in the scheme."""
        if inventory is None:
            self.remove_node(name)
            return
        node = self._nodes.setdefault(name, _NodeDevices())
        found = {device.id: device for device in inventory}
        if node.row == row and node.inventory == found and node.template == template:
            return
        if node.row is None:
            self._participants += 1
        elif node.row != row:
            self._leave(node.row)
        node.row, node.inventory, node.template = row, found, template
        self.version += 1
        self._new_memory = reaching(self._new_memory, row + 1, 0)
        self._new_memory[row] = template.memory if template else 0
        self._rewrite(node)

    def remove_node(self, name: str) -> None:
        """A node is gone; what its pods use stays noted until they go too."""
        node = self._nodes.get(name)
        if node is None or node.row is None:
            return
        self._leave(node.row)
        self._participants -= 1
        node.row, node.inventory, node.template = None, {}, None
        self.version += 1
        self._rewrite(node)
        self._drop_if_empty(name, node)

    def set_broken(self, node_name: str, devices: frozenset[str]) -> None:
        """These devices of the node take no pods, whatever the scheme says; none of others, by their ids."""
        node = self._nodes.get(node_name)
        if node is None:
            if not devices:
                return
            node = self._nodes[node_name] = _NodeDevices()
        changed = node.broken ^ devices
        node.broken = devices
        for device in sorted(changed & (node.inventory.keys() | node.used.keys())):
            self._write(node, device)
        self._tell_apart(node)
        self._drop_if_empty(node_name, node)

    def has_device(self, node_name: str, device: str) -> bool:
        """Whether the scheme knows a device of the node by this id."""
        node = self._nodes.get(node_name)
        return node is not None and device in node.inventory

    def inventories(self) -> Mapping[str, Mapping[str, Device]]:
        """The devices of each node that says what it has, by id; as it is now, for work on another thread."""
        return {name: node.inventory for name, node in self._nodes.items() if node.inventory}

    def hold(self, node_name: str, uses: Iterable[DeviceUse]) -> None:
        """A pod uses these devices of the node, known or not."""
        node = self._nodes.setdefault(node_name, _NodeDevices())
        for use in uses:
            node.used.setdefault(use.device, Use()).add(use, 1)
            self._write(node, use.device)
        self._tell_apart(node)

    def release(self, node_name: str, uses: Iterable[DeviceUse]) -> None:
        """A pod gives back exactly what `hold` took."""
        node = self._nodes[node_name]
        for use in uses:
            node.used[use.device].add(use, -1)
            if not node.used[use.device].pods:
                del node.used[use.device]
            self._write(node, use.device)
        self._tell_apart(node)
        self._drop_if_empty(node_name, node)

    def copy(self) -> "DeviceColumns":
        """An independent snapshot for work on another thread."""
        twin = copy(self)
        twin.devices, twin._looks = list(self.devices), []
        twin._node, twin._numbers = self._node.copy(), self._numbers.copy()
        twin._alike, twin._new_memory = self._alike.copy(), self._new_memory.copy()
        twin._nodes, twin._vacant = {}, []
        twin._remembered, twin._one_of_each = {}, None
        return twin

    def vacated(self, left: Mapping[tuple[int, str], Use]) -> "DeviceColumns":
        """A copy of a copy in which no more than this is used of these devices, by node row and id.

        A device that was opened for pods, and has none left, is closed.
        """
        twin = self.copy()
        twin._is_alike_known = False
        for index, device in enumerate(self.devices):
            use = None if device is None else left.get((int(self._node[index]), device.id))
            if device is None or use is None:
                continue
            if self.scheme.opens and not use.pods:
                twin.devices[index], twin._node[index], twin._numbers[:, index] = None, -1, 0
                twin._arrangement = None
            else:
                twin._numbers[:, index] = use.numbers(device)
        return twin

    def _chosen(self) -> "DeviceColumns":
        kind_of = self._alike.kind_of(len(self._new_memory))
        rows = np.flatnonzero(kind_of != NO_KIND)
        first = np.full(self.kinds, -1, dtype=np.int64)
        first[kind_of[rows]] = rows
        is_first = np.zeros(len(kind_of) + 1, dtype=np.bool_)
        is_first[first] = True
        is_first[-1] = False
        chosen = np.flatnonzero(is_first[self.node])
        twin = DeviceColumns(self.scheme)
        twin.devices = [self.devices[index] for index in chosen.tolist()]
        twin._node, twin._numbers = kind_of[self.node[chosen]], self._numbers[:, chosen]
        for kind in np.flatnonzero(first >= 0).tolist():
            twin._alike.put(kind, kind)
        return twin

    def _leave(self, row: int) -> None:
        self._alike.put(row, None)
        self._new_memory[row] = 0

    def _drop_if_empty(self, name: str, node: _NodeDevices) -> None:
        if node.row is None and not node.used and not node.broken:
            del self._nodes[name]

    def _device(self, node: _NodeDevices, device: str) -> Device | None:
        if node.row is None:
            return None
        known = node.inventory.get(device)
        if known is None and self.scheme.opens and device in node.used:
            known = node.template
        return replace(known, usable=False) if known is not None and device in node.broken else known

    def _rewrite(self, node: _NodeDevices) -> None:
        for device in dict.fromkeys((*node.rows, *node.inventory, *node.used)):
            self._write(node, device)
        self._tell_apart(node)

    def _tell_apart(self, node: _NodeDevices) -> None:
        if node.row is None:
            return
        # In the order in which answers go through them, which decides between devices that are equally good.
        self._alike.put(node.row, b"".join([self._looks[index] for index in sorted(node.rows.values())]))

    def _write(self, node: _NodeDevices, id: str) -> None:
        self.version += 1
        device = self._device(node, id)
        index = node.rows.get(id)
        if device is None:
            if index is not None:
                self._arrangement = None
                del node.rows[id]
                self.devices[index] = None
                self._node[index] = -1
                self._numbers[:, index] = 0
                self._vacant.append(index)
            return
        if index is None:
            index = node.rows[id] = self._claim_row()
        assert node.row is not None
        if self._node[index] != node.row or self.devices[index] != device:
            self._arrangement = None
        self.devices[index] = device
        self._node[index] = node.row
        numbers = node.used.get(id, UNUSED).numbers(device)
        self._numbers[:, index] = numbers
        kind = f"{device.product}\0{device.mode}".encode(errors="surrogatepass")
        self._looks[index] = _PACKED.pack(len(kind), *numbers) + kind

    def _claim_row(self) -> int:
        if self._vacant:
            return self._vacant.pop()
        index = len(self.devices)
        self.devices.append(None)
        self._looks.append(b"")
        if index >= len(self._node):
            self._node = reaching(self._node, index + 1, -1)
            more = np.zeros((len(NUMBERS), len(self._node) - index), dtype=np.int64)
            self._numbers = np.concatenate([self._numbers, more], axis=1)
        return index
