"""Copies of a gang, anywhere or each inside one domain: the search behind `gang_fit`.

Copies in different domains use different nodes, so each domain is searched by itself and the copies add up.
What reaches beyond domains is settled beforehand or carried along: caps are shared out to nodes, and domains
of another level that a component wants for itself are gone once they are used. Domains are taken in order of
what they could hold at most, so that few need searching and the search can end early; those left unsearched
still count in the bound.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from estimator.capacity.answer import NO_BOUND, UNBOUNDED, Answer
from estimator.capacity.budget import Budget, Expired
from estimator.capacity.replicas import max_replicas
from estimator.capacity.request import Component
from estimator.capacity.room import Room
from estimator.capacity.sets.best_fit import best_fit
from estimator.capacity.sets.bounds import Needed, pods_per_shape
from estimator.capacity.sets.component_sets import Sets, max_sets
from estimator.capacity.sets.first_fit import Placement, deal
from estimator.capacity.topology.domains import Domains
from estimator.capacity.topology.spreading import keeps_distance
from estimator.capacity.topology.tied_sets import Caps, caps_of, max_tied_sets
from estimator.capacity.topology.ties import Tie, ceilings, domain_reasons, domains_left, first_sets
from estimator.cluster.columns import BoolVector, IntVector
from estimator.reasons import Reason

# Domains that are looked into for a tight placement.
_FEW_DOMAINS = 16


@dataclass(frozen=True, slots=True)
class Gang:
    """A gang to be placed: the components with pods, and what ties each of them by itself.

    There are never more than ``limit`` copies, whatever room there is. ``tight``: the placement shall leave
    as many nodes whole as it can, which takes about as long again.
    """

    room: Room
    components: tuple[Component, ...]
    needed: Needed
    ties: Mapping[int, Tie]
    expired: Expired
    budget: Budget
    limit: int = UNBOUNDED
    tight: bool = False

    def anywhere(self, most: int) -> Sets:
        """Copies without regard to any common domain, ``most`` at most where a search is needed.

        Of pods that are all alike all that fit are counted, and no more than ``most`` placed.
        """
        return self._limited(self._counted(self._search(self.room, self.ties, {}, min(most, self.limit))))

    def within(self, domains: Domains, exclusive: BoolVector | None, most: int) -> Sets:
        """Copies each of which is inside one domain, and has it for itself where ``exclusive`` is given."""
        if len(pods_per_shape(self.needed)) == 1 and not self.ties:
            return self._limited(
                self._alike(Tie(domains, sum(c.replicas for _, c in self.needed), exclusive), most)
            )
        return self._limited(self._domain_by_domain(domains, exclusive, min(most, self.limit)))

    def _domain_by_domain(self, domains: Domains, exclusive: BoolVector | None, most: int) -> Sets:
        limit = ceilings(self.room, self.needed, domains, self.expired)
        if exclusive is not None:
            limit = np.minimum(limit, exclusive)
        shared: Caps = {
            shape: caps_of(self.room, shape, Tie(domains, 1))
            for shape in pods_per_shape(self.needed)
            if keeps_distance(shape) and not self.expired()
        }
        ties = self.ties
        value, bound, placement = 0, 0, Placement()
        reasons: tuple[Reason, ...] = ()
        for index in np.argsort(-limit, kind="stable").tolist():
            at_most = int(limit[index])
            if at_most == 0:
                break
            if value >= most or self.expired():
                bound += at_most
                continue
            inside = self.room.within(domains.rows(index))
            found = self._search(inside, ties, shared, min(most - value, at_most))
            value += found.answer.value
            # With domains that are gone already, less was looked for than there may be.
            bound += min(found.answer.upper_bound, at_most) if ties is self.ties else at_most
            placement |= found.placement or {}
            ties = _without_used(ties, found.placement or {})
            reasons = reasons or found.answer.reasons
        if self.tight and value:
            placement = self._tightly(domains, limit, shared, value) or placement
        bound = min(bound, NO_BOUND, *domains_left(self.needed, self.ties))
        reasons = (*self._why(domains, exclusive), *(reasons or self.anywhere(1).answer.reasons))
        return Sets(Answer(value, bound, value == bound, reasons), placement)

    def _tightly(self, domains: Domains, limit: IntVector, shared: Caps, copies: int) -> Placement | None:
        """So many copies in the domains that hold the fewest pods; None where that is not soon found."""
        left, ties, placement = copies, self.ties, Placement()
        pods = np.zeros(domains.count, dtype=np.int64)
        for shape in pods_per_shape(self.needed):
            pods += domains.sums(self.room.row_fits(shape).most)
        fullest = [index for index in np.argsort(pods, kind="stable").tolist() if limit[index]]
        for index in fullest[:_FEW_DOMAINS]:
            if self.expired():
                return None
            found = self._search(
                self.room.within(domains.rows(index)), ties, shared, min(left, int(limit[index]))
            )
            left -= found.answer.value
            placement |= found.placement or {}
            if not left:
                return placement
            ties = _without_used(ties, found.placement or {})
        return None

    def _search(self, room: Room, ties: Mapping[int, Tie], shared: Caps, most: int) -> Sets:
        if ties or any(keeps_distance(component.shape) for _, component in self.needed):
            return max_tied_sets(
                room, self.needed, ties, self.expired, most, self.budget, shared, tight=self.tight
            )
        found = max_sets(room, self.components, self.expired, search=self.budget, wanted=most)
        answer, placement = found.answer, found.placement
        if answer.value > most and placement is not None:
            answer = Answer(most, answer.upper_bound, most == answer.upper_bound, answer.reasons)
            placement = first_sets(placement, self.needed, most)
        if self.tight and placement is not None:
            placement = best_fit(room, self.needed, answer.value, placement, self.expired)
        return Sets(answer, placement)

    def _alike(self, tie: Tie, most: int) -> Sets:
        """Copies of a gang whose pods are all of one shape: its components as one, dealt out afterwards.

        All that fit are counted, whatever is wanted; a tight placement is of no more than ``most``.
        """
        index, first = self.needed[0]
        merged = [(index, replace(first, replicas=tie.size))]
        found = max_tied_sets(self.room, merged, {index: tie}, self.expired, self.limit)
        if self.tight and found.answer.value:
            copies = min(most, found.answer.value)
            tightly = max_tied_sets(self.room, merged, {index: tie}, self.expired, copies, tight=True)
            found = replace(found, placement=tightly.placement)
        if len(self.needed) == 1 or found.placement is None:
            return found
        return Sets(found.answer, _dealt(found.placement, self.needed, tie))

    def _counted(self, sets: Sets) -> Sets:
        """As many copies as there are, where that follows from how many pods fit."""
        per_shape = pods_per_shape(self.needed)
        if len(per_shape) > 1 or self.ties or not sets.answer.value or sets.answer.proven:
            return sets
        ((shape, pods),) = per_shape.items()
        if keeps_distance(shape):
            return sets
        alike = max_replicas(self.room, shape)
        value = max(sets.answer.value, min(alike.value // pods, self.limit))
        return replace(sets, answer=replace(sets.answer, value=value))

    def _limited(self, sets: Sets) -> Sets:
        answer = sets.answer
        bound = min(answer.upper_bound, self.limit)
        return replace(sets, answer=replace(answer, upper_bound=bound, proven=answer.value == bound))

    def _why(self, domains: Domains, exclusive: BoolVector | None) -> tuple[Reason, ...]:
        """Why not more copies fit inside domains, by the shape that is scarcest there."""
        held = [
            (domains.sums(self.room.row_fits(shape).most), pods)
            for shape, pods in pods_per_shape(self.needed).items()
        ]
        room, pods = min(held, key=lambda item: int(item[0].max(initial=0)) / item[1])
        return domain_reasons(domains, exclusive, pods, room)


def _without_used(ties: Mapping[int, Tie], placement: Placement) -> Mapping[int, Tie]:
    """The ties less the domains that pods of these placements have taken for themselves."""
    left = ties
    for index, tie in ties.items():
        rows = [row for of, row in placement if of == index]
        if tie.exclusive is None or not rows:
            continue
        used = np.zeros(len(tie.domains.number), dtype=np.bool_)
        used[rows] = True
        taken = tie.domains.anywhere(used)
        left = {
            other: replace(theirs, exclusive=theirs.exclusive & ~taken)
            if theirs.exclusive is not None and theirs.domains.level == tie.domains.level
            else theirs
            for other, theirs in left.items()
        }
    return left


def _dealt(placement: Placement, needed: Needed, tie: Tie) -> Placement:
    """Pods of one shape dealt out to the components, so that each domain has whole copies of all of them."""
    rows: dict[int, list[tuple[int, int]]] = {}
    for (_, row), pods in placement.items():
        rows.setdefault(int(tie.domains.number[row]), []).append((row, pods))
    dealt = Placement()
    for in_domain in rows.values():
        copies = sum(pods for _, pods in in_domain) // tie.size
        for index, component in needed:
            deal(in_domain, index, component.replicas * copies, dealt)
    return dealt
