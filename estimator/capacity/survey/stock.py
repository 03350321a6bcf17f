"""Devices per node, physically: how many there are, how many are unhealthy, held by pods, and idle.

One `Stock` for each product of a resource, as vectors over the nodes that have it, whatever kube-scheduler is
told: time-sliced and MPS devices count once however often they are advertised, devices whose sharing scheme
keeps their state are counted there (see `pieces`), and the three names of AWS Neuron are one
piece of hardware. On each node ``total = unhealthy + allocated + idle``, unless pods hold more than is
healthy; then nothing is idle.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from estimator.capacity.summary import Fractions, Partition
from estimator.capacity.survey.kinds import Kind
from estimator.cluster.columns import IntVector, NodeColumns
from fairway.accelerators.catalogue import DeviceClass
from fairway.accelerators.neuron import NAMES, free_neuron
from fairway.resources import is_extended

MOST = 2**31 - 1
"""More devices than a node can have; a larger number is counted as this, so that no sum overflows."""

_INSTANCE_LABELS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")


@dataclass(frozen=True, slots=True)
class Stock:
    """The devices of one product, by node: ``rows`` of the columns, and vectors as long as it.

    ``idle``: healthy devices that no pod holds, on cordoned nodes too. ``asked_whole``: pods can ask for
    whole devices of it, and ``idle`` says how many are to be had. ``partitions``, ``fractions``: the
    pieces that its devices are cut or shared into.
    """

    product: str
    resource: str
    classes: tuple[str, ...]
    rows: IntVector
    total: IntVector
    unhealthy: IntVector
    allocated: IntVector
    idle: IntVector
    advertised: int = 1
    asked_whole: bool = True
    partitions: tuple[Partition, ...] = ()
    fractions: tuple[Fractions, ...] = ()


class Holdings:
    """What nodes have of device resources and what their pods hold, by row; no number is above `MOST`.

    ``overdrawn``: what pods hold beyond allocatable, which the columns do not say (see `overdrawn`).
    """

    def __init__(self, columns: NodeColumns, overdrawn: Mapping[str, IntVector]) -> None:
        self.columns = columns
        self._overdrawn = overdrawn

    def healthy(self, resource: str) -> IntVector:
        """What is allocatable."""
        return np.minimum(self.columns.allocatable(resource), MOST)

    def capacity(self, resource: str) -> IntVector:
        """What is allocatable and what is unhealthy, together."""
        return self.healthy(resource) + np.minimum(self.columns.unhealthy(resource), MOST)

    def free(self, resource: str) -> IntVector:
        """What is allocatable and no pod holds."""
        return np.minimum(self.columns.free(resource), MOST)

    def used(self, resource: str) -> IntVector:
        """What pods that have not ended ask for."""
        used: IntVector = np.minimum(self.columns.allocatable(resource) - self.columns.free(resource), MOST)
        beyond = self._overdrawn.get(resource)
        if beyond is not None:
            used[: len(beyond)] += beyond[: len(used)]
        return used


def overdrawn(columns: NodeColumns) -> dict[str, IntVector]:
    """What the pods of each row hold of extended resources beyond allocatable; devices fail under their pods.

    Reads the rows themselves and must be called where the mirror is written. Looks only at rows where
    nothing is free: less than two milliseconds where all of 5,000 nodes are full.
    """
    found: dict[str, IntVector] = {}
    for resource in columns.resource_names:
        if not is_extended(resource):
            continue
        has = columns.allocatable(resource)
        any_there = (has > 0) | (columns.unhealthy(resource) > 0)
        full = np.flatnonzero(columns.present & any_there & (columns.free(resource) == 0))
        for index in full.tolist():
            row = columns.rows[index]
            beyond = 0 if row is None else row.in_use(resource) - int(has[index])
            if beyond > 0:
                if resource not in found:
                    found[resource] = np.zeros(len(columns.rows), dtype=np.int64)
                found[resource][index] = min(beyond, MOST)
    return found


def device_stock(holdings: Holdings, kind: Kind) -> Stock:
    """The stock of one kind of whole, shared or atomic devices.

    A device that is advertised n times is idle for each n that are free together, rounded down, since the
    rest cannot make up a device; which devices the others are on is not known.
    """
    product, rows = kind.product, kind.rows
    times = product.advertised_per_device
    capacity = holdings.capacity(product.resource)[rows]
    healthy = -(-holdings.healthy(product.resource)[rows] // times)
    total = -(-capacity // times)
    shared = product.device_class is DeviceClass.SHARED and kind.entry.device_class is not DeviceClass.SHARED
    return Stock(
        product.product + ("-SHARED" if shared else ""),
        product.resource,
        (product.device_class.value,),
        rows,
        total,
        total - healthy,
        -(-holdings.used(product.resource)[rows] // times),
        holdings.free(product.resource)[rows] // times,
        times,
    )


def neuron_rows(holdings: Holdings, resource: str) -> IntVector:
    """The rows whose Neuron devices are counted under this one of their names: chips before cores."""
    rows = holdings.capacity(resource) > 0
    for name in NAMES[: NAMES.index(resource)]:
        rows &= holdings.capacity(name) == 0
    return np.flatnonzero(rows)


def neuron_stock(holdings: Holdings, kind: Kind) -> Stock:
    """The stock of one kind of Neuron devices, less what pods hold under any of the hardware's names."""
    stock = device_stock(holdings, kind)
    columns, rows = holdings.columns, kind.rows
    amounts = [(holdings.healthy(name)[rows], holdings.used(name)[rows]) for name in NAMES]
    instance = [columns.labels.codes(key)[rows] for key in _INSTANCE_LABELS]
    table = np.column_stack([vector for pair in amounts for vector in pair] + [*instance])
    distinct, inverse = np.unique(table, axis=0, return_inverse=True)
    idle = np.zeros(len(distinct), dtype=np.int64)
    for index, line in enumerate(distinct.tolist()):
        allocatable = {name: line[2 * n] for n, name in enumerate(NAMES) if line[2 * n]}
        used = {name: line[2 * n + 1] for n, name in enumerate(NAMES)}
        labels = {
            key: columns.labels.values(key)[code]
            for key, code in zip(_INSTANCE_LABELS, line[2 * len(NAMES) :], strict=True)
            if code
        }
        idle[index] = free_neuron(allocatable, used, labels).found.get(kind.entry.resource, 0)
    free = idle[inverse.reshape(-1)]
    allocated = np.maximum(stock.total - stock.unhealthy - free, stock.allocated)
    return replace(stock, allocated=allocated, idle=free, advertised=1)


def merged(stocks: Iterable[Stock]) -> Iterator[Stock]:
    """One stock for each product of each resource, by name."""
    alike: dict[tuple[str, str], list[Stock]] = {}
    for stock in stocks:
        alike.setdefault((stock.product, stock.resource), []).append(stock)
    for (product, resource), parts in sorted(alike.items()):
        vectors = ((part.rows, part.total, part.unhealthy, part.allocated, part.idle) for part in parts)
        rows, total, unhealthy, allocated, idle = map(np.concatenate, zip(*vectors, strict=True))
        yield Stock(
            product,
            resource,
            tuple(sorted({name for part in parts for name in part.classes})),
            rows,
            total,
            unhealthy,
            allocated,
            idle,
            max(part.advertised for part in parts),
            all(part.asked_whole for part in parts),
            tuple(partition for part in parts for partition in part.partitions),
            _by_scheme(fractions for part in parts for fractions in part.fractions),
        )


def _by_scheme(fractions: Iterable[Fractions]) -> tuple[Fractions, ...]:
    """One entry for each scheme, by name; the parts of one scheme add up."""
    found: dict[str, Fractions] = {}
    for more in fractions:
        one = found.get(more.scheme, Fractions(more.scheme, 0, 0, 0, 0, 0))
        found[more.scheme] = Fractions(
            more.scheme,
            one.devices + more.devices,
            one.free_milli + more.free_milli,
            max(one.largest_free_milli, more.largest_free_milli),
            max(one.largest_free_memory, more.largest_free_memory),
            one.untouched + more.untouched,
        )
    return tuple(found[scheme] for scheme in sorted(found))
