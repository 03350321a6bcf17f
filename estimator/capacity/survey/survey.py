"""What one cluster has, what of it is free, how it is chunked and what is stranded: the administrator's view.

Products become stocks (vectors over the nodes that have them), and everything that is said about a product is
arithmetic on its stock. No node is looked at by itself but the worst stranded ones, so that thousands of
nodes take tens of milliseconds, on a snapshot and on any thread.

How the numbers relate: ``total = unhealthy + allocated + cordoned + free`` for every product, where
``cordoned`` are idle devices on cordoned nodes; only where pods hold more than is healthy is the sum larger,
and then nothing is free there. ``free`` includes devices behind taints and in slices that are not wholly
free: they are all stranded. ``placeable`` and gangs count pods that bring half of their fair share of the
node's cpu and memory (see `stranding`), so they never count on stranded devices: where devices are used one
by one, pods of one device are ``free - stranded``. Chunks cover all nodes of the product, and add up to
``free``.
"""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from estimator.capacity.room import Room
from estimator.capacity.summary import (
    Chunk,
    Domain,
    LargestGang,
    Level,
    Placeable,
    Product,
    StrandedNode,
    Summary,
)
from estimator.capacity.survey.access import Access
from estimator.capacity.survey.inventory import inventory
from estimator.capacity.survey.kinds import node_name
from estimator.capacity.survey.stock import Holdings, Stock
from estimator.capacity.survey.stranding import SliceHosts, Stranded, Stranding
from estimator.capacity.topology.domains import DomainCache, Domains, domains_of
from estimator.capacity.topology.levels import CLIQUE, HOSTNAME, Levels
from estimator.capacity.topology.slices import cliques, tpu_slices
from estimator.cluster.columns import IntVector, NodeColumns
from estimator.fit.device_tolerations import TolerationPolicy, assumption
from estimator.fit.eligibility import EligibilityCache
from estimator.reasons import counted, shown
from fairway.accelerators.catalogue import Catalogue
from fairway.accelerators.tpu import TPU
from fairway.taints import Toleration

POD_SIZES = (8, 4, 2, 1)
"""Devices per pod of which a report says how many fit."""

MOST_STRANDED = 1000
MOST_PROBLEMS = 100
_ENDLESS = 2**31
_SHOWN_BROKEN = 3


def survey(
    columns: NodeColumns,
    catalogue: Catalogue,
    levels: Levels,
    *,
    cluster: str,
    pods: int,
    overdrawn: Mapping[str, IntVector] | None = None,
    tolerations: Iterable[Toleration] = (),
    policy: TolerationPolicy | None = None,
    age_s: float = 0.0,
    doubt: str = "",
    problems: Iterable[str] = (),
) -> Summary:
    """The summary of one cluster. O(rows x resources x levels); some 30 ms at 5,000 nodes.

    ``pods``: those that are known. ``overdrawn``: what `estimator.capacity.survey.stock` found overdrawn
    where the columns were copied; without it a node's pods never hold more than is healthy. ``tolerations``:
    what pods of devices tolerate beside taints that are named after devices; ``policy``: for which devices
    admission lets them tolerate these, without it for all. ``age_s``, ``doubt`` and ``problems`` are those of
    the state and go into the summary, the problems behind what is assumed of tolerations; at most
    `MOST_STRANDED` nodes and `MOST_PROBLEMS` problems do.
    """
    tolerations = tuple(tolerations)
    access = Access(columns, catalogue, tolerations, policy)
    found = inventory(Holdings(columns, overdrawn or {}), catalogue, access.open)
    room = Room(columns, EligibilityCache())
    stranding = Stranding(columns, access, found.stocks, SliceHosts(room, tolerations))
    regions = tuple(domains_of(columns, level) for level in levels.ordered)
    products: list[Product] = []
    maps: list[Level] = []
    judged: list[Stranded] = []
    for stock in found.stocks:
        stranded = stranding.of(stock)
        judged.append(stranded)
        fits = {size: stranding.pods(stock, size) for size in POD_SIZES}
        gangs = tuple(_gangs(stock, fits, regions)) if stock.asked_whole else ()
        products.append(_product(stock, stranded, fits, gangs))
        maps += _levels(stock, stranded, regions)
    noted = (*assumption(access.assumed), *problems, *found.problems, *_broken(columns))
    if len(noted) > MOST_PROBLEMS:
        noted = (*noted[:MOST_PROBLEMS], f"{len(noted) - MOST_PROBLEMS} more problems")
    return Summary(
        cluster,
        columns.node_count,
        pods,
        tuple(products),
        _worst(stranding, judged),
        (
            *(tpu_slices(room) if TPU in columns.resource_names else ()),
            *(cliques(room, DomainCache()) if CLIQUE in columns.described.keys else ()),
        ),
        tuple(maps),
        found.uncatalogued,
        age_s,
        doubt,
        noted,
    )


def _broken(columns: NodeColumns) -> Iterator[str]:
    """Which devices agents found not to work, by node."""
    for row in columns.broken:
        for resource, broken in columns.broken.on(row).items():
            told = f"{counted(broken.devices, 'device')} of {shown(resource)} unhealthy"
            yield f"node {node_name(columns, row)}: {told}: {', '.join(broken.why[:_SHOWN_BROKEN])}"


def _product(
    stock: Stock, stranded: Stranded, fits: Mapping[int, IntVector], gangs: tuple[LargestGang, ...]
) -> Product:
    free = int(stranded.free.sum())
    chunks, nodes = np.unique(stranded.free, return_counts=True)
    return Product(
        product=stock.product,
        resource=stock.resource,
        device_class=", ".join(stock.classes),
        nodes=len(stock.rows),
        total=int(stock.total.sum()),
        unhealthy=int(stock.unhealthy.sum()),
        cordoned=int(stock.idle.sum()) - free,
        allocated=int(stock.allocated.sum()),
        free=free,
        stranded=stranded.total,
        placeable=tuple(Placeable(size, int(pods.sum())) for size, pods in fits.items())
        if stock.asked_whole
        else (),
        chunks=tuple(Chunk(*chunk) for chunk in zip(chunks.tolist(), nodes.tolist(), strict=True)),
        gangs=gangs,
        partitions=stock.partitions,
        fractions=stock.fractions,
        advertised_per_device=stock.advertised,
    )


def _gangs(stock: Stock, fits: Mapping[int, IntVector], regions: Iterable[Domains]) -> Iterator[LargestGang]:
    """The most pods of each size anywhere, and in one domain of each level: the first of equal domains."""
    for size, pods in fits.items():
        yield LargestGang(size, "", "", int(pods.sum()))
    for domains in regions:
        number = domains.number[stock.rows]
        if not number.any():
            continue
        for size, pods in fits.items():
            inside = np.bincount(number, np.minimum(pods, _ENDLESS), domains.count + 1)[1:]
            best = int(inside.argmax())
            most = int(inside[best])
            path = "/".join(domains.paths[best]) if most else ""
            yield LargestGang(size, domains.level.key, path, most)


def _levels(stock: Stock, stranded: Stranded, regions: Iterable[Domains]) -> Iterator[Level]:
    """The domains that have devices of the stock; hosts are left out, since chunks say all about them."""
    wholly = (stranded.free == stock.total) & (stock.total > 0)
    for domains in regions:
        number = domains.number[stock.rows]
        if domains.level.key == HOSTNAME or not number.any():
            continue
        size = domains.count + 1
        columns = (np.ones_like(stock.total), stock.total, stranded.free, wholly)
        nodes, total, free, whole = (
            np.bincount(number, np.minimum(column, _ENDLESS), size).astype(np.int64).tolist()
            for column in columns
        )
        yield Level(
            domains.level.key,
            stock.product,
            tuple(
                Domain(path, nodes[n], total[n], free[n], whole[n])
                for n, path in sorted(enumerate(domains.paths, start=1), key=lambda item: item[1])
                if nodes[n]
            ),
            nodes[0],
        )


def _worst(stranding: Stranding, judged: list[Stranded]) -> tuple[StrandedNode, ...]:
    """The nodes with most stranded devices, then by name and product."""
    every = np.concatenate([stranded.devices for stranded in judged] or [np.zeros(0, dtype=np.int64)])
    some = int(np.count_nonzero(every))
    least = 1 if some <= MOST_STRANDED else int(np.partition(every, -MOST_STRANDED)[-MOST_STRANDED])
    told: list[StrandedNode] = []
    for stranded in judged:
        told += stranding.told(stranded, np.flatnonzero(stranded.devices >= least))
    told.sort(key=lambda node: (-node.free, node.node, node.product))
    return tuple(told[:MOST_STRANDED])
