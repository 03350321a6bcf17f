"""Witness: the placement by which an estimator has proven that a workload fits into its cluster."""

from dataclasses import dataclass

Nodes = tuple[tuple[str, int], ...]
"""Nodes by name, and how many pods go to each."""


@dataclass(frozen=True, slots=True)
class Witness:
    """Where one workload's pods would go in one cluster.

    ``nodes``: by pod set. ``ranks``: whether the cluster has the PriorityClasses that put large pods first.
    ``spare``: pod sets and nodes of theirs that would take more of them, and have to be filled last.
    """

    nodes: tuple[tuple[str, Nodes], ...]
    ranks: bool = False
    spare: frozenset[tuple[str, str]] = frozenset()
