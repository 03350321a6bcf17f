"""How the pods of a workload are guided where it is released to, so that its proof comes true. Pure.

A kube-scheduler takes pods one by one and spreads them, so that a gang of several sizes that fits may not
become whole, and small pods break nodes that large ones need. So its pods are told to prefer the nodes of
the proof, and where the cluster has the classes for it, larger pods go first: of 53 tight gangs 21 became
whole without, and all of them with both (measured on kube-scheduler 1.36). It is a preference: a node that
is lost, or taken by others, costs nothing but the preference.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fairway.names import GANG_CLASSES
from fairway.resources import pod_size
from queue_dispatcher.cycle.witness import Nodes, Witness
from queue_dispatcher.workloads.demand import Demand, Placed
from queue_dispatcher.workloads.pod_template import KAI, PodTemplateFacts

MAX_NODES: Final = 256
"""Of one pod template in one cluster: what goes to more is left to spread."""
MAX_BYTES: Final = 512 << 10
"""About what all that is told of one workload may take: its policy, and its template with it, are stored."""
_NODE_BYTES: Final = 160
"""What a preference takes beside the name of its node."""


@dataclass(frozen=True, slots=True)
class Guided:
    """The pods of one template: ``nodes`` that they prefer, by name; ``rank``: 1 to 8, 0 for none.

    ``spare``: those of the nodes that would take more of them than they are to, so that the others go first.
    """

    template: PodTemplateFacts
    nodes: tuple[str, ...]
    rank: int = 0
    spare: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Guidance:
    """What is said of the pods in one cluster; ``where``: how many of which pod set go to which node."""

    cluster: str
    pods: tuple[Guided, ...]
    where: tuple[tuple[str, str, int], ...] = ()


def guidance(
    templates: Sequence[PodTemplateFacts],
    demand: Demand,
    witnesses: Mapping[str, Witness],
    places: Sequence[Placed],
    priority_class: str,
) -> tuple[Guidance, ...]:
    """The guidance for a workload that goes to these places, where there is a witness for it.

    None at all where it would be more than `MAX_BYTES`, and none of pods whose scheduler would not heed it.

    ``priority_class``: of the whole workload, empty for none; what says how urgent it is keeps that.
    """
    found = []
    for place in places:
        witness = witnesses.get(place.cluster)
        if witness is None:
            continue
        ranks = _ranks(demand) if witness.ranks and not priority_class else {}
        if any(one.names_priority for one in templates):
            ranks = {}
        told = dict(witness.nodes)
        if len(templates) == 1 and len(told) == 1:
            told = {pod_set: _first(nodes, place.replicas) for pod_set, nodes in told.items()}
        pods = tuple(_guided(templates, told, witness.spare, ranks))
        if pods:
            where = ((pod_set, node, count) for pod_set, nodes in told.items() for node, count in nodes)
            found.append(Guidance(place.cluster, pods, tuple(where)))
    return tuple(found) if sum(map(_bytes, found)) <= MAX_BYTES else ()


def _bytes(told: Guidance) -> int:
    return sum(
        pods.template.affinity.size + sum(_NODE_BYTES + len(node) for node in pods.nodes)
        for pods in told.pods
    )


def _guided(
    templates: Sequence[PodTemplateFacts],
    told: Mapping[str, Nodes],
    spared: Collection[tuple[str, str]],
    ranks: Mapping[str, int],
) -> Iterator[Guided]:
    spare = {pod_set: {node for of, node in spared if of == pod_set} for pod_set in told}
    if len(templates) == 1 and len(told) == 1:
        # A workload that is divided is asked about pod by pod, under a name of that question's own.
        (nodes,) = told.values()
        told = {templates[0].pod_set: nodes}
        spare = {templates[0].pod_set: {node for _, node in spared}}
    by_pointer: dict[str, list[PodTemplateFacts]] = {}
    for template in templates:
        by_pointer.setdefault(template.pointer, []).append(template)
    for alike in by_pointer.values():
        preferred = {node for one in alike for node, _ in told.get(one.pod_set, ())}
        if 0 < len(preferred) <= MAX_NODES and alike[0].scheduler != KAI:
            rank = max(ranks.get(one.pod_set, 0) for one in alike)
            last = preferred.intersection(*(spare.get(one.pod_set, set()) for one in alike))
            yield Guided(alike[0], tuple(sorted(preferred)), rank, frozenset(last))


def _first(nodes: Nodes, replicas: int) -> Nodes:
    """As few of the nodes as take so many pods; all of them for 0."""
    if not replicas:
        return nodes
    taken, left = [], replicas
    for node, pods in sorted(nodes, key=lambda one: (-one[1], one[0])):
        if left <= 0:
            break
        taken.append((node, pods))
        left -= pods
    return tuple(taken)


def _ranks(demand: Demand) -> dict[str, int]:
    """By component, its rank by size, the largest highest; empty where all are of one size."""
    sizes = sorted({pod_size(component.requests) for component in demand.components}, reverse=True)
    if len(sizes) < 2:
        return {}
    rank = {size: max(1, len(GANG_CLASSES) - place) for place, size in enumerate(sizes)}
    return {component.name: rank[pod_size(component.requests)] for component in demand.components}
