"""A gang in the estimator's own terms: components, and how many of their pods must start together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from estimator.capacity.gangs.templates import shape_of
from estimator.capacity.request import Component
from estimator.fit.pod_shape import PodShape
from fairway.pod_terms import PodTerm
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
        pod = component.shape.inter_pod
        said = [("anti-affinity", other.name) for other in others if _about(pod.anti_affinity, other.shape)]
        said += [("affinity", other.name) for other in others if _about(pod.affinity, other.shape)]
        problems += [
            f"pod set {component.name}: {what} to the pods of {name} is not looked at" for what, name in said
        ]
        near = tuple(term for term in pod.affinity if not any(_about((term,), one.shape) for one in others))
        if len(near) < len(pod.affinity):
            shape = replace(component.shape, inter_pod=replace(pod, affinity=near))
            component = replace(component, shape=shape)
        kept.append(component)
    return tuple(kept)


def _about(terms: Sequence[PodTerm], shape: PodShape) -> bool:
    labels = dict(shape.inter_pod.labels)
    return any(shape.inter_pod.namespace in term.namespaces and term.selects(labels) for term in terms)
