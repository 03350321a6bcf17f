"""Viewer: what the reader of a document may see, without who that is or how it is known."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Viewer:
    """Sees everything (``namespaces`` None), or what is in these namespaces.

    ``unreviewed``: namespaces that were not looked at, since there are too many; they count as not permitted.
    """

    namespaces: frozenset[str] | None = None
    unreviewed: int = 0

    @classmethod
    def of(cls, namespaces: Iterable[str], unreviewed: int = 0) -> Self:
        """One who sees only these."""
        return cls(frozenset(namespaces), unreviewed)

    @property
    def sees_all(self) -> bool:
        """Whether nothing is kept from it; cluster-scoped workloads are seen by nobody else."""
        return self.namespaces is None

    def sees(self, namespace: str) -> bool:
        """Whether it may read names of the namespace; empty for what is cluster-scoped."""
        return self.namespaces is None or namespace in self.namespaces


EVERYTHING = Viewer()
