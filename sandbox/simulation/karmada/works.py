"""Works: what is to be in each member for a binding, and what Karmada makes of what the members say. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sandbox.simulation.karmada.division import Strategy, by_weight
from sandbox.simulation.karmada.placement import strategy
from sandbox.simulation.objects import Obj, at


@dataclass(slots=True, eq=False)
class Work:
    """One workload in one member. ``template`` None: it is to be deleted there, or with ``keeps`` left alone.

    ``status``: as collected last, None where it was not applied yet. ``problem``: why it cannot be applied.
    """

    binding: str
    cluster: str
    owner: str
    template: Obj | None
    replicas: int | None = None
    completions: int | None = None
    status: Obj | None = None
    problem: str = ""
    keeps: bool = False

    @property
    def key(self) -> str:
        """binding|cluster."""
        return f"{self.binding}|{self.cluster}"


@dataclass(frozen=True, slots=True)
class Share:
    """What a cluster is to get; ``replicas`` None: as the template says."""

    replicas: int | None
    completions: int | None = None


def shares(binding: Obj, template: Obj) -> dict[str, Share]:
    """What each cluster gets: none while it is being deleted."""
    spec = binding["spec"]
    if "deletionTimestamp" in binding["metadata"]:
        return {}
    placed: dict[str, int | None] = {
        one["name"]: None if spec.get("components") else one.get("replicas") or 0
        for one in spec.get("clusters") or ()
    }
    for task in spec.get("gracefulEvictionTasks") or ():
        if task.get("purgeMode") != "Directly":
            placed.setdefault(task["fromCluster"], task.get("replicas"))
    completions = at(template, "spec", "completions")
    is_split = strategy(spec.get("placement") or {}) is not Strategy.DUPLICATED and len(placed) > 1
    if completions is None or not is_split:
        return {name: Share(replicas) for name, replicas in placed.items()}
    parts = by_weight(completions, {name: replicas or 0 for name, replicas in placed.items()})
    return {name: Share(replicas, parts.get(name, 0)) for name, replicas in placed.items()}


def is_dispatching_suspended(spec: Obj, cluster: str) -> bool:
    """Whether a policy keeps the Work from being applied there."""
    suspension: Obj = spec.get("suspension") or {}
    if suspension.get("dispatching"):
        return True
    return cluster in at(suspension, "dispatchingOnClusters", "clusterNames", default=())


def aggregated(works: Iterable[Work]) -> list[Obj]:
    """The aggregatedStatus of a binding, by cluster."""
    items: list[Obj] = []
    for work in sorted(works, key=lambda work: work.cluster):
        if work.template is None:
            continue
        if work.problem:
            items.append({"clusterName": work.cluster, "appliedMessage": work.problem, "health": "Unknown"})
        elif work.status is not None:
            item = {"clusterName": work.cluster, "applied": True, "health": _health(work)}
            items.append({**item, "status": work.status})
    return items


def fully_applied(items: Iterable[Obj], clusters: int) -> tuple[str, str]:
    """Status and reason of the condition FullyApplied. An evicted binding shows a false alarm."""
    if clusters and sum(bool(item.get("applied")) for item in items) >= clusters:
        return "True", "FullyAppliedSuccess"
    return "False", "FullyAppliedFailed"


def template_status(kind: str, items: list[Obj], clusters: int) -> Obj | None:
    """The status of the template; None where Karmada cannot write one.

    A failed Job's never can be: the API server refuses Failed without FailureTarget.
    """
    statuses: list[Obj] = [item.get("status") or {} for item in items]
    if kind == "Deployment":
        names = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
        return {name: sum(one.get(name, 0) for one in statuses) for name in names}
    started = [one["startTime"] for one in statuses if "startTime" in one]
    status: Obj = {"startTime": min(started)} if started else {}
    ended = [_ended(one) for one in statuses]
    if "Failed" in ended:
        return None
    for name in ("active", "succeeded", "failed"):
        if count := sum(one.get(name, 0) for one in statuses):
            status[name] = count
    if clusters and ended.count("Complete") >= clusters:
        types: Mapping[str, tuple[str, ...]] = {"PyTorchJob": ("Succeeded",), "JobSet": ("Completed",)}
        kinds = types.get(kind, ("SuccessCriteriaMet", "Complete"))
        status["conditions"] = [{"type": one, "status": "True"} for one in kinds]
    return status


_ENDS = ("Failed", "Complete", "Completed", "Succeeded")


def _health(work: Work) -> str:
    status = work.status or {}
    if work.template is not None and work.template["kind"] == "Deployment":
        is_whole = status.get("readyReplicas", 0) == status.get("replicas", 0)
        return "Healthy" if is_whole else "Unhealthy"
    return "Healthy"


def _ended(status: Obj) -> str:
    for one in status.get("conditions") or ():
        if one.get("status") == "True" and one.get("type") in _ENDS:
            return "Failed" if one["type"] == "Failed" else "Complete"
    return ""
