"""A gang as one cluster has it: what its pods become there, and what pods that run there leave to them.

Worked out where the cluster's state is written; what comes out is carried to wherever the answer is found.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from estimator.capacity.eligibility import EligibilityCache
from estimator.capacity.request import ALONE, Component, PodShape
from estimator.capacity.room import Around
from estimator.cluster.columns import NodeColumns
from estimator.fit.inter_pod_affinity import NamespaceLabels, is_own
from estimator.fit.surroundings import Surroundings, surroundings
from estimator.reasons import Reason, not_heeded, not_known


@dataclass(frozen=True, slots=True)
class Local:
    """The components in one cluster, and what is left to their shapes.

    ``unknown``: what could not be known, so that no answer is proven but 0.
    """

    components: tuple[Component, ...] = ()
    around: Around = field(default_factory=dict)
    unknown: tuple[str, ...] = ()


def left_out(problems: Sequence[str], here: Local) -> tuple[Reason, ...]:
    """What an answer leaves out: what of the template was not heeded, and what could not be known here."""
    found = []
    if problems:
        found.append(not_heeded(problems))
    if here.unknown:
        found.append(not_known(here.unknown))
    return tuple(found)


def localised(
    nodes: NodeColumns,
    cache: EligibilityCache,
    namespaces: NamespaceLabels,
    components: Iterable[Component],
) -> Local:
    """The components as the cluster has them now; shapes to which its pods leave everything are `ALONE`."""
    shapes: dict[PodShape, PodShape] = {}
    around: dict[PodShape, Surroundings] = {}
    unknown: dict[str, None] = {}
    found = []
    for component in components:
        shape = component.shape
        if shape not in shapes:
            shapes[shape] = here = _own(shape, namespaces)
            left = surroundings(nodes, cache, here, namespaces)
            if left is not None:
                around[here] = left
                unknown.update(dict.fromkeys(left.unknown))
            elif here.inter_pod is not ALONE:
                shapes[shape] = replace(here, inter_pod=ALONE)
        found.append(component if shapes[shape] is shape else replace(component, shape=shapes[shape]))
    return Local(tuple(found), around, tuple(unknown))


def _own(shape: PodShape, namespaces: NamespaceLabels) -> PodShape:
    """The shape with a cap for each anti-affinity that is about itself by the labels of its namespace."""
    pod = shape.inter_pod
    chosen = [term for term in pod.anti_affinity if term.namespace_selector]
    if not chosen:
        return shape
    labels = dict(pod.labels)
    caps = dict(shape.per_domain)
    caps.update((term.key, 1) for term in chosen if is_own(term, pod.namespace, labels, namespaces))
    return replace(shape, per_domain=tuple(sorted(caps.items())))
