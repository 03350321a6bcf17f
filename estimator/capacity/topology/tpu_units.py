"""Which rows form one TPU slice of several hosts: units of nodes, by pool or by partition.

What the labels of a node mean is asked of `fairway.accelerators.tpu` once for each distinct set of them; the
rest is arithmetic on columns. A unit is whole if it has as many hosts as its shape needs, all alike, healthy,
and with all chips of their machines.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from estimator.capacity.topology.domains import combined, sums
from estimator.cluster.columns import BoolVector, IntVector, NodeColumns
from fairway.accelerators.devices import NodeFacts
from fairway.accelerators.tpu import (
    ACCELERATOR_LABEL,
    CHIPS_LABEL,
    MODE_LABEL,
    NODE_POOL_LABEL,
    TOPOLOGY_LABEL,
    TPU,
    Topology,
    hosts_of,
    read_tpu_host,
    topology_name,
)

SLICE_TOPOLOGY = "cloud.google.com/gke-tpu-slice-topology"
"""The annotation by which a pod says which shape of slice shall be formed for it."""

_MOST_CHIPS = 9999


@dataclass(frozen=True, slots=True)
class SliceKind:
    """A shape of slice of an accelerator: ``hosts`` nodes with the same value of the label ``level``."""

    level: str
    accelerator: str
    topology: str
    hosts: int


@dataclass(frozen=True, slots=True)
class TpuUnits:
    """The units of a cluster, numbered from 1: ``number`` of each row, 0 where it is in none.

    ``chips``: what each row's machine has. ``kind`` (an index into ``kinds``) and ``whole`` by number, index
    0 for no unit. ``barred``: TPU rows that are in no unit and yet of no use by themselves, with why.
    """

    number: IntVector
    chips: IntVector
    kinds: tuple[SliceKind, ...]
    kind: IntVector
    whole: BoolVector
    barred: tuple[tuple[BoolVector, str], ...]

    def hosts(self, rows: BoolVector) -> IntVector:
        """How many of these rows each unit has, by number."""
        return sums(self.number, (rows & (self.number > 0)).astype(np.int64), len(self.kind))

    def free(self, ready: BoolVector) -> BoolVector:
        """Which units are whole and have all their hosts among the ``ready`` rows, by number; 0 never is."""
        free: BoolVector = self.whole & (self.hosts(ready) == self.hosts(self.number > 0))
        return free

    def counts(self, units: BoolVector) -> list[int]:
        """How many of these units, by number and without 0, are of each kind."""
        counts: list[int] = np.bincount(self.kind[1:][units[1:]], minlength=len(self.kinds)).tolist()
        return counts


_NO_KIND = SliceKind("", "", "", 0)


@dataclass(frozen=True, slots=True)
class _Host:
    """What a set of labels makes of a node: part of a unit of this kind, or of no use for this reason."""

    kind: SliceKind = _NO_KIND
    chips: int = 0
    healthy: bool = False
    barred: str = ""


_PLAIN = _Host()


def tpu_units(nodes: NodeColumns, partition: Topology | None, pools: bool = True) -> TpuUnits:
    """The units of the cluster: partitions of this shape where nodes state them, else node pools.

    With a ``partition`` asked for, only pools that are slices of just that shape count, and none without
    ``pools``. Rows whose labels do not say what slice they are part of are barred.
    """
    size = len(nodes.rows)
    allocatable = np.minimum(nodes.allocatable(TPU), _MOST_CHIPS)
    accelerators = nodes.labels.codes(ACCELERATOR_LABEL)[:size]
    rows = np.flatnonzero(nodes.present & ((accelerators > 0) | (allocatable > 0)))
    keys = [ACCELERATOR_LABEL, TOPOLOGY_LABEL, CHIPS_LABEL, MODE_LABEL]
    groups = [NODE_POOL_LABEL]
    if partition is not None:
        name = topology_name(partition)
        keys.append(f"cloud.google.com/gke-tpu-partition-{name}-state")
        groups += [f"cloud.google.com/gke-tpu-{word}-{name}-id" for word in ("partition", "slice")]
    texts = [
        (nodes.labels.codes(key)[:size][rows].astype(np.int64), nodes.labels.values(key)) for key in keys
    ]
    units = [nodes.labels.codes(key)[:size][rows].astype(np.int64) for key in groups]
    alike = combined(
        [
            *((codes, len(values)) for codes, values in texts),
            *((np.minimum(codes, 1), 1) for codes in units),
            (allocatable[rows], _MOST_CHIPS),
        ]
    )
    first, which = np.unique(alike, return_index=True, return_inverse=True)[1:]
    hosts = []
    for at in first.tolist() if len(rows) else ():
        labels = {
            key: values[int(codes[at])] for key, (codes, values) in zip(keys, texts, strict=True) if codes[at]
        }
        labels |= {key: "given" for key, codes in zip(groups, units, strict=True) if codes[at]}
        facts = NodeFacts("", labels, {}, {TPU: int(allocatable[rows[at]])})
        hosts.append(_host(facts, groups, partition, pools))
    return _numbered(size, rows, hosts or [_PLAIN], which if len(rows) else rows, groups, units)


def _host(facts: NodeFacts, groups: Sequence[str], partition: Topology | None, pools: bool) -> _Host:
    read = read_tpu_host(facts)
    stated = ACCELERATOR_LABEL in facts.labels or TOPOLOGY_LABEL in facts.labels
    if read is None or not stated:
        return _PLAIN
    host = read.found
    part = None if partition is None else host.partition(partition)
    if partition is not None and part is not None:
        level = next(key for key in groups[1:] if key in facts.labels)
        hosts = hosts_of(partition, host.chips_per_host)
        kind = SliceKind(level, host.accelerator, topology_name(partition), hosts)
        if hosts == 0:
            return _Host(barred=f"{host.chips_per_host} chips to a host do not make up {kind.topology}")
        return _Host(kind, host.chips_per_host, part.usable and host.healthy)
    if host.dynamic:
        return _Host(
            barred=f"slices are formed here on demand: expected annotation {SLICE_TOPOLOGY} on the pod "
            "with a shape that the node states a partition of",
        )
    if host.hosts == 0:
        return _Host(barred=read.problems[0] if read.problems else "its chips are not stated")
    if host.hosts == 1:
        return _PLAIN
    shape = topology_name(host.topology)
    if partition is not None and not (pools and host.topology == partition):
        return _Host(barred=f"its node pool is a slice of {shape} and not of another shape")
    kind = SliceKind(NODE_POOL_LABEL, host.accelerator, shape, host.hosts)
    return _Host(kind, host.chips_per_host, host.healthy)


def _numbered(
    size: int,
    rows: IntVector,
    hosts: Sequence[_Host],
    which: IntVector,
    groups: Sequence[str],
    units: Sequence[IntVector],
) -> TpuUnits:
    """The rows as units, given which of ``hosts`` each is and its codes of the labels in ``groups``."""
    level = np.array([groups.index(host.kind.level) if host.kind.hosts else -1 for host in hosts])[which]
    unit = np.zeros(len(rows), dtype=np.int64)
    for index, codes in enumerate(units):
        unit[level == index] = codes[level == index] * len(groups) + index
    inside = unit > 0
    first, dense = np.unique(unit[inside], return_index=True, return_inverse=True)[1:]
    number = np.zeros(size, dtype=np.int64)
    number[rows[inside]] = dense + 1
    chips = np.zeros(size, dtype=np.int64)
    chips[rows] = np.array([host.chips for host in hosts])[which]
    kinds = tuple(dict.fromkeys(host.kind for host in hosts))
    kind_of = np.array([kinds.index(host.kind) for host in hosts])
    # Hosts are alike if they are of one kind and size, whatever else their labels say.
    type_of = kind_of * (_MOST_CHIPS + 1) + np.array([host.chips for host in hosts])
    lead = which[inside][first]
    of_unit = np.concatenate(([-1], type_of[lead]))
    good = np.zeros(size, dtype=np.bool_)
    good[rows] = np.array([host.healthy for host in hosts])[which]
    good[rows] &= type_of[which] == of_unit[number[rows]]
    needed = np.array([host.kind.hosts for host in hosts])[lead]
    barred = _barred(size, rows, hosts, which)
    nothing = np.zeros(len(lead) + 1, dtype=np.bool_)
    found = TpuUnits(number, chips, kinds, np.concatenate(([0], kind_of[lead])), nothing, barred)
    there, well = found.hosts(number > 0)[1:], found.hosts(good)[1:]
    return replace(found, whole=np.concatenate(([False], (there == needed) & (well == needed))))


def _barred(
    size: int, rows: IntVector, hosts: Sequence[_Host], which: IntVector
) -> tuple[tuple[BoolVector, str], ...]:
    barred: dict[str, BoolVector] = {}
    for index, host in enumerate(hosts):
        if host.barred:
            mask = barred.setdefault(host.barred, np.zeros(size, dtype=np.bool_))
            mask[rows[which == index]] = True
    return tuple((mask, why) for why, mask in barred.items())
