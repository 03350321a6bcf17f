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
    ``only_packs``: whether they become whole left to themselves too, and are to go there only so that free
    devices stay together.
    """

    nodes: tuple[tuple[str, Nodes], ...]
    ranks: bool = False
    spare: frozenset[tuple[str, str]] = frozenset()
    only_packs: bool = False

    @property
    def is_needed(self) -> bool:
        """Whether its pods may not become whole unless they are told."""
        return bool(self.nodes) and not self.only_packs

    def is_on(self, nodes: Collection[str]) -> bool:
        """Whether any of the pods would go to one of these."""
        return any(node in nodes for _, where in self.nodes for node, _ in where)


LEFT_ALONE: Final = Witness(())
"""Its pods need not be told where to go."""
