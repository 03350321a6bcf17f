"""Bound: how many pods of what is placed have nodes, as the estimators of its clusters count them. Pure."""

from collections.abc import Mapping
from typing import Final

from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.progress import pods_at, pods_placed

Counts = Mapping[str, int | None]
"""By cluster, how many pods of a workload are bound there; None where its estimator cannot tell them by it. A
cluster that is left out has not said anything yet.
"""

NOT_COUNTED: Final[Counts] = {}


def is_half_bound(binding: Binding, unbound: int | None, gang_pods: int) -> bool:
    """Whether fewer pods of what is placed have nodes than must start together.

    ``unbound``: how many have none, None where that is not known; ``gang_pods``: how many of one copy must
    start together, 0 where they are independent.
    """
    if not unbound or not gang_pods:
        return False
    placement, placed = binding.placement, binding.placed
    copies = len(placed) if placement is not None and placement.is_duplicated else 1
    pods = pods_placed(binding.demand, placed)
    return pods - unbound < min(pods, gang_pods * copies)


def is_kept_out(binding: Binding, gang_pods: int) -> bool:
    """Whether Karmada can write it into no cluster, or only into those that got fewer pods than must
    start together, and knows nothing of the others. Where each cluster has a copy of its own, one is enough.
    """
    kept_out = binding.progress.kept_out
    left = [share for share in binding.placed if share.cluster not in kept_out]
    if not left:
        return bool(kept_out)
    if binding.demand.is_set or (binding.placement is not None and binding.placement.is_duplicated):
        return False
    pods = pods_placed(binding.demand, binding.placed)
    return pods_placed(binding.demand, left) < min(pods, gang_pods)


def is_counted(binding: Binding, counts: Counts) -> bool:
    """Whether all clusters where it is have said how many of its pods have nodes."""
    return all(
        counts.get(share.cluster) is not None
        for share in binding.placed
        if share.cluster not in binding.finished and pods_at(binding.demand, share)
    )


def lacking_nodes(binding: Binding, counts: Counts) -> int | None:
    """How many pods of what is placed have no node; None where that is not known yet.

    Those that have ended had one. Of a kind whose pods cannot be told none are lacking.
    """
    ended, lacking = dict(binding.progress.ended), 0
    for share in binding.placed:
        pods = pods_at(binding.demand, share)
        if not pods or share.cluster in binding.finished:
            continue
        if share.cluster not in counts:
            return None
        bound = counts[share.cluster]
        if bound is not None:
            lacking += max(0, pods - bound - ended.get(share.cluster, 0))
    return lacking
