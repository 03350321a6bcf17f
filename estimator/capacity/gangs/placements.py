"""What is told about a gang in one cluster: the verdict on it, and why not more of it fit.

The values that travel, so that whoever reads them needs no more than these types and their reasons.
`estimator.capacity_wire` carries them both ways; terminals and pages show them.
"""

from dataclasses import dataclass

from estimator.capacity.answer import Answer
from estimator.reasons import Reason
from fairway.workloads.workload_name import WorkloadName


@dataclass(frozen=True, slots=True)
class Placed:
    """How many copies of a gang fit, each whole, and a placement of that many.

    ``spread_fits``: copies that a kube-scheduler which spreads pods one at a time would place whole at least,
    in whatever order they come; None where that was not worked out. ``level``: the label key of the topology
    level that each copy fits within, empty where none is asked for or the whole cluster is needed.
    ``placement``: where the pods would go; then those of further placements, each beside those before.
    ``empty_bound``: no more copies than this would fit if nothing ran; None where that was not worked out.
    ``packs``: whether that scheduler might leave free devices less together than the placements do, all of
    them, or use room that is kept for gangs that wait. Looked at only where one is wanted. ``earliest``: as
    of `ClusterPlacement`.
    """

    answer: Answer
    spread_fits: int | None = None
    level: str = ""
    placement: "tuple[Assignment, ...]" = ()
    empty_bound: int | None = None
    packs: bool = False
    earliest: "EarliestRoom | None" = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """So many pods of one pod set on one node. ``spare``: it would take more of them, see `with_spare`.

    ``nth``: of which placement, from 0.
    """

    pod_set: str
    node: str
    pods: int
    spare: bool = False
    nth: int = 0


@dataclass(frozen=True, slots=True)
class EarliestRoom:
    """Room for a gang that comes once pods have ended: so many ``pods``, by ``at_ms``.

    ``at_ms``: milliseconds since the epoch; None where nobody knows. ``placement``: where all copies that are
    wanted would go then. ``workloads``: where it was asked which have to be ended, those, the most preferred
    first; ``gives``: how many pods each of them has to give up that runs on, 0 of what ends.
    ``may_be_fewer``: it is not known of each of them that it has to.
    """

    at_ms: int | None
    pods: int
    placement: tuple[Assignment, ...] = ()
    workloads: tuple[WorkloadName, ...] = ()
    may_be_fewer: bool = False
    gives: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterPlacement:
    """How many copies of a gang fit into one cluster, as in `Answer` and `Placed`.

    ``spread_fits`` and ``empty_bound`` are None where they were not worked out; ``age_s`` is the age of the
    state in seconds. ``ranks_by_size``: whether the cluster has the PriorityClasses that order the pods of a
    gang by size, and ``packs`` as in `Placed`: looked at only where a placement is wanted. ``earliest``: when
    as many as are wanted would fit; None where that was not asked, not needed, or not worked out.
    """

    cluster: str
    fits: int
    upper_bound: int
    proven: bool
    spread_fits: int | None = None
    level: str = ""
    reasons: tuple[Reason, ...] = ()
    placement: tuple[Assignment, ...] = ()
    age_s: float = 0.0
    empty_bound: int | None = None
    ranks_by_size: bool = False
    packs: bool = False
    earliest: EarliestRoom | None = None


@dataclass(frozen=True, slots=True)
class Blocked:
    """So many nodes take no further pod of a set, first of all for this cause."""

    cause: Reason
    nodes: int


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A node that comes close: what it lacks as Kubernetes writes amounts, and what would free it."""

    node: str
    missing: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why no further pod of one set fits: every node once among ``blocked``, by its first cause.

    ``fits_alone``: how many pods of the set fit if nothing else of the gang is placed.
    """

    pod_set: str
    fits_alone: int
    blocked: tuple[Blocked, ...] = ()
    near_misses: tuple[NearMiss, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterExplanation:
    """Why not more of a gang fit into one cluster."""

    placement: ClusterPlacement
    pod_sets: tuple[Explanation, ...] = ()


def told(
    cluster: str, placed: Placed, age_s: float = 0.0, *, ranks_by_size: bool = False
) -> ClusterPlacement:
    """A gang's answer in the form that travels."""
    answer = placed.answer
    return ClusterPlacement(
        cluster,
        answer.value,
        answer.upper_bound,
        answer.proven,
        placed.spread_fits,
        placed.level,
        answer.reasons,
        placed.placement,
        age_s,
        placed.empty_bound,
        ranks_by_size,
        placed.packs,
        placed.earliest,
    )
