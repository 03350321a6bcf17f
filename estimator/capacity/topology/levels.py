"""Which node labels say how close nodes are to each other, from the coarsest to the finest.

A level is a label key together with the coarser keys that must agree as well: racks called ``r1`` in two
blocks are two racks. Administrators name the keys in order, as Kueue's `Topology` objects do; without that,
the labels of known sources are recognised by their presence on nodes. People may name a level by a short
name (``rack``); what it stands for follows from the cluster's own levels or is an error, never a guess.

Sources: GKE and AWS node labels; Topograph (current ``topograph.run`` labels and the older
``network.topology.nvidia.com`` ones); GPU feature discovery's clique; well-known Kubernetes labels.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from estimator.cluster.columns import NodeColumns
from estimator.cluster.labels import ABSENT
from estimator.reasons import Reason, ambiguous_level, shown, unknown_level
from fairway.selectors import is_label_key

CLIQUE = "nvidia.com/gpu.clique"
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

_GCE = "cloud.google.com/gce-topology-"
_AWS = "topology.k8s.aws/network-node-layer-"
_TOPOGRAPH_OLD = "network.topology.nvidia.com/"
_PARTITION = re.compile(r"cloud\.google\.com/gke-tpu-(?:partition|slice)-([0-9]{1,4}(?:x[0-9]{1,4}){1,2})-id")
_MOST_TIERS = 10

_SHORT_NAMES = {
    f"{_GCE}subblock": ("rack",),
    f"{_AWS}3": ("rack",),
    "fabric.topograph.run/tier-0": ("rack", "leaf"),
    f"{_TOPOGRAPH_OLD}tier-0": ("rack", "leaf"),
    f"{_TOPOGRAPH_OLD}leaf": ("rack",),
    "accelerator.topograph.run/domain": ("accelerator",),
    f"{_GCE}block": ("block",),
    CLIQUE: ("clique",),
    HOSTNAME: ("host", "node"),
}


class LevelsError(ValueError):
    """A list of levels is unusable; the message says which entry, and what was expected."""


@dataclass(frozen=True, slots=True)
class Level:
    """Nodes share a domain if they agree on ``key`` and on every label of ``coarser``."""

    key: str
    coarser: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """All labels that must agree, the coarsest first, the level's own last."""
        return (*self.coarser, self.key)

    @property
    def called(self) -> tuple[tuple[str, ...], ...]:
        """What it may be called, the most telling first: by its key; by the key without its prefix or a name
        that people use; by the last word of that (``rack`` of ``topology-rack``) unless it is a number.
        """
        name = self.key.rpartition("/")[2]
        word = re.split(r"[-._]", name)[-1]
        return (self.key,), (name, *_SHORT_NAMES.get(self.key, ())), () if word.isdigit() else (word,)


@dataclass(frozen=True, slots=True)
class Levels:
    """The topology levels of one cluster, the coarsest first."""

    ordered: tuple[Level, ...] = ()

    def resolve(self, name: str) -> Level | Reason:
        """The level that a request means.

        First the level of exactly this label key; else the one level with this short name; else the one
        whose name ends in this word. What stands for several levels of the same step is ambiguous. Any other
        label key with a prefix is a level by itself, as in JobSet's exclusive placement by node pool.
        """
        for step in range(3):
            meant = [level for level in self.ordered if name and name in level.called[step]]
            if len(meant) == 1:
                return meant[0]
            if meant:
                return ambiguous_level(name, tuple(level.key for level in meant))
        if "/" in name and is_label_key(name):
            return Level(name)
        return unknown_level(name, tuple(level.key for level in self.ordered))

    def upward(self, level: Level) -> Iterator[Level]:
        """The level itself and then all coarser ones, the finest first; a level of no list stands alone."""
        if level not in self.ordered:
            yield level
            return
        yield from reversed(self.ordered[: self.ordered.index(level) + 1])


def levels_of(keys: Iterable[str]) -> Levels:
    """The levels of a list of label keys, the coarsest first: an administrator's, or a Kueue Topology's.

    Raises LevelsError for an empty list, for what is no label key, and for a key that is there twice.
    """
    ordered: list[Level] = []
    before: tuple[str, ...] = ()
    for position, key in enumerate(keys, start=1):
        if not is_label_key(key):
            raise LevelsError(
                f"topology level {position}: {shown(key)!r} is not a label key: expected [domain/]name"
            )
        if key in before:
            raise LevelsError(f"topology level {position}: {shown(key)!r} is there twice: name each key once")
        ordered.append(Level(key, before))
        before = (*before, key)
    if not ordered:
        raise LevelsError("no topology levels: expected at least one label key, the coarsest first")
    return Levels(tuple(ordered))


def topology_levels(topologies: Mapping[str, tuple[str, ...]], nodes: NodeColumns) -> Levels:
    """The levels of the Kueue Topology that most nodes carry, of the first name where several are alike.

    ``topologies``: by name the label keys of each, the coarsest first, as `TopologyMirror.levels` has them. A
    cluster may have one for each kind of machine, and requests name a level and no object: so one counts, the
    one whose labels, all of them, most nodes carry. Without any: the levels of known sources.
    """
    most, best = 0, ""
    for name in sorted(topologies):
        carriers = _carriers(topologies[name], nodes)
        if carriers > most:
            most, best = carriers, name
    return levels_of(topologies[best]) if best else detected(nodes.described.keys)


def _carriers(keys: tuple[str, ...], nodes: NodeColumns) -> int:
    """How many nodes carry all of these labels."""
    if not all(key in nodes.described.keys for key in keys):
        return 0
    carried = nodes.present.copy()
    for key in keys:
        carried &= nodes.described.codes(key)[: len(carried)] != ABSENT
    return int(np.count_nonzero(carried))


def detected(carried: Collection[str]) -> Levels:
    """The levels of known sources among the label keys that nodes carry."""
    found: dict[str, Level] = {}
    for chain in (
        (ZONE,),
        (f"{_GCE}block", f"{_GCE}subblock"),
        (f"{_AWS}1", f"{_AWS}2", f"{_AWS}3"),
        tuple(f"fabric.topograph.run/tier-{tier}" for tier in reversed(range(_MOST_TIERS))),
        tuple(f"{_TOPOGRAPH_OLD}tier-{tier}" for tier in reversed(range(_MOST_TIERS))),
        tuple(f"{_TOPOGRAPH_OLD}{name}" for name in ("datacenter", "spine", "block")),
        tuple(f"{_TOPOGRAPH_OLD}{name}" for name in ("core", "spine", "leaf")),
        ("accelerator.topograph.run/domain", "accelerator.topograph.run/sub-domain"),
        (f"{_TOPOGRAPH_OLD}accelerator", f"{_TOPOGRAPH_OLD}sub-domain"),
        (CLIQUE,),
        *((key,) for key in _partitions(carried)),
        (f"{_GCE}block", f"{_GCE}subblock", f"{_GCE}host"),
        (HOSTNAME,),
    ):
        before: tuple[str, ...] = ()
        for key in chain:
            if key in carried:
                found.setdefault(key, Level(key, before))
                before = (*before, key)
    return Levels(tuple(found.values()))


def _partitions(carried: Collection[str]) -> list[str]:
    """The labels of nested TPU partitions, those of most chips first."""
    matches = {key: match for key in carried if (match := _PARTITION.fullmatch(key))}
    chips = {key: prod(map(int, match[1].split("x"))) for key, match in matches.items()}
    return sorted(chips, key=lambda key: (-chips[key], key))
