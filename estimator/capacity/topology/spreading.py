"""How many pods of one shape fit that keep their distance: caps per domain, and even spreading over domains.

A cap (required anti-affinity to itself, a host port) lets each domain of a label take so many pods. Spreading
lets the fullest domain have at most ``max_skew`` more than the emptiest, so the domain with the least room
decides: with m pods in that one, no domain ever gets more than m + max_skew, and all of that can be placed
one pod at a time. With one constraint and caps inside its domains this is exact; several constraints are
filled in waves, each of which all constraints allow in any order, which is a number that surely fits.

Only the pods that are asked about are counted, not pods of the same workload that run already. A domain
without room still counts as the emptiest, whatever taints keep the pods off it. Mirrors
podtopologyspread/filtering.go and interpodaffinity/filtering.go of kube-scheduler 1.36.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from estimator.capacity.answer import UNBOUNDED, Answer
from estimator.capacity.budget import Expired
from estimator.capacity.eligibility import eligibility
from estimator.capacity.replicas import max_replicas
from estimator.capacity.request import PodShape, Spread
from estimator.capacity.room import Room
from estimator.capacity.topology.domains import LARGEST, filled, sums
from estimator.capacity.topology.levels import HOSTNAME
from estimator.capacity.topology.row_fits import RowFits, row_fits
from estimator.cluster.columns import BoolVector, IntVector, NodeColumns
from estimator.reasons import Reason, domain_cap, scarcest_domain, understated
from fairway.taints import Toleration

# At most some tens of milliseconds at 5,000 nodes.
_MOST_WAVES = 256
# Whether labels nest is looked at pair by pair.
_MOST_NESTED = 8
_ANY_TAINT = Toleration(operator="Exists")


@dataclass(frozen=True, slots=True)
class Spreading:
    """So many pods of a shape, and how many of them on each row."""

    answer: Answer
    placed: IntVector


@dataclass(frozen=True, slots=True)
class RowCaps:
    """How many pods of a shape each row may take while others decide how many it gets.

    Within ``safe`` every constraint of the shape holds, whatever is placed; beyond ``most`` none can hold.
    """

    safe: IntVector
    most: IntVector
    reasons: tuple[Reason, ...]

    @property
    def exact(self) -> bool:
        """Whether the caps say all that the constraints say."""
        return bool(np.array_equal(self.safe, self.most))


def keeps_distance(shape: PodShape) -> bool:
    """Whether pods of the shape are capped or spread at all."""
    return bool(shape.per_domain or shape.spread)


def spread_limit(capacity: IntVector, max_skew: int, min_domains: int = 0) -> IntVector:
    """The most pods in each eligible domain where each could take ``capacity``. Exact.

    With fewer domains than ``min_domains`` the emptiest counts as having none. Nothing fits with a
    ``max_skew`` below 1, which Kubernetes does not accept.
    """
    if max_skew < 1:
        return np.zeros_like(capacity)
    return np.minimum(capacity, _least(capacity, min_domains) + max_skew)


def spread_replicas(room: Room, shape: PodShape, expired: Expired, wanted: int = UNBOUNDED) -> Spreading:
    """The largest number of pods of the shape, ``wanted`` at most, that its caps and spreading allow here.

    Proven with at most one spread constraint and caps on labels that nest in each other and in its domains;
    otherwise the value surely fits. The bound, the strictest constraint's own, does not end at ``wanted``.
    """
    caps, rules = _caps(room.nodes, shape), _rules(room.nodes, shape)
    fits = _usable(room, shape, rules)
    placed = _in_waves(_trimmed(fits.sure, caps), rules, wanted, expired)
    value = int(placed.sum())
    bound = _bound(fits.most, caps, rules)
    reasons = _biting(fits.sure, caps, rules)
    if value < min(_bound(fits.sure, caps, rules), wanted):
        reasons.append(understated("several caps or spread constraints do not nest in each other"))
    value, bound = min(value, UNBOUNDED), min(bound, UNBOUNDED)
    reasons += max_replicas(room, shape).reasons
    return Spreading(Answer(value, bound, value == bound, tuple(reasons)), placed)


def row_caps(room: Room, shape: PodShape, rank: IntVector | None = None) -> RowCaps:
    """Caps per row under which pods of the shape may be placed freely, for gangs whose pods go together.

    Exact where each domain is a single row (anti-affinity by host, host ports). Otherwise the rows of a
    domain share its cap beforehand, those first by ``rank`` the first, and spreading gives each domain no
    more than ``max_skew``: then the domains cannot differ by more.
    """
    caps, rules = _caps(room.nodes, shape), _rules(room.nodes, shape)
    fits = _usable(room, shape, rules)
    most = fits.most
    for cap in caps:
        most = np.minimum(most, cap.pods[cap.number])
    for rule in rules:
        most = np.minimum(most, rule.limit(most)[rule.number])
    alike = [_Cap(rule.spread.key, rule.number, np.full(rule.count, rule.skew)) for rule in rules]
    return RowCaps(_trimmed(fits.sure, (*caps, *alike), rank), most, tuple(_biting(fits.sure, caps, rules)))


@dataclass(frozen=True, slots=True)
class _Cap:
    """At most ``pods[n]`` pods on the rows of number n; those of number 0 lack the label, without a cap."""

    key: str
    number: IntVector
    pods: IntVector

    def limit(self, fits: IntVector) -> IntVector:
        return np.minimum(sums(self.number, fits, len(self.pods)), self.pods)


@dataclass(frozen=True, slots=True)
class _Rule:
    """A spread constraint: the domain of each row (0: not to be used), and which domains are eligible."""

    spread: Spread
    number: IntVector
    eligible: BoolVector

    @property
    def count(self) -> int:
        return len(self.eligible)

    @property
    def skew(self) -> int:
        return max(0, min(self.spread.max_skew, UNBOUNDED))

    def least(self, pods: IntVector) -> int:
        return _least(pods[self.eligible], self.spread.min_domains)

    def limit(self, fits: IntVector) -> IntVector:
        """The most pods on the rows of each number."""
        limit = np.zeros(self.count, dtype=np.int64)
        capacity = sums(self.number, fits, self.count)[self.eligible]
        limit[self.eligible] = spread_limit(capacity, self.skew, self.spread.min_domains)
        return limit


def _least(pods: IntVector, min_domains: int) -> int:
    return 0 if len(pods) < max(1, min_domains) else int(pods.min())


def _caps(nodes: NodeColumns, shape: PodShape) -> tuple[_Cap, ...]:
    """The shape's caps, those of the most domains first."""
    caps = []
    for key, most in shape.per_domain:
        number = nodes.labels.codes(key)[: len(nodes.rows)].astype(np.int64)
        if key == HOSTNAME:
            # Two pods on one node share it, labelled or not.
            absent = np.flatnonzero(number == 0)
            number[absent] = int(number.max(initial=0)) + 1 + np.arange(len(absent))
        pods = np.full(int(number.max(initial=0)) + 1, max(0, most), dtype=np.int64)
        pods[0] = LARGEST
        caps.append(_Cap(key, number, pods))
    return tuple(sorted(caps, key=lambda cap: -len(np.unique(cap.number))))


def _rules(nodes: NodeColumns, shape: PodShape) -> tuple[_Rule, ...]:
    """The shape's spread constraints, those of the fewest domains first.

    A node counts with all the constraints' labels only, and by its affinity: taints are ignored.
    """
    if not shape.spread:
        return ()
    counts = eligibility(nodes, replace(shape.claim, tolerations=(_ANY_TAINT,))).mask
    codes = [nodes.labels.codes(spread.key)[: len(nodes.rows)].astype(np.int64) for spread in shape.spread]
    counts = counts & np.logical_and.reduce([column > 0 for column in codes])
    rules = []
    for spread, column in zip(shape.spread, codes, strict=True):
        number = np.where(counts, column, 0)
        eligible = np.zeros(int(number.max(initial=0)) + 1, dtype=np.bool_)
        eligible[number] = True
        eligible[0] = False
        rules.append(_Rule(spread, number, eligible))
    return tuple(sorted(rules, key=lambda rule: int(np.count_nonzero(rule.eligible))))


def _usable(room: Room, shape: PodShape, rules: Iterable[_Rule]) -> RowFits:
    """What fits on each row by itself, nothing where a spread constraint's label is missing."""
    fits = row_fits(room, shape)
    # Sums over all rows must not wrap.
    limit = np.full(len(room.nodes.rows), LARGEST // max(1, len(room.nodes.rows)))
    for rule in rules:
        limit[rule.number == 0] = 0
    return RowFits(np.minimum(fits.sure, limit), np.minimum(fits.most, limit))


def _trimmed(fits: IntVector, caps: Iterable[_Cap], rank: IntVector | None = None) -> IntVector:
    """Pods per row such that every cap holds; the most in all where the caps nest, the finest first."""
    for cap in caps:
        fits = filled(cap.number, fits, cap.pods, rank)
    return fits


def _bound(fits: IntVector, caps: Sequence[_Cap], rules: Sequence[_Rule]) -> int:
    """What no placement exceeds: the strictest of what can be said exactly."""
    bounds = [int(fits.sum())]
    bounds += [int(cap.limit(fits).sum()) for cap in caps]
    used = fits > 0
    if _nest(caps, used):
        bounds.append(int(_trimmed(fits, caps).sum()))
    for rule in rules:
        inside = [cap for cap in caps if _within(cap.number, rule.number, used)]
        bounds.append(int(rule.limit(_trimmed(fits, inside) if _nest(inside, used) else fits).sum()))
    return min(bounds)


def _nest(caps: Sequence[_Cap], rows: BoolVector) -> bool:
    pairs = combinations(caps, 2)
    return len(caps) <= _MOST_NESTED and all(_within(fine.number, wide.number, rows) for fine, wide in pairs)


def _within(fine: IntVector, wide: IntVector, rows: BoolVector) -> bool:
    """Whether each domain of the one, on these rows, lies in a single domain of the other."""
    rows = rows & (fine > 0)
    pairs = np.unique(fine[rows] * (int(wide.max(initial=0)) + 1) + wide[rows])
    return len(pairs) == len(np.unique(fine[rows]))


def _in_waves(fits: IntVector, rules: Sequence[_Rule], wanted: int, expired: Expired) -> IntVector:
    """Pods per row that all constraints allow, ``wanted`` at most.

    With several constraints, wave by wave one more for each domain of all but the first. Within a wave the
    emptiest domains only gain, so what was allowed at its start is allowed in any order; the first constraint
    is filled exactly, given what the others allow.
    """
    placed = np.zeros_like(fits)
    if not rules:
        return filled(placed, fits, np.array([wanted]))
    first, *others = rules
    for _ in range(_MOST_WAVES if others else 1):
        if others and expired():
            break
        more = fits - placed
        for rule in others:
            pods = sums(rule.number, placed, rule.count)
            more = filled(rule.number, more, np.clip(rule.least(pods) + rule.skew - pods, 0, 1))
        pods = sums(first.number, placed, first.count)
        limit = np.maximum(first.limit(placed + more), pods)
        more = filled(first.number, more, _levelled(pods, limit, wanted) - pods)
        if not more.any():
            break
        placed += more
    return placed


def _levelled(pods: IntVector, limit: IntVector, total: int) -> IntVector:
    """Between ``pods`` and ``limit`` in each domain, ``total`` in all at most, the emptiest raised first."""
    if int(limit.sum()) <= total:
        return limit
    low, high = 0, int(limit.max())
    while low < high:
        level = (low + high + 1) // 2
        if int(np.clip(level, pods, limit).sum()) <= total:
            low = level
        else:
            high = level - 1
    raised: IntVector = np.clip(low, pods, limit)
    left = max(0, total - int(raised.sum()))
    raised[np.flatnonzero((raised == low) & (limit > low))[:left]] += 1
    return raised


def _biting(fits: IntVector, caps: Iterable[_Cap], rules: Iterable[_Rule]) -> list[Reason]:
    """The constraints that by themselves keep pods off, each as a reason."""
    total = int(fits.sum())
    reasons: list[Reason] = [
        domain_cap(cap.key, int(cap.pods[-1])) for cap in caps if int(cap.limit(fits).sum()) < total
    ]
    for rule in rules:
        if int(rule.limit(fits).sum()) < total:
            domains = int(np.count_nonzero(rule.eligible))
            least = rule.least(sums(rule.number, fits, rule.count))
            reasons.append(scarcest_domain(rule.spread.key, rule.skew, domains, least))
    return reasons
