"""Room as karmada-scheduler sees it: the least of what its two estimators say of each cluster. Pure.

The general estimator divides what the Cluster's status sums up, which is up to ten seconds old; the accurate
one is asked of each cluster, and if one of them fails, what the others said is lost too.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from fairway.resources import ResourceError, parse_amounts
from sandbox.simulation.objects import Obj, at

SKIP = -1
"""An accurate estimator's way to say nothing: the general estimate alone counts."""


class Accurate(Protocol):
    """The accurate estimators, as the scheduler asks them."""

    def replicas(self, cluster: str, requirements: Obj, asking: str) -> int | None:
        """How many more pods of these replicaRequirements fit; `SKIP`; None: an error, or too late.

        ``asking``: kind, namespace and name of the workload that it is about, with slashes between.
        """

    def sets(self, cluster: str, components: Iterable[Obj], asking: str) -> int | None:
        """How many whole sets of these components fit; otherwise as `replicas`."""


def room(spec: Obj, clusters: Iterable[Obj], accurate: Accurate | None) -> dict[str, int]:
    """How many more replicas, or sets, each cluster takes; what is asked for none of is asked of nobody."""
    components: list[Obj] = spec.get("components") or []
    requirements: Obj = spec.get("replicaRequirements") or {}
    if not components and not spec.get("replicas"):
        return {cluster["metadata"]["name"]: 0 for cluster in clusters}
    try:
        one = _total(components) if components else request_of(requirements)
    except ResourceError:
        one = {}
    general = {cluster["metadata"]["name"]: general_estimate(cluster, one) for cluster in clusters}
    if accurate is None:
        return general
    answers: dict[str, int] = {}
    asking = _workload(spec.get("resource") or {})
    for name in general:
        if components:
            answer = accurate.sets(name, components, asking)
        else:
            answer = accurate.replicas(name, requirements, asking)
        if answer is None:
            return general
        answers[name] = answer
    return {
        name: number if answers[name] == SKIP else min(number, answers[name])
        for name, number in general.items()
    }


def general_estimate(cluster: Obj, request: Mapping[str, int]) -> int:
    """What the Cluster's summary has room for; a resource that it does not name has none."""
    summary: Obj = at(cluster, "status", "resourceSummary", default={})
    try:
        allocatable, *taken = (
            parse_amounts(summary.get(name)) for name in ("allocatable", "allocated", "allocating")
        )
    except ResourceError:
        return 0
    return max(
        0,
        min(
            (
                (allocatable.get(name, 0) - sum(part.get(name, 0) for part in taken)) // amount
                for name, amount in request.items()
                if amount > 0
            ),
            default=1_000,
        ),
    )


def _workload(resource: Obj) -> str:
    return "/".join(str(resource.get(field, "")) for field in ("kind", "namespace", "name"))


def request_of(requirements: Obj) -> dict[str, int]:
    """What one replica asks for. Raises ResourceError."""
    return parse_amounts(requirements.get("resourceRequest"))


def _total(components: Iterable[Obj]) -> dict[str, int]:
    total: dict[str, int] = {}
    for component in components:
        request = request_of(component.get("replicaRequirements") or {})
        for name, amount in request.items():
            total[name] = total.get(name, 0) + amount * (component.get("replicas") or 0)
    return total
