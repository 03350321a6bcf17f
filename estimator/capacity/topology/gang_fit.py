"""How many copies of a gang fit where its pods must share domains of a topology level.

What a request means in a cluster is settled here: which label its level is, which domains that has, what pods
must be in one together, and which domains may be had whole. `gang_copies` does the search.

Required, preferred and sliced placement mean what they do in Kueue's topology-aware scheduling (KEP-2724),
exclusive what it does in JobSet; an NVLink clique is given to a gang for itself only when wholly free.
"""

from dataclasses import dataclass, replace

import numpy as np

from estimator.capacity.answer import NO_LIMIT, UNBOUNDED, Answer, exactly
from estimator.capacity.budget import NO_BUDGET, Budget, Expired
from estimator.capacity.request import Component
from estimator.capacity.room import Room
from estimator.capacity.sets.bounds import Needed, pods_per_shape
from estimator.capacity.sets.component_sets import Sets
from estimator.capacity.sets.first_fit import Placement
from estimator.capacity.topology.company import in_company
from estimator.capacity.topology.domains import DomainCache, Domains, everywhere
from estimator.capacity.topology.gang_copies import Gang
from estimator.capacity.topology.levels import CLIQUE, Level, Levels
from estimator.capacity.topology.slice_terms import slice_terms
from estimator.capacity.topology.ties import Tie, ceilings
from estimator.cluster.columns import BoolVector
from estimator.reasons import (
    TOPOLOGY_CONFLICT,
    Reason,
    crossed_topologies,
    fits_within,
    uneven_slices,
    unknown_level,
)
from fairway.resources import is_extended
from fairway.workloads.gang import TopologyMode, TopologyRequest

_Tied = Tie | Reason | None
"""What became of a topology request: a tie, why there can be none, or None where it merely prefers."""


@dataclass(frozen=True, slots=True)
class GangFit:
    """How many copies of a gang fit, and where.

    ``level``: the label key of the level that each copy (each slice of one) is within; for preferred
    placement the finest that one copy fits within. Empty where none was asked for, none will do, or nothing
    fits. ``domains``: the label values, from the coarsest, of the domains used (preferred: of that one).
    ``placement``: pods per (component index, row) of as many copies as the answer says (a tight one: of no
    more than are wanted); None where nothing needs a node.
    """

    answer: Answer
    level: str = ""
    domains: tuple[tuple[str, ...], ...] = ()
    placement: Placement | None = None


def place_gang(
    room: Room,
    components: tuple[Component, ...],
    topology: TopologyRequest | None,
    levels: Levels,
    domains: DomainCache,
    expired: Expired,
    wanted: int = 0,
    search: Budget = NO_BUDGET,
    *,
    tight: bool = False,
) -> GangFit:
    """How many copies of the gang fit, each whole; the search may end at ``wanted`` if that is not 0.

    ``topology`` binds all pods of a copy, a component's own those of that component within each copy; both
    hold. Exclusive placement with a slice size gives each slice a domain to itself. A component's preferred
    level limits nothing and is not told. ``domains`` remembers domains of this cluster. A level that is
    unknown or ambiguous, or slices that a component's pods do not make up, are answered with 0 and why.
    Pods in multi-host TPU slices get whole free slices, whatever else is said.
    Gangs of one shape without caps by domain are answered exactly in any time (about a millisecond at 5,000
    nodes), others as far as ``expired`` lets the search go; ``search`` is time for exact answers. ``tight``:
    the placement shall leave as many nodes whole as it can.
    """
    needed: Needed = [(index, part) for index, part in enumerate(components) if part.replicas > 0]
    if not needed:
        return GangFit(NO_LIMIT)

    def solve(inside: Room) -> tuple[Answer, GangFit]:
        reading = _Reading(inside, needed, levels, domains)
        fit = _placed(reading, components, topology, expired, wanted or UNBOUNDED, search, tight)
        return fit.answer, fit

    answer, fit = in_company(room, (component.shape for _, component in needed), solve, expired)
    return replace(fit, answer=answer)


def _placed(
    reading: "_Reading",
    components: tuple[Component, ...],
    topology: TopologyRequest | None,
    expired: Expired,
    most: int,
    search: Budget,
    tight: bool,
) -> GangFit:
    room, needed = reading.room, reading.needed
    if topology is None and len(needed) == 1:
        index, lone = needed[0]
        topology, needed = lone.topology, [(index, replace(lone, topology=None))]
    terms = slice_terms(room, needed, topology, reading.levels)
    needed, topology, rows = terms.needed, terms.topology, dict(terms.rows)
    if rows and len(pods_per_shape(needed)) == 1:
        room, rows = room.within(next(iter(rows.values()))), {}
    reading = replace(reading, room=room, needed=needed)
    over = None if topology is None else reading.domains(topology)
    own = {index: reading.tie(c, c.topology) for index, c in needed if c.topology is not None}
    if topology is not None and reading.is_sliced(topology):
        own = {index: reading.crossed(c, own.get(index), reading.tie(c, topology)) for index, c in needed}
    ties = {index: tie for index, tie in own.items() if isinstance(tie, Tie)}
    for index, usable in rows.items():
        tie = ties.get(index, Tie(everywhere(room.nodes), 1))
        inside = replace(tie.domains, number=np.where(usable, tie.domains.number, 0))
        ties[index] = replace(tie, domains=inside)
    refused = [why for why in (over, *own.values()) if why is not None and not isinstance(why, Domains | Tie)]
    if refused:
        return GangFit(_refusal(room, needed, tuple(dict.fromkeys(refused)), expired))
    gang = Gang(room, components, needed, ties, expired, search, terms.copies, tight)
    fit = _searched(gang, reading, topology, over if isinstance(over, Domains) else None, most)
    # A limit of the gang may be one of its components as well.
    reasons = tuple(dict.fromkeys((*terms.reasons, *fit.answer.reasons)))
    return replace(fit, answer=replace(fit.answer, reasons=reasons))


def _searched(
    gang: Gang, reading: "_Reading", topology: TopologyRequest | None, over: Domains | None, most: int
) -> GangFit:
    if topology is None or over is None or reading.is_sliced(topology):
        return _told(gang.anywhere(most), over)
    if topology.mode is TopologyMode.PREFERRED:
        return _preferred(gang, reading.upward(over.level), most)
    exclusive = reading.free_domains(over) if topology.mode is TopologyMode.EXCLUSIVE else None
    return _told(gang.within(over, exclusive, most), over)


def _refusal(room: Room, needed: Needed, why: tuple[Reason, ...], expired: Expired) -> Answer:
    """0, which is the truth for what cannot be meant, and a careful answer to what is not worked out."""
    if not all(reason.kind == TOPOLOGY_CONFLICT for reason in why):
        return exactly(0, *why)
    bound = int(ceilings(room, needed, everywhere(room.nodes), expired)[0])
    return Answer(0, bound, bound == 0, why)


def _told(sets: Sets, domains: Domains | None) -> GangFit:
    if domains is None or sets.answer.value == 0:
        return GangFit(sets.answer, placement=sets.placement)
    return GangFit(sets.answer, domains.level.key, _paths(domains, sets.placement), sets.placement)


def _paths(domains: Domains, placement: Placement | None) -> tuple[tuple[str, ...], ...]:
    """The paths of the domains that a placement uses, in order."""
    numbers = np.unique(domains.number[[row for _, row in placement or ()]])
    return tuple(sorted(domains.paths[number - 1] for number in numbers.tolist() if number))


def _preferred(gang: Gang, upward: tuple[Domains, ...], most: int) -> GangFit:
    """As many copies as fit anywhere, and the first of these levels of which one domain holds a copy."""
    sets = gang.anywhere(most)
    for domains in upward if sets.answer.value else ():
        one = gang.within(domains, None, 1)
        if one.answer.value:
            reasons = (fits_within(domains.level.key), *sets.answer.reasons)
            answer = replace(sets.answer, reasons=reasons)
            placement = one.placement if gang.tight and most == 1 else sets.placement
            return GangFit(answer, domains.level.key, _paths(domains, one.placement), placement)
    return GangFit(sets.answer, placement=sets.placement)


@dataclass(frozen=True, slots=True)
class _Reading:
    """What topology requests mean in this cluster."""

    room: Room
    needed: Needed
    levels: Levels
    cache: DomainCache

    def is_sliced(self, request: TopologyRequest) -> bool:
        """Whether it is slices that share a domain, not all pods."""
        exclusive = request.mode is TopologyMode.EXCLUSIVE and request.slice_size != 0
        return exclusive or request.mode is TopologyMode.SLICED

    def domains(self, request: TopologyRequest) -> Domains | Reason:
        """The domains of the level that the request names."""
        level = self.levels.resolve(request.level)
        if not isinstance(level, Level):
            return level
        if request.mode is TopologyMode.EXCLUSIVE and level in self.levels.ordered:
            # JobSet keeps gangs apart by anti-affinity, which knows the level's own label alone.
            return self.cache.of(self.room.nodes, Level(level.key))
        domains = self.cache.of(self.room.nodes, level)
        if domains.count == 0 and level not in self.levels.ordered:
            return unknown_level(level.key, tuple(known.key for known in self.levels.ordered))
        return domains

    def upward(self, level: Level) -> tuple[Domains, ...]:
        """The domains of the level and of all coarser ones, the finest first."""
        return tuple(self.cache.of(self.room.nodes, coarser) for coarser in self.levels.upward(level))

    def tie(self, component: Component, request: TopologyRequest) -> _Tied:
        """How the request ties the component's pods; None where it merely prefers."""
        domains = self.domains(request)
        if not isinstance(domains, Domains):
            return domains
        if request.mode is TopologyMode.PREFERRED:
            return None
        size = request.slice_size if self.is_sliced(request) else component.replicas
        if size < 1 or component.replicas % size:
            return uneven_slices(component.name, component.replicas, size)
        exclusive = self.free_domains(domains) if request.mode is TopologyMode.EXCLUSIVE else None
        return Tie(domains, size, exclusive)

    def crossed(self, component: Component, own: _Tied, slices: _Tied) -> _Tied:
        """The tie of a component with a topology of its own in a gang whose pods come in slices."""
        if not isinstance(own, Tie) or not isinstance(slices, Tie):
            return slices if own is None or isinstance(own, Tie) else own
        if (
            own.size % slices.size == 0
            and slices.exclusive is None
            and own.domains.lie_within(slices.domains)
        ):
            return own
        return crossed_topologies(component.name, own.domains.level.key, slices.domains.level.key)

    def free_domains(self, domains: Domains) -> BoolVector:
        """Which domains a gang may have for itself: nobody else does, and cliques must be wholly free."""
        nodes = self.room.nodes
        used = nodes.held_exclusively(domains.level.key)
        if domains.level.key == CLIQUE:
            for name in {name for _, c in self.needed for name, _ in c.shape.requests if is_extended(name)}:
                used |= self.room.free(name) < nodes.allocatable(name)
        free: BoolVector = ~domains.anywhere(used)
        return free
