"""How many pods of one shape fit that keep their distance: caps per domain, and even spreading over domains.

A cap (required anti-affinity to itself, a host port) lets each domain of a label take so many pods. Spreading
lets the fullest domain have at most ``max_skew`` more than the emptiest, so the domain with the least room
decides: with m pods in that one, no domain ever gets more than m + max_skew, and all of that can be placed
one pod at a time. With one constraint and caps inside its domains this is exact; several constraints are
filled in waves, each of which all constraints allow in any order, which is a number that surely fits.

Pods that run already count as `estimator.fit` has found them; a domain without room still counts. Mirrors
podtopologyspread/filtering.go and interpodaffinity/filtering.go of kube-scheduler 1.36.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from estimator.capacity.answer import UNBOUNDED, Answer
from estimator.capacity.budget import Expired
from estimator.capacity.replicas import max_replicas
from estimator.capacity.room import Room, RowFits
from estimator.capacity.topology.domains import LARGEST, filled, sums
from estimator.cluster.columns import BoolVector, IntVector, NodeColumns
from estimator.fit.pod_shape import EACH_NODE, WHOLE_CLUSTER, PodShape
from estimator.fit.pod_topology_spread import SpreadRule, spread_rules
from estimator.reasons import Reason, domain_cap, scarcest_domain, understated

# At most some tens of milliseconds at 5,000 nodes.
_MOST_WAVES = 256
# Whether labels nest is looked at pair by pair.
_MOST_NESTED = 8


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


def keeps_distance(shape: PodShape) -> bool:
    """Whether pods of the shape are capped or spread at all."""
    return bool(shape.per_domain) or any(spread.counts_own for spread in shape.spread)


def spread_replicas(room: Room, shape: PodShape, expired: Expired, wanted: int = UNBOUNDED) -> Spreading:
    """The largest number of pods of the shape, ``wanted`` at most, that its caps and spreading allow here.

    Proven with at most one spread constraint and caps on labels that nest in each other and in its domains;
    otherwise the value surely fits. The bound, the strictest constraint's own, does not end at ``wanted``.
    """
    caps, rules = _caps(room.nodes, shape), _rules(room, shape)
    fits = _usable(room, shape, rules)
    total = max(0, dict(shape.per_domain).get(WHOLE_CLUSTER, UNBOUNDED))
    finer = [cap for cap in caps if cap.key != WHOLE_CLUSTER]
    placed = _in_waves(_trimmed(fits.sure, finer), rules, min(wanted, total), expired)
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
    caps, rules = _caps(room.nodes, shape), _rules(room, shape)
    fits = _usable(room, shape, rules)
    most = fits.most
    for cap in caps:
        most = np.minimum(most, cap.pods[cap.number])
    for rule in rules:
        most = np.minimum(most, _limit(rule, most)[rule.number])
    alike = [_Cap(rule.spread.key, rule.number, _freely(rule)) for rule in rules]
    return RowCaps(_trimmed(fits.sure, (*caps, *alike), rank), most, tuple(_biting(fits.sure, caps, rules)))


@dataclass(frozen=True, slots=True)
class _Cap:
    """At most ``pods[n]`` pods on the rows of number n; those of number 0 lack the label, without a cap."""

    key: str
    number: IntVector
    pods: IntVector

    def limit(self, fits: IntVector) -> IntVector:
        return np.minimum(sums(self.number, fits, len(self.pods)), self.pods)


def _limit(rule: SpreadRule, fits: IntVector) -> IntVector:
    """The most further pods in each domain of the rule, where each row takes so many."""
    return rule.totals(sums(rule.number, fits, rule.count)) - rule.present


def _freely(rule: SpreadRule) -> IntVector:
    """So many further pods may go to each domain whatever goes to the others."""
    return np.maximum(rule.least(rule.present) + rule.skew - rule.present, 0)


def _caps(nodes: NodeColumns, shape: PodShape) -> tuple[_Cap, ...]:
    """The shape's caps, those of the most domains first."""
    caps = []
    for key, most in shape.per_domain:
        number = _numbered(nodes, key)
        pods = np.full(int(number.max(initial=0)) + 1, max(0, most), dtype=np.int64)
        pods[0] = LARGEST
        caps.append(_Cap(key, number, pods))
    return tuple(sorted(caps, key=lambda cap: -int(np.count_nonzero(np.bincount(cap.number)[1:]))))


def _numbered(nodes: NodeColumns, key: str) -> IntVector:
    """The domain of each row, from 1; 0 where the label is missing."""
    size = len(nodes.rows)
    if key == EACH_NODE:
        return np.arange(1, size + 1)
    if key == WHOLE_CLUSTER:
        return np.ones(size, dtype=np.int64)
    return nodes.labels.codes(key)[:size].astype(np.int64)


def _rules(room: Room, shape: PodShape) -> tuple[SpreadRule, ...]:
    """The constraints that the pods' own number decides, those of the fewest domains first."""
    around = room.around(shape)
    rules = spread_rules(room.nodes, room.eligible_nodes, shape, around.running if around else ())
    own = [rule for rule in rules if rule.spread.counts_own]
    return tuple(sorted(own, key=lambda rule: int(np.count_nonzero(rule.eligible))))


def _usable(room: Room, shape: PodShape, rules: Iterable[SpreadRule]) -> RowFits:
    """What fits on each row by itself, nothing where a spread constraint's label is missing."""
    fits = room.row_fits(shape)
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


def _bound(fits: IntVector, caps: Sequence[_Cap], rules: Sequence[SpreadRule]) -> int:
    """What no placement exceeds: the strictest of what can be said exactly."""
    bounds = [int(fits.sum())]
    bounds += [int(cap.limit(fits).sum()) for cap in caps]
    used = fits > 0
    if _nest(caps, used):
        bounds.append(int(_trimmed(fits, caps).sum()))
    for rule in rules:
        inside = [cap for cap in caps if _within(cap.number, rule.number, used)]
        bounds.append(int(_limit(rule, _trimmed(fits, inside) if _nest(inside, used) else fits).sum()))
    return min(bounds)


def _nest(caps: Sequence[_Cap], rows: BoolVector) -> bool:
    pairs = combinations(caps, 2)
    return len(caps) <= _MOST_NESTED and all(_within(fine.number, wide.number, rows) for fine, wide in pairs)


def _within(fine: IntVector, wide: IntVector, rows: BoolVector) -> bool:
    """Whether each domain of the one, on these rows, lies in a single domain of the other."""
    rows = rows & (fine > 0)
    if int(np.bincount(fine[rows], minlength=1).max()) <= 1:
        return True
    pairs = np.unique(fine[rows] * (int(wide.max(initial=0)) + 1) + wide[rows])
    return len(pairs) == len(np.unique(fine[rows]))


def _in_waves(fits: IntVector, rules: Sequence[SpreadRule], wanted: int, expired: Expired) -> IntVector:
    """Pods per row that all constraints allow, ``wanted`` at most.

    With several constraints, wave by wave one more for each domain of all but the first. Within a wave the
    emptiest domains only gain, so what was allowed at its start is allowed in any order; the first constraint
    is filled exactly, given what the others allow: these give a domain's pod to a row where it is emptiest.
    """
    placed = np.zeros_like(fits)
    if not rules:
        return filled(placed, fits, np.array([wanted]))
    first, *others = rules
    running = int(first.present.sum())
    for _ in range(_MOST_WAVES if others else 1):
        if others and expired():
            break
        more = fits - placed
        pods = first.present + sums(first.number, placed, first.count)
        for rule in others:
            theirs = rule.present + sums(rule.number, placed, rule.count)
            room = np.clip(rule.least(theirs) + rule.skew - theirs, 0, 1)
            more = filled(rule.number, more, room, pods[first.number])
        limit = np.maximum(first.totals(sums(first.number, placed + more, first.count)), pods)
        more = filled(first.number, more, _levelled(pods, limit, running + wanted) - pods)
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


def _biting(fits: IntVector, caps: Iterable[_Cap], rules: Iterable[SpreadRule]) -> list[Reason]:
    """The constraints that by themselves keep pods off, each as a reason."""
    total = int(fits.sum())
    reasons: list[Reason] = [
        domain_cap(cap.key, int(cap.pods[-1])) for cap in caps if int(cap.limit(fits).sum()) < total
    ]
    for rule in rules:
        if int(_limit(rule, fits).sum()) < total:
            domains = int(np.count_nonzero(rule.eligible))
            least = rule.least(rule.present + sums(rule.number, fits, rule.count))
            reasons.append(scarcest_domain(rule.spread.key, rule.skew, domains, least))
    return reasons
