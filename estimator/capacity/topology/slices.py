"""Nodes that are one unit, free whole or not at all: TPU slices of several hosts, and NVLink cliques.

The hosts of a TPU slice have the chips of one machine each but share the links of one slice, so a pod must
take all chips of its host and a gang all hosts of its slice; one busy, missing or unhealthy host makes the
others useless for new work. A slice is a node pool or, where slices are formed on demand, a partition, whose
nodes state its id in a label of its own for each shape; partitions of different shapes nest.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

import numpy as np

from estimator.capacity.request import Component
from estimator.capacity.room import Room
from estimator.capacity.summary import SliceShape
from estimator.capacity.topology.domains import DomainCache
from estimator.capacity.topology.levels import CLIQUE, Level
from estimator.capacity.topology.tpu_units import SLICE_TOPOLOGY, SliceKind, TpuUnits, tpu_units
from estimator.cluster.columns import BoolVector
from estimator.fit.pod_shape import NodeClaim, PodShape
from estimator.reasons import Reason, broken_slices, part_of_host, slices_in_use, unreadable_tpu_labels
from fairway.accelerators.tpu import TPU, Topology, parse_topology
from fairway.taints import Toleration
from fairway.workloads.gang import TopologyMode, TopologyRequest

_PARTITIONS: tuple[Topology, ...] = ((4, 4, 4), (2, 4, 4), (2, 2, 4), (2, 2, 2), (2, 2, 1))
"""The shapes of partitions, the largest first; larger slices are formed of several of the largest."""
_GPU, _GPU_PRODUCT = "nvidia.com/gpu", "nvidia.com/gpu.product"


@dataclass(frozen=True, slots=True)
class UsableSlices:
    """Which rows pods of a shape may use as far as TPU slices decide it, and what keeps them off the others.

    All rows that are not part of a slice of several hosts are usable. ``free``: how many slices of each kind
    are, wholly. ``plain``: whether the pods are not bound to such slices: they fit beside them, or no slice
    is for them.
    """

    rows: BoolVector
    free: tuple[tuple[SliceKind, int], ...] = ()
    plain: bool = True
    reasons: tuple[Reason, ...] = ()

    def copies(self, pods: int) -> int | None:
        """How many gangs of so many pods get whole slices to themselves; None where slices do not decide it.

        The slices of one gang are of one kind; hosts that a gang does not fill are of no use to others.
        """
        if self.plain:
            return None
        return sum(slices // -(-pods // kind.hosts) for kind, slices in self.free)

    def topology(self, component: Component) -> TopologyRequest | None:
        """The topology that slices impose on a component that states none: its pods come in whole slices.

        None where slices do not decide it, or where slices of several sizes are free for it.
        """
        sizes = {(kind.level, kind.hosts) for kind, _ in self.free}
        if self.plain or len(sizes) != 1:
            return None
        level, hosts = sizes.pop()
        if component.replicas < hosts:
            return TopologyRequest(TopologyMode.EXCLUSIVE, level)
        return TopologyRequest(TopologyMode.SLICED, level, hosts)


def usable_slices(room: Room, shape: PodShape) -> UsableSlices:
    """The rows that pods of the shape may use: of slices of several hosts, only the wholly free ones.

    A host is free for the pod if it may be placed there, all chips of the machine are there and free, and
    the pod asks for all of them; a slice is free if it has all its hosts and each of them is. Below a
    millisecond at 5,000 TPU nodes, nothing for shapes that ask for no TPU.
    """
    asked = dict(shape.requests).get(TPU, 0)
    everything = np.ones(len(room.nodes.rows), dtype=np.bool_)
    if asked == 0:
        return UsableSlices(everything)
    wanted = parse_topology(dict(shape.annotations).get(SLICE_TOPOLOGY, ""))
    partition = None if wanted is None else _partition(wanted)
    units = tpu_units(room.nodes, partition, pools=partition == wanted)
    inside = units.number > 0
    if not inside.any() and not units.barred:
        return UsableSlices(everything)
    eligible, fits = room.eligible(shape).mask, room.fits(shape)
    free = units.free((fits > 0) & (asked == units.chips) & (room.free(TPU) == units.chips))
    rows = ~inside | free[units.number]
    for barred, _ in units.barred:
        rows &= ~barred
    beside = bool((rows & ~inside & (fits > 0)).any())
    plain = beside or not bool((inside & eligible).any())
    return UsableSlices(rows, _counted(units, free), plain, tuple(_reasons(units, free, eligible, asked)))


def keep_to_whole_slices(room: Room, shapes: Iterable[PodShape]) -> None:
    """From now on TPU pods of these shapes use no row of a slice of several hosts that is not wholly free.

    Once, before anything is placed: the first pod makes its slice busy for all but those that come with it.
    """
    for shape in filter(asks_tpu, dict.fromkeys(shapes)):
        usable = usable_slices(room, shape)
        room.restrict(shape, usable.rows, usable.reasons)


def asks_tpu(shape: PodShape) -> bool:
    """Whether the pod asks for TPU chips."""
    return any(name == TPU for name, _ in shape.requests)


def tpu_slices(room: Room) -> tuple[SliceShape, ...]:
    """TPU slices of several hosts by accelerator and shape: in all, wholly free, partly busy, and broken.

    Free for a pod that tolerates the TPU taint and nothing else. Partitions that slices may be formed of are
    counted for each shape, the largest first; they nest, so the free ones of a shape count among the smaller.
    """
    tolerant = PodShape(claim=NodeClaim(tolerations=(Toleration(TPU, "Exists"),)))
    eligible = room.eligible(tolerant).mask
    shapes: list[SliceShape] = []
    for partition in (None, *_PARTITIONS):
        units = tpu_units(room.nodes, partition, pools=partition is None)
        ready = eligible & (room.free(TPU) == units.chips)
        free, idle = units.free(ready), units.hosts(ready) > 0
        counts = (np.ones_like(free), free, units.whole & ~free & idle, ~units.whole)
        by_kind = zip(units.kinds, *(units.counts(count) for count in counts), strict=True)
        for kind, *numbers in sorted(by_kind, key=lambda item: (item[0].accelerator, item[0].topology)):
            if numbers[0]:
                shapes.append(SliceShape(kind.accelerator, kind.topology, kind.hosts, *numbers))
    return tuple(shapes)


def cliques(room: Room, domains: DomainCache) -> tuple[SliceShape, ...]:
    """NVLink cliques by GPU product and number of nodes: wholly free, partly busy, and with sick GPUs.

    Free for a pod that tolerates the GPU taint and nothing else. How many nodes a clique should have is
    stated nowhere, so that a missing one is not seen.
    """
    nodes = room.nodes
    found = domains.of(nodes, Level(CLIQUE))
    tolerant = PodShape(claim=NodeClaim(tolerations=(Toleration(_GPU, "Exists"),)))
    have, free = nodes.allocatable(_GPU), room.free(_GPU)
    idle = room.eligible(tolerant).mask & (have > 0) & (free == have)
    products, codes = nodes.described.values(_GPU_PRODUCT), nodes.described.codes(_GPU_PRODUCT)
    sick = found.anywhere(nodes.unhealthy(_GPU) > 0)
    busy = found.anywhere(~idle)
    partly = busy & found.anywhere(free > 0) & ~sick
    by_kind: dict[tuple[str, int], list[int]] = {}
    for index, hosts in enumerate(found.sums(np.ones_like(have)).tolist()):
        row = int(np.argmax(found.rows(index)))
        by_kind.setdefault((products.get(int(codes[row]), _GPU), hosts), []).append(index)
    return tuple(
        SliceShape(
            product, "clique", hosts, len(which), *(_count(v[which]) for v in (~busy & ~sick, partly, sick))
        )
        for (product, hosts), which in sorted(by_kind.items())
    )


def _partition(wanted: Topology) -> Topology:
    """The shape of the partitions that a slice of this shape is formed of."""
    largest = _PARTITIONS[0]
    return largest if len(wanted) == len(largest) and prod(wanted) > prod(largest) else wanted


def _counted(units: TpuUnits, which: BoolVector) -> tuple[tuple[SliceKind, int], ...]:
    pairs = zip(units.kinds, units.counts(which), strict=True)
    return tuple((kind, count) for kind, count in pairs if count)


def _reasons(units: TpuUnits, free: BoolVector, eligible: BoolVector, asked: int) -> Iterable[Reason]:
    """What keeps pods of the shape off rows that they may use by their node claim."""
    part = (units.number > 0) & eligible & (asked < units.chips)
    if part.any():
        yield part_of_host(asked, int(units.chips[part].max()), _count(part))
    concerned = units.hosts(eligible) > 0
    for kind, count in _counted(units, concerned & units.whole & ~free):
        yield slices_in_use(kind.accelerator, kind.topology, count)
    for kind, count in _counted(units, concerned & ~units.whole):
        yield broken_slices(kind.accelerator, kind.topology, count, kind.hosts)
    for barred, why in units.barred:
        if (barred & eligible).any():
            yield unreadable_tpu_labels(_count(barred & eligible), why)


def _count(which: BoolVector) -> int:
    return int(np.count_nonzero(which))
