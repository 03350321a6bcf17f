"""Shapes: what workloads ask for, one object for all that ask for the same of the same queue.

A cycle compares shapes by identity and refuses each once, so that a hundred thousand alike workloads cost as
much as one. What a shape says follows from the queue's flavors and the fleet; when those change it is worked
out anew, and stays the same object where nothing came of the change.
"""

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from queue_dispatcher.api.cluster_queue import ClusterQueue, SearchPolicy
from queue_dispatcher.bindings.admission import alternatives_of
from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.record import Flavors
from queue_dispatcher.bindings.state import Growing, Pending
from queue_dispatcher.cache.fleet import Fleet
from queue_dispatcher.cycle.items import Alternative, Shape, joined
from queue_dispatcher.cycle.reasons import Reason, never_fits
from queue_dispatcher.ledger.cells import CellTable
from queue_dispatcher.workloads.demand import Demand, Placed, Requests
from queue_dispatcher.workloads.form import Form, form_of
from queue_dispatcher.workloads.placement import Placement

K = TypeVar("K")
EVERYWHERE = Placement()
MAX_MISSING = 5
"""Clusters that have not joined and are named."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """All of a workload that decides its shape.

    ``total``: what its admission has to find room for; of growth, the difference. ``held``: of growth, where
    the workload is, and what it was admitted to. ``question``: a digest of what its
    template says beyond its demand; empty where estimators are not asked. ``most``: of an elastic workload,
    how many pods are asked about; else 0. ``is_tried``: Karmada goes on with
    the one of several terms of affinity that it tried last, wherever that is. ``told``: the components whose
    pods can be told on which nodes to stay.
    """

    queue: str
    demand: Demand
    placement: Placement
    copies: int
    total: Requests
    held: tuple[tuple[Placed, ...], Flavors | None] | None = None
    question: str = ""
    is_tried: bool = False
    told: frozenset[str] = frozenset()
    most: int = 0


@dataclass(slots=True, eq=False)
class _Known:
    """``is_current``: nothing that the shape was made from has changed since."""

    wanted: Wanted
    shape: Shape
    is_current: bool = True


@dataclass(frozen=True, slots=True)
class Together:
    """A group. ``members``: the shapes of its members, in their order.

    Members of one shape have the same flavors, as one part of the group's shape, or several.
    """

    shape: Shape
    members: tuple[Shape, ...]

    def split(self, alternative: Alternative) -> tuple[Alternative, ...]:
        """What each member is charged with of what the group is, in their order."""
        parts = iter(alternative.parts or (alternative,))
        each: dict[Shape, Alternative] = {}
        for shape, times in Counter(self.members).items():
            own = [next(parts) for options in shape.parts for _ in options[0].parts or (None,)]
            each[shape] = joined([_times(part, 1, of=times) for part in own])
        return tuple(each[shape] for shape in self.members)


class Shapes:
    """The shapes of all that waits. With ``probes`` the estimators are asked about accelerators; with
    ``preplaces`` releases say where to, as far as they can.
    """

    def __init__(
        self,
        fleet: Fleet,
        table: CellTable,
        is_accelerator: Callable[[str], bool],
        *,
        probes: bool,
        preplaces: bool,
    ) -> None:
        self._fleet = fleet
        self._table = table
        self._is_accelerator = is_accelerator
        self._probes = probes
        self._preplaces = preplaces
        self._shapes: dict[Wanted, _Known] = {}
        # The same, so that no change of one queue or placement looks through all.
        self._by_queue: dict[str, list[_Known]] = {}
        self._by_placement: dict[Placement, list[_Known]] = {}
        # With the objects whose identities are in the key, so that those stay theirs.
        self._alike: dict[tuple[object, ...], tuple[_Known, Demand, Placement | None]] = {}
        self._together: dict[tuple[Shape, ...], Together] = {}
        self._within: dict[tuple[Shape, tuple[tuple[str, str], ...]], Shape] = {}
        self.read: list[Shape] = []
        """What `of` has answered since somebody emptied it."""

    @property
    def are_kept(self) -> bool:
        """Whether there are flavors to whose nodes pods are kept."""
        return any(reach.is_telling for reach in self._fleet.reaches.values())

    def of(
        self,
        state: Pending | Growing,
        binding: Binding,
        queue: ClusterQueue,
        question: str,
        told: frozenset[str] = frozenset(),
        most: int = 0,
    ) -> Shape:
        """The shape of what waits in ``queue``; ``told`` and ``most`` as of `Wanted`."""
        shape = self._known(state, binding, queue, question, told, most).shape
        self.read.append(shape)
        return shape

    def _known(
        self,
        state: Pending | Growing,
        binding: Binding,
        queue: ClusterQueue,
        question: str,
        told: frozenset[str],
        most: int,
    ) -> _Known:
        if not isinstance(state, Pending):
            return self._of(state, binding, queue, question, told, most)
        # Bindings share equal demands and placements as one object, which is quicker to compare than to read.
        of = (id(binding.demand), id(binding.placement), _is_tried(binding))
        alike = (queue.name, *of, state.copies, state.demand, question, told, most)
        found = self._alike.get(alike)
        if found is None or not found[0].is_current:
            known = self._of(state, binding, queue, question, told, most)
            found = self._alike[alike] = (known, binding.demand, binding.placement)
        return found[0]

    def _of(
        self,
        state: Pending | Growing,
        binding: Binding,
        queue: ClusterQueue,
        question: str,
        told: frozenset[str],
        most: int,
    ) -> _Known:
        wanted = self._wanted(state, binding, queue.name, question if self._probes else "", told, most)
        known = self._shapes.get(wanted)
        if known is not None and known.is_current:
            return known
        permitted = self._fleet.permitted(wanted.placement)
        queue = _keeping_to(queue, wanted.placement)
        may_preplace = self._may_preplace(wanted)
        if isinstance(state, Growing):
            # What is not divided grows where it is.
            divides = not (wanted.placement.is_duplicated or wanted.demand.is_set)
            may_preplace = may_preplace and divides and bool(binding.placed)
        is_preplaced = may_preplace and self._asks(wanted)
        found = alternatives_of(
            state,
            binding,
            queue,
            self._fleet.reaches,
            permitted,
            self._is_accelerator,
            self._table,
            # Over several terms of affinity Karmada may go elsewhere than to the clusters of a flavor.
            is_preplaced=is_preplaced and len(wanted.placement.groups) < 2,
            told=wanted.told if is_preplaced else frozenset(),
        )
        never = found if isinstance(found, Reason) else None
        if never is not None and not permitted and isinstance(state, Pending):
            never = _nowhere(self._fleet.missing(wanted.placement), sorted(wanted.placement.evicting))
        parts = () if isinstance(found, Reason) else found
        probe = self._probe(wanted, permitted) if never is None else ""
        avoids = queue.fungibility.when_can_borrow is SearchPolicy.TRY_NEXT_FLAVOR
        now = (parts, never, probe, avoids, may_preplace)
        before = known.shape if known is not None else None
        if before is None or _as_found(before) != now:
            first, further = (parts[0], parts[1:]) if parts else ((), ())
            key = _digest(wanted, probe)
            before = Shape(key, wanted.total, first, never, probe, further, avoids, may_preplace)
        if known is None:
            known = self._shapes[wanted] = _Known(wanted, before)
            self._by_queue.setdefault(wanted.queue, []).append(known)
            self._by_placement.setdefault(wanted.placement, []).append(known)
        known.shape, known.is_current = before, True
        return known

    def together(self, shapes: Sequence[Shape]) -> Together:
        """The shape of a group whose members have these shapes: its parts are theirs."""
        key = tuple(shapes)
        known = self._together.get(key)
        if known is None:
            never = next((shape.never for shape in shapes if shape.never is not None), None)
            parts = [
                tuple(_times(option, times) for option in _wherever(options))
                for shape, times in Counter(key).items()
                for options in shape.parts
                if never is None
            ]
            probes = [shape.probe for shape in shapes if shape.probe]
            shape = Shape(
                _digest("group", [shape.key for shape in shapes]),
                _sum(shape.demand for shape in shapes),
                parts[0] if parts else (),
                never,
                _digest("group", probes) if probes else "",
                tuple(parts[1:]),
                any(shape.avoids_borrowing for shape in shapes),
                all(shape.may_preplace for shape in shapes),
            )
            known = self._together[key] = Together(shape, key)
        return known

    def within(self, shape: Shape, flavors: tuple[tuple[str, str], ...]) -> Shape:
        """The shape, in each part with only the alternatives of these flavors, by resource, if it has any."""
        found = self._within.get((shape, flavors))
        if found is None:
            parts = [
                tuple(one for one in options if set(one.flavors) <= set(flavors)) or options
                for options in shape.parts
            ]
            first, further = (parts[0], tuple(parts[1:])) if parts else ((), ())
            found = replace(shape, key=_digest(shape.key, flavors), alternatives=first, further=further)
            self._within[shape, flavors] = found
        return found

    def doubt(self, placements: Collection[Placement], elsewhere: Collection[Placement]) -> list[Shape]:
        """These placements permit other clusters than before; the shapes that may be others therefore.

        ``elsewhere``: those that permit clusters of other flavors. Of the rest it matters only which clusters
        there are to those that are asked about there, and how many to those that several get.
        """
        doubted = [
            known
            for placement in placements
            for known in self._by_placement.get(placement, ())
            if placement in elsewhere or known.shape.probe or known.wanted.copies > 1
        ]
        for known in doubted:
            known.is_current = False
        return [known.shape for known in doubted]

    def forget_places(self) -> None:
        """What flavors mean has changed."""
        for known in self._shapes.values():
            known.is_current = False

    def forget_queue(self, queue: str) -> None:
        """The flavors of a queue have changed."""
        for known in self._by_queue.get(queue, ()):
            known.is_current = False

    def retain(self, shapes: Iterable[Shape]) -> None:
        """Forget all shapes but these and those of which these are made."""
        kept = set(shapes)
        self._within = {key: shape for key, shape in self._within.items() if shape in kept}
        kept.update(shape for shape, _ in self._within)
        self._together = {key: known for key, known in self._together.items() if known.shape in kept}
        kept.update(shape for key in self._together for shape in key)
        gone = [known for known in self._shapes.values() if known.shape not in kept]
        for known in gone:
            del self._shapes[known.wanted]
        self._by_queue = _left(self._by_queue, kept)
        self._by_placement = _left(self._by_placement, kept)
        # Some are of objects that no binding has any more; the others are found again.
        self._alike.clear()

    def __len__(self) -> int:
        return len(self._shapes) + len(self._together) + len(self._alike)

    def _wanted(
        self,
        state: Pending | Growing,
        binding: Binding,
        queue: str,
        question: str,
        told: frozenset[str],
        most: int,
    ) -> Wanted:
        placement = binding.placement or EVERYWHERE
        if isinstance(state, Pending):
            return Wanted(
                queue,
                binding.demand,
                placement,
                state.copies,
                state.demand,
                question=question,
                is_tried=_is_tried(binding),
                told=told,
                most=most,
            )
        held = (binding.placed, state.record.flavors if state.record is not None else None)
        wanted = (queue, binding.demand, placement, state.copies, state.need, held, question)
        return Wanted(*wanted, told=told, most=most)

    def _may_preplace(self, wanted: Wanted) -> bool:
        if wanted.is_tried or not self._preplaces:
            return False
        return form_of(wanted.placement, wanted.demand)[0] is Form.CONFIRM

    def _asks(self, wanted: Wanted) -> bool:
        return self._probes and any(self._is_accelerator(resource) for resource, _ in wanted.total)

    def _probe(self, wanted: Wanted, permitted: frozenset[str]) -> str:
        if not self._asks(wanted):
            return ""
        where = (sorted(permitted), wanted.placement.is_duplicated, wanted.placement.max_clusters)
        placed = wanted.held[0] if wanted.held is not None else None
        of = (wanted.demand, where, wanted.copies, wanted.question, placed)
        return _digest(*of, wanted.most) if wanted.most else _digest(*of)


def _keeping_to(queue: ClusterQueue, placement: Placement) -> ClusterQueue:
    """The queue as what is suspended can use it: of the flavors that it was charged to."""
    if placement.stay is None:
        return queue
    own = {flavor for _, flavors in placement.stay.flavors for flavor in flavors}
    groups = tuple(
        replace(group, flavors=tuple(one for one in group.flavors if one.flavor in own))
        for group in queue.groups
    )
    return replace(queue, groups=tuple(group for group in groups if group.flavors))


def _is_tried(binding: Binding) -> bool:
    placement = binding.placement
    return placement is not None and len(placement.groups) > 1 and binding.scheduled is not None


def _as_found(shape: Shape) -> tuple[object, ...]:
    return (shape.parts, shape.never, shape.probe, shape.avoids_borrowing, shape.may_preplace)


def _left(index: dict[K, list[_Known]], kept: Collection[Shape]) -> dict[K, list[_Known]]:
    """The index of shapes with only those that are kept."""
    left = ((key, [known for known in found if known.shape in kept]) for key, found in index.items())
    return {key: found for key, found in left if found}


def _nowhere(missing: Sequence[str], evicting: Sequence[str]) -> Reason:
    """Why a placement permits no cluster, with those that it names and that have not joined.

    ``evicting``: clusters that Karmada takes the workload off.
    """
    nowhere = "its placement permits none of the clusters that there are"
    if evicting:
        names = ", ".join(evicting[:MAX_MISSING])
        return never_fits(
            f"{nowhere}, as long as Karmada takes it off {names}",
            f"Karmada has taken it off {names}, or its placement permits other clusters",
        )
    if not missing:
        return never_fits(nowhere, "its placement permits other clusters, or a cluster that it permits joins")
    more = len(missing) - MAX_MISSING
    names = ", ".join(missing[:MAX_MISSING]) + (f" and {more} more" if more > 0 else "")
    joined = "has not joined" if len(missing) == 1 else "have not joined"
    joins = f"cluster {names} joins" if len(missing) == 1 else f"one of the clusters {names} joins"
    return never_fits(
        f"{nowhere}: {names}, which it names, {joined}", f"{joins}, or its placement permits other clusters"
    )


def _wherever(options: Iterable[Alternative]) -> Sequence[Alternative]:
    """As Karmada would be left to choose, whatever is charged: the members of a group are charged together,
    and each goes somewhere else.
    """
    return [_unbound(option) for option in options if option.clusters is None or option.is_any]


def _unbound(one: Alternative) -> Alternative:
    return replace(one, clusters=None, places=tuple(map(_unbound, one.places)))


def _times(one: Alternative, times: int, of: int = 1) -> Alternative:
    """The alternative with its amounts multiplied, and divided by ``of``."""
    return replace(
        one,
        charge=tuple((cell, amount * times // of) for cell, amount in one.charge),
        places=tuple(_times(place, times, of) for place in one.places),
        parts=tuple(_times(part, times, of) for part in one.parts),
    )


def _sum(demands: Iterable[Requests]) -> Requests:
    total: dict[str, int] = {}
    for demand in demands:
        for resource, amount in demand:
            total[resource] = total.get(resource, 0) + amount
    return tuple(sorted(total.items()))


def _digest(*parts: object) -> str:
    return hashlib.sha256(_canonical(parts).encode()).hexdigest()[:32]


def _canonical(value: object) -> str:
    """A text that is the same for equal values in every process: sets have no order of their own."""
    if dataclasses.is_dataclass(value):
        return _canonical(
            tuple(getattr(value, field.name) for field in dataclasses.fields(value) if field.compare)
        )
    if isinstance(value, tuple | list):
        return f"({','.join(map(_canonical, value))})"
    if isinstance(value, frozenset):
        return f"{{{','.join(sorted(map(_canonical, value)))}}}"
    return repr(value)
