"""Free devices that are of no use: on each node how many, for which cause, and what would change that.

A pod of one device and nothing else fits wherever a device is free, which says nothing. So a pod is imagined
that brings a fair share of the node: half of what each device would get if the node's cpu and memory were
dealt out evenly. Half, because system pods take their part and most pods ask for less than their share; a
node that cannot give even half a share has been filled by pods without devices. Of the free devices of a node
as many are stranded as would be left over after all such pods that fit.

The same pod is what a report counts as one that fits now: of n devices it brings n such half shares. So what
is free and not stranded is what pods of one device would take, and the two never contradict each other.

Devices behind a taint are stranded whatever else is free, and so are those of hosts that are of use only
together with others which are not free or not well.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from estimator.capacity.amounts import amount_text, lacking_text
from estimator.capacity.room import Room
from estimator.capacity.summary import StrandedNode
from estimator.capacity.survey.access import Access, is_condition
from estimator.capacity.survey.kinds import node_name
from estimator.capacity.survey.stock import Stock
from estimator.capacity.topology.slices import usable_slices
from estimator.cluster.columns import BoolVector, IntVector, NodeColumns
from estimator.fit.pod_shape import NodeClaim, PodShape
from estimator.reasons import counted
from fairway.accelerators.tpu import NODE_POOL_LABEL, TPU
from fairway.resources import CPU, MEMORY, PODS
from fairway.taints import Toleration

SHARE_DIVISOR = 2
"""A fair share is the node's amount by its devices, divided by this."""

_SCARCE = (PODS, CPU, MEMORY)

FRAGMENTS, UNHEALTHY = 1, 2
"""Why a host is of no use: other hosts of its slice are busy or missing, or have chips that are not well."""

# Hosts have up to eight chips; of numbers that no machine has, only so many are looked at.
_MOST_COUNTS = 32
_TPU_TAINT = Toleration(TPU, "Exists")


class SliceHosts:
    """TPU hosts that are free and yet of no use, because their slice is not wholly free.

    For pods of every number of chips that hosts have, which tolerate the TPU taint and ``tolerations``.
    """

    def __init__(self, room: Room, tolerations: Iterable[Toleration] = ()) -> None:
        self._room = room
        self._claim = NodeClaim(tolerations=(_TPU_TAINT, *tolerations))
        self._usable: dict[int, BoolVector] = {}
        self.lost = self._lost()
        """`FRAGMENTS` or `UNHEALTHY` for hosts that are lost to new pods, 0 for all other rows."""

    def usable(self, chips: int) -> BoolVector:
        """The rows that slices leave to pods of so many chips each."""
        known = self._usable.get(chips)
        if known is None:
            shape = PodShape(((TPU, chips),), self._claim)
            known = self._usable[chips] = usable_slices(self._room, shape).rows
        return known

    def _lost(self) -> IntVector:
        nodes = self._room.nodes
        chips, sick = nodes.allocatable(TPU), nodes.unhealthy(TPU) > 0
        lost = np.zeros(len(chips), dtype=np.int64)
        for count in np.unique(chips[chips > 0])[:_MOST_COUNTS].tolist():
            alike = chips == count
            lost[alike & ~self.usable(count)] = FRAGMENTS
        if lost.any():
            pools = nodes.labels.codes(NODE_POOL_LABEL)[: len(chips)]
            lost[(lost > 0) & (sick | np.isin(pools, pools[sick & (pools > 0)]))] = UNHEALTHY
        return lost


@dataclass(frozen=True, slots=True)
class Stranded:
    """How many devices are stranded on each of the stock's rows, and which of `_SCARCE` is scarcest there."""

    stock: Stock
    free: IntVector
    devices: IntVector
    scarcest: IntVector

    @property
    def total(self) -> int:
        """All stranded devices of the stock."""
        return int(self.devices.sum())


class Stranding:
    """Judges the free devices of one cluster, and the room beside them."""

    def __init__(
        self, columns: NodeColumns, access: Access, stocks: Iterable[Stock], hosts: SliceHosts
    ) -> None:
        self._columns = columns
        self._access = access
        self._hosts = hosts
        self._devices = np.zeros(len(columns.rows), dtype=np.int64)
        for stock in stocks:
            self._devices[stock.rows] += stock.total

    def pods(self, stock: Stock, devices: int) -> IntVector:
        """Pods of so many devices each, and as many half shares of the rest, by row of the stock."""
        usable = self._access.usable[stock.rows]
        if stock.resource == TPU:
            usable &= self._hosts.usable(devices)[stock.rows]
        beside = self._fits(stock.rows, devices).min(axis=0)
        return np.asarray(np.minimum(stock.idle // devices, beside) * usable)

    def of(self, stock: Stock) -> Stranded:
        """The stranded devices of a stock."""
        rows = stock.rows
        free = stock.idle * self._access.open[rows]
        fits = self._fits(rows, 1)
        left = free - np.minimum(free, fits.min(axis=0))
        lost = ~self._access.usable[rows] | (self._hosts.lost[rows] > 0)
        return Stranded(stock, free, np.where(lost, free, left), fits.argmin(axis=0))

    def told(self, stranded: Stranded, indexes: IntVector) -> Iterator[StrandedNode]:
        """The nodes at these places of the stock's rows, with cause and remedy."""
        rows = stranded.stock.rows[indexes]
        amounts = {
            resource: list(
                zip(
                    self._columns.free(resource)[rows].tolist(),
                    self._columns.allocatable(resource)[rows].tolist(),
                    self._need(resource, rows).tolist(),
                    strict=True,
                )
            )
            for resource in _SCARCE
        }
        free, lost = stranded.free[indexes].tolist(), stranded.devices[indexes].tolist()
        scarcest = stranded.scarcest[indexes].tolist()
        for index, row in enumerate(rows.tolist()):
            told = self._lost(row)
            if told is None:
                resource = _SCARCE[scarcest[index]]
                told = resource, _shortage(resource, free[index], *amounts[resource][index])
            yield StrandedNode(node_name(self._columns, row), stranded.stock.product, lost[index], *told)

    def _need(self, resource: str, rows: IntVector) -> IntVector:
        if resource == PODS:
            return np.ones(len(rows), dtype=np.int64)
        shares = SHARE_DIVISOR * np.maximum(self._devices[rows], 1)
        return np.asarray(self._columns.allocatable(resource)[rows] // shares)

    def _fits(self, rows: IntVector, devices: int) -> IntVector:
        """Pods by each of `_SCARCE` and row; a node that has none of one to share is not judged by it."""
        fits = []
        for resource in _SCARCE:
            need, free = self._need(resource, rows), self._columns.free(resource)[rows]
            times = 1 if resource == PODS else devices
            fits.append(np.where(need > 0, free // times // np.maximum(need, 1), self._devices[rows]))
        return np.stack(fits)

    def _lost(self, row: int) -> tuple[str, str] | None:
        """Cause and remedy where no amount of cpu or memory would help."""
        taint = self._access.taint(row)
        if taint is not None:
            if is_condition(taint):
                return "taint", f"Kubernetes lifts {taint} once the node has recovered."
            return "taint", f"Lift the taint {taint}, or let pods tolerate it."
        if self._hosts.lost[row] == UNHEALTHY:
            return "unhealthy", "Repair or replace the hosts of its slice that are not well."
        if self._hosts.lost[row] == FRAGMENTS:
            return "fragments", "Its slice is of use as a whole, and other hosts of it are busy or missing."
        return None


def _shortage(resource: str, devices: int, free: int, has: int, need: int) -> str:
    lacks = need * devices - free
    if resource == PODS:
        return f"{free} of {has} pod slots are free: {counted(lacks, 'pod')} must end or move."
    return (
        f"Free {lacking_text(resource, lacks)} of {resource}: {amount_text(resource, free)} of "
        f"{amount_text(resource, has)} are free, and half a fair share for one device is "
        f"{amount_text(resource, need)}."
    )
