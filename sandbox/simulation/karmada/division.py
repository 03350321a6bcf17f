"""Which clusters get how many replicas: pkg/scheduler/core of Karmada 1.19, as far as it was measured. Pure.

Estimates only gate the division by room (Aggregated, dynamic weights) and spread constraints that are not
about Duplicated; a cluster that answers -1 counts with its general estimate alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum


class Strategy(Enum):
    """How replicas are divided."""

    DUPLICATED = "Duplicated"
    AGGREGATED = "Aggregated"
    DYNAMIC = "DynamicWeight"
    STATIC = "StaticWeight"


class Failure(Exception):
    """Why a binding is not placed; the class names the reason of its condition Scheduled."""


class NoClusterFit(Failure):
    """No cluster passes the filters. Not tried again; what was placed is taken away."""


class Unschedulable(Failure):
    """Too little room: tried again after five minutes."""


class SchedulerError(Failure):
    """Any other failure: tried again after a second or more."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """``placed``: by cluster, as it is. ``min_groups``, ``max_groups``: of clusters, 0 where not limited.

    ``is_set``: pods of several kinds, of which each cluster chosen gets all.
    """

    replicas: int
    placed: Mapping[str, int]
    strategy: Strategy
    min_groups: int = 0
    max_groups: int = 0
    is_set: bool = False
    is_fresh: bool = False
    weights: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A cluster that passed the filters; ``room``: for how many more replicas, or sets."""

    name: str
    room: int
    had: int = 0
    score: int = 0

    @property
    def available(self) -> int:
        """With what it has already."""
        return self.room + self.had


def divided(wanted: Wanted, room: Mapping[str, int]) -> dict[str, int]:
    """Replicas by cluster. ``room``: of those that pass the filters. Raises Failure."""
    if not room:
        raise NoClusterFit(f"0/{len(room)} clusters are available: no cluster fits")
    candidates = sorted(
        (
            Candidate(name, free, wanted.placed.get(name, 0), 100 if name in wanted.placed else 0)
            for name, free in room.items()
        ),
        key=lambda one: (-one.score, -one.available, one.name),
    )
    chosen = _selected(wanted, candidates)
    if wanted.is_set or not wanted.replicas:
        return {one.name: 0 for one in chosen}
    match wanted.strategy:
        case Strategy.DUPLICATED:
            return {one.name: wanted.replicas for one in chosen}
        case Strategy.STATIC:
            weights = {one.name: (wanted.weights or {}).get(one.name, 0) for one in chosen}
            if not any(weights.values()):
                weights = dict.fromkeys(weights, 1)
            return by_weight(wanted.replicas, weights)
        case _:
            return _by_room(wanted, chosen)


def _selected(wanted: Wanted, candidates: list[Candidate]) -> list[Candidate]:
    """As many clusters as spread constraints allow: best first, larger ones put in where room is short."""
    if not wanted.max_groups or (wanted.strategy is Strategy.STATIC and not wanted.is_set):
        return candidates
    if len(candidates) < wanted.min_groups:
        few = "the number of feasible clusters is less than spreadConstraint.MinGroups"
        raise SchedulerError(f"failed to select clusters: {few}")
    count = min(len(candidates), wanted.max_groups)
    chosen, rest = candidates[:count], candidates[count:]
    if wanted.strategy is Strategy.DUPLICATED:
        return chosen
    needed = 1 if wanted.is_set else wanted.replicas
    for number in reversed(range(count)):
        if sum(one.available for one in chosen) >= needed:
            break
        largest = max(rest, key=lambda one: one.available, default=None)
        if largest is not None and largest.available > chosen[number].available:
            rest[rest.index(largest)], chosen[number] = chosen[number], largest
    if sum(one.available for one in chosen) < needed:
        raise SchedulerError(f"failed to select clusters: no enough resource when selecting {count} clusters")
    return chosen


def _by_room(wanted: Wanted, chosen: Sequence[Candidate]) -> dict[str, int]:
    had = {one.name: one.had for one in chosen if one.name in wanted.placed}
    if wanted.is_fresh:
        return _dispensed(
            "fresh scale", wanted, wanted.replicas, [replace(o, room=o.available) for o in chosen], {}
        )
    assigned = sum(had.values())
    if assigned == wanted.replicas:
        return had
    if assigned > wanted.replicas:
        shares = [Candidate(name, replicas) for name, replicas in had.items()]
        return _dispensed("scale down", wanted, wanted.replicas, shares, {})
    return _dispensed("scale up", wanted, wanted.replicas - assigned, chosen, had)


def _dispensed(
    what: str, wanted: Wanted, target: int, offered: Sequence[Candidate], had: Mapping[str, int]
) -> dict[str, int]:
    total = sum(one.room for one in offered)
    if total < target:
        raise Unschedulable(
            f"failed to assign replicas: failed to {what}: "
            f"Clusters available replicas {total} are not enough to schedule."
        )
    is_aggregated = wanted.strategy is Strategy.AGGREGATED
    weights: dict[str, int] = {}
    for one in sorted(offered, key=lambda one: (is_aggregated and not had.get(one.name), -one.room)):
        weights[one.name] = one.room
        if is_aggregated and sum(weights.values()) >= target:
            break
    shares = dict(had)
    for name, replicas in by_weight(target, weights).items():
        shares[name] = shares.get(name, 0) + replicas
    return {name: replicas for name, replicas in shares.items() if replicas > 0}


def by_weight(replicas: int, weights: Mapping[str, int]) -> dict[str, int]:
    """Webster's method, as the Dispenser; of equal claims the first by name with fewest seats goes first."""
    seats = dict.fromkeys((name for name, weight in weights.items() if weight > 0), 0)
    if len(seats) == 1:
        return dict.fromkeys(seats, replicas)
    total = sum(weights[name] for name in seats)
    # What everybody has a right to at once, so that large numbers need no long walk; never above Webster's.
    for name in seats:
        seats[name] = max(0, replicas * weights[name] // total - len(seats))
    for _ in range(replicas - sum(seats.values())):
        first = min(seats, key=lambda name: (-weights[name] / (2 * seats[name] + 1), seats[name], name))
        seats[first] += 1
    return {name: count for name, count in seats.items() if count}
