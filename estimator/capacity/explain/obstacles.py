"""Everything that keeps one more pod of a shape off each row, as vectors: not weighed and not told yet."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from estimator.capacity.room import DeviceLimit, Room, demand
from estimator.capacity.topology.slices import usable_slices
from estimator.cluster.columns import BoolVector, IntVector
from estimator.fit.eligibility import eligibility
from estimator.fit.limits import Limit
from estimator.fit.pod_shape import PodShape
from fairway.quantity import MAX_INT64
from fairway.resources import is_extended
from fairway.selectors import Requirement
from fairway.taints import UNSCHEDULABLE, Taint, Toleration, first_untolerated

_ANY_TAINT = Toleration(operator="Exists")


@dataclass(frozen=True, slots=True)
class Obstacles:
    """What is in the way of pods of one shape; every vector has an entry for each row of the room.

    ``untolerated``: rows by the first taint of their node that keeps the pods off, the cordon before all
    others. ``mismatched``: rows by requirement of the node selector. ``refused``: rows that selector or
    required affinity exclude; ``outside``: those that only the room itself leaves out. ``capacity`` is what a
    row would have of each resource if all of it were well and free, ``short`` what it lacks now. ``devices``:
    what single devices allow. ``slices``: rows of TPU slices that are not wholly free. ``filters``: what pods
    that run already leave.
    """

    amounts: Mapping[str, int]
    untolerated: Mapping[Taint, BoolVector]
    mismatched: tuple[tuple[Requirement, BoolVector], ...]
    refused: BoolVector
    outside: BoolVector
    capacity: Mapping[str, IntVector]
    short: Mapping[str, IntVector]
    devices: tuple[DeviceLimit, ...]
    slices: BoolVector
    filters: tuple[Limit, ...]

    @property
    def never(self) -> BoolVector:
        """Rows that could not hold a pod even if they were empty and well. A fresh vector."""
        never = np.zeros(len(self.refused), dtype=np.bool_)
        for resource, amount in self.amounts.items():
            never |= self.capacity[resource] < amount
        return never


def obstacles_of(room: Room, shape: PodShape) -> Obstacles:
    """What is in the way of one more pod of the shape in this room. O(rows x (resources + requirements))."""
    nodes = room.nodes
    amounts = dict(sorted(demand(shape), key=lambda item: not is_extended(item[0])))
    free = {resource: room.free(resource) for resource in amounts}
    accepted = eligibility(nodes, replace(shape.claim, tolerations=(_ANY_TAINT,))).mask
    untolerated = _untolerated(room, shape)
    tainted = np.zeros(len(accepted), dtype=np.bool_)
    for rows in untolerated.values():
        tainted |= rows
    around = room.around(shape)
    open_rows = around.rows if around is not None else None
    inside = accepted & ~tainted if open_rows is None else accepted & ~tainted & open_rows
    return Obstacles(
        amounts,
        untolerated,
        tuple((one, ~nodes.labels.matching(one)[: len(nodes.rows)]) for one in shape.claim.selector),
        nodes.present & ~accepted,
        inside & ~room.eligible(shape).mask,
        {resource: np.maximum(_capacity(room, resource), free[resource]) for resource in amounts},
        {resource: np.maximum(amount - free[resource], 0) for resource, amount in amounts.items()},
        tuple(room.device_limits(shape)),
        ~usable_slices(room, shape).rows,
        around.limits if around is not None else (),
    )


def _untolerated(room: Room, shape: PodShape) -> dict[Taint, BoolVector]:
    nodes = room.nodes
    found: dict[Taint, BoolVector] = {}
    for code in np.unique(nodes.taint_codes[nodes.present]).tolist():
        taint = first_untolerated(nodes.taint_sets[code], shape.claim.tolerations)
        if taint is not None:
            rows = (nodes.taint_codes == code) & nodes.present
            found[taint] = found[taint] | rows if taint in found else rows
    return {taint: found[taint] for taint in sorted(found, key=lambda taint: (taint != UNSCHEDULABLE, taint))}


def _capacity(room: Room, resource: str) -> IntVector:
    most = MAX_INT64 // 2
    has, unhealthy = room.nodes.allocatable(resource), room.nodes.unhealthy(resource)
    return np.asarray(np.minimum(has, most) + np.minimum(unhealthy, most))
