"""Devices cut into fixed pieces: what is free of each profile, and how many devices are idle for sure.

kube-scheduler is told the number of pieces on a node, by profile (MIG strategy mixed) or under the plain name
(strategy single), and never which device a piece is on. So the devices behind them are worked out from the
placement table: as many as the labels say, or else as few as could hold all the pieces. A device is idle for
sure only if fewer pieces are in use on its node than it has devices; all others count as allocated.

Pieces whose geometry is not known (other vendors', profiles that the table lacks) count as one device each.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from estimator.capacity.summary import Partition
from estimator.capacity.survey.kinds import Kind, label_numbers
from estimator.capacity.survey.stock import Holdings, Stock
from estimator.cluster.columns import BoolVector, IntVector
from fairway.accelerators.catalogue import DeviceClass
from fairway.accelerators.mig_geometry import Geometry, geometry_of, profile_name

GPU = "nvidia.com/gpu"
_COUNT_LABEL = "nvidia.com/gpu.count"
_CAPABLE_LABEL = "nvidia.com/mig.capable"
_MEMORY_LABEL = "nvidia.com/gpu.memory"
CUT_SUFFIX = "-MIG"


@dataclass(frozen=True, slots=True, eq=False)
class _Pieces:
    """The pieces of one profile by row of the columns: those that there are, healthy, in use, free."""

    profile: str
    resource: str
    total: IntVector
    healthy: IntVector
    used: IntVector
    free: IntVector


def cut_stocks(
    holdings: Holdings, kinds: Iterable[Kind], whole: Sequence[Stock], open_rows: BoolVector
) -> Iterator[Stock]:
    """The stocks of all cut devices, by product; pods cannot ask for whole ones where pieces are counted.

    ``whole``: the devices of all products that are not cut, of which more pieces could be made where the node
    says that it can. ``open_rows``: those that take pods (not cordoned).
    """
    by_product: dict[tuple[str, str], list[Kind]] = {}
    for kind in kinds:
        is_nvidia = kind.entry.vendor == "NVIDIA"
        key = (kind.product.product, GPU if is_nvidia else kind.entry.resource)
        by_product.setdefault(key, []).append(kind)
    for (product, resource), alike in sorted(by_product.items()):
        pieces = _pieces(holdings, alike)
        geometry = _geometry(holdings, product, pieces) if resource == GPU else None
        known = [one for one in pieces if geometry is not None and geometry.profile(one.profile) is not None]
        if geometry is not None and known:
            uncut = sum(
                _idle_uncut(holdings, stock, open_rows) for stock in whole if stock.product == product
            )
            yield _counted(holdings, product, geometry, known, uncut, open_rows)
        yield from _uncounted(product, [one for one in pieces if one not in known], open_rows)


def _geometry(holdings: Holdings, product: str, pieces: list[_Pieces]) -> Geometry | None:
    profiles = {one.profile for one in pieces}
    found = geometry_of(product, 0, profiles)
    if found is None and all(one.resource != GPU for one in pieces):
        # The label is of whole GPUs then, and tells products of one name apart.
        sizes = label_numbers(
            holdings.columns, _MEMORY_LABEL, np.flatnonzero(sum(one.total for one in pieces))
        )
        if len(sizes) and (sizes == sizes[0]).all():
            found = geometry_of(product, int(sizes[0]) << 20, profiles)
    return found


def _pieces(holdings: Holdings, kinds: Iterable[Kind]) -> list[_Pieces]:
    size = len(holdings.columns.rows)
    found: dict[tuple[str, str], _Pieces] = {}
    for kind in kinds:
        resource, times, rows = kind.entry.resource, kind.product.advertised_per_device, kind.rows
        key = (profile_name(kind.product.partition), resource)
        if key not in found:
            found[key] = _Pieces(*key, *(np.zeros(size, dtype=np.int64) for _ in range(4)))
        one = found[key]
        one.total[rows] = -(-holdings.capacity(resource)[rows] // times)
        one.healthy[rows] = holdings.healthy(resource)[rows] // times
        one.used[rows] = -(-holdings.used(resource)[rows] // times)
        one.free[rows] = holdings.free(resource)[rows] // times
    return [found[key] for key in sorted(found)]


def _counted(
    holdings: Holdings,
    product: str,
    geometry: Geometry,
    pieces: list[_Pieces],
    uncut: int,
    open_rows: BoolVector,
) -> Stock:
    rows = np.flatnonzero(sum(one.total for one in pieces))
    total = _devices(geometry, [(one.profile, one.total[rows]) for one in pieces])
    # The label counts all GPUs of the node; with strategy single it counts pieces instead.
    labelled = label_numbers(holdings.columns, _COUNT_LABEL, rows) - holdings.capacity(GPU)[rows]
    mixed = all(one.resource != GPU for one in pieces)
    if mixed:
        most = np.sum([one.total[rows] for one in pieces], axis=0)
        total = np.maximum(total, np.minimum(labelled, most))
    broken = _devices(geometry, [(one.profile, one.total[rows] - one.healthy[rows]) for one in pieces])
    unhealthy = np.minimum(broken, total)
    in_use = np.sum([one.used[rows] for one in pieces], axis=0)
    idle = np.maximum(total - unhealthy - in_use, 0)
    empty = np.zeros(len(open_rows), dtype=np.int64)
    empty[rows] = idle
    empty *= open_rows
    partitions = []
    for name in _profiles(geometry, pieces):
        cut = [one for one in pieces if one.profile == name]
        free = sum((one.free for one in cut), np.zeros_like(empty))
        per_device = geometry.most(name)
        could = int(np.maximum(empty * per_device - free, 0).sum()) + uncut * per_device
        partitions += [_partition(one, open_rows, could) for one in cut] or [
            Partition(name, f"nvidia.com/mig-{name.replace('+', '.')}", 0, 0, could)
        ]
    return Stock(
        product + CUT_SUFFIX,
        GPU,
        (DeviceClass.PARTITION.value,),
        rows,
        total,
        unhealthy,
        total - unhealthy - idle,
        idle,
        asked_whole=False,
        partitions=tuple(partitions),
    )


def _profiles(geometry: Geometry, pieces: list[_Pieces]) -> Iterator[str]:
    """The profiles that there are, then all others of the table."""
    seen = dict.fromkeys(one.profile for one in pieces)
    known = {profile.name for name in seen if (profile := geometry.profile(name)) is not None}
    yield from seen
    yield from (profile.name for profile in geometry.profiles if profile.name not in known)


def _idle_uncut(holdings: Holdings, stock: Stock, open_rows: BoolVector) -> int:
    """Idle devices of the stock on nodes that say they can be cut."""
    if stock.resource != GPU:
        return 0
    labels = holdings.columns.described
    capable = [code for code, value in labels.values(_CAPABLE_LABEL).items() if value == "true"]
    can = np.isin(labels.codes(_CAPABLE_LABEL)[stock.rows], capable) & open_rows[stock.rows]
    return int(stock.idle[can].sum())


def _uncounted(product: str, pieces: list[_Pieces], open_rows: BoolVector) -> Iterator[Stock]:
    for one in pieces:
        rows = np.flatnonzero(one.total)
        yield Stock(
            product,
            one.resource,
            (DeviceClass.PARTITION.value,),
            rows,
            one.total[rows],
            one.total[rows] - one.healthy[rows],
            one.used[rows],
            one.free[rows],
            partitions=(_partition(one, open_rows, 0),),
        )


def _partition(one: _Pieces, open_rows: BoolVector, potential: int) -> Partition:
    return Partition(
        one.profile, one.resource, int(one.total.sum()), int((one.free * open_rows).sum()), potential
    )


def _devices(geometry: Geometry, pieces: list[tuple[str, IntVector]]) -> IntVector:
    """The fewest devices that so many pieces can be on: by slices of both kinds, and by each profile."""
    fewest = np.zeros(len(pieces[0][1]), dtype=np.int64)
    sizes, computes = fewest, fewest
    for name, counts in pieces:
        profile = geometry.profile(name)
        assert profile is not None
        sizes, computes = sizes + counts * profile.size, computes + counts * profile.compute
        fewest = np.maximum(fewest, -(-counts // max(1, geometry.most(name))))
    largest = max(profile.compute for profile in geometry.profiles)
    by_slices = np.maximum(-(-sizes // geometry.slices), -(-computes // largest))
    return np.maximum(fewest, by_slices)
