"""Where a workload is released to, out of the clusters whose estimators have said that it fits. Pure.

As few clusters as there is room for, of the flavor that its queue prefers. Of those that hold all of it the
fullest, so that elsewhere room stays together for what is large, or the emptiest where its queue spreads;
what its policy divides by room, in proportion to it. None where the room that is left adds up to less: then
Karmada chooses.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from queue_dispatcher.cycle.snapshot import Verdict
from queue_dispatcher.workloads.demand import Demand, Placed
from queue_dispatcher.workloads.guidance import Guidance
from queue_dispatcher.workloads.placement import Division, Placement


@dataclass(frozen=True, slots=True)
class Choice:
    """``places``: as they are to stand in the binding; ``more``: what of that is new. ``taken``: of each
    cluster, in units of the verdict's ``rooms``. ``reason``: why there. ``placement``: the policy that it
    follows. ``guidance``: what its pods are told in the clusters.
    """

    places: tuple[Placed, ...]
    more: tuple[Placed, ...]
    taken: Mapping[str, int]
    reason: str
    placement: Placement
    guidance: tuple[Guidance, ...] = ()


def choice(
    placement: Placement,
    demand: Demand,
    verdict: Verdict,
    preferred: Sequence[frozenset[str]],
    free: Mapping[str, int],
    there: Sequence[Placed] = (),
    *,
    spreads: bool = False,
) -> Choice | None:
    """The choice for a workload; ``there``: what of it is placed, and stays. ``spreads``: to the emptiest of
    the clusters that hold all of it, not the fullest.

    ``preferred``: clusters of the flavors that it is charged to, the preferred first; no others are chosen.
    ``free``: how many devices of its kind each cluster is known to have left; those left out have none.
    """
    has = {share.cluster: share.replicas for share in there}
    lacking = demand.replicas - sum(has.values())
    rooms = dict(verdict.rooms or ())
    ranks = {cluster: rank for rank, tier in reversed(list(enumerate(preferred))) for cluster in tier}
    found = [cluster for cluster in rooms if cluster in ranks]
    fitting = [cluster for cluster in found if rooms[cluster] >= verdict.per]
    divides = not (demand.is_set or placement.is_duplicated)
    is_by_room = divides and placement.division is Division.DYNAMIC and placement.max_clusters != 1
    if fitting and not is_by_room:
        # What grows stays together where it can.
        sign = -1 if spreads else 1
        whole = min(fitting, key=lambda one: (ranks[one], one not in has, sign * free.get(one, 0), one))
        share = Placed(whole, 0 if demand.is_set else lacking)
        reason = "it runs there" if whole in has else _why(whole, fitting, ranks, free, spreads)
        return _made(placement, has, (share,), {whole: verdict.per}, reason)
    if not divides or verdict.per != lacking:
        return None
    order = sorted(found, key=lambda cluster: (ranks[cluster], -rooms[cluster], cluster))
    most = placement.max_clusters or len(order)
    share_out = _by_room if is_by_room else _few
    taken = share_out(order[:most], rooms, verdict.per)
    if taken is None:
        return None
    more = tuple(Placed(cluster, taken[cluster]) for cluster in sorted(taken))
    why = f"{len(taken)} clusters have room for all of it together" if len(taken) > 1 else "it has most room"
    return _made(placement, has, more, taken, why)


def _made(
    placement: Placement,
    has: Mapping[str, int],
    more: tuple[Placed, ...],
    taken: Mapping[str, int],
    reason: str,
) -> Choice | None:
    """The choice, unless that would be more clusters than there may be."""
    total = dict(has)
    for share in more:
        total[share.cluster] = total.get(share.cluster, 0) + share.replicas
    if placement.max_clusters and len(total) > placement.max_clusters:
        return None
    places = tuple(Placed(cluster, total[cluster]) for cluster in sorted(total))
    return Choice(places, more, taken, reason, placement)


def _why(
    whole: str, fitting: Sequence[str], ranks: Mapping[str, int], free: Mapping[str, int], spreads: bool
) -> str:
    alike = [cluster for cluster in fitting if ranks[cluster] == ranks[whole]]
    if len(fitting) == 1:
        return "it is the only one with room"
    if len(alike) < len(fitting):
        return f"of {len(fitting)} with room its queue or its policy prefers it"
    which = "emptiest" if spreads else "fullest"
    return f"of {len(fitting)} with room it is the {which}, with {free.get(whole, 0)} free"


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
    """To each in proportion to its room, by Webster's method: as Karmada 1.19 divides (pkg/util/helper)."""
    if sum(rooms[cluster] for cluster in order) < replicas:
        return None
    taken = dict.fromkeys(order, 0)
    claims = [(-Fraction(rooms[one]), place, one) for place, one in enumerate(order)]
    heapq.heapify(claims)
    for _ in range(replicas):
        _, place, cluster = heapq.heappop(claims)
        taken[cluster] += 1
        if taken[cluster] < rooms[cluster]:
            heapq.heappush(claims, (-Fraction(rooms[cluster], 2 * taken[cluster] + 1), place, cluster))
    return {cluster: count for cluster, count in taken.items() if count}
