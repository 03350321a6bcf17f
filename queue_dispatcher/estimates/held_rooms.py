"""Held rooms: room that is held for workloads that wait, as the estimators are told of it. Pure.

As a gang that ``waits``, behind all that is on its way: on the nodes where it is to go as much is held as is
free there, and as becomes free. An estimator of an earlier version does not know of that. It takes the gang
for one on its way and holds room for it first fit, beginning with these nodes: all that it asks for if it
fits whole, else, of what is promised, as many of its pods as there is room for.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from fairway.capacity.v1 import capacity_pb2 as pb
from queue_dispatcher.cycle.earliest import Earliest
from queue_dispatcher.estimates.on_its_way import NEVER, OnItsWay, gangs_of
from queue_dispatcher.estimates.questions import Question
from queue_dispatcher.workloads.demand import Placed


@dataclass(frozen=True, slots=True)
class HeldRoom:
    """``earliest``: where, and when it is thought to be free; ``waiting``: what waits, as if on its way."""

    earliest: Earliest
    waiting: OnItsWay

    @property
    def gang(self) -> pb.Gang:
        """All pods of it that are to come."""
        return self.waiting.gangs[self.earliest.cluster]

    def holds_as(self, other: "HeldRoom") -> bool:
        """Whether the same room is held for the same workload, whenever it is free."""
        mine, others = self.earliest, other.earliest
        return (mine.cluster, mine.where) == (others.cluster, others.where) and (
            self.waiting.probe,
            self.waiting.name,
        ) == (other.waiting.probe, other.waiting.name)


def held_room_of(probe: str, name: str, question: Question, earliest: Earliest) -> HeldRoom:
    """The reservation for a workload of this question; ``name``: as of `OnItsWay`."""
    where = {earliest.cluster: earliest.where}
    gangs = gangs_of(question, name, [Placed(earliest.cluster)], where)
    for gang in gangs.values():
        gang.waits = True
    return HeldRoom(earliest, OnItsWay(probe, name, question, gangs, NEVER))


class HeldRooms:
    """By the uid of what waits, in the order in which they were made."""

    def __init__(self) -> None:
        self._held: dict[str, HeldRoom] = {}

    def __iter__(self) -> Iterator[tuple[str, HeldRoom]]:
        return iter(self._held.items())

    def get(self, uid: str) -> HeldRoom | None:
        """Its own."""
        return self._held.get(uid)

    def put(self, uid: str, reservation: HeldRoom) -> None:
        """One that is moved keeps its place among the others."""
        self._held[uid] = reservation

    def drop(self, uid: str) -> HeldRoom | None:
        """The one that it had."""
        return self._held.pop(uid, None)

    def clear(self) -> None:
        """Drop all."""
        self._held.clear()

    def against(self, without: Collection[str]) -> Iterator[tuple[str, pb.Gang]]:
        """Cluster and gang of all but these, which whoever is asked about may use."""
        return ((one.earliest.cluster, one.gang) for uid, one in self._held.items() if uid not in without)
