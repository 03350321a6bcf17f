"""Kueue's Topology objects of one cluster, reduced to the label keys of their levels, the coarsest first."""

from collections.abc import Collection, Mapping

from estimator.cluster.report import Report
from fairway.kube.objects import object_key
from fairway.kube.topologies import KueueTopology
from fairway.selectors import is_label_key

MOST_LEVELS = 16
"""How many levels Kueue lets a Topology have."""

_SHOWN = 60


class TopologyMirror:
    """The Topology objects of one cluster; the reflector's sink for them."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._keys: dict[str, tuple[str, ...]] = {}
        self.version = 0
        """Changes with every change of what `levels` answers."""

    def keys(self) -> Collection[str]:
        """Names of all Topology objects known, whether or not they could be read."""
        return self._keys.keys()

    @property
    def levels(self) -> Mapping[str, tuple[str, ...]]:
        """By name the label keys of each, the coarsest first; left out what could not be read."""
        return {name: keys for name, keys in self._keys.items() if keys}

    def upsert(self, topology: KueueTopology) -> None:
        """A Topology appeared or changed."""
        name = object_key(topology.metadata)
        keys = tuple(level.node_label for level in topology.spec.levels or ())
        problem = _problem(keys)
        if problem:
            self._report("topologies", name, f"{problem}; the Topology is not heeded")
            keys = ()
        if self._keys.get(name) != keys:
            self._keys[name] = keys
            self.version += 1

    def delete(self, key: str) -> None:
        """A Topology is gone."""
        if self._keys.pop(key, None) is not None:
            self.version += 1


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
