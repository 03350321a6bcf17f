"""Devices that pods share by pieces, device by device: which are idle, and how large the free pieces are.

Where a sharing scheme keeps the state of single devices, what the node advertises is not believed: HAMi
multiplies its GPUs by ten, Aliyun advertises memory. The devices themselves are counted. A scheme that opens
whole devices as it needs them (KAI) leaves the counting to kube-scheduler, and only adds its pieces.

A piece is the lesser of the memory and the compute that are free on a device, in thousandths of it; where
neither is divided, of its slots.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from estimator.capacity.devices.device_room import claims_of
from estimator.capacity.summary import Fractions
from estimator.capacity.survey.kinds import kinds_of
from estimator.capacity.survey.stock import Holdings, Stock
from estimator.cluster.columns import BoolVector, IntVector, NodeColumns
from estimator.cluster.devices import DeviceColumns
from fairway.accelerators.catalogue import Catalogue, DeviceClass, Entry, Role
from fairway.accelerators.devices import PodAsk

WHOLE_MILLI = 1000


@dataclass(frozen=True, slots=True)
class Sharing:
    """A scheme at work: its devices, the nodes that take part, the resources that ask for them there.

    ``resource`` is what its devices are called in a report: the one that counts devices, if there is one.
    """

    table: DeviceColumns
    rows: BoolVector
    resource: str
    asked_by: tuple[str, ...]

    @property
    def counts(self) -> bool:
        """Whether the scheme's devices stand for what the node advertises, rather than beside it."""
        return not self.table.scheme.opens


def sharings(columns: NodeColumns, entries: Mapping[str, Entry]) -> Iterator[Sharing]:
    """The schemes at work in the cluster. ``entries``: what the catalogue says of the nodes' resources.

    A resource belongs to a scheme if a pod that asks for it asks for the scheme's devices.
    """
    for table in columns.devices:
        if not table.is_used:
            continue
        scheme, rows = table.scheme, table.participates(len(columns.rows))
        if scheme.opens:
            yield Sharing(table, rows, scheme.opens, (scheme.opens,))
            continue
        asked_by = [
            resource
            for resource in entries
            if claims_of(scheme, PodAsk((((resource, 1),),))) is not None
            and bool(columns.allocatable(resource)[rows].any())
        ]
        asked_by.sort(key=lambda resource: (entries[resource].role is not Role.COUNT, resource))
        yield Sharing(table, rows, asked_by[0] if asked_by else scheme.name, tuple(asked_by))


def shared_stock(
    holdings: Holdings, sharing: Sharing, catalogue: Catalogue, open_rows: BoolVector
) -> Iterator[Stock]:
    """The devices of a scheme that counts them, by product, with their free pieces on ``open_rows``."""
    columns, table = holdings.columns, sharing.table
    devices = _Devices(table, len(columns.rows))
    for product, rows in _products(columns, sharing, catalogue):
        mine = np.zeros(len(columns.rows), dtype=np.bool_)
        mine[rows] = True
        total = devices.per_row()[rows]
        rows, total = rows[total > 0], total[total > 0]
        if not len(rows):
            continue
        advertised = columns.allocatable(sharing.resource)[rows] if sharing.asked_by else np.zeros_like(total)
        pieces = devices.fractions(table.scheme.name, devices.on(mine), devices.on(mine & open_rows))
        yield Stock(
            product,
            sharing.resource,
            (DeviceClass.FRACTION.value,),
            rows,
            total,
            devices.per_row(~devices.usable)[rows],
            devices.per_row(devices.touched)[rows],
            devices.per_row(devices.untouched)[rows],
            int((advertised // total).max(initial=1)),
            fractions=(pieces,),
        )


def with_opened(
    columns: NodeColumns, sharing: Sharing, stocks: Iterable[Stock], open_rows: BoolVector
) -> Iterator[Stock]:
    """The stocks with the pieces of devices that a scheme has opened, and of idle ones, which it may open.

    As they are where it has not opened any in the cluster: then nobody uses it.
    """
    size = len(columns.rows)
    devices = _Devices(sharing.table, size)
    if not devices.per_row().any():
        yield from stocks
        return
    memory = sharing.table.new_memory(size)
    for stock in stocks:
        if stock.resource != sharing.resource or stock.classes != (DeviceClass.WHOLE.value,):
            yield stock
            continue
        mine = np.zeros(size, dtype=np.bool_)
        mine[stock.rows] = True
        found = devices.fractions(sharing.table.scheme.name, devices.on(mine), devices.on(mine & open_rows))
        can_open = (memory[stock.rows] > 0) & open_rows[stock.rows]
        idle = int(stock.idle[can_open].sum())
        largest = int(memory[stock.rows][can_open & (stock.idle > 0)].max(initial=0))
        opened = Fractions(
            found.scheme,
            found.devices + idle,
            found.free_milli + WHOLE_MILLI * idle,
            WHOLE_MILLI if idle else found.largest_free_milli,
            max(found.largest_free_memory, largest),
            found.untouched + idle,
        )
        yield replace(stock, fractions=(*stock.fractions, opened)) if opened.devices else stock


class _Devices:
    """All devices of a scheme as vectors; what no pod can use has nothing free."""

    def __init__(self, table: DeviceColumns, rows: int) -> None:
        self._rows = rows
        self._node = table.node
        self._present: BoolVector = self._node >= 0
        self.touched = table.number("touched") > 0
        slots, self._slots_free = table.number("slots"), table.number("slots_free")
        self.usable: BoolVector = self._slots_free > 0
        # What has no slot free is full or takes no pods; only of a device in use is that a question.
        for index in np.flatnonzero(self.touched & ~self.usable).tolist():
            device = table.devices[index]
            self.usable[index] = device is not None and device.usable
        memory, self._memory_free = table.number("memory"), table.number("memory_free")
        cores, cores_free = table.number("cores"), table.number("cores_free")
        milli = np.where(
            (memory == 0) & (cores == 0),
            self._slots_free * WHOLE_MILLI // np.maximum(slots, 1),
            np.full(len(slots), WHOLE_MILLI, dtype=np.int64),
        )
        np.minimum(
            milli, self._memory_free * WHOLE_MILLI // np.maximum(memory, 1), out=milli, where=memory > 0
        )
        np.minimum(milli, cores_free * WHOLE_MILLI // np.maximum(cores, 1), out=milli, where=cores > 0)
        self._milli: IntVector = milli * (self._slots_free > 0)
        self.untouched: BoolVector = self.usable & ~self.touched & (self._slots_free > 0)

    def per_row(self, which: BoolVector | None = None) -> IntVector:
        """How many devices each node row has, of those that are asked for."""
        kept = self._present if which is None else self._present & which
        return np.bincount(self._node[kept], minlength=self._rows)[: self._rows].astype(np.int64)

    def on(self, rows: BoolVector) -> BoolVector:
        """The devices on these node rows."""
        found: BoolVector = self._present.copy()
        found[found] = rows[self._node[found]]
        return found

    def fractions(self, scheme: str, all_of_them: BoolVector, open_ones: BoolVector) -> Fractions:
        milli = self._milli[open_ones]
        return Fractions(
            scheme,
            int(np.count_nonzero(all_of_them)),
            int(milli.sum()),
            int(milli.max(initial=0)),
            int(self._memory_free[open_ones][milli > 0].max(initial=0)),
            int(np.count_nonzero(self.untouched & open_ones)),
        )


def _products(
    columns: NodeColumns, sharing: Sharing, catalogue: Catalogue
) -> Iterator[tuple[str, IntVector]]:
    """The rows of each product: as labels tell it, or else as the devices themselves do."""
    entry = catalogue.device(sharing.resource)
    rows = np.flatnonzero(sharing.rows & columns.present)
    named: dict[str, list[IntVector]] = {}
    if entry is None or not entry.labels.product:
        named[""] = [rows]
    else:
        for kind in kinds_of(columns, entry, rows).found:
            named.setdefault(kind.product.product, []).append(kind.rows)
    unnamed = np.concatenate(named.pop("", [np.zeros(0, dtype=np.int64)]))
    if len(unnamed):
        by_device = _product_of_devices(sharing.table, unnamed)
        for row in unnamed.tolist():
            named.setdefault(by_device.get(row, ""), []).append(np.array([row], dtype=np.int64))
    for product in sorted(named):
        yield product, np.sort(np.concatenate(named[product]))


def _product_of_devices(table: DeviceColumns, rows: IntVector) -> dict[int, str]:
    """The product of a device of each of these node rows, the first by name."""
    found: dict[int, str] = {}
    for index in np.flatnonzero(np.isin(table.node, rows)).tolist():
        device, row = table.devices[index], int(table.node[index])
        if device is not None:
            found[row] = min(found.get(row, device.product), device.product)
    return found
