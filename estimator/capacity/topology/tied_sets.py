"""How many whole sets fit of which some components are tied to domains, or keep their distance.

Where the pods of one component can go by themselves is arithmetic on bundles and domains. Of a given number
of sets, the tied components are placed first, the largest bundles before smaller ones, and the others go into
what that leaves. With a single component that is exact. With more it is a number that surely fits, found by
trying several numbers in several ways; what each component could have for itself is the bound.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product, repeat
from types import MappingProxyType

import numpy as np

from estimator.capacity.answer import NO_BOUND, UNBOUNDED, Answer
from estimator.capacity.budget import NO_BUDGET, Budget, Expired
from estimator.capacity.replicas import max_replicas
from estimator.capacity.request import Component
from estimator.capacity.room import Room
from estimator.capacity.sets.best_fit import fullest_first
from estimator.capacity.sets.bounds import Needed, pods_per_shape
from estimator.capacity.sets.component_sets import Sets, max_sets
from estimator.capacity.sets.first_fit import Placement
from estimator.capacity.topology.domains import everywhere
from estimator.capacity.topology.spreading import RowCaps, keeps_distance, row_caps, spread_replicas
from estimator.capacity.topology.ties import Tie, ceilings, domain_reasons, domains_left, first_sets
from estimator.cluster.columns import BoolVector, IntVector
from estimator.fit.pod_shape import PodShape
from estimator.reasons import Reason, gang_limit, understated

Caps = Mapping[PodShape, RowCaps]
"""What each row may take of shapes whose pods keep their distance."""

NO_CAPS: Caps = MappingProxyType({})

_SHARED_OUT = "caps of domains are shared out to their nodes beforehand"
_ONE_BY_ONE = "containers that ask for shared devices separately are placed one by one"


def max_tied_sets(
    room: Room,
    needed: Needed,
    ties: Mapping[int, Tie],
    expired: Expired,
    wanted: int = UNBOUNDED,
    search: Budget = NO_BUDGET,
    shared: Caps = NO_CAPS,
    *,
    tight: bool = False,
) -> Sets:
    """The largest number of whole sets found, ``wanted`` at most, and where the pods would go.

    ``ties`` by the index of their component; components whose pods keep their distance are tied by that.
    ``search`` is time for placing the other components exactly. ``shared``: caps of shapes whose pods keep
    their distance from others outside of this room too; without, only this room counts. A single component
    is answered by arithmetic, whatever the time; where ``tight``, it takes the fullest domains that will do,
    and the fullest nodes in them.
    """
    whole = everywhere(room.nodes)
    tied = {
        index: ties.get(index, Tie(whole, 1))
        for index, component in needed
        if index in ties or keeps_distance(component.shape)
    }
    if len(needed) == 1:
        index, component = needed[0]
        return _one(room, index, component, tied.get(index, Tie(whole, 1)), wanted, expired, shared, tight)
    prepared = _prepared(room, needed, tied, expired, search, shared)
    if prepared is None:
        return Sets(Answer(0, NO_BOUND, False), {})
    bound = prepared.bound()
    value, placement = prepared.most(min(bound, wanted))
    reasons = prepared.reasons()
    if value < min(bound, wanted):
        reasons = (understated("components tied to domains are placed before the others"), *reasons)
    return Sets(Answer(value, bound, value == bound, reasons), placement)


def _one(
    room: Room,
    index: int,
    component: Component,
    tie: Tie,
    wanted: int,
    expired: Expired,
    shared: Caps,
    tight: bool,
) -> Sets:
    shape, per_set = component.shape, component.replicas // tie.size
    if tie.domains.level.key == "" and keeps_distance(shape):
        spreading = spread_replicas(room, shape, expired)
        value = min(spreading.answer.value // component.replicas, wanted)
        bound = spreading.answer.upper_bound // component.replicas
        # As long as before at most, and to be had whole.
        placed = spread_replicas(room, shape, lambda: False, value * component.replicas).placed
        reasons = spreading.answer.reasons
    else:
        caps = caps_of(room, shape, tie, shared)
        value = min(int(tie.bundles(caps.safe).sum()) // per_set, wanted, NO_BOUND)
        bound = min(int(tie.bundles(caps.most).sum()) // per_set, NO_BOUND)
        domains, rank = np.arange(tie.domains.count), None
        if tight:
            domains = np.argsort(tie.domains.sums(caps.safe), kind="stable")
            rank = np.empty(len(room.nodes.rows), dtype=np.int64)
            rows = fullest_first(room, shape)
            rank[rows] = np.arange(len(rows))
        found = tie.place(caps.safe, value * per_set, domains, rank)
        assert found is not None
        placed = found
        reasons = _reasons(room, shape, tie, caps)
        if value < min(bound, wanted):
            reasons = (understated(_SHARED_OUT if keeps_distance(shape) else _ONE_BY_ONE), *reasons)
    return Sets(Answer(value, bound, value == bound, reasons), _per_row(index, placed))


@dataclass(frozen=True, slots=True)
class _Search:
    """The search for the most sets of several components, some of them tied.

    By component index: ``alone``, the sets' worth of the component that fit with the room to themselves, and
    ``caps`` of the tied ones. ``contested``: how many of the shapes each row could take.
    """

    room: Room
    needed: Needed
    tied: Mapping[int, Tie]
    caps: Mapping[int, RowCaps]
    alone: Mapping[int, int]
    contested: IntVector
    expired: Expired
    budget: Budget

    def bound(self) -> int:
        """A number of sets that is never exceeded."""
        whole = everywhere(self.room.nodes)
        together = pods_per_shape(self.needed)
        return min(
            int(ceilings(self.room, self.needed, whole, self.expired)[0]),
            *self.alone.values(),
            *(
                int(whole.sums(self.caps[index].most)[0]) // together[component.shape]
                for index, component in self.needed
                if index in self.caps
            ),
            *domains_left(self.needed, self.tied),
        )

    def reasons(self) -> tuple[Reason, ...]:
        """What limits the component that is scarcest by itself."""
        index, component = min(self.needed, key=lambda item: self.alone[item[0]])
        limit = gang_limit(component.name, component.replicas, self.alone[index] * component.replicas)
        if index in self.tied:
            return (limit, *_reasons(self.room, component.shape, self.tied[index], self.caps[index]))
        return (limit, *max_replicas(self.room, component.shape).reasons)

    def most(self, limit: int) -> tuple[int, Placement]:
        """The most sets that a placement was found for, and that placement."""
        value, best, sets = 0, Placement(), limit
        while value < limit and not self.expired():
            found = self._place(sets)
            if found is not None:
                value, best = sets, found
            else:
                limit = sets - 1
            sets = (value + limit + 1) // 2
        return value, best

    def _place(self, sets: int) -> Placement | None:
        tied = [(index, component) for index, component in self.needed if index in self.tied]
        by_size = sorted(tied, key=lambda item: -self.tied[item[0]].size)
        by_room = sorted(tied, key=lambda item: self.alone[item[0]])
        for order, roomy in product(([by_size] if by_size == by_room else [by_size, by_room]), (False, True)):
            if self.expired():
                return None
            found = self._attempt(sets, order, roomy)
            if found is not None:
                return found
        return None

    def _attempt(self, sets: int, order: Needed, roomy: bool) -> Placement | None:
        """A placement of so many sets, the fullest or the roomiest domains first."""
        room = self.room.fork()
        placement = Placement()
        capped: dict[PodShape, IntVector] = {}
        owned: dict[str, BoolVector] = {}
        for index, component in order:
            shape, tie = component.shape, self.tied[index]
            allowed = capped.get(shape, self.caps[index].safe)
            fits = np.minimum(room.fits(shape), allowed) if keeps_distance(shape) else room.fits(shape)
            key = tie.domains.level.key
            if tie.exclusive is not None and key in owned:
                tie = replace(tie, exclusive=tie.exclusive & ~owned[key])
            each = tie.domains.sums(fits)
            bundles = component.replicas // tie.size * sets
            by_room = np.argsort(-each if roomy else each, kind="stable")
            placed = tie.place(fits, bundles, by_room, self.contested)
            if placed is None:
                return None
            room.take(shape, placed)
            placement |= _per_row(index, placed)
            capped[shape] = allowed - placed
            if tie.exclusive is not None:
                mine = tie.domains.anywhere(placed > 0)
                owned[key] = owned[key] | mine if key in owned else mine
        others = [(index, component) for index, component in self.needed if index not in self.tied]
        if others:
            parts = tuple(component for _, component in others)
            rest = max_sets(room, parts, self.expired, search=self.budget, wanted=sets)
            if rest.answer.value < sets or rest.placement is None:
                return None
            kept = first_sets(rest.placement, list(enumerate(parts)), sets)
            placement |= {(others[position][0], row): pods for (position, row), pods in kept.items()}
        return placement


def _prepared(
    room: Room, needed: Needed, tied: Mapping[int, Tie], expired: Expired, budget: Budget, shared: Caps
) -> _Search | None:
    """What the search starts from; None where already that takes too long."""
    contested = np.zeros(len(room.nodes.rows), dtype=np.int64)
    pods: dict[PodShape, int] = {}
    for shape in pods_per_shape(needed):
        if expired():
            return None
        fits = room.row_fits(shape)
        contested += fits.sure > 0
        pods[shape] = int(everywhere(room.nodes).sums(fits.most)[0])
    caps: dict[int, RowCaps] = {}
    alone: dict[int, int] = {}
    for index, component in needed:
        alone[index] = pods[component.shape] // component.replicas
        if index in tied:
            if expired():
                return None
            tie = tied[index]
            caps[index] = caps_of(room, component.shape, tie, shared)
            alone[index] = int(tie.bundles(caps[index].most).sum()) // (component.replicas // tie.size)
    return _Search(room, needed, tied, caps, alone, contested, expired, budget)


def caps_of(room: Room, shape: PodShape, tie: Tie, shared: Caps = NO_CAPS) -> RowCaps:
    """What each row takes of the shape; where rows share a cap, those of the roomiest domains come first."""
    fits = room.row_fits(shape)
    if not keeps_distance(shape):
        return RowCaps(fits.sure, fits.most, ())
    if shape in shared:
        known = shared[shape]
        return RowCaps(np.minimum(fits.sure, known.safe), np.minimum(fits.most, known.most), known.reasons)
    place = np.empty(tie.domains.count + 1, dtype=np.int64)
    place[1:][np.argsort(-tie.domains.sums(fits.sure), kind="stable")] = np.arange(tie.domains.count)
    place[0] = tie.domains.count
    return row_caps(room, shape, place[tie.domains.number])


def _reasons(room: Room, shape: PodShape, tie: Tie, caps: RowCaps) -> tuple[Reason, ...]:
    """Why there are not more bundles of the shape."""
    reasons: tuple[Reason, ...] = ()
    if tie.domains.level.key:
        reasons = domain_reasons(tie.domains, tie.exclusive, tie.size, tie.domains.sums(caps.most))
    return (*reasons, *caps.reasons, *max_replicas(room, shape).reasons)


def _per_row(index: int, placed: IntVector) -> Placement:
    rows = np.flatnonzero(placed)
    return dict(zip(zip(repeat(index), rows.tolist(), strict=False), placed[rows].tolist(), strict=True))
