"""What a question of `Place` says of pods that run: whose are taken to be gone, and when others end or may.

Read of a cluster's mirror in the same moment as its nodes, and carried to the thread that works on the
answer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from estimator.capacity.assumed import OutOfTime
from estimator.capacity.budget import Expired
from estimator.capacity.departures import Choice, PodsByKey, WorkloadKey, chosen, departures, split
from estimator.capacity.gangs.coming_room import ComingRoom, hangs_on_others
from estimator.capacity.gangs.earliest import earliest
from estimator.capacity.gangs.gang_replicas import Topology
from estimator.capacity.gangs.placements import EarliestRoom
from estimator.capacity.gangs.victims import victims
from estimator.capacity.quota import quota_sets
from estimator.capacity.request import GangQuestion
from estimator.capacity.room import Room
from estimator.capacity_requests import CapacityQuestion
from estimator.cluster.mirror import ClusterMirror
from estimator.cluster.quotas import Quota
from estimator.cluster.vacated import Vacating
from estimator.reasons import Reason, either_way

_STILL_AROUND = "what pods that are taken to be gone are to others, besides the room they hold"


@dataclass(frozen=True, slots=True)
class GonePods:
    """``pods``: all that there are now; ``gone``: whose are not counted. ``ends_ms``: when workloads end.

    ``now_ms``: the time; all in milliseconds since the epoch. ``ends_ms`` None: nobody asks. ``choices``:
    who may be ended where that is asked, and then ``ends_ms`` says nothing.
    """

    pods: PodsByKey
    gone: frozenset[WorkloadKey]
    ends_ms: Mapping[WorkloadKey, int] | None
    now_ms: int
    choices: tuple[Choice, ...] | None = None

    @classmethod
    def of(cls, question: CapacityQuestion, mirror: ClusterMirror, now_ms: int) -> "GonePods | None":
        """What the question says, of the mirror as it is; None for nothing."""
        if not question.without and question.endings is None:
            return None
        known_by = mirror.controllers.known_by
        gone = frozenset(key for name in question.without for key in known_by(*name))
        if question.endings is None:
            return cls(mirror.pods.copy(), gone, None, now_ms)
        told = tuple(Choice(name, at_ms, known_by(*name)) for name, at_ms in question.endings.items())
        if question.of_choice:
            # Of equal times, what may run on comes first.
            surplus = (
                Choice(one.workload, one.at_ms, known_by(*one.workload), one.pods, one.kept)
                for one in question.surplus
            )
            return cls(mirror.pods.copy(), gone, {}, now_ms, (*surplus, *told))
        ends_ms: dict[WorkloadKey, int] = {}
        for one in told:
            for key in one.keys:
                ends_ms[key] = min(one.at_ms, ends_ms.get(key, one.at_ms))
        return cls(mirror.pods.copy(), gone, ends_ms, now_ms)

    def left(self, room: Room) -> "tuple[Room, PodsByKey, tuple[Reason, ...]]":
        """The room without those that are gone, who else is there, and what that leaves out."""
        if not self.gone:
            return room, self.pods, ()
        gone, others = split(self.pods, self.gone)
        if not gone:
            return room, others, ()
        emptied = room.at(Vacating(room.nodes, self.pods.values(), gone).without(np.arange(len(gone))))
        return emptied, others, (either_way((_STILL_AROUND,)),) if room.is_bound_to_others else ()

    def earliest(
        self,
        room: Room,
        pods: PodsByKey,
        question: GangQuestion,
        topology: Topology,
        quotas: tuple[Quota, ...],
        expired: Expired,
        clock: Callable[[], float],
    ) -> EarliestRoom | None:
        """When there would be room for the gang; ``room`` and ``pods`` as of `left`.

        What a quota does not allow is not allowed later either, as far as anybody knows. None where all
        copies that are wanted would not fit even then, where the time is up before that is known, and where
        pods of others decide by more than their room.
        """
        if self.ends_ms is None:
            return None
        coming = (one for one in question.assumed if not one.waits)
        allowed = quota_sets(quotas, question.components, question.namespace, coming)
        if allowed.value < max(1, question.wanted):
            return None
        if hangs_on_others(room, question.components):
            return None
        of = room, question, topology, pods.values()
        try:
            if self.choices is not None:
                may_leave = chosen(pods, self.choices, self.now_ms)
                return victims(ComingRoom(*of, may_leave.pods, expired, clock), may_leave)
            asked = dict.fromkeys(name for one in question.components for name, _ in one.shape.requests)
            leaving = departures(pods, self.ends_ms, self.now_ms, asked)
            return earliest(ComingRoom(*of, leaving.pods, expired, clock), leaving)
        except OutOfTime:
            return None
