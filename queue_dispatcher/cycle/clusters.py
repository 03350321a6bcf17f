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


_MOST_SETS = 10_000
