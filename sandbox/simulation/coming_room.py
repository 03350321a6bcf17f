"""When a gang would fit at the earliest, or who has to end for it, as modelled estimators work it out. Pure.

One told end after the other: what has ended by then is taken from the nodes, first from those that lose the
fewest pods by it, until the gang fits. Then as many of these pods are put back as leave it where it is.
Of workloads that may be ended one after the other is, until the gang fits; and then one after the other, the
last first, is put back if it fits all the same. Of what may run on with fewer pods those go one by one that
its controller would take, and come back in the opposite order.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from fairway.workloads.workload_name import WorkloadName
from queue_dispatcher.cycle.earliest import Earliest
from sandbox.simulation.nodes import Node
from sandbox.simulation.packing import Pods, fill, pack, where_of
from sandbox.simulation.templates import Request

Went = list[tuple[Pods, Node]]
Hold = Callable[[list[Node]], None]


@dataclass(frozen=True, slots=True)
class RunningPod:
    """A pod that holds its node until ``at_ms`` at the latest, epoch milliseconds; None: nobody knows."""

    node: str
    request: Request
    at_ms: int | None


@dataclass(frozen=True, slots=True)
class Choice:
    """A workload that may be ended, the earlier ``at_ms`` the rather. ``step``: instead it may run on without
    as many pods, and those are the pods that go beside those of the steps before; else 0.
    """

    workload: WorkloadName
    at_ms: int
    pods: tuple[RunningPod, ...]
    step: int = 0


def victims_room(
    cluster: str,
    pods: Sequence[Pods],
    copies: int,
    nodes: Sequence[Node],
    leaving: Sequence[RunningPod],
    choices: Sequence[Choice],
    hold: Hold,
) -> Earliest | None:
    """Who has to end for so many copies; None where they do not fit without all of them, or fit now.

    Nobody, where they fit once those have left that are ``leaving`` by themselves. Else as `earliest_room`.
    """

    def tried(ending: Sequence[Choice]) -> Went | None:
        left = _without([*leaving, *(pod for one in ending for pod in one.pods)], nodes)
        hold(left)
        return _placed(pods, copies, left)

    soon = earliest_room(cluster, pods, copies, nodes, leaving, hold)
    ranked = sorted((one for one in choices if one.pods), key=lambda one: one.at_ms)
    if soon is not None or not ranked:
        return soon
    runs = (ranked[:count] for count in range(1, len(ranked) + 1))
    ending = next((run for run in runs if tried(run) is not None), None)
    if ending is None:
        return None
    for one in reversed(ending):
        without = [other for other in ending if other is not one]
        if one.step and any(other.step > one.step and _is_same(one, other) for other in without):
            continue
        if without and tried(without) is not None:
            ending = without
    went = tried(ending)
    assert went is not None
    going = {one.workload: one.step for one in ending}
    return Earliest(
        cluster,
        max(one.at_ms for one in ending),
        sum(len(one.pods) for one in ending),
        where_of(went),
        tuple(going),
        gives=tuple(going.values()),
    )


def _is_same(one: Choice, other: Choice) -> bool:
    return one.workload == other.workload


def earliest_room(
    cluster: str,
    pods: Sequence[Pods],
    copies: int,
    nodes: Sequence[Node],
    running: Sequence[RunningPod],
    hold: Hold,
) -> Earliest | None:
    """When so many copies of the gang fit; None where they would not with all of these gone, or fit now.

    ``nodes``: as they are now, which stay so; ``hold`` takes from such nodes what others are to have of them.
    """

    def tried(gone: Sequence[RunningPod]) -> tuple[Went, dict[str, Node]] | None:
        left = _without(gone, nodes)
        hold(left)
        went = _placed(pods, copies, left)
        return None if went is None else (went, {node.name: node for node in left})

    for at_ms in (*sorted({one.at_ms for one in running if one.at_ms is not None}), None):
        gone = [one for one in running if at_ms is None or (one.at_ms is not None and one.at_ms <= at_ms)]
        if tried(gone) is not None:
            break
    else:
        return None
    by_node: dict[str, list[RunningPod]] = {}
    for one in gone:
        by_node.setdefault(one.node, []).append(one)
    emptied: list[RunningPod] = []
    for name in sorted(by_node, key=lambda name: (len(by_node[name]), name)):
        emptied += by_node[name]
        found = tried(emptied)
        if found is not None:
            went, left = found
            ends = _in_the_way(emptied, {node.name for _, node in went}, left)
            if not ends:
                return None
            at = [one.at_ms for one in ends if one.at_ms is not None]
            return Earliest(cluster, max(at) if len(at) == len(ends) else None, len(ends), where_of(went))
    return None


def _without(gone: Sequence[RunningPod], nodes: Sequence[Node]) -> list[Node]:
    """Copies of the nodes once these pods have ended there."""
    left = {node.name: node.copied() for node in nodes}
    for one in gone:
        node = left.get(one.node)
        if node is not None:
            node.release(one.request)
            # An estimator that has stopped looking may count pods that came later.
            node.free.update(
                (name, min(node.free[name], node.allocatable.get(name, 0))) for name, _ in one.request
            )
    return list(left.values())


def _placed(pods: Sequence[Pods], copies: int, nodes: list[Node]) -> Went | None:
    """Where so many copies go, held there; None where they do not fit."""
    wanted = [one for one in pods if one.count > 0]
    if len(wanted) == 1:
        together = replace(wanted[0], count=wanted[0].count * copies)
        filled = fill(together, nodes)
        return filled if len(filled) == together.count else None
    went: Went = []
    for _ in range(copies):
        one = pack(wanted, nodes)
        if one is None:
            return None
        went += one
    return went


def _in_the_way(gone: Sequence[RunningPod], used: set[str], left: dict[str, Node]) -> list[RunningPod]:
    """Which of them have to end, once those that end last and leave room for the gang are put back."""
    there = [one for one in gone if one.node in used]
    ends = []
    for one in sorted(there, key=lambda one: (one.at_ms is not None, -(one.at_ms or 0))):
        node = left[one.node]
        if node.fits(one.request) > 0:
            node.hold(one.request)
        else:
            ends.append(one)
    return ends
