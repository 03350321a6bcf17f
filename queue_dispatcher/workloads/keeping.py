"""How the pods of a release are kept on the nodes of the flavors that it is charged to. Pure.

By what their templates say: the flavor's labels beside their own node selector, and its tolerations after
their own. That is required, unlike guidance. Components whose pods cannot be told so are charged as ever,
and nothing keeps them there.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from fairway.taints import Toleration
from queue_dispatcher.cycle.keeping import Keeping
from queue_dispatcher.workloads.demand import Component, Demand
from queue_dispatcher.workloads.pod_template import PodTemplateFacts


@dataclass(frozen=True, slots=True)
class Told:
    """What the pods of one template are told beyond what it says."""

    template: PodTemplateFacts
    labels: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()

    def fields(self) -> Iterator[tuple[str, object]]:
        """The fields of the pods' spec that are other than the template's, and what they say then."""
        template = self.template
        if self.labels:
            yield "nodeSelector", dict(template.selector) | dict(self.labels)
        if self.tolerations:
            stated = [msgspec.json.decode(one) for one in template.tolerations]
            yield "tolerations", [*stated, *map(_stated, self.tolerations)]


@dataclass(frozen=True, slots=True)
class Kept:
    """What is said of the pods in these clusters; in every cluster where none is named."""

    clusters: tuple[str, ...]
    pods: tuple[Told, ...]


def can_be_told(templates: Sequence[PodTemplateFacts], pod_sets: int, demand: Demand) -> frozenset[str]:
    """The names of the components whose pods can be told on which nodes to stay.

    ``pod_sets``: how many the workload has. Not where several share a template, or where a template asks for
    other nodes than the binding says that it does.
    """
    return frozenset(
        component.name
        for component in demand.components
        if (template := _template_of(component.name, templates, pod_sets)) is not None
        and _says_no_more(template, component)
    )


def told_at(
    keeps: Iterable[Keeping], templates: Sequence[PodTemplateFacts], cluster: str
) -> tuple[Told, ...]:
    """What the pods are told in a cluster.

    A component that two flavors ask for different nodes, for different resources, is told nothing.
    """
    labels: dict[str, dict[str, str]] = {}
    tolerations: dict[str, dict[Toleration, None]] = {}
    torn = set()
    for keeping in keeps:
        nodes, name = keeping.at(cluster), keeping.component
        if nodes is None:
            continue
        wanted = labels.setdefault(name, {})
        if any(wanted.setdefault(key, value) != value for key, value in nodes.labels):
            torn.add(name)
        tolerations.setdefault(name, {}).update(dict.fromkeys(nodes.tolerations))
    return tuple(
        Told(template, tuple(sorted(wanted.items())), tuple(tolerations[name]))
        for name, wanted in labels.items()
        if name not in torn and (wanted or tolerations[name])
        if (template := _template_of(name, templates, len(templates))) is not None
    )


def kept(
    keeps: Sequence[Keeping], templates: Sequence[PodTemplateFacts], permitted: Collection[str]
) -> tuple[Kept, ...]:
    """What keeps the pods on the nodes of their flavors, in whichever of these clusters they come to be."""
    if all(one.clusters is None for keeping in keeps for one in keeping.flavors):
        everywhere = told_at(keeps, templates, "")
        return (Kept((), everywhere),) if everywhere else ()
    by_told: dict[tuple[Told, ...], list[str]] = {}
    for cluster in sorted(permitted):
        by_told.setdefault(told_at(keeps, templates, cluster), []).append(cluster)
    return tuple(Kept(tuple(clusters), told) for told, clusters in by_told.items() if told)


def with_told(source: bytes, told: Iterable[Told]) -> bytes:
    """The object with what its pods are told, as JSON; a template that is gone from it is told nothing."""
    workload: Any = msgspec.json.decode(source)
    for one in told:
        spec = workload
        for step in one.template.pointer.split("/")[1:]:
            spec = _within(spec, step.replace("~1", "/").replace("~0", "~"))
        if isinstance(spec, dict):
            spec.update(one.fields())
    return msgspec.json.encode(workload)


def _within(value: object, step: str) -> object:
    if isinstance(value, list):
        return value[int(step)] if step.isdecimal() and int(step) < len(value) else None
    return value.get(step) if isinstance(value, dict) else None


def _template_of(
    component: str, templates: Sequence[PodTemplateFacts], pod_sets: int
) -> PodTemplateFacts | None:
    """The template of a component's pods, and of no others; plain replicas have no name."""
    found = templates if not component and pod_sets == 1 else [t for t in templates if t.pod_set == component]
    if len(found) != 1 or sum(one.pointer == found[0].pointer for one in templates) != 1:
        return None
    return found[0]


def _says_no_more(template: PodTemplateFacts, component: Component) -> bool:
    return all(component.claim.states(key, value) for key, value in template.selector)


def _stated(toleration: Toleration) -> Mapping[str, str]:
    """As a pod states it, without what it leaves out."""
    return {name: value for name, value in msgspec.structs.asdict(toleration).items() if value}
