"""A gang in the estimator's own terms: components, and how many of their pods must start together."""

from collections.abc import Sequence

from estimator.capacity.gangs.pod_affinity import RefusedTemplate, matches, own_distances, repelled
from estimator.capacity.gangs.templates import shape_of
from estimator.capacity.request import Component
from estimator.capacity.topology.levels import HOSTNAME
from fairway.workloads.gang import Gang, PodSet, TopologyMode, TopologyRequest


def gang_components(gang: Gang, *, at_least: bool = False) -> tuple[tuple[Component, ...], tuple[str, ...]]:
    """The components of one copy of the gang, and what of its templates could not be used, by pod set.

    Each has all pods of its set, or with ``at_least`` as many as must start together, rounded up to whole
    slices; sets without pods are left out. Required affinity of a set to itself becomes its topology where
    neither the set nor the gang has one. The gang's own topology is not repeated.
    """
    problems: list[str] = []
    components: list[Component] = []
    pod_sets = [pod_set for pod_set in gang.pod_sets if pod_set.count > 0]
    for pod_set in pod_sets:
        field = f"pod set {pod_set.name}"
        shape = shape_of(pod_set.template, field, problems, gang.namespace)
        topology = _topology(gang, pod_set, field, problems)
        replicas = _at_least(pod_set, topology) if at_least else pod_set.count
        if replicas:
            components.append(Component(pod_set.name, replicas, shape, topology))
        _tell_repelled(pod_set, pod_sets, field, problems)
    return tuple(components), tuple(problems)


def gang_size(gang: Gang) -> int:
    """How many pods of one copy must start together: 1 where they are independent, 0 where there are none."""
    if not gang.is_gang:
        return min(1, sum(pod_set.count for pod_set in gang.pod_sets))
    return sum(pod_set.minimum for pod_set in gang.pod_sets)


def _at_least(pod_set: PodSet, topology: TopologyRequest | None) -> int:
    slice_size = topology.slice_size if topology else 0
    if not slice_size:
        return pod_set.minimum
    return min(pod_set.count, -(-pod_set.minimum // slice_size) * slice_size)


def _topology(gang: Gang, pod_set: PodSet, field: str, problems: list[str]) -> TopologyRequest | None:
    """The topology of the pod set, by its own request or by required affinity to itself."""
    try:
        keys = own_distances(pod_set.template, field, []).one_domain
    except RefusedTemplate:
        return pod_set.topology  # such pods fit nowhere, which is told with their shape
    if HOSTNAME in keys:
        keys = (HOSTNAME,)  # one node is in one domain of every other label
    asked = pod_set.topology or gang.topology
    taken = pod_set.topology
    if asked is None and keys:
        asked = taken = TopologyRequest(TopologyMode.REQUIRED, keys[0])
    for key in keys:
        if asked is not None and asked != TopologyRequest(TopologyMode.REQUIRED, key):
            told = f"required affinity within {key} is not looked at beside {asked.mode} {asked.level}"
            problems.append(f"{field}: {told}")
    return taken


def _tell_repelled(pod_set: PodSet, pod_sets: Sequence[PodSet], field: str, problems: list[str]) -> None:
    """Tell that pods of one set are kept away from those of another, which no component can say."""
    selectors = repelled(pod_set.template)
    if not selectors:
        return
    for other in pod_sets:
        labels = other.template.metadata.labels or {}
        if other is not pod_set and any(matches(selector, labels) for selector in selectors):
            problems.append(f"{field}: anti-affinity to the pods of {other.name} is not looked at")
            return
