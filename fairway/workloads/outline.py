"""A workload as its kind alone reads it, before annotations say more.

Every kind comes down to the same few facts; annotations (Fairway's own, and those of Kueue, KAI, Volcano and
the coscheduling plugin) mean the same on every kind, so they are applied afterwards and in one place,
`fairway.workloads.annotated`.
"""

from dataclasses import dataclass
from enum import Enum, auto

from fairway.workloads.fields import WorkloadMeta
from fairway.workloads.gang import PodSet, TopologyRequest


class Binding(Enum):
    """Whether the pods of a kind belong together.

    ``ALWAYS``: a gang by its kind. ``WHEN_SAID``: independent unless annotations say otherwise.
    ``ONE_BY_ONE``: the same, and batch schedulers treat each pod as a workload of its own, so that what they
    read from the template says nothing about the pods together.
    """

    ALWAYS = auto()
    WHEN_SAID = auto()
    ONE_BY_ONE = auto()


@dataclass(frozen=True, slots=True)
class Outline:
    """What a kind's own fields say; the fields of `fairway.workloads.gang.Gang`, not yet annotated.

    ``fields``: where the template of each pod set stands in the object, for messages; empty where the object
    is itself the template. The minimum of a pod set is what it needs if the workload is a gang.
    """

    meta: WorkloadMeta
    binding: Binding
    pod_sets: tuple[PodSet, ...]
    fields: tuple[str, ...]
    copies: int = 1
    topology: TopologyRequest | None = None
