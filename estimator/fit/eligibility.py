"""Which nodes a pod may be placed on at all: selector, affinity, taints, cordons.

The answer is a mask over the rows, computed on whole columns and remembered per node claim until a node
comes, goes or changes its labels or taints. Mirrors the NodeUnschedulable, TaintToleration and NodeAffinity
filters of kube-scheduler 1.36; readiness is not looked at, because Kubernetes states it as taints.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from estimator.cluster.columns import BoolVector, NodeColumns
from estimator.fit.pod_shape import NodeClaim
from estimator.reasons import NO_NODES, Reason, mismatched, untolerated
from fairway.selectors import FIELD_NAME, Requirement, Term
from fairway.taints import Taint, first_untolerated

_MAX_CLAIMS = 256
_MAX_CLAIM_BYTES = 16384


@dataclass(frozen=True, slots=True)
class Eligibility:
    """Rows a pod may use, how many there are, and why not the others (each counted once, by first cause)."""

    mask: BoolVector
    count: int
    blocked: tuple[Reason, ...]


class EligibilityCache:
    """Eligibility of one cluster's nodes per claim; recomputed when the nodes' labels or taints change."""

    def __init__(self) -> None:
        self._version = -1
        self._known: dict[NodeClaim, Eligibility] = {}

    def of(self, nodes: NodeColumns, claim: NodeClaim) -> Eligibility:
        """The rows of ``nodes`` that ``claim`` accepts."""
        if self._version != nodes.eligibility_version:
            self._version = nodes.eligibility_version
            self._known.clear()
        if claim.size_bytes > _MAX_CLAIM_BYTES:
            return eligibility(nodes, claim)
        known = self._known.get(claim)
        if known is None:
            if len(self._known) >= _MAX_CLAIMS:
                del self._known[next(iter(self._known))]
            known = self._known[claim] = eligibility(nodes, claim)
        return known


def eligibility(nodes: NodeColumns, claim: NodeClaim) -> Eligibility:
    """The rows that the claim accepts. O(rows) per requirement, plus one test per distinct set of taints."""
    if nodes.node_count == 0:
        return Eligibility(nodes.present.copy(), 0, (NO_NODES,))
    blocked: list[Reason] = []
    mask = _untainted(nodes, claim, blocked)
    tolerable = int(np.count_nonzero(mask))
    for requirement in claim.selector:
        mask &= _labelled(nodes, requirement)
    if claim.affinity is not None:
        any_term = np.zeros(len(mask), dtype=np.bool_)
        for term in claim.affinity:
            any_term |= _term(nodes, term)
        mask &= any_term
    count = int(np.count_nonzero(mask))
    if count < tolerable:
        blocked.append(mismatched(tolerable - count))
    return Eligibility(mask, count, tuple(blocked))


def rows_reached(nodes: NodeColumns, terms: Iterable[Term]) -> BoolVector:
    """The rows of nodes that any of the terms matches; fields are those of a node without a name.

    Mirrors CheckNodeAffinity of component-helpers/storage/volume, which shows the terms nothing but labels.
    """
    found = np.zeros(len(nodes.rows), dtype=np.bool_)
    for term in terms:
        if all(requirement.allows("") for requirement in term.fields):
            found |= _term(nodes, Term(term.labels))
    return found & nodes.present


def _untainted(nodes: NodeColumns, claim: NodeClaim, blocked: list[Reason]) -> BoolVector:
    mask = nodes.present.copy()
    counts = np.bincount(nodes.taint_codes[mask], minlength=len(nodes.taint_sets))
    tolerated = np.ones(len(nodes.taint_sets), dtype=np.bool_)
    by_taint: dict[Taint, int] = {}
    for code in np.flatnonzero(counts).tolist():
        taint = first_untolerated(nodes.taint_sets[code], claim.tolerations)
        if taint is not None:
            tolerated[code] = False
            by_taint[taint] = by_taint.get(taint, 0) + int(counts[code])
    for taint, count in sorted(by_taint.items(), key=lambda item: (-item[1], item[0])):
        blocked.append(untolerated(taint, count))
    if by_taint:
        mask &= tolerated[nodes.taint_codes]
    return mask


def _term(nodes: NodeColumns, term: Term) -> BoolVector:
    mask = np.ones(len(nodes.present), dtype=np.bool_)
    for requirement in term.labels:
        mask &= _labelled(nodes, requirement)
    for requirement in term.fields:
        mask &= _field(nodes, requirement)
    return mask


def _labelled(nodes: NodeColumns, requirement: Requirement) -> BoolVector:
    return nodes.labels.matching(requirement)[: len(nodes.rows)]


def _field(nodes: NodeColumns, requirement: Requirement) -> BoolVector:
    size = len(nodes.present)
    if requirement.key != FIELD_NAME:
        # A node has no other field, which Kubernetes reads as an empty text.
        return np.full(size, requirement.allows(""), dtype=np.bool_)
    named = np.zeros(size, dtype=np.bool_)
    for name in requirement.values:
        row = nodes.row_of(name)
        if row is not None:
            named[row] = True
    return ~named if requirement.complement else named
