"""A placement as Karmada states it, reduced to what decides where a workload may land.

Mirrors Karmada 1.19 where it is lenient or strict in its own way: a selector that cannot be read matches no
cluster; without a replica scheduling strategy replicas are duplicated; fixed weights ignore spread
constraints (shouldIgnoreSpreadConstraint in pkg/scheduler/core/spreadconstraint).
"""

from collections.abc import Iterable

from fairway.kube.objects import (
    LabelSelector,
    SelectorRequirement,
)
from fairway.selectors import SelectorError, label_requirement
from fairway.taints import NO_EXECUTE, Taint, Toleration
from queue_dispatcher.api.selector import EVERYTHING, NOTHING, Selector, read_selector
from queue_dispatcher.bindings.objects import (
    ClusterAffinitySpec,
    ClusterToleration,
    PlacementSpec,
    ReplicaScheduling,
)
from queue_dispatcher.workloads.placement import (
    ZONE,
    AffinityGroup,
    ClusterAffinity,
    Division,
    Placement,
    ZoneRequirement,
)

_CLUSTER = "cluster"
_NO_CLUSTER = ClusterAffinity(labels=NOTHING)
_LOST = tuple(Taint(f"cluster.karmada.io/{name}", "", NO_EXECUTE) for name in ("not-ready", "unreachable"))
"""The taints for which Karmada evicts from clusters that are lost, where it does."""


def read_placement(stated: PlacementSpec, evicting: Iterable[str] = (), scheduler: str = "") -> Placement:
    """The placement, reduced; never raises. ``evicting``: clusters that Karmada takes the workload off;
    ``scheduler``: who is to place it, empty for Karmada's own.
    """
    scheduling = stated.replica_scheduling
    division = _division(scheduling)
    spread = () if division is Division.STATIC else tuple(stated.spread_constraints or ())
    tolerations = stated.cluster_tolerations or ()
    by_cluster = [s for s in spread if not s.spread_by_label and s.spread_by_field in ("", _CLUSTER)]
    return Placement(
        groups=_groups(stated),
        tolerations=tuple(Toleration(one.key, one.operator, one.value, one.effect) for one in tolerations),
        stays_ms=_stays_ms(tolerations),
        division=division,
        min_clusters=max((s.min_groups for s in by_cluster), default=0),
        max_clusters=min((s.max_groups for s in by_cluster if s.max_groups > 0), default=0),
        spread_by=frozenset(
            by for s in stated.spread_constraints or () if (by := s.spread_by_field or s.spread_by_label)
        ),
        evicting=frozenset(evicting),
        scheduler=scheduler,
    )


def _stays_ms(tolerations: Iterable[ClusterToleration]) -> int | None:
    """For how long the workload is to stay in a cluster that is lost, None for ever.

    Mirrors GetMatchingTolerations and GetMinTolerationTime of Karmada's taint manager; the longer of both
    taints.
    """
    longest_ms = 0
    for taint in _LOST:
        matching = [one.toleration_seconds for one in tolerations if one.tolerates(taint)]
        seconds = [max(0, one) for one in matching if one is not None]
        if matching and not seconds:
            return None
        longest_ms = max(longest_ms, 1_000 * min(seconds, default=0))
    return longest_ms


def _groups(stated: PlacementSpec) -> tuple[AffinityGroup, ...]:
    if stated.cluster_affinity is not None:
        return ((_affinity(stated.cluster_affinity),),)
    return tuple(
        (_affinity(term), *(_affinity(overflow) for overflow in term.overflow_affinities or ()))
        for term in stated.cluster_affinities or ()
    )


def _affinity(stated: ClusterAffinitySpec) -> ClusterAffinity:
    expressions = (stated.field_selector.match_expressions if stated.field_selector else None) or ()
    try:
        return ClusterAffinity(
            names=frozenset(stated.cluster_names or ()),
            exclude=frozenset(stated.exclude or ()),
            labels=_labels(stated.label_selector),
            fields=tuple(
                label_requirement(e.key, e.operator, tuple(e.values or ()))
                for e in expressions
                if e.key != ZONE
            ),
            zones=_zones(expressions),
        )
    except SelectorError:
        return _NO_CLUSTER


def _labels(stated: LabelSelector | None) -> Selector:
    return EVERYTHING if stated is None else read_selector(stated)


def _zones(expressions: Iterable[SelectorRequirement]) -> tuple[ZoneRequirement, ...]:
    return tuple(ZoneRequirement(e.operator, frozenset(e.values or ())) for e in expressions if e.key == ZONE)


def _division(scheduling: ReplicaScheduling | None) -> Division:
    if scheduling is None or scheduling.replica_scheduling_type == "Duplicated":
        return Division.DUPLICATED
    if (
        scheduling.replica_scheduling_type != "Divided"
        or scheduling.replica_division_preference != "Weighted"
    ):
        return Division.AGGREGATED
    weights = scheduling.weight_preference
    is_static = weights is None or (bool(weights.static_weight_list) and not weights.dynamic_weight)
    return Division.STATIC if is_static else Division.DYNAMIC
