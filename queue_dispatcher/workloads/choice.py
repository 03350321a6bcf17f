"""Where a workload is released to, out of the clusters whose estimators have said that it fits. Pure.

As few clusters as there is room for, of the flavor that its queue prefers, and of those the emptiest; what
its policy divides by room, in proportion to it. None where the room that is left adds up to less: then
Karmada chooses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from queue_dispatcher.cycle.snapshot import Verdict
from queue_dispatcher.workloads.demand import Demand, Placed
from queue_dispatcher.workloads.placement import Division, Placement


@dataclass(frozen=True, slots=True)
class Choice:
    """``places``: as they are to stand in the binding. ``taken``: of each cluster, in units of the verdict's
    ``rooms``. ``reason``: why there. ``placement``: the policy that it follows.
    """

    places: tuple[Placed, ...]
    taken: Mapping[str, int]
    reason: str
    placement: Placement


def choice(
    placement: Placement, demand: Demand, verdict: Verdict, preferred: Sequence[frozenset[str]]
) -> Choice | None:
    """The choice for a workload, nothing of which is placed.

    ``preferred``: clusters of the flavors that it is charged to, the preferred first; no others are chosen.
    """
    rooms = dict(verdict.rooms or ())
    ranked = {
        cluster: rank for rank, clusters in reversed(list(enumerate(preferred))) for cluster in clusters
    }
    order = sorted(
        (cluster for cluster in rooms if cluster in ranked),
        key=lambda cluster: (ranked[cluster], -rooms[cluster], cluster),
    )
    whole = next((cluster for cluster in order if rooms[cluster] >= verdict.per), None)
    divides = not (demand.is_set or placement.is_duplicated)
    is_by_room = divides and placement.division is Division.DYNAMIC and placement.max_clusters != 1
    if whole is not None and not is_by_room:
        share = Placed(whole, 0 if demand.is_set else demand.replicas)
        return Choice((share,), {whole: verdict.per}, _why(rooms[whole], verdict.per, len(order)), placement)
    if not divides or verdict.per != demand.replicas:
        return None
    most = placement.max_clusters or len(order)
    taken = (
        _by_room(order[:most], rooms, verdict.per) if is_by_room else _few(order[:most], rooms, verdict.per)
    )
    if taken is None:
        return None
    places = tuple(Placed(cluster, taken[cluster]) for cluster in sorted(taken))
    return Choice(places, taken, f"{len(taken)} clusters have room for all of it together", placement)


def _why(room: int, per: int, fitting: int) -> str:
    if fitting == 1:
        return "it is the only one with room"
    return f"of {fitting} with room it has the most, for {room // per} of its kind"


def _few(order: Sequence[str], rooms: Mapping[str, int], replicas: int) -> dict[str, int] | None:
    """Fill one cluster after the other."""
    taken: dict[str, int] = {}
    left = replicas
    for cluster in order:
        if left:
            taken[cluster] = min(left, rooms[cluster])
            left -= taken[cluster]
    return taken if not left else None


def _by_room(order: Sequence[str], rooms: Mapping[str, int], replicas: int) -> dict[str, int] | None:
    """To each in proportion to its room, and what is left by rounding to the largest of them."""
    total = sum(rooms[cluster] for cluster in order)
    if total < replicas:
        return None
    taken = {cluster: replicas * rooms[cluster] // total for cluster in order}
    left = replicas - sum(taken.values())
    for cluster in sorted(order, key=lambda one: (-rooms[one], one)):
        more = min(left, 1, rooms[cluster] - taken[cluster])
        taken[cluster] += more
        left -= more
    return {cluster: count for cluster, count in taken.items() if count}
