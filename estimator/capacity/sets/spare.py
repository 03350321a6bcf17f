"""Which nodes of a placement would take more pods of a component than they are to, and are to be filled last.

A preference names nodes, not how many pods each is to take. But a node that takes no more than its share is
full by then; once all such are, what is left of the component goes where it is to go. That holds where larger
pods come first, as PriorityClasses make them: so a node counts as it is with the larger ones in their places.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from estimator.capacity.budget import Expired
from estimator.capacity.request import Component
from estimator.capacity.room import Room
from estimator.capacity.sets.first_fit import Placement
from fairway.resources import pod_size


def with_spare(
    room: Room, components: Sequence[Component], placement: Placement, expired: Expired
) -> Placement:
    """The part of the placement that is on nodes that would take more pods of the component.

    Empty where the time is up before that is known of all. The room is left unchanged.
    """
    room = room.fork()
    found: Placement = {}
    for alike in _largest_first(components, {index for index, _ in placement}):
        if expired():
            return {}
        fits = {shape: room.fits(shape) for shape in {components[index].shape for index in alike}}
        for (index, row), pods in placement.items():
            if index in alike and fits[components[index].shape][row] > pods:
                found[index, row] = pods
        for index in alike:
            placed = np.zeros_like(fits[components[index].shape])
            for (of, row), pods in placement.items():
                if of == index:
                    placed[row] = pods
            room.take(components[index].shape, placed)
    return found


def _largest_first(components: Sequence[Component], placed: set[int]) -> Iterator[set[int]]:
    """The components that are placed, those of one size together."""

    def size(index: int) -> tuple[int, int, int]:
        return pod_size(components[index].shape.requests)

    for _, alike in groupby(sorted(placed, key=size, reverse=True), size):
        yield set(alike)
