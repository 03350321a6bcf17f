"""The most whole sets there are, found and proven over the patterns of pods that nodes can hold.

Patterns of many shapes are too many to list. Then shapes that ask for the same devices count as one: as one
that takes the least to be sure of the bound, as one that takes the most to be sure of a placement, and where
devices decide both are the same. If there are still too many, the scarcest come first: what bounds these
bounds the whole, and the others, which have room to spare, are placed into what is left. Every placement is
made in integers on the room itself before it counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from estimator.capacity.answer import Answer
from estimator.capacity.budget import Budget
from estimator.capacity.room import Room
from estimator.capacity.sets.bins import Bins, Groups, IntMatrix, bins_of
from estimator.capacity.sets.packing import Packed, Packer
from estimator.capacity.sets.pattern_program import pattern_loads
from estimator.capacity.sets.patterns import Patterns, patterns_of
from estimator.capacity.sets.prices import ceiling
from estimator.cluster.columns import IntVector
from estimator.fit.pod_shape import NodeClaim, PodShape
from fairway.resources import is_extended

# Shapes, and combinations of pods to look at: some tens of milliseconds each.
_MOST_SHAPES = 64
_MOST_COMBINATIONS = 2_000_000


@dataclass(frozen=True, slots=True)
class Found:
    """No more than ``bound`` sets fit; ``sets`` of them are ``packed``, 0 where none were found."""

    bound: int
    sets: int = 0
    packed: Packed = field(default_factory=dict)


def most_sets(
    room: Room, per_shape: Mapping[PodShape, int], alone: Mapping[PodShape, Answer], most: int, search: Budget
) -> Found:
    """As many whole sets as there are, ``most`` at the most; what can be said of that in time.

    ``per_shape`` is the pods of one set. Shapes must compete for nothing but the amounts of resources.
    """
    if search.spent:
        return Found(most)
    shapes = sorted(per_shape, key=lambda shape: alone[shape].value / per_shape[shape])[:_MOST_SHAPES]
    needs = [per_shape[shape] for shape in shapes]
    bins = bins_of(room, shapes)
    groups: Groups = [[index] for index in range(len(shapes))]
    listed = _list(bins, groups, needs, most, search, fewest=len(groups))
    if listed is None:
        groups = _by_devices(shapes)
        few = min(2, len(groups))
        listed = _list(bins.merged_down(groups), groups, needs, most, search, fewest=few)
    if listed is None:
        return Found(most)
    if all(len(group) == 1 for group in listed.groups):
        bound, pods = pattern_loads(listed.patterns, listed.needs, most, search)
        sets = bound
    else:
        groups = listed.groups
        bound = ceiling(listed.patterns, listed.needs, most, search).sets
        listed = _list(bins.merged_up(groups), groups, needs, bound, search, fewest=len(groups))
        if listed is None:
            return Found(bound)
        sets, pods = pattern_loads(listed.patterns, listed.needs, bound, search)
    if pods is None:
        return Found(bound)
    members, pods = _shared_out(pods, listed.groups, [need * sets for need in needs])
    packed = listed.bins.packed([shapes[index] for index in members], pods)
    rest = {shape: pods for shape, pods in per_shape.items() if shape not in packed}
    beside = _beside(room, packed, rest, alone, sets, search)
    return Found(bound) if beside is None else Found(bound, sets, {**packed, **beside})


@dataclass(frozen=True, slots=True)
class _Listed:
    """The patterns of groups of shapes, of which a set needs so many pods each."""

    groups: Groups
    needs: IntVector
    bins: Bins
    patterns: Patterns


def _list(
    bins: Bins, groups: Groups, needs: Sequence[int], most: int, search: Budget, *, fewest: int
) -> _Listed | None:
    """The patterns of as many groups as can be overseen, from the first; None if those are too few."""
    of_groups = [sum(needs[index] for index in group) for group in groups]
    caps = bins.caps.max(axis=0, initial=0).tolist()
    sizes = [min(cap, need * most) + 1 for cap, need in zip(caps, of_groups, strict=True)]
    for count in range(len(groups), fewest - 1, -1):
        if prod(sorted(sizes[:count])[:-1]) > _MOST_COMBINATIONS:
            continue
        if search.spent:
            return None
        reduced = bins.reduced([need * most for need in of_groups[:count]])
        patterns = None if reduced is None else patterns_of(reduced, _MOST_COMBINATIONS)
        if reduced is not None and patterns is not None:
            return _Listed(groups[:count], np.array(of_groups[:count], dtype=np.int64), reduced, patterns)
    return None


def _by_devices(shapes: Sequence[PodShape]) -> list[list[int]]:
    """Shapes that ask for the same devices on the same nodes together; others by themselves."""
    groups: dict[tuple[NodeClaim, tuple[tuple[str, int], ...], int], list[int]] = {}
    for index, shape in enumerate(shapes):
        devices = tuple((name, amount) for name, amount in shape.requests if is_extended(name))
        groups.setdefault((shape.claim, devices, 0 if devices else 1 + index), []).append(index)
    return list(groups.values())


def _shared_out(pods: IntMatrix, groups: Groups, wanted: Sequence[int]) -> tuple[list[int], IntMatrix]:
    """The members of the groups, and the pods of each where a group has so many on each bin."""
    members, columns = [], []
    for group, load in zip(groups, pods.T, strict=True):
        ends = np.cumsum(load)
        begin = 0
        for index in group:
            end = begin + wanted[index]
            columns.append(np.maximum(0, np.minimum(ends, end) - np.maximum(ends - load, begin)))
            members.append(index)
            begin = end
    return members, np.stack(columns, axis=1)


def _beside(
    room: Room,
    packed: Packed,
    rest: Mapping[PodShape, int],
    alone: Mapping[PodShape, Answer],
    sets: int,
    search: Budget,
) -> Packed | None:
    """A placement of so many sets of the other shapes in what those that are packed leave.

    None where none is found, or the packed ones do not fit themselves.
    """
    room = room.fork()
    for shape, (rows, pods) in packed.items():
        placed = np.zeros(len(room.nodes.rows), dtype=np.int64)
        placed[rows] = pods
        if (placed > room.fits(shape)).any():
            return None
        room.take(shape, placed)
    if not rest:
        return {}
    packer = Packer(room, rest, alone)
    for strategy in packer.strategies():
        found = packer.pack(sets, strategy, lambda: search.spent)
        if found is not None:
            return found
    return None
