"""OnItsWay: a workload that is released, as the estimators are told of it. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from fairway.capacity.v1 import capacity_pb2 as pb
from queue_dispatcher.estimates.questions import Question
from queue_dispatcher.workloads.demand import Placed

NEVER: Final = 1 << 62
"""Later than any moment."""
Where = Mapping[str, tuple[tuple[str, str, int], ...]]
"""By cluster: pod set, node, and how many pods."""
NOWHERE: Final[Where] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class OnItsWay:
    """One released workload. ``gangs``: by cluster, what of it may come there; ``name``: empty for growth."""

    probe: str
    name: str
    question: Question
    gangs: Mapping[str, pb.Gang]
    until_ms: int
    placed_ms: int | None = None

    @property
    def is_growth(self) -> bool:
        """Whether part of it runs already, and the rest is on its way."""
        return not self.name


def gangs_of(
    question: Question, name: str, places: Iterable[Placed], where: Where = NOWHERE
) -> dict[str, pb.Gang]:
    """By cluster, what of a workload comes there: its share, if that is known and one of alike pods."""
    named: dict[int, pb.Gang] = {}
    gangs = {}
    for place in places:
        asked = question.gang_at(place.cluster)
        whole = named.get(id(asked))
        if whole is None:
            whole = named[id(asked)] = pb.Gang()
            whole.CopyFrom(asked)
            whole.name = name
        gangs[place.cluster] = whole
        if question.adds_up and place.replicas > 0:
            gangs[place.cluster] = at_most(whole, place.replicas)
        if place.cluster in where:
            part = pb.Gang()
            part.CopyFrom(gangs[place.cluster])
            part.where.extend(
                pb.Assignment(pod_set=pod_set, node=node, pods=pods)
                for pod_set, node, pods in where[place.cluster]
            )
            gangs[place.cluster] = part
    return gangs


def at_most(gang: pb.Gang, copies: int) -> pb.Gang:
    """The gang, or one of so many copies where it has more."""
    if gang.copies <= copies:
        return gang
    part = pb.Gang()
    part.CopyFrom(gang)
    part.copies = copies
    return part
