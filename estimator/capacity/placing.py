"""A gang placed in one cluster: room held for what is on its way, the search, and what spreading would do.

The one function behind Fairway's own `Place` and `Explain`, on the server and in the ``fairway`` command.
"""

from dataclasses import replace

from estimator.capacity.assumed import hold
from estimator.capacity.budget import Budget
from estimator.capacity.first_fit import Expired, Placement
from estimator.capacity.gang_replicas import Topology
from estimator.capacity.gangs import Placed
from estimator.capacity.request import GangQuestion
from estimator.capacity.pod_by_pod import spread_sets
from estimator.capacity.room import Room
from estimator.capacity.topology import place_gang
from estimator.capacity.whole_slices import in_whole_slices, keep_to_whole_slices

# A person wants to know whether the gang they wait for gets stuck, not how many thousand copies would.
_MOST_SPREAD = 100


def place(room: Room, question: GangQuestion, topology: Topology, expired: Expired, search: Budget) -> Placed:
    """How many copies of the gang fit in the room, less what is on its way, and where they would go.

    ``search`` is time for an exact answer. The room is left with the assumed gangs placed. Raises OutOfTime
    where those could not all be placed in time.
    """
    held = hold(room, question.assumed, expired)
    components = question.components
    if question.topology is None:
        components = in_whole_slices(room, components)
    else:
        keep_to_whole_slices(room, (component.shape for component in components))
    fit = place_gang(
        room,
        components,
        question.topology,
        topology.levels,
        topology.domains,
        expired,
        question.wanted,
        search,
    )
    answer = replace(fit.answer, reasons=(*fit.answer.reasons, *held))
    spread = None
    if answer.value and question.topology is None:
        spread = spread_sets(room, question.components, min(answer.value, _MOST_SPREAD), expired)
    return Placed(answer, spread, fit.level, _named(room, question, fit.placement))


def _named(
    room: Room, question: GangQuestion, placement: Placement | None
) -> tuple[tuple[str, str, int], ...]:
    named: list[tuple[str, str, int]] = []
    for (index, row), pods in sorted((placement or {}).items()):
        node = room.nodes.rows[row]
        if node is not None:
            named.append((question.components[index].name, node.name, pods))
    return tuple(named)
