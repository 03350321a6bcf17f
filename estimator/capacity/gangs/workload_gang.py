"""A gang in the estimator's own terms: components, and how many of their pods must start together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from estimator.capacity.gangs.templates import shape_of
from estimator.capacity.request import Component
from estimator.fit.pod_shape import PodShape
from fairway.pod_terms import PodTerm, matches
from fairway.workloads.gang import Gang, TopologyRequest


@dataclass(frozen=True, slots=True)
class WorkloadGang:
    """One workload by its template: the components of one copy, and how they must start.

    ``minimum``: so many pods of a copy must start together; at most 1 where pods are independent.
    ``copies``: each is a gang of its own, unless ``copies_together``. ``topology`` binds all pods of a copy.
    """

    components: tuple[Component, ...]
    minimum: int
    copies: int
    topology: TopologyRequest | None
    copies_together: bool = False
    problems: tuple[str, ...] = ()

    @property
    def together(self) -> int:
        """How many pods must start together in all."""
        return self.minimum * (self.copies if self.copies_together else 1)


def workload_gang(gang: Gang) -> WorkloadGang:
    """The gang of a template in the estimator's own terms."""
    components, problems = gang_components(gang)
    told = (*gang.problems, *problems)
    return WorkloadGang(components, gang_size(gang), gang.copies, gang.topology, gang.copies_together, told)


def gang_components(gang: Gang) -> tuple[tuple[Component, ...], tuple[str, ...]]:
    """The components of one copy of the gang, and what of its templates could not be used, by pod set.

    Each has all pods of its set; sets without pods are left out. The gang's own topology is not repeated.
    """
    problems: list[str] = []
    components: list[Component] = []
    for pod_set in gang.pod_sets:
        if pod_set.count > 0:
            name, count, template = pod_set.name, pod_set.count, pod_set.template
            shape = shape_of(template, f"pod set {name}", problems, gang.namespace)
            components.append(Component(name, count, shape, pod_set.topology, template))
    return _without_each_other(components, problems), tuple(problems)


def gang_size(gang: Gang) -> int:
    """How many pods of one copy must start together: 1 where they are independent, 0 where there are none."""
    if not gang.is_gang:
        return min(1, sum(pod_set.count for pod_set in gang.pod_sets))
    return sum(pod_set.minimum for pod_set in gang.pod_sets)


def _without_each_other(components: list[Component], problems: list[str]) -> tuple[Component, ...]:
    """The components less what they say of each other, which no number of pods can say; it is told."""
    kept = []
    for component in components:
        others = [other for other in components if other.shape != component.shape]
        for other in others:
            problems += [
                f"pod set {component.name}: {what} the pods of {other.name} is not looked at"
                for what in _said(component.shape, other.shape)
            ]
        pod = component.shape.inter_pod
        near = tuple(term for term in pod.affinity if not any(_about((term,), one.shape) for one in others))
        if len(near) < len(pod.affinity):
            shape = replace(component.shape, inter_pod=replace(pod, affinity=near))
            component = replace(component, shape=shape)
        kept.append(component)
    return tuple(kept)


def _said(shape: PodShape, other: PodShape) -> Iterator[str]:
    """What pods of the one shape say of pods of the other."""
    pod, labels = shape.inter_pod, dict(other.inter_pod.labels)
    if _about(pod.anti_affinity, other):
        yield "anti-affinity to"
    if _about(pod.affinity, other):
        yield "affinity to"
    if any(spread.selector is not None and matches(spread.selector, labels) for spread in shape.spread):
        yield "spreading with"
    if any(port.conflicts(theirs) for port in pod.ports for theirs in other.inter_pod.ports):
        yield "a host port shared with"
    if {volume.key for volume in shape.volumes}.intersection(volume.key for volume in other.volumes):
        yield "a volume shared with"


def _about(terms: Sequence[PodTerm], shape: PodShape) -> bool:
    """Whether any of the terms may be about such pods, whatever labels their namespace has."""
    pod = shape.inter_pod
    labels = dict(pod.labels)
    return any(
        (pod.namespace in term.namespaces or term.namespace_selector is not None) and term.selects(labels)
        for term in terms
    )
