"""The domains of one topology level: which rows are in which, as one vector of numbers.

Everything that is said about domains (sums, whole domains free, filling them up) is arithmetic on that
vector, so that thousands of nodes in hundreds of domains cost tens of microseconds. The vector depends on
labels alone and is remembered until they change.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from estimator.capacity.topology.levels import CLIQUE, Level
from estimator.cluster.columns import BoolVector, IntVector, NodeColumns
from estimator.reasons import Reason, outside_level

_MAX_LEVELS = 64
_MAX_VALUE_LENGTH = 63
LARGEST = 2**62
"""Sums never exceed it; what is larger counts as this much."""

# Up to here, the floating point that bincount adds in is exact.
_EXACT = 2**53


@dataclass(frozen=True, slots=True)
class Domains:
    """The domains of a level, numbered from 1 by path; ``number`` is 0 for rows that are in none.

    ``paths`` are the label values from the coarsest key to the level's own, one for each domain from 1.
    ``outside`` says which present nodes are in no domain, None if all are in one.
    """

    level: Level
    number: IntVector
    paths: tuple[tuple[str, ...], ...]
    outside: Reason | None

    @property
    def count(self) -> int:
        """How many domains there are."""
        return len(self.paths)

    def sums(self, column: IntVector) -> IntVector:
        """The sum of a column over each domain, index 0 for domain 1. Very large sums saturate."""
        return sums(self.number, column, self.count + 1)[1:]

    def anywhere(self, rows: BoolVector) -> BoolVector:
        """Which domains have any of these rows, index 0 for domain 1."""
        found = np.zeros(self.count + 1, dtype=np.bool_)
        found[self.number[rows]] = True
        return found[1:]

    def rows(self, index: int) -> BoolVector:
        """The rows of the domain of this index."""
        rows: BoolVector = self.number == index + 1
        return rows

    def lie_within(self, other: "Domains") -> bool:
        """Whether each of these domains lies in a single domain of the other level."""
        inside = self.number > 0
        pairs = np.unique(self.number[inside] * (other.count + 1) + other.number[inside])
        return len(pairs) == self.count and bool((pairs % (other.count + 1) > 0).all())


def filled(number: IntVector, fits: IntVector, pods: IntVector, rank: IntVector | None = None) -> IntVector:
    """Pods per row when ``pods[n]`` go to the rows of number n: in order of ``rank``, else by row.

    No row gets more than it fits, so rows that are to take more than they fit together take only that.
    """
    if int(pods[0]) in (0, LARGEST) and int(np.bincount(number)[1:].max(initial=0)) <= 1:
        # Domains of one row each take what they may, in whatever order.
        alone: IntVector = np.minimum(np.minimum(fits, pods[number]), LARGEST // max(1, len(number)))
        return alone
    order = np.lexsort((number,) if rank is None else (rank, number))
    ordered = number[order]
    wanted = pods[ordered]
    room = np.minimum(np.minimum(fits[order], wanted), LARGEST // max(1, len(order)))
    before = np.cumsum(room) - room
    start = np.searchsorted(ordered, ordered)
    placed = np.zeros_like(fits)
    placed[order] = np.clip(wanted - (before - before[start]), 0, room)
    return placed


def sums(number: IntVector, column: IntVector, count: int) -> IntVector:
    """The sum of a column over the rows of each number below ``count``; very large sums saturate."""
    largest, rows = int(column.max(initial=0)), max(1, len(column))
    if largest < _EXACT // rows:
        return np.bincount(number, column, count).astype(np.int64)
    total = np.zeros(count, dtype=np.int64)
    np.add.at(total, number, np.minimum(column, LARGEST // rows))
    return total


def combined(columns: Iterable[tuple[IntVector, int]]) -> IntVector:
    """One number for each combination of values; each column with the largest value that it may have."""
    together, possible = np.zeros(1, dtype=np.int64), 1
    for column, largest in columns:
        if possible > LARGEST // (largest + 1):
            together = np.unique(together, return_inverse=True)[1].astype(np.int64)
            possible = len(together)
        together, possible = together * (largest + 1) + column, possible * (largest + 1)
    return together


def everywhere(nodes: NodeColumns) -> Domains:
    """All rows as the one domain of no level."""
    return Domains(Level(""), np.ones(len(nodes.rows), dtype=np.int64), ((),), None)


def domains_of(nodes: NodeColumns, level: Level) -> Domains:
    """The domains of a level: rows that agree on all its labels. O(rows x keys)."""
    size = len(nodes.rows)
    inside = nodes.present.copy()
    malformed = np.zeros(size, dtype=np.bool_)
    columns = []
    example = ""
    for key in level.keys:
        codes = nodes.described.codes(key)[:size].astype(np.int64)
        values = nodes.described.values(key)
        columns.append((codes, values))
        inside &= codes > 0
        bad = [code for code, value in values.items() if not _names_domain(key, value)]
        if bad:
            found = np.isin(codes, bad) & nodes.present
            malformed |= found
            if found.any():
                example = min(values[code] for code in set(codes[found].tolist()))
    inside &= ~malformed
    together = combined([(codes[inside], len(values)) for codes, values in columns])
    first, inverse = np.unique(together, return_index=True, return_inverse=True)[1:]
    rows = np.flatnonzero(inside)[first]
    labels = [[values[code] for code in codes[rows].tolist()] for codes, values in columns]
    paths = list(zip(*labels, strict=True))
    # Codes depend on which node came first; numbers and answers must not.
    by_path = sorted(range(len(paths)), key=paths.__getitem__)
    place = np.zeros(len(paths), dtype=np.int64)
    place[by_path] = np.arange(1, len(paths) + 1)
    number = np.zeros(size, dtype=np.int64)
    number[inside] = place[inverse]
    missing = nodes.node_count - int(np.count_nonzero(inside))
    outside = outside_level(level.key, missing, int(np.count_nonzero(malformed)), example)
    return Domains(level, number, tuple(paths[at] for at in by_path), outside if missing else None)


class DomainCache:
    """Domains of one cluster's nodes per level; worked out again when the nodes' labels change."""

    def __init__(self) -> None:
        self._version = -1
        self._known: dict[Level, Domains] = {}

    def of(self, nodes: NodeColumns, level: Level) -> Domains:
        """The domains of the level among these nodes."""
        if self._version != nodes.eligibility_version:
            self._version = nodes.eligibility_version
            self._known.clear()
        known = self._known.get(level)
        if known is None:
            if len(self._known) >= _MAX_LEVELS:
                del self._known[next(iter(self._known))]
            known = self._known[level] = domains_of(nodes, level)
        return known


def _names_domain(key: str, value: str) -> bool:
    """Whether a label value can name a domain: not empty, and for a clique ``<cluster>.<number>``."""
    if key == CLIQUE:
        cluster, dot, number = value.rpartition(".")
        return bool(cluster and dot and number.isdecimal())
    return 0 < len(value) <= _MAX_VALUE_LENGTH and value.isprintable() and value == value.strip()
