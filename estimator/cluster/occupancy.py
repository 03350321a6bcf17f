"""What the pods on each node are to other pods: labels that selectors find, terms that repel, ports, claims.

Pods that look alike to others (one ReplicaSet's, mostly) are one `PodGroup` with a count for each row. Two
things are asked of them: on which rows pods stand that a term selects, and which terms of theirs repel a
newcomer. A column of counts is built when a term is first asked about and kept up to date from then on, so
that a question costs nothing but arithmetic on columns, and a pod event as much as the pod has to say.

Mirrors what NodeInfo keeps for NodePorts, InterPodAffinity and PodTopologySpread of kube-scheduler 1.36.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from estimator.cluster.kind_mirror import discard
from fairway.pod_terms import HostPort, PodTerm, Selector, by_label
from fairway.selectors import Requirement

IntVector = NDArray[np.int64]
BoolVector = NDArray[np.bool_]

_MAX_COLUMNS = 128


@dataclass(frozen=True, slots=True)
class PodTraits:
    """What other pods see of a pod. ``claims``: keys of the PersistentVolumeClaims that it uses.

    ``is_leaving``: it is being deleted, which spreading does not count. ``is_promised``: it holds a node that
    it is not bound to yet, which attracts nobody.
    """

    namespace: str
    labels: tuple[tuple[str, str], ...] = ()
    repels: tuple[PodTerm, ...] = ()
    ports: tuple[HostPort, ...] = ()
    claims: tuple[str, ...] = ()
    is_leaving: bool = False
    is_promised: bool = False


@dataclass(frozen=True, slots=True)
class Selected:
    """Pods in any of these namespaces (None: in all) that all of these selectors match.

    ``leaving`` and ``promised``: whether pods that are being deleted, or are not bound yet, count as well.
    """

    namespaces: frozenset[str] | None
    selectors: tuple[Selector, ...]
    leaving: bool = True
    promised: bool = True
    rules: Mapping[str, Requirement] = field(init=False, repr=False, compare=False)
    """All of the selectors as one rule for each label."""
    _needed: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        rules = by_label(self.selectors)
        object.__setattr__(self, "rules", rules)
        object.__setattr__(self, "_needed", sum(not rule.allows_absent for rule in rules.values()))

    def selects(self, traits: PodTraits) -> bool:
        """Whether such pods are meant. O(their labels), however much the selectors say."""
        if self.namespaces is not None and traits.namespace not in self.namespaces:
            return False
        if (traits.is_leaving and not self.leaving) or (traits.is_promised and not self.promised):
            return False
        needed = self._needed
        for name, value in traits.labels:
            rule = self.rules.get(name)
            if rule is not None:
                if not rule.allows(value):
                    return False
                needed -= not rule.allows_absent
        return not needed


@dataclass(slots=True, eq=False)
class PodGroup:
    """The pods of one cluster with the same traits: on which rows they are, and how many.

    ``columns``: those that count them, as of ``version``.
    """

    traits: PodTraits
    rows: dict[int, int] = field(default_factory=dict)
    columns: tuple[IntVector, ...] = ()
    version: int = -1


class Occupancy:
    """The pods of one cluster by what they are to each other. Written by `PodMirror` alone."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._groups: dict[PodTraits, PodGroup] = {}
        self._by_namespace: dict[str, dict[PodGroup, None]] = {}
        self._columns: dict[Selected, IntVector] = {}
        self._labelled: dict[tuple[str, str, str], dict[PodGroup, None]] = {}
        self._version = 0
        self._repelling: dict[PodTerm, dict[int, int]] = {}
        self._repelling_in: dict[str, dict[PodTerm, None]] = {}
        self._repelling_chosen: set[PodTerm] = set()
        self._ports: dict[int, dict[HostPort, dict[int, int]]] = {}
        self._claims: dict[str, dict[int, int]] = {}
        self.claims_version = 0
        """Changes with every change of what `claims` answers."""

    @property
    def namespaces(self) -> Iterable[str]:
        """The namespaces that have pods on nodes."""
        return self._by_namespace.keys()

    @property
    def chooses_namespaces(self) -> bool:
        """Whether pods keep others away by the labels of namespaces."""
        return bool(self._repelling_chosen)

    def group(self, traits: PodTraits) -> PodGroup:
        """The pods with these traits; a group without pods is forgotten unless some come."""
        return self._groups.get(traits) or PodGroup(traits)

    def hold(self, row: int, group: PodGroup) -> None:
        """A pod of the group is on the row."""
        traits = group.traits
        if not group.rows:
            self._groups[traits] = group
            self._by_namespace.setdefault(traits.namespace, {})[group] = None
            for key, value in traits.labels:
                self._labelled.setdefault((traits.namespace, key, value), {})[group] = None
        _add(group.rows, row)
        for column in self._columns_of(group):
            column[row] += 1
        for term in traits.repels:
            self._repel(term, row)
        for port in traits.ports:
            _add(self._ports.setdefault(port.port, {}).setdefault(port, {}), row)
        for claim in traits.claims:
            _add(self._claims.setdefault(claim, {}), row)
            self.claims_version += 1

    def release(self, row: int, group: PodGroup) -> None:
        """One of them is there no more."""
        traits = group.traits
        _subtract(group.rows, row)
        for column in self._columns_of(group):
            column[row] -= 1
        if not group.rows:
            del self._groups[traits]
            discard(self._by_namespace, traits.namespace, group)
            for key, value in traits.labels:
                discard(self._labelled, (traits.namespace, key, value), group)
        for term in traits.repels:
            self._stop_repelling(term, row)
        for port in traits.ports:
            _subtract(self._ports[port.port][port], row)
            if not self._ports[port.port][port]:
                discard(self._ports, port.port, port)
        for claim in traits.claims:
            self.claims_version += 1
            _subtract(self._claims[claim], row)
            if not self._claims[claim]:
                del self._claims[claim]

    def grow(self, size: int) -> None:
        """Make room for more rows."""
        self._size = size
        for selected, column in self._columns.items():
            grown = np.zeros(size, dtype=np.int64)
            grown[: len(column)] = column
            self._columns[selected] = grown
        self._version += 1

    def counts(self, selected: Selected, rows: int) -> IntVector:
        """How many of the selected pods are on each of the first so many rows. Not to be written or kept."""
        column = self._columns.pop(selected, None)
        if column is None:
            column = self._count(selected)
            if len(self._columns) >= _MAX_COLUMNS:
                del self._columns[next(iter(self._columns))]
            self._version += 1
        self._columns[selected] = column
        return column[:rows]

    def repelling(self, namespace: str) -> Iterator[tuple[PodTerm, Mapping[int, int]]]:
        """The terms by which pods keep others away that may be about this namespace, and the rows of each."""
        for term in self._repelling_in.get(namespace, ()):
            yield term, self._repelling[term]
        for term in self._repelling_chosen:
            if namespace not in term.namespaces:
                yield term, self._repelling[term]

    def holding(self, wanted: HostPort) -> Iterator[int]:
        """The rows on which the port cannot be had."""
        for port, rows in self._ports.get(wanted.port, {}).items():
            if port.conflicts(wanted):
                yield from rows

    def using(self, claim: str) -> Mapping[int, int]:
        """The rows on which pods use this PersistentVolumeClaim, and how many."""
        return self._claims.get(claim, {})

    def claims(self) -> Mapping[str, Mapping[int, int]]:
        """The same of every claim in use. Not to be written or kept."""
        return self._claims

    def _columns_of(self, group: PodGroup) -> tuple[IntVector, ...]:
        """The columns that count such pods; remembered until a column comes or goes."""
        if group.version != self._version:
            traits = group.traits
            group.columns = tuple(c for selected, c in self._columns.items() if selected.selects(traits))
            group.version = self._version
        return group.columns

    def _count(self, selected: Selected) -> IntVector:
        rows: list[int] = []
        pods: list[int] = []
        namespaces = self._by_namespace if selected.namespaces is None else selected.namespaces
        for namespace in namespaces:
            for group in self._candidates(namespace, selected):
                if selected.selects(group.traits):
                    rows += group.rows
                    pods += group.rows.values()
        return np.bincount(np.array(rows, dtype=np.int64), pods, self._size).astype(np.int64)

    def _candidates(self, namespace: str, selected: Selected) -> Iterable[PodGroup]:
        """The groups of the namespace that may be meant: those with the rarest label that they must have."""
        least: Sequence[Mapping[PodGroup, None]] = (self._by_namespace.get(namespace, {}),)
        for requirement in selected.rules.values():
            if not requirement.complement and not requirement.allows_absent:
                found = [self._labelled.get((namespace, requirement.key, v), {}) for v in requirement.values]
                if sum(map(len, found)) < sum(map(len, least)):
                    least = found
        return chain.from_iterable(least)

    def _repel(self, term: PodTerm, row: int) -> None:
        rows = self._repelling.get(term)
        if rows is None:
            rows = self._repelling[term] = {}
            for namespace in term.namespaces:
                self._repelling_in.setdefault(namespace, {})[term] = None
            if term.namespace_selector is not None:
                self._repelling_chosen.add(term)
        _add(rows, row)

    def _stop_repelling(self, term: PodTerm, row: int) -> None:
        rows = self._repelling[term]
        _subtract(rows, row)
        if rows:
            return
        del self._repelling[term]
        self._repelling_chosen.discard(term)
        for namespace in term.namespaces:
            discard(self._repelling_in, namespace, term)


def _add(rows: dict[int, int], row: int) -> None:
    rows[row] = rows.get(row, 0) + 1


def _subtract(rows: dict[int, int], row: int) -> None:
    left = rows[row] - 1
    if left:
        rows[row] = left
    else:
        del rows[row]
