"""What a binding's placement says: the clusters that may be chosen, and how. Pure.

Mirrors the filters ClusterAffinity, TaintToleration, ClusterEviction and the strategy of pkg/scheduler/core.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from sandbox.fakeapi.selection import label_selector_matches
from sandbox.simulation.karmada.division import Strategy, Wanted
from sandbox.simulation.nodes import tolerates
from sandbox.simulation.objects import Obj, at, from_rfc3339

APPLIED: Final = "policy.karmada.io/applied-placement"
"""Annotation: the placement that was scheduled last, as JSON."""


def matches(affinity: Obj | None, cluster: Obj) -> bool:
    """Whether a ClusterAffinity means the cluster; none means all."""
    if not affinity:
        return True
    name = cluster["metadata"]["name"]
    if name in (affinity.get("exclude") or ()):
        return False
    labels: Mapping[str, str] = cluster["metadata"].get("labels") or {}
    if not label_selector_matches(affinity.get("labelSelector") or {}, labels):
        return False
    names = affinity.get("clusterNames") or ()
    return not names or name in names


def feasible(spec: Obj, affinity: Obj | None, clusters: Iterable[Obj]) -> list[str]:
    """Names of the clusters that pass the filters. A cluster that is not ready passes if it has no taint."""
    placed = {share["name"] for share in spec.get("clusters") or ()}
    evicted = {task["fromCluster"] for task in spec.get("gracefulEvictionTasks") or ()}
    tolerations: list[Obj] = at(spec, "placement", "clusterTolerations", default=[])
    return [
        name
        for cluster in clusters
        if (name := cluster["metadata"]["name"]) not in evicted
        and "deletionTimestamp" not in cluster["metadata"]
        and matches(affinity, cluster)
        and (name in placed or _is_tolerated(cluster, tolerations))
    ]


def wanted(spec: Obj, *, is_fresh: bool) -> Wanted:
    """What is to be divided, and how."""
    placement: Obj = spec.get("placement") or {}
    constraint: Obj = next(
        (
            one
            for one in placement.get("spreadConstraints") or ()
            if one.get("spreadByField", "cluster") == "cluster"
        ),
        {},
    )
    rules: list[Obj] = at(placement, "replicaScheduling", "weightPreference", "staticWeightList", default=[])
    weights = {
        name: int(rule.get("weight", 1))
        for rule in rules
        for name in at(rule, "targetCluster", "clusterNames", default=())
    }
    return Wanted(
        replicas=spec.get("replicas") or 0,
        placed={share["name"]: share.get("replicas") or 0 for share in spec.get("clusters") or ()},
        strategy=strategy(placement),
        min_groups=constraint.get("minGroups") or 0,
        max_groups=constraint.get("maxGroups") or 0,
        is_set=bool(spec.get("components")),
        is_fresh=is_fresh,
        weights=weights or None,
    )


def strategy(placement: Obj) -> Strategy:
    """How replicas are divided; Duplicated where nothing is said."""
    scheduling: Obj = placement.get("replicaScheduling") or {}
    if not scheduling or scheduling.get("replicaSchedulingType") == "Duplicated":
        return Strategy.DUPLICATED
    if scheduling.get("replicaDivisionPreference") == "Aggregated":
        return Strategy.AGGREGATED
    is_dynamic = bool(at(scheduling, "weightPreference", "dynamicWeight"))
    return Strategy.DYNAMIC if is_dynamic else Strategy.STATIC


def is_changed(spec: Obj) -> bool:
    """Whether what is placed is not what is wanted: IsBindingReplicasChanged of pkg/util."""
    placement: Obj = spec.get("placement") or {}
    if not placement.get("replicaScheduling"):
        return False
    placed = [share.get("replicas") or 0 for share in spec.get("clusters") or ()]
    if spec.get("components"):
        return not placed
    replicas = spec.get("replicas") or 0
    if strategy(placement) is Strategy.DUPLICATED:
        return any(count != replicas for count in placed)
    return sum(placed) != replicas


def needs_scheduling(obj: Obj, is_leaving: Callable[[str], bool]) -> bool:
    """Whether the scheduler has anything to decide about a binding: doScheduleBinding of pkg/scheduler."""
    spec = obj["spec"]
    if _is_another_placement(obj) or is_changed(spec) or is_fresh(obj):
        return True
    is_workload = spec.get("replicas") or spec.get("components") or spec.get("replicaRequirements")
    if not is_workload or strategy(spec["placement"]) is Strategy.DUPLICATED:
        return True
    return any(is_leaving(share["name"]) for share in spec.get("clusters") or ())


def is_fresh(obj: Obj) -> bool:
    """Whether somebody asked for it to be scheduled from scratch since it was last."""
    triggered = obj["spec"].get("rescheduleTriggeredAt")
    last = at(obj, "status", "lastScheduledTime")
    return bool(triggered and last) and from_rfc3339(triggered) > from_rfc3339(last)


def _is_another_placement(obj: Obj) -> bool:
    text = (obj["metadata"].get("annotations") or {}).get(APPLIED)
    if not text:
        return True
    try:
        applied: Obj = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return False
    now: Obj = obj["spec"]["placement"]
    if applied == now:
        return False
    if {**applied, "clusterAffinities": None} != {**now, "clusterAffinities": None}:
        return True
    name = at(obj, "status", "schedulerObservingAffinityName", default="")
    terms = [
        next((one for one in stated.get("clusterAffinities") or () if one.get("affinityName") == name), None)
        for stated in (applied, now)
    ]
    return not name or None in terms or terms[0] != terms[1]


def _is_tolerated(cluster: Obj, tolerations: list[Obj]) -> bool:
    taints: list[Obj] = at(cluster, "spec", "taints", default=[])
    return all(any(tolerates(one, taint) for one in tolerations) for taint in taints)
