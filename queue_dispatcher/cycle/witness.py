"""Witness: the placement by which an estimator has proven that a workload fits into its cluster."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

Nodes = tuple[tuple[str, int], ...]
"""Nodes by name, and how many pods go to each."""


@dataclass(frozen=True, slots=True)
class Witness:
    """Where one workload's pods would go in one cluster; on no nodes where its scheduler does as well.

    ``nodes``: by pod set. ``ranks``: whether the cluster has the PriorityClasses that put large pods first.
    ``spare``: pod sets and nodes of theirs that would take more of them, and have to be filled last.
    """

    nodes: tuple[tuple[str, Nodes], ...]
    ranks: bool = False
    spare: frozenset[tuple[str, str]] = frozenset()

    def is_on(self, nodes: Collection[str]) -> bool:
        """Whether any of the pods would go to one of these."""
        return any(node in nodes for _, where in self.nodes for node, _ in where)


LEFT_ALONE: Final = Witness(())
"""Its pods need not be told where to go."""
