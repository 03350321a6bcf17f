"""How many whole sets cannot be exceeded: what each shape has by itself, what each resource adds up to."""

from collections.abc import Mapping, Sequence

import numpy as np

from estimator.capacity.answer import NO_BOUND, UNBOUNDED, Answer
from estimator.capacity.request import Component
from estimator.capacity.room import Room, demand
from estimator.cluster.columns import BoolVector, IntVector
from estimator.fit.pod_shape import PodShape
from estimator.reasons import Reason, gang_limit
from fairway.quantity import MAX_INT64
from fairway.resources import PODS

Needed = Sequence[tuple[int, Component]]
"""Components that have pods, each with its index in the request."""


def pods_per_shape(needed: Needed) -> dict[PodShape, int]:
    """How many pods of each shape one set has."""
    pods: dict[PodShape, int] = {}
    for _, component in needed:
        pods[component.shape] = pods.get(component.shape, 0) + component.replicas
    return pods


def demand_per_set(room: Room, per_shape: Mapping[PodShape, int]) -> tuple[BoolVector, dict[str, int]]:
    """The rows that any of the shapes may use, and what one set takes of each resource."""
    usable = np.zeros(len(room.nodes.rows), dtype=np.bool_)
    per_set: dict[str, int] = {}
    for shape, pods in per_shape.items():
        usable |= room.eligible(shape).mask
        for resource, amount in demand(shape):
            per_set[resource] = per_set.get(resource, 0) + amount * pods
    return usable, per_set


def upper_bound(
    room: Room,
    needed: Needed,
    per_shape: Mapping[PodShape, int],
    alone: Mapping[PodShape, Answer],
) -> tuple[int, tuple[Reason, ...]]:
    """A number of sets that is never exceeded, and what limits it most.

    ``per_shape`` is the pods of one set, ``alone`` how many of each shape fit with the room to themselves.
    """
    bound = min(_alone(room, shape, alone[shape]) // pods for shape, pods in per_shape.items())
    scarce = min(per_shape, key=lambda shape: alone[shape].value // per_shape[shape])
    name = next(component.name for _, component in needed if component.shape == scarce)
    limit = gang_limit(name, per_shape[scarce], alone[scarce].value)
    usable, per_set = demand_per_set(room, per_shape)
    for resource, amount in per_set.items():
        bound = min(bound, _total(room.free(resource)[usable]) // amount)
    return min(bound, NO_BOUND), (limit, *alone[scarce].reasons)


def _alone(room: Room, shape: PodShape, answer: Answer) -> int:
    """No more pods than this fit, by themselves."""
    if answer.upper_bound < UNBOUNDED:
        return answer.upper_bound
    # Said of any number that large.
    return _total(room.free(PODS) * room.eligible(shape).mask)


def _total(column: IntVector) -> int:
    """The exact sum: in Python's integers where it might not fit into 64 bits."""
    if len(column) and int(column.max()) > MAX_INT64 // len(column):
        return sum(column.tolist())
    return int(column.sum())
