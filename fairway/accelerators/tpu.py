"""Google TPU as GKE labels its nodes: what one node says about the slice that it belongs to.

A slice has the shape of its topology label; it spans as many hosts as that shape holds times the chips of one
host. With more than one host the whole node pool is one slice, which lives and dies as a unit. Ironwood
(tpu7x) pools that are provisioned without links (topology mode PROVISION_ONLY) are no slice until one is
formed from their partitions: nested groups of nodes, each shape with an id and a state in labels of its own.
Other generations label nested groups in the same way under another key, without a state.

The chips of a host come from its labels and allocatable, never from a table of machine types. Counting free
slices over a cluster is not done here. Labels as in GKE's documentation of TPU slices and dynamic slicing,
and in the TPU device plugin, 2026.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from math import prod

from fairway.accelerators.devices import NodeFacts, Read

TPU = "google.com/tpu"
ACCELERATOR_LABEL = "cloud.google.com/gke-tpu-accelerator"
TOPOLOGY_LABEL = "cloud.google.com/gke-tpu-topology"
NODE_POOL_LABEL = "cloud.google.com/gke-nodepool"
CHIPS_LABEL = "cloud.google.com/gke-accelerator-count"
MODE_LABEL = "cloud.google.com/gke-accelerator-topology-mode"
_PROVISION_ONLY = "PROVISION_ONLY"
_GROUP = re.compile(r"cloud\.google\.com/gke-tpu-(partition|slice)-([0-9x]{1,24})-id")
_STATE = "cloud.google.com/gke-tpu-partition-{}-state"
_TOPOLOGY = re.compile(r"[1-9][0-9]{0,3}(?:x[1-9][0-9]{0,3}){1,2}")
_COUNT = re.compile(r"[1-9][0-9]{0,3}")

Topology = tuple[int, ...]
"""The shape of a slice in chips, two or three dimensions."""


class PartitionState(StrEnum):
    """What GKE says about a partition of its nodes; ``ABSENT``: nothing."""

    HEALTHY = "HEALTHY"
    DEGRADED = "DEGRADED"
    UNHEALTHY = "UNHEALTHY"
    INCOMPLETE = "INCOMPLETE"
    UNSET = "UNSET"
    ABSENT = ""


@dataclass(frozen=True, slots=True)
class TpuPartition:
    """A group of nodes of a shape that the node is part of; nodes with the same id form it.

    ``usable``: a slice may be formed of it. A degraded partition still may; without a state it may where the
    node pool is a slice as it is, but not where slices have to be formed first.
    """

    topology: Topology
    id: str
    state: PartitionState
    usable: bool


@dataclass(frozen=True, slots=True)
class TpuHost:
    """A node with TPU chips.

    ``chips_per_host``: chips that the machine has; ``chips``: those that allocatable has, fewer where some
    are unhealthy, so that the host cannot serve a slice. ``hosts``: nodes of a slice of this topology, 0
    where that is not known. ``pool``: the node pool, which is the slice where ``hosts`` is above 1 and the
    host is not ``dynamic``. ``partitions``: the largest shape first.
    """

    accelerator: str
    topology: Topology
    hosts: int
    chips_per_host: int
    chips: int
    pool: str
    dynamic: bool = False
    partitions: tuple[TpuPartition, ...] = ()

    @property
    def healthy(self) -> bool:
        """Whether all chips of the machine are allocatable."""
        return self.chips == self.chips_per_host

    def partition(self, topology: Topology) -> TpuPartition | None:
        """The partition of that shape that the node is part of."""
        return next((part for part in self.partitions if part.topology == topology), None)


def topology_name(topology: Topology) -> str:
    """The shape as labels write it, such as ``2x2x4``; empty where there is none."""
    return "x".join(map(str, topology))


def parse_topology(text: str) -> Topology | None:
    """``4x4`` or ``2x2x4`` as numbers of chips; None where the text is no topology."""
    return tuple(map(int, text.split("x"))) if _TOPOLOGY.fullmatch(text) else None


def hosts_of(topology: Topology, chips_per_host: int) -> int:
    """How many hosts a slice of that shape spans; 0 where its chips are no multiple of a host's."""
    chips = prod(topology)
    return chips // chips_per_host if chips_per_host > 0 and chips % chips_per_host == 0 else 0


def read_tpu_host(node: NodeFacts) -> Read[TpuHost] | None:
    """What the node says about its TPU; None where it has none, by label nor by allocatable.

    Where a label is missing or contradicts another the result says so and leaves ``hosts`` 0, so that the
    node is not counted as (part of) a slice.
    """
    labels, chips = node.labels, max(node.allocatable.get(TPU, 0), 0)
    accelerator = labels.get(ACCELERATOR_LABEL, "")
    if not accelerator and not chips:
        return None
    problems: list[str] = []
    if not accelerator:
        problems.append(f"label {ACCELERATOR_LABEL}: is missing on a node with {chips} of {TPU}")
    per_host = _chips_per_host(labels.get(CHIPS_LABEL), chips, problems)
    text = labels.get(TOPOLOGY_LABEL, "")
    topology = parse_topology(text)
    dynamic = labels.get(MODE_LABEL, "") == _PROVISION_ONLY
    hosts = 0
    if topology is None and not (dynamic and not text):
        found = f"found {text[:40]!r}" if text else "it is missing"
        problems.append(f"label {TOPOLOGY_LABEL}: expected a shape such as 2x4 or 2x2x4, {found}")
    elif topology is not None and per_host:
        hosts = hosts_of(topology, per_host)
        if not hosts:
            problems.append(
                f"label {TOPOLOGY_LABEL}: {text} has {prod(topology)} chips: "
                f"expected a multiple of the {per_host} of this host"
            )
    pool = labels.get(NODE_POOL_LABEL, "")
    if hosts > 1 and not pool:
        problems.append(f"label {NODE_POOL_LABEL}: is missing, so the other hosts of the slice are not known")
        hosts = 0
    host = TpuHost(
        accelerator=accelerator,
        topology=topology or (),
        hosts=hosts,
        chips_per_host=per_host,
        chips=chips,
        pool=pool,
        dynamic=dynamic,
        partitions=_partitions(node, dynamic, problems),
    )
    return Read(host, tuple(problems))


def _chips_per_host(label: str | None, chips: int, problems: list[str]) -> int:
    if label is None:
        return chips
    if not _COUNT.fullmatch(label):
        problems.append(f"label {CHIPS_LABEL}: expected a number of chips, found {label[:40]!r}")
        return chips
    if int(label) < chips:
        problems.append(
            f"label {CHIPS_LABEL}: says {label}, but the node has {chips} of {TPU}: allocatable counts"
        )
        return chips
    return int(label)


def _partitions(node: NodeFacts, dynamic: bool, problems: list[str]) -> tuple[TpuPartition, ...]:
    found: dict[Topology, TpuPartition] = {}
    for key in sorted(node.labels):
        match = _GROUP.fullmatch(key)
        value = node.labels[key]
        if match is None or not value:
            continue
        topology = parse_topology(match[2])
        if topology is None:
            problems.append(f"label {key}: expected a shape such as 2x2x4 in its name, found {match[2]!r}")
            continue
        state = _state(node, match[2], problems)
        usable = state in (PartitionState.HEALTHY, PartitionState.DEGRADED)
        usable = usable or (state is PartitionState.ABSENT and not dynamic)
        found.setdefault(topology, TpuPartition(topology, value, state, usable))
    return tuple(sorted(found.values(), key=lambda part: (-prod(part.topology), part.topology)))


def _state(node: NodeFacts, shape: str, problems: list[str]) -> PartitionState:
    key = _STATE.format(shape)
    text = node.labels.get(key, "")
    if text in PartitionState.__members__.values():
        return PartitionState(text)
    problems.append(
        f"label {key}: expected {', '.join(s for s in PartitionState if s)}, found {text[:40]!r}: "
        "counted as unhealthy"
    )
    return PartitionState.UNHEALTHY
