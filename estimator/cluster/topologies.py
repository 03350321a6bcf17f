"""Kueue's Topology objects of one cluster, reduced to the label keys of their levels, the coarsest first."""

from collections.abc import Mapping

from estimator.cluster.kind_mirror import KindMirror
from fairway.kube.objects import object_key
from fairway.kube.topologies import KueueTopology
from fairway.selectors import is_label_key

MOST_LEVELS = 16
"""How many levels Kueue lets a Topology have."""

_SHOWN = 60


class TopologyMirror(KindMirror[tuple[str, ...]]):
    """The Topology objects of one cluster; the reflector's sink for them. Empty is what could not be read."""

    @property
    def levels(self) -> Mapping[str, tuple[str, ...]]:
        """By name the label keys of each, the coarsest first; left out what could not be read."""
        return {name: keys for name, keys in self._values.items() if keys}

    def upsert(self, topology: KueueTopology) -> None:
        """A Topology appeared or changed."""
        name = object_key(topology.metadata)
        keys = tuple(level.node_label for level in topology.spec.levels or ())
        problem = _problem(keys)
        if problem:
            self._report("topologies", name, f"{problem}; the Topology is not heeded")
            keys = ()
        self._set(name, keys)


def _problem(keys: tuple[str, ...]) -> str:
    """What is wrong with the levels, empty if nothing is."""
    if not 1 <= len(keys) <= MOST_LEVELS:
        return f"spec.levels has {len(keys)} entries, expected 1 to {MOST_LEVELS}"
    for index, key in enumerate(keys):
        if not is_label_key(key):
            shown = repr(key if len(key) <= _SHOWN else f"{key[:_SHOWN]}...")
            return f"spec.levels[{index}].nodeLabel is {shown}, expected the key of a node label"
        if key in keys[:index]:
            return f"spec.levels[{index}].nodeLabel is {key!r} again, expected each key once"
    return ""
