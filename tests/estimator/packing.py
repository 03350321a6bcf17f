"""Component sets the slow way: first fit to the letter, placements checked, the best by trying all.

Everything works on a `Bins` of plain integers; none of it shares code with what it judges.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from estimator.capacity.request import Component
from estimator.capacity.room import Room
from estimator.capacity.sets.first_fit import Placement
from estimator.fit.pod_shape import PodShape

Pod = tuple[frozenset[int], tuple[tuple[str, int], ...]]
"""The rows a pod may use, and what it takes of one."""


@dataclass(frozen=True)
class Bins:
    """Rows in the order in which first fit walks them, and what is free on each."""

    order: tuple[int, ...]
    free: Mapping[int, Mapping[str, int]]

    def copy(self) -> dict[int, dict[str, int]]:
        return {row: dict(amounts) for row, amounts in self.free.items()}


def bins_of(room: Room, components: Iterable[Component]) -> Bins:
    """What the room says is free now of everything that the components ask for."""
    names = {"pods", *(name for component in components for name, _ in component.shape.requests)}
    order = tuple(room.nodes.first_fit_order().tolist())
    return Bins(order, {row: {name: int(room.free(name)[row]) for name in names} for row in order})


def pod_of(room: Room, shape: PodShape) -> Pod:
    mask = room.eligible(shape).mask
    rows = frozenset(row for row in room.nodes.first_fit_order().tolist() if mask[row])
    return rows, (*shape.requests, ("pods", 1))


def first_fit(room: Room, components: tuple[Component, ...], most: int = 1000) -> tuple[int, Placement]:
    """Set by set, component by component, node by node, as many pods on each as it takes."""
    free, placement = bins_of(room, components).copy(), Placement()
    pods = [pod_of(room, component.shape) for component in components]
    for sets in range(most):
        one_set = Placement()
        for index, component in enumerate(components):
            rows, takes = pods[index]
            left = component.replicas
            for row in free:
                if row in rows:
                    taken = min(left, *(free[row][name] // amount for name, amount in takes))
                    if taken > 0:
                        for name, amount in takes:
                            free[row][name] -= taken * amount
                        one_set[index, row] = one_set.get((index, row), 0) + taken
                        left -= taken
            if left > 0:
                return sets, placement
        for key, taken in one_set.items():
            placement[key] = placement.get(key, 0) + taken
    return most, placement


def flaws(room: Room, components: tuple[Component, ...], sets: int, placement: Placement) -> list[str]:
    """What is wrong with a placement that claims to be so many sets; nothing, if it is right."""
    bins = bins_of(room, components)
    left = bins.copy()
    found = []
    for (index, row), count in placement.items():
        rows, takes = pod_of(room, components[index].shape)
        if count <= 0 or row not in rows:
            found.append(f"{count} pods of component {index} on row {row}, where they may not be")
            continue
        for name, amount in takes:
            left[row][name] -= count * amount
    found += [
        f"row {row} lacks {-n} {name}" for row, names in left.items() for name, n in names.items() if n < 0
    ]
    for index, component in enumerate(components):
        placed = sum(count for (of, _), count in placement.items() if of == index)
        if placed != max(0, component.replicas) * sets:
            found.append(f"component {index}: {placed} pods placed for {sets} sets of {component.replicas}")
    return found


def best(room: Room, components: tuple[Component, ...], most: int) -> int:
    """The largest number of sets, up to ``most``, that any placement at all achieves."""
    bins = bins_of(room, components)
    names = sorted({name for amounts in bins.free.values() for name in amounts})
    start = tuple(tuple(bins.free[row][name] for name in names) for row in bins.order)
    pods = [
        (
            [place for place, row in enumerate(bins.order) if row in rows],
            [dict(takes).get(name, 0) for name in names],
        )
        for rows, takes in (pod_of(room, component.shape) for component in components)
    ]

    def fits(sets: int) -> bool:
        queue = tuple(index for index, c in enumerate(components) for _ in range(c.replicas * sets))

        @cache
        def place(at: int, first: int, free: tuple[tuple[int, ...], ...]) -> bool:
            if at == len(queue):
                return True
            places, takes = pods[queue[at]]
            # Pods of one component are alike, so each goes no further left than the one before it.
            lowest = first if at and queue[at] == queue[at - 1] else 0
            for where in places:
                after = tuple(n - t for n, t in zip(free[where], takes, strict=True))
                if where >= lowest and min(after) >= 0:
                    rest = (*free[:where], after, *free[where + 1 :])
                    if place(at + 1, where, rest):
                        return True
            return False

        return place(0, 0, start)

    sets = 0
    while sets < most and fits(sets + 1):
        sets += 1
    return sets
