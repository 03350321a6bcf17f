"""What room there is for a gang once some pods have left, and where it would go then.

What is on its way takes its room from what is free now and keeps it. Of nodes that gangs are waiting for,
what they are to have then is left out, so that two gangs that wait are never told the same room.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np

from estimator.capacity.assumed import OutOfTime, hold
from estimator.capacity.budget import Budget, Expired
from estimator.capacity.departures import Loose
from estimator.capacity.devices.dra_demand import draws
from estimator.capacity.gangs.gang_replicas import Topology
from estimator.capacity.gangs.placements import Assignment
from estimator.capacity.gangs.ways import Nodes
from estimator.capacity.request import Component, GangQuestion
from estimator.capacity.room import Room, demand
from estimator.capacity.sets.best_fit import fullest_first
from estimator.capacity.sets.bounds import Needed
from estimator.capacity.sets.first_fit import Placement
from estimator.capacity.sets.packing import by_component
from estimator.capacity.sets.sparing import sparing
from estimator.capacity.topology.gang_fit import place_gang
from estimator.capacity.topology.slices import asks_tpu
from estimator.capacity.topology.spreading import keeps_distance
from estimator.cluster.columns import IntVector
from estimator.cluster.pods import HeldByPod
from estimator.cluster.vacated import Vacating

_MOST_S = 1.0
"""For all of it: who asks shares the estimator with others."""
_SEARCH_S = 0.02
"""For an exact answer, each time; there are some ten to thirty."""


def hangs_on_others(room: Room, components: Iterable[Component]) -> bool:
    """Whether pods of others decide by more than their room where these may be: affinity, spreading."""
    for shape in dict.fromkeys(one.shape for one in components):
        around = room.around(shape)
        if around is not None and (
            shape.inter_pod.affinity or around.running or around.together or around.choices
        ):
            return True
    return False


class ComingRoom:
    """The room for the pods of as many copies as are wanted (one where 0 are), without some that leave.

    ``room``: of a copy of the nodes, untouched; ``pods``: all that there are, among them those ``leaving``,
    which are named by their places from then on. Everything here raises OutOfTime once ``expired`` says so,
    or a second is over. What pods forbid beside the room that they hold (anti-affinity, host ports, volumes)
    they are taken to forbid also once they have left.
    """

    def __init__(
        self,
        room: Room,
        question: GangQuestion,
        topology: Topology,
        pods: Collection[HeldByPod],
        leaving: Sequence[HeldByPod],
        expired: Expired,
        clock: Callable[[], float],
    ) -> None:
        ends_s = clock() + _MOST_S
        self.is_proven = True
        """Whether all refusals of `placed` so far are for certain."""
        self._room, self._question, self._topology = room, question, topology
        self._clock = clock
        self._expired: Expired = lambda: expired() or clock() >= ends_s
        self._copies = max(1, question.wanted)
        self._needed: Needed = [(i, one) for i, one in enumerate(question.components) if one.replicas > 0]
        self._shapes = tuple(dict.fromkeys(one.shape for _, one in self._needed))
        self._coming = tuple(one for one in question.assumed if not one.waits)
        self._waiting = tuple(one for one in question.assumed if one.waits)
        self._taken = self._taken_now()
        self._vacating = Vacating(room.nodes, pods, leaving)

    def placed_without(self, gone: IntVector) -> Placement | None:
        """Where all copies would go once these are gone; None where they do not fit."""
        return self._placed(self._after(gone))

    def sparing(self, gone: IntVector) -> Placement:
        """The same, on few nodes that have to be waited for: those from which some of these leave."""
        now, then = self._now, self._after(gone)
        left = np.bincount(self._vacating.rows[gone] + 1, minlength=len(now.nodes.rows) + 1)[1:]
        fits = [(now.fits(shape), then.fits(shape)) for shape in self._shapes]
        if len(self._shapes) == 1 and self._is_free():
            (shape,), ((before, after),) = self._shapes, fits
            wanted = self._copies * sum(one.replicas for _, one in self._needed)
            placed = sparing(before, after, left, wanted, fullest_first(now, shape))
            rows = np.flatnonzero(placed)
            return by_component({shape: (rows, placed[rows])}, self._needed, self._copies)
        gains = sum((np.maximum(after - before, 0) for before, after in fits), np.zeros_like(left))
        rows = np.flatnonzero(gains)
        rows = rows[np.lexsort((left[rows], -gains[rows]))]
        best, low, high = self._placed(then, tight=True), -1, len(rows)
        while low + 1 < high:
            middle = (low + high) // 2
            # The last is that of pods whose node is not there.
            ended = np.zeros(len(left) + 1, dtype=np.bool_)
            ended[rows[:middle]] = True
            found = self._placed(self._after(gone[ended[self._vacating.rows[gone]]]), tight=True)
            if found is None:
                low = middle
            else:
                high, best = middle, found
        if best is None:
            raise OutOfTime("what was found is not found again in the time that there is")
        return best

    def in_the_way(self, gone: IntVector, placement: Placement) -> int:
        """How many of those that are gone hold what its pods lack now where they go."""
        now = self._now
        size = len(now.nodes.rows)
        fits = {shape: now.fits(shape) for shape in self._shapes}
        asked: dict[str, IntVector] = {}
        no_room = np.zeros(size + 1, dtype=np.bool_)
        for (index, row), count in placement.items():
            shape = self._question.components[index].shape
            no_room[row] |= bool(fits[shape][row] < count)
            for resource, amount in demand(shape):
                asked.setdefault(resource, np.zeros(size, dtype=np.int64))[row] += count * amount
        rows = self._vacating.rows[gone]
        found = np.zeros(len(gone), dtype=np.bool_)
        is_short = np.zeros(size + 1, dtype=np.bool_)
        for resource, of in asked.items():
            # The last is that of pods whose node is not there.
            short = np.append(of > now.free(resource), False)
            is_short |= short
            found |= short[rows] & (self._vacating.amounts(resource)[gone] > 0)
        # Where no amount is short, it is a device that they share.
        found |= (no_room & ~is_short)[rows]
        return int(np.count_nonzero(found))

    def by_node(self, loose: Sequence[Loose], gone: IntVector, places: IntVector) -> Nodes:
        """These pods by their nodes, once others are ``gone``; with what each node has in common with those
        of which it is all one from which of them they go. ``loose``: all of whom only some go.
        """
        rows = self._vacating.rows
        are_alike = self._taken is not None and all(map(self._are_alike, loose))
        if not are_alike:
            return [((place,), (place,)) for place in places.tolist()]
        is_free, found = self._is_free(), []
        before = self._after(gone)
        after = self._after(np.unique(np.concatenate([gone, *(one.places for one in loose)])))
        amounts = [before.free(name) for name in before.nodes.resource_names] if is_free else []
        fits = [room.fits(shape) for room in (before, after) for shape in self._shapes] if is_free else []
        for row in np.unique(rows[places]).tolist():
            own = tuple(places[rows[places] == row].tolist())
            kind: tuple[int, ...] = (row,)
            if is_free and row >= 0:
                there = (int(np.count_nonzero(rows[one.places] == row)) for one in loose)
                kind = (*there, *(int(of[row]) for of in (*amounts, *fits)))
            found.append((kind, own))
        return found

    def _are_alike(self, loose: Loose) -> bool:
        """Whether these pods hold the same."""
        held = (self._vacating.amounts(name)[loose.places] for name in self._room.nodes.resource_names)
        return not any(np.ptp(amounts) for amounts in held if len(amounts))

    def named(self, placement: Placement) -> tuple[Assignment, ...]:
        """Where the pods go, by the names of their sets and nodes."""
        return tuple(
            Assignment(self._question.components[index].name, node.name, pods)
            for (index, row), pods in sorted(placement.items())
            if (node := self._room.nodes.rows[row]) is not None
        )

    @cached_property
    def _now(self) -> Room:
        return self._after(np.arange(0))

    def _taken_now(self) -> Mapping[str, IntVector] | None:
        """What those on their way take of what is free now; None where that is more than amounts."""
        room = self._room.at(self._room.nodes)
        hold(room, self._coming, self._expired)
        shapes = (one.shape for workload in self._coming for one in workload.components)
        if room.has_devices or any(draws(room.nodes.dra, shape) for shape in shapes):
            return None
        return {name: self._room.free(name) - room.free(name) for name in room.nodes.resource_names}

    def _after(self, gone: IntVector) -> Room:
        """What there is for the gang once these are gone."""
        room = self._room.at(self._vacating.without(gone))
        if self._taken is None or not room.take_amounts(self._taken):
            hold(room, self._coming, self._expired)
        hold(room, self._waiting, self._expired)
        return room

    def _placed(self, room: Room, *, tight: bool = False) -> Placement | None:
        """Where all copies would go; None where they do not fit."""
        fit = place_gang(
            room.fork(),
            self._question.components,
            self._question.topology,
            self._topology.levels,
            self._topology.domains,
            self._expired,
            self._copies,
            Budget(self._clock, self._clock() + _SEARCH_S),
            tight=tight,
        )
        if self._expired():
            raise OutOfTime("the time was up before it was known when there will be room")
        if fit.answer.value >= self._copies:
            return fit.placement or {}
        self.is_proven &= fit.answer.upper_bound < self._copies
        return None

    def _is_free(self) -> bool:
        """Whether nothing but room decides where its pods go."""
        if self._question.topology is not None or any(one.topology for _, one in self._needed):
            return False
        return not any(
            keeps_distance(shape) or asks_tpu(shape) or self._room.around(shape) is not None
            for shape in self._shapes
        )
