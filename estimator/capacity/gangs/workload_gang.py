"""Gangs as capacity sees them: what a template says beyond Karmada's request, and where it would go."""

from dataclasses import dataclass

from estimator.capacity.answer import Answer
from estimator.capacity.gangs.components import gang_components, gang_size
from estimator.capacity.request import Component
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
    return WorkloadGang(
        components,
        gang_size(gang),
        gang.copies,
        gang.topology,
        gang.copies_together,
        (*gang.problems, *problems),
    )


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
