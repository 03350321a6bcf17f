"""What is asked, in the estimator's own terms: no protobuf, no text quantities, nothing to parse.

Built once at the door by `estimator.wire`. What pods ask for is a `PodShape`.
"""

from dataclasses import dataclass, field

from estimator.fit.pod_shape import PodShape
from fairway.kube.templates import PodTemplate
from fairway.workloads.gang import TopologyRequest


@dataclass(frozen=True, slots=True)
class Component:
    """So many pods of one shape; a workload of several components is placed whole or not at all.

    ``topology`` binds the pods of this component within each set. ``template``: what the shape was made of,
    where that is known: a cluster that adds something to it makes another shape of it.
    """

    name: str
    replicas: int
    shape: PodShape
    topology: TopologyRequest | None = None
    template: PodTemplate | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class AssumedWorkload:
    """A workload that Karmada has placed on this cluster and whose pods may not be bound yet.

    ``where``: pods by component and node, as far as it is known where they are going to be. ``waits``: its
    room is not all there yet, and as much as is there is kept for it; see `estimator.capacity.waiting`.
    """

    namespace: str
    components: tuple[Component, ...]
    where: tuple[tuple[str, str, int], ...] = ()
    waits: bool = False


@dataclass(frozen=True, slots=True)
class WorkloadReference:
    """The workload a question is about."""

    kind: str
    namespace: str
    name: str
    group: str | None = None
    """API group; None where the sender did not say (the ``object`` metadata has none)."""


@dataclass(frozen=True, slots=True)
class ReplicasQuestion:
    """How many more pods of this shape fit?"""

    cluster: str
    shape: PodShape
    namespace: str
    assumed: tuple[AssumedWorkload, ...] = ()
    workload: WorkloadReference | None = None

    @property
    def names_device(self) -> bool:
        """Whether the question is about devices."""
        return self.shape.names_device


@dataclass(frozen=True, slots=True)
class _OfComponents:
    cluster: str
    components: tuple[Component, ...]

    @property
    def names_device(self) -> bool:
        """Whether any component asks for devices."""
        return any(component.shape.names_device for component in self.components)


@dataclass(frozen=True, slots=True)
class SetsQuestion(_OfComponents):
    """How many whole sets of these components fit?"""

    namespace: str
    assumed: tuple[AssumedWorkload, ...] = ()
    workload: WorkloadReference | None = None


@dataclass(frozen=True, slots=True)
class GangQuestion(_OfComponents):
    """How many copies of a gang fit, each whole? ``wanted``: the search may end there; 0 for as many as fit.

    ``topology`` binds all pods of one copy. ``assumed`` gangs are on their way to the cluster: placed first.
    """

    namespace: str = ""
    topology: TopologyRequest | None = None
    wanted: int = 0
    assumed: tuple[AssumedWorkload, ...] = ()


@dataclass(frozen=True, slots=True)
class UnschedulableQuestion:
    """How many pods of this workload have been unschedulable for longer than the threshold?"""

    cluster: str
    workload: WorkloadReference
    threshold_s: float

    @property
    def names_device(self) -> None:
        """Not a matter of devices: the question names a workload, not what it asks for."""
        return None


Question = ReplicasQuestion | SetsQuestion | UnschedulableQuestion
