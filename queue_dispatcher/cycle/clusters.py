"""Clusters that workloads of a cycle went to, as sets of bits.

A verdict may name hundreds of clusters, and every look at a workload that waits for one asks whether anybody
else went to any of them: one operation on an integer, instead of one for each cluster.
"""


class ClusterSets:
    """Sets of clusters as integers, the same for as long as it lives."""

    def __init__(self) -> None:
        self._bits: dict[str, int] = {}
        self._sets: dict[frozenset[str], int] = {}

    def of(self, clusters: frozenset[str]) -> int:
        """The set's integer."""
        found = self._sets.get(clusters)
        if found is None:
            if len(self._sets) >= _MOST_SETS:
                self._sets.clear()
            found = 0
            for cluster in clusters:
                found |= self._bits.setdefault(cluster, 1 << len(self._bits))
            self._sets[clusters] = found
        return found


class TakenClusters:
    """Which clusters the admissions of one cycle went to, and for which questions."""

    def __init__(self, sets: ClusterSets) -> None:
        self._sets = sets
        self._taken = 0
        self._by_probe: dict[str, int] = {}

    def take(self, clusters: frozenset[str], probe: str) -> None:
        """A workload of the question goes to some of the clusters, which none of another question went to."""
        taken = self._sets.of(clusters)
        self._taken |= taken
        self._by_probe[probe] = self._by_probe.get(probe, 0) | taken

    def is_taken(self, clusters: frozenset[str], *, but: str) -> bool:
        """Whether a workload of another question may go to any of the clusters."""
        if not self._taken:
            return False
        others = self._taken & ~self._by_probe.get(but, 0)
        return bool(others & self._sets.of(clusters))


_MOST_SETS = 10_000
