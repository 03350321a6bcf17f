"""How evenly pods have to be spread over the domains of a label, those that run already among them.

A node counts with the labels of all constraints only, and as each constraint's policies have it. Mirrors
DoNotSchedule constraints of PodTopologySpread of kube-scheduler 1.36 (podtopologyspread/filtering.go).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from estimator.cluster.columns import BoolVector, IntVector, NodeColumns
from estimator.cluster.occupancy import Selected
from estimator.fit.eligibility import EligibilityCache
from estimator.fit.limits import Limit
from estimator.fit.pod_shape import MAX_SKEW, NodeClaim, PodShape, Spread
from fairway.taints import Toleration

FILTER = "PodTopologySpread"
# What the admission plugin DefaultTolerationSeconds gives to every pod.
_GIVEN = tuple(
    Toleration(f"node.kubernetes.io/{state}", "Exists", "", "NoExecute")
    for state in ("not-ready", "unreachable")
)
_ANY_TAINT = (Toleration(operator="Exists"),)


@dataclass(frozen=True, slots=True)
class SpreadRule:
    """A constraint in one cluster: the domain of each row (0: none), which there are, and their pods."""

    spread: Spread
    number: IntVector
    eligible: BoolVector
    present: IntVector

    @property
    def count(self) -> int:
        """One more than the largest number of a domain."""
        return len(self.eligible)

    @property
    def skew(self) -> int:
        """By how many pods domains may differ, never negative."""
        return max(0, min(self.spread.max_skew, MAX_SKEW))

    def least(self, pods: IntVector) -> int:
        """The pods of the emptiest domain, of these in each; none where there are too few domains."""
        inside = pods[self.eligible]
        return 0 if len(inside) < max(1, self.spread.min_domains) else int(inside.min())

    def totals(self, capacity: IntVector) -> IntVector:
        """The most pods in each domain, present ones among them, where each takes so many more. Exact.

        Nothing fits with a skew below 1, which Kubernetes does not accept.
        """
        if self.skew < 1:
            return self.present
        most = self.least(self.present + capacity) + self.skew
        return np.where(self.eligible, np.maximum(self.present, np.minimum(self.present + capacity, most)), 0)


def spread_rules(
    nodes: NodeColumns, cache: EligibilityCache, shape: PodShape, running: Sequence[IntVector] = ()
) -> tuple[SpreadRule, ...]:
    """The shape's constraints in their order; ``running``: for each the pods per row that count for it."""
    if not shape.spread:
        return ()
    size = len(nodes.rows)
    codes = [nodes.labels.codes(spread.key)[:size].astype(np.int64) for spread in shape.spread]
    labelled = np.logical_and.reduce([column > 0 for column in codes])
    rules = []
    for index, (spread, column) in enumerate(zip(shape.spread, codes, strict=True)):
        counts = labelled & cache.of(nodes, _counting(shape.claim, spread)).mask
        number = np.where(counts, column, 0)
        eligible = np.zeros(int(number.max(initial=0)) + 1, dtype=np.bool_)
        eligible[number] = True
        eligible[0] = False
        present = np.zeros(len(eligible), dtype=np.int64)
        if running:
            present = np.bincount(number[counts], running[index][counts], len(eligible)).astype(np.int64)
        rules.append(SpreadRule(spread, number, eligible, present))
    return tuple(rules)


def running_pods(nodes: NodeColumns, shape: PodShape) -> tuple[IntVector, ...]:
    """For each constraint how many pods it counts on each row. Pods being deleted do not count."""
    size = len(nodes.rows)
    namespace = frozenset((shape.inter_pod.namespace,))
    return tuple(
        np.zeros(size, dtype=np.int64)
        if spread.selector is None
        else nodes.occupancy.counts(
            Selected(namespace, (spread.selector,), leaving=False, promised=False), size
        ).copy()
        for spread in shape.spread
    )


def pod_topology_spread(
    nodes: NodeColumns, cache: EligibilityCache, shape: PodShape, running: Sequence[IntVector]
) -> Limit | None:
    """The rows on which one more pod is allowed as things are; None where all are."""
    if not shape.spread:
        return None
    rows = np.ones(len(nodes.rows), dtype=np.bool_)
    labels = rows.copy()
    for rule in spread_rules(nodes, cache, shape, running):
        labels &= nodes.labels.codes(rule.spread.key)[: len(rows)] > 0
        if not rule.spread.counts_own:
            rows &= (rule.present - rule.least(rule.present) <= rule.skew)[rule.number]
    rows &= labels
    if rows[nodes.present].all():
        return None
    missing = " (missing required label)" if not labels[nodes.present & ~rows].any() else ""
    return Limit(FILTER, rows, reason=f"didn't match pod topology spread constraints{missing}")


def _counting(claim: NodeClaim, spread: Spread) -> NodeClaim:
    """The claim by which nodes make domains of the constraint."""
    if not spread.honors_affinity:
        claim = replace(claim, selector=(), affinity=None)
    tolerations = (*claim.tolerations, *_GIVEN) if spread.honors_taints else _ANY_TAINT
    return replace(claim, tolerations=tolerations)
