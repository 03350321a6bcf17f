"""Gangs as capacity sees them: what a template says beyond Karmada's request, and where a gang would go."""

from dataclasses import dataclass

from estimator.capacity.answer import Answer
from estimator.capacity.request import Component
from fairway.workloads.gang import TopologyRequest


@dataclass(frozen=True, slots=True)
class WorkloadGang:
    """One workload by its template: the components of one copy, and how they must start.

    ``minimum``: so many pods of a copy must start together; 0 where pods are independent. ``copies``: each
    is a gang of its own. ``topology`` binds all pods of a copy.
    """

    components: tuple[Component, ...]
    minimum: int
    copies: int
    topology: TopologyRequest | None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Placed:
    """How many copies of a gang fit, each whole, and a placement of that many.

    ``spread_fits``: copies that a kube-scheduler which spreads pods one at a time would place whole; None
    where that was not worked out. ``level``: the label key of the topology level that each copy fits within,
    empty where none is asked for or the whole cluster is needed. ``placement``: pod set, node and pods.
    """

    answer: Answer
    spread_fits: int | None = None
    level: str = ""
    placement: tuple[tuple[str, str, int], ...] = ()
