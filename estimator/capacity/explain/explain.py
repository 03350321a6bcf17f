"""Why no further pod of a set fits: every node by the first thing that keeps one off, and the nearest misses.

The causes are tried in the order in which an administrator would rule them out: may the pod use the node at
all (cordon, taint, selector, affinity), could it ever hold one, is there room now, do single devices have
room, is its TPU slice free, do the pods keep enough distance. All of it is arithmetic on whole columns; only
the few nodes that come closest are looked at one by one. Nothing of the gang is placed yet, so what is said
of one set leaves the others out.
"""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from estimator.capacity.answer import Answer
from estimator.capacity.budget import Expired
from estimator.capacity.explain.near_misses import near_misses, permille
from estimator.capacity.explain.obstacles import Obstacles, obstacles_of
from estimator.capacity.gangs.placements import Blocked, Explanation
from estimator.capacity.request import Component
from estimator.capacity.room import Room
from estimator.capacity.topology.company import in_company
from estimator.capacity.topology.spreading import spread_replicas
from estimator.cluster.columns import BoolVector, IntVector
from estimator.fit.pod_shape import PodShape
from estimator.reasons import Reason, counted, filtered, insufficient, never_fits, untolerated
from fairway.selectors import Requirement

_SHOWN_VALUES = 4


def explain(room: Room, components: Iterable[Component], expired: Expired) -> tuple[Explanation, ...]:
    """For each component, alone in this room: how many pods fit, and what keeps one more off every node.

    O(rows x resources) for each distinct shape, a few milliseconds at 5,000 nodes. ``expired`` bounds the
    search that several spreading constraints at once need.
    """
    components = tuple(components)
    shapes = dict.fromkeys(component.shape for component in components)
    known = {shape: _explained(room, shape, expired) for shape in shapes}
    return tuple(replace(known[component.shape], pod_set=component.name) for component in components)


def _explained(room: Room, shape: PodShape, expired: Expired) -> Explanation:
    obstacles = obstacles_of(room, shape)
    usable = room if not obstacles.slices.any() else room.within(~obstacles.slices)
    fits = usable.fits(shape)

    def solve(inside: Room) -> tuple[Answer, IntVector]:
        spreading = spread_replicas(inside, shape, expired)
        return spreading.answer, spreading.placed

    alone, placed = in_company(usable, (shape,), solve, expired)
    tally = _Tally(room.nodes.present)
    _tally_access(tally, obstacles)
    _tally_room(tally, obstacles)
    tally.count(placed < np.minimum(fits, 1), _distance(alone))
    room_for = counted(int(placed.sum()), "pod")
    tally.count(placed > 0, Reason("fits", f"room for {room_for} of the set, and then for none more"))
    return Explanation("", alone.value, tally.blocked(), near_misses(room, shape, obstacles))


class _Tally:
    """Counts each present row once, under the first cause that claims it."""

    def __init__(self, present: BoolVector) -> None:
        self.left = present.copy()
        self._found: list[Blocked] = []

    def nodes(self, rows: BoolVector) -> int:
        """How many of these rows no cause has claimed yet."""
        return int(np.count_nonzero(rows & self.left))

    def count(self, rows: BoolVector, cause: Reason) -> None:
        nodes = self.nodes(rows)
        if nodes:
            self._found.append(Blocked(cause, nodes))
            self.left &= ~rows

    def blocked(self) -> tuple[Blocked, ...]:
        """Those that concern most nodes first; what fits comes last."""
        return tuple(sorted(self._found, key=lambda blocked: (blocked.cause.kind == "fits", -blocked.nodes)))


def _tally_access(tally: _Tally, obstacles: Obstacles) -> None:
    for taint, rows in obstacles.untolerated.items():
        tally.count(rows, untolerated(taint, tally.nodes(rows)))
    for requirement, rows in obstacles.mismatched:
        tally.count(rows, Reason("node_selector", f"node selector {_asked(requirement)} does not match"))
    tally.count(obstacles.refused, Reason("node_selector", "required node affinity does not match"))
    tally.count(obstacles.outside, Reason("topology", "outside of the topology domain asked for"))


def _tally_room(tally: _Tally, obstacles: Obstacles) -> None:
    for resource, amount in obstacles.amounts.items():
        capacity = obstacles.capacity[resource]
        too_small = capacity < amount
        largest = int(capacity[too_small & tally.left].max(initial=0))
        tally.count(too_small, never_fits(resource, amount, largest, "the largest of these nodes"))
    shares = [permille(obstacles.short[resource], amount) for resource, amount in obstacles.amounts.items()]
    scarcest = np.stack(shares).argmax(axis=0)
    for index, resource in enumerate(obstacles.amounts):
        rows = (scarcest == index) & (obstacles.short[resource] > 0)
        tally.count(rows, insufficient(resource, tally.nodes(rows)))
    for limit in obstacles.devices:
        full = limit.pods == 0
        tally.count(full, limit.reason(tally.nodes(full)))
    for one in obstacles.filters:
        if one.rows is not None:
            tally.count(~one.rows, filtered(one.filter, one.reason, tally.nodes(~one.rows)))
    tally.count(obstacles.slices, Reason("slices_in_use", "in a TPU slice that is not wholly free"))


def _asked(requirement: Requirement) -> str:
    values = sorted(requirement.values)
    more = ",..." if len(values) > _SHOWN_VALUES else ""
    return f"{requirement.key}={','.join(values[:_SHOWN_VALUES])}{more}"


def _distance(alone: Answer) -> Reason:
    told = [str(reason) for reason in alone.reasons if reason.kind in ("per_domain", "spread", "topology")]
    return Reason("spread", "; ".join(told) or "pods of the set must keep their distance")
