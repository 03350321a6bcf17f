"""All devices of a cluster as stocks, each device in exactly one of them.

Which of several ways to count a device is right depends on the node: its sharing scheme knows the devices
one by one, or the catalogue and labels say whether an advertised number means devices, replicas or pieces.
Here every resource of every node is sent the right way, and what cannot be counted is said instead.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from estimator.capacity.summary import Fractions
from estimator.capacity.survey.kinds import Kind, kinds_of, node_name
from estimator.capacity.survey.partitions import cut_stocks
from estimator.capacity.survey.pieces import Sharing, shared_stock, sharings, with_opened
from estimator.capacity.survey.stock import (
    MOST,
    Holdings,
    Stock,
    device_stock,
    merged,
    neuron_rows,
    neuron_stock,
)
from estimator.cluster.columns import BoolVector, IntVector
from fairway.accelerators.catalogue import Catalogue, DeviceClass
from fairway.accelerators.neuron import NAMES as NEURON_NAMES
from fairway.resources import is_extended

_UNKNOWN_STATE = (DeviceClass.FRACTION, DeviceClass.MEMORY_POOL)

_CUT = (DeviceClass.PARTITION, DeviceClass.SHARED)


@dataclass(frozen=True, slots=True)
class Inventory:
    """The stocks by product and resource, resources that no catalogue names, and what cannot be counted."""

    stocks: tuple[Stock, ...]
    uncatalogued: tuple[str, ...]
    problems: tuple[str, ...]


def inventory(holdings: Holdings, catalogue: Catalogue, open_rows: BoolVector) -> Inventory:
    """Count all accelerators of the cluster. ``open_rows``: those of nodes that are not cordoned."""
    columns = holdings.columns
    entries = {
        resource: entry
        for resource in sorted(columns.resource_names)
        if is_extended(resource) and (entry := catalogue.device(resource)) and entry.is_accelerator
    }
    stocks: list[Stock] = []
    problems: list[str] = []
    at_work = tuple(sharings(columns, entries))
    for sharing in at_work:
        if sharing.counts:
            stocks += shared_stock(holdings, sharing, catalogue, open_rows)
    cut: list[Kind] = []
    for resource, entry in entries.items():
        rows = _rows(holdings, resource, at_work)
        if entry.device_class in _UNKNOWN_STATE:
            if len(rows):
                problems.append(
                    f"{resource} on {len(rows)} nodes: parts of devices whose state no annotation tells "
                    f"(scheme {entry.scheme}): these devices are not counted"
                )
            continue
        problems += _beyond(holdings, resource, rows)
        read = kinds_of(columns, entry, rows)
        problems += read.problems
        for kind in read.found:
            if kind.product.partition and kind.product.device_class in _CUT:
                cut.append(kind)
            elif resource in NEURON_NAMES:
                stocks.append(neuron_stock(holdings, kind))
            else:
                stocks.append(_with_replicas(holdings, kind, open_rows))
    stocks += cut_stocks(holdings, cut, tuple(stocks), open_rows)
    for sharing in at_work:
        if not sharing.counts:
            stocks = list(with_opened(columns, sharing, stocks, open_rows))
    return Inventory(
        tuple(merged(stocks)),
        tuple(resource for resource, entry in entries.items() if not entry.catalogued),
        tuple(problems),
    )


def _beyond(holdings: Holdings, resource: str, rows: IntVector) -> Iterator[str]:
    """Numbers that no node can mean."""
    columns = holdings.columns
    for row in rows[columns.allocatable(resource)[rows] > MOST].tolist():
        found = int(columns.allocatable(resource)[row])
        yield f"node {node_name(columns, row)}: status.allocatable.{resource} is {found}: counted as {MOST}"


def _rows(holdings: Holdings, resource: str, at_work: tuple[Sharing, ...]) -> IntVector:
    """The rows that have the resource and where no scheme's devices stand for it."""
    if resource in NEURON_NAMES:
        return neuron_rows(holdings, resource)
    rows = holdings.capacity(resource) > 0
    for sharing in at_work:
        if sharing.counts and resource in sharing.asked_by:
            rows &= ~sharing.rows
    return np.flatnonzero(rows)


def _with_replicas(holdings: Holdings, kind: Kind, open_rows: BoolVector) -> Stock:
    """The stock, with replicas (time-slicing, MPS) as pieces: one is the most of a device that a pod gets."""
    stock = device_stock(holdings, kind)
    times = stock.advertised
    if times <= 1:
        return stock
    here = open_rows[stock.rows]
    free = int(holdings.free(stock.resource)[stock.rows][here].sum())
    # Plugins give out replicas of the least used device first, so that each one in use may be on its own.
    untouched = stock.total - stock.unhealthy - holdings.used(stock.resource)[stock.rows]
    pieces = Fractions(
        kind.product.sharing or "replicas",
        int(stock.total.sum()),
        free * 1000 // times,
        1000 // times if free else 0,
        0,
        int(np.maximum(untouched, 0)[here].sum()),
    )
    return replace(stock, fractions=(pieces,))
