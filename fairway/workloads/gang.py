"""A workload as a gang: the pods that must run together, and where they may be with respect to each other."""

from dataclasses import dataclass
from dataclasses import field as dataclass_field
from enum import StrEnum

from fairway.kube.templates import PodTemplate


class TopologyMode(StrEnum):
    """How strictly pods keep together.

    ``REQUIRED``: all pods of the gang in one domain of the level. ``PREFERRED``: the same where possible,
    else the finest coarser level. ``EXCLUSIVE``: each gang has a whole domain for itself, or with a
    ``slice_size`` each run of that many pods has one. ``SLICED``: each run of ``slice_size`` pods in one
    domain, which others may share.
    """

    REQUIRED = "required"
    PREFERRED = "preferred"
    EXCLUSIVE = "exclusive"
    SLICED = "sliced"


@dataclass(frozen=True, slots=True)
class TopologyRequest:
    """Pods of one gang share a domain: nodes that agree on the label ``level`` and on all coarser levels."""

    mode: TopologyMode
    level: str
    slice_size: int = 0


def in_slices(level: str, size: int | None) -> TopologyRequest:
    """Each run of so many pods in one domain of the level; all pods in one where the size is not known."""
    if not size:
        return TopologyRequest(TopologyMode.REQUIRED, level)
    return TopologyRequest(TopologyMode.SLICED, level, size)


@dataclass(frozen=True, slots=True)
class PodSet:
    """So many pods of one template; ``minimum`` of them are enough for the workload to start.

    ``field``: where the template stands in the object, as messages say it; empty where that is the template.
    """

    name: str
    count: int
    minimum: int
    template: PodTemplate
    topology: TopologyRequest | None = None
    field: str = dataclass_field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Gang:
    """Pod sets that start together or not at all, ``copies`` times over (each copy is a gang of its own).

    ``is_gang`` False: the pods are independent of each other (a plain Deployment). ``topology`` binds all
    pods of one copy together; that of a pod set binds only its own pods. ``problems``: what the template
    says that could not be understood, by field.
    """

    kind: str
    namespace: str
    name: str
    pod_sets: tuple[PodSet, ...]
    is_gang: bool
    copies: int = 1
    topology: TopologyRequest | None = None
    problems: tuple[str, ...] = ()
    copies_together: bool = False
