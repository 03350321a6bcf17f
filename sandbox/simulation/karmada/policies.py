"""PropagationPolicies: which workloads they mean, and what they say of their bindings. Pure."""

from collections.abc import Iterable, Mapping
from typing import Literal

from sandbox.simulation.objects import Obj, at

Way = Literal["aggregated", "by room", "by weights", "copied", "in turn"]
"""Over as few clusters as have room, in proportion to it, in equal shares, all of it in each, or in the first
of its clusters that has room for all of it.
"""


def policy_of(workload: Obj, policies: Iterable[Obj]) -> Obj | None:
    """The policy of its namespace that means it: by name before label before kind, then by priority, name."""
    namespace = workload["metadata"].get("namespace", "")
    rated = [
        (rank, at(one, "spec", "priority", default=0), one)
        for one in policies
        if one["metadata"].get("namespace", "") == namespace and (rank := _rank(workload, one))
    ]
    if not rated:
        return None
    best = max((rank, priority) for rank, priority, _ in rated)
    means = [one for rank, priority, one in rated if (rank, priority) == best]
    return min(means, key=lambda one: str(one["metadata"]["name"]))


def _rank(workload: Obj, policy: Obj) -> int:
    """0: not meant; the more particular, the higher."""
    selectors: list[Obj] = at(policy, "spec", "resourceSelectors", default=[])
    return max((_selected(workload, selector) for selector in selectors), default=0)


def _selected(workload: Obj, selector: Obj) -> int:
    if (selector.get("apiVersion"), selector.get("kind")) != (workload["apiVersion"], workload["kind"]):
        return 0
    if name := selector.get("name"):
        return 3 if name == workload["metadata"]["name"] else 0
    wanted: Mapping[str, str] = at(selector, "labelSelector", "matchLabels", default={})
    if not wanted:
        return 1
    labels: Mapping[str, str] = workload["metadata"].get("labels") or {}
    return 2 if all(labels.get(key) == value for key, value in wanted.items()) else 0


def policy(
    name: str,
    namespace: str,
    kinds: Iterable[tuple[str, str]],
    placement: Obj,
    *,
    workload: str = "",
    labels: Mapping[str, str] | None = None,
    **spec: object,
) -> Obj:
    """A PropagationPolicy for (API version, kind), one workload of it, or those with all these labels."""
    selectors: list[Obj] = [{"apiVersion": version, "kind": kind} for version, kind in kinds]
    for selector in selectors:
        if workload:
            selector["name"] = workload
        if labels:
            selector["labelSelector"] = {"matchLabels": dict(labels)}
    stated = {"resourceSelectors": selectors, "placement": placement, **spec}
    return {"metadata": {"name": name, "namespace": namespace}, "spec": stated}


def placed(*clusters: str, way: Way = "aggregated", groups: int = 0, **more: object) -> Obj:
    """A placement: on these clusters, or all; ``groups``: on how many of them at most, 0 for any number."""
    scheduling: Obj = {"replicaSchedulingType": "Duplicated" if way == "copied" else "Divided"}
    match way:
        case "aggregated" | "in turn":
            scheduling["replicaDivisionPreference"] = "Aggregated"
        case "by room":
            weights = {"dynamicWeight": "AvailableReplicas"}
            scheduling |= {"replicaDivisionPreference": "Weighted", "weightPreference": weights}
        case "by weights":
            scheduling["replicaDivisionPreference"] = "Weighted"
        case _:
            pass
    stated: Obj = {"replicaScheduling": scheduling, **more}
    if way == "in turn":
        stated["clusterAffinities"] = [{"affinityName": name, "clusterNames": [name]} for name in clusters]
    elif clusters:
        stated["clusterAffinity"] = {"clusterNames": list(clusters)}
    if groups:
        stated["spreadConstraints"] = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": groups}]
    return stated
