"""What ties the pods of a component to domains, and what domains hold at most.

Pods that must be together come in bundles. Where all pods of a bundle are alike, how many bundles a domain
takes is its sum of pods over the size of one: no search is needed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from estimator.capacity.answer import NO_BOUND
from estimator.capacity.budget import Expired
from estimator.capacity.room import Room
from estimator.capacity.sets.bounds import Needed, demand_per_set, pods_per_shape
from estimator.capacity.sets.first_fit import Placement
from estimator.capacity.topology.domains import Domains, filled
from estimator.capacity.topology.levels import Level
from estimator.cluster.columns import BoolVector, IntVector
from estimator.reasons import Reason, domain_limit, held_domains
from fairway.quantity import MAX_INT64


@dataclass(frozen=True, slots=True)
class Tie:
    """Pods come in bundles of ``size``, each within one of the domains.

    ``exclusive``: which domains a bundle may have for itself, at most one in each; None to share domains.
    """

    domains: Domains
    size: int
    exclusive: BoolVector | None = None

    def bundles(self, fits: IntVector) -> IntVector:
        """How many bundles each domain takes."""
        each = self.domains.sums(fits) // self.size
        return each if self.exclusive is None else np.minimum(each, self.exclusive)

    def place(
        self, fits: IntVector, bundles: int, domains: IntVector, rank: IntVector | None = None
    ) -> IntVector | None:
        """Pods per row when so many bundles go to the first of these domains with room; None if too few fit.

        ``rank`` says which rows of a domain are filled first.
        """
        each = self.bundles(fits)
        taken = np.zeros_like(each)
        ordered = each[domains]
        taken[domains] = np.clip(bundles - (np.cumsum(ordered) - ordered), 0, ordered)
        if int(taken.sum()) < bundles:
            return None
        return filled(self.domains.number, fits, np.concatenate(([0], taken * self.size)), rank)


def ceilings(room: Room, needed: Needed, domains: Domains, expired: Expired) -> IntVector:
    """A number of sets that each domain cannot exceed: by each shape alone, and by each resource's sum.

    Looser where ``expired`` ends the work.
    """
    bound = np.full(domains.count, NO_BOUND)
    per_shape = pods_per_shape(needed)
    for shape, pods in per_shape.items():
        if expired():
            return bound
        np.minimum(bound, domains.sums(room.row_fits(shape).most) // pods, out=bound)
    usable, per_set = demand_per_set(room, per_shape)
    for resource, amount in per_set.items():
        # What is beyond 64 bits is beyond any node.
        np.minimum(bound, domains.sums(room.free(resource) * usable) // min(amount, MAX_INT64), out=bound)
    return bound


def domains_left(needed: Needed, ties: Mapping[int, Tie]) -> Iterator[int]:
    """For each level whose domains bundles want for themselves, the sets that there are domains for."""
    wanted: dict[Level, int] = {}
    free: dict[Level, BoolVector] = {}
    for index, component in needed:
        tie = ties.get(index)
        if tie is not None and tie.exclusive is not None:
            level = tie.domains.level
            wanted[level] = wanted.get(level, 0) + component.replicas // tie.size
            free[level] = tie.exclusive
    for level, bundles in wanted.items():
        yield int(np.count_nonzero(free[level])) // bundles


def domain_reasons(
    domains: Domains, exclusive: BoolVector | None, pods: int, room: IntVector
) -> tuple[Reason, ...]:
    """Why no more bundles of so many pods fit inside domains, of which each has ``room`` for so many pods.

    That a bundle must be in one is told unless some domain holds one and their room adds up to no more.
    """
    key, largest = domains.level.key, int(room.max(initial=0))
    is_obstacle = largest < pods or exclusive is not None or bool((room // pods).sum() < room.sum() // pods)
    reasons = [domain_limit(key, pods, domains.count, largest)] if is_obstacle else []
    if exclusive is not None and not exclusive.all():
        reasons.append(held_domains(key, int(np.count_nonzero(~exclusive))))
    return (*reasons, domains.outside) if domains.outside is not None else tuple(reasons)


def first_sets(placement: Placement, needed: Needed, sets: int) -> Placement:
    """Of a placement of at least so many untied sets, the pods of so many."""
    left = {index: component.replicas * sets for index, component in needed}
    kept: Placement = {}
    for (index, row), pods in placement.items():
        take = min(pods, left[index])
        if take:
            kept[index, row] = take
            left[index] -= take
    return kept
