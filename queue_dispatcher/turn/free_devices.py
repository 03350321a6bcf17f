"""How many devices each cluster has left, for the choice among clusters. Pure.

Karmada's count is up to ten seconds old. Who packs may go by it: what was released since went to the
fullest, and so does the next. Who spreads may not, or all that is released in these seconds would go to one
cluster. So what our own charges there have become more since is taken off, and what is about to be released;
and no more is free than our charges leave. Only what was released right before a count, and others have taken
something too, may be missed until the next.
"""

from collections.abc import Mapping

from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.ledger.cells import Cell
from queue_dispatcher.workloads.demand import Demand


def free_devices(cache: Cache, demand: Demand, *, as_of_now: bool) -> dict[str, int]:
    """By cluster, how many devices of the kind that the workload asks for are free, never below 0.

    As Karmada has counted them; ``as_of_now``: less what has been released since.
    """
    resource = next((name for name, _ in demand.total() if cache.is_accelerator(name)), "")
    clusters = cache.fleet.clusters
    counted = {name: cluster.free.get(resource, 0) for name, cluster in clusters.items()}
    if as_of_now:
        taken = _about_to_come(cache, resource)
        for name, cluster in clusters.items():
            charged = _amount(cache, cache.charges.on(name), resource)
            before = cache.charged_when_counted.get(name)
            since = charged - _amount(cache, before, resource) if before is not None else 0
            left = cluster.allocatable.get(resource, 0) - charged
            counted[name] = min(counted[name] - since, left) - taken.get(name, 0)
    return {name: max(0, left) for name, left in counted.items()}


def _amount(cache: Cache, charged: Mapping[Cell, int], resource: str) -> int:
    return sum(amount for cell, amount in charged.items() if cache.table.name(cell).resource == resource)


def _about_to_come(cache: Cache, resource: str) -> dict[str, int]:
    """By cluster, what is decided to go there and not written yet."""
    taken: dict[str, int] = {}
    for uid in cache.running.preplaced:
        entry = cache.entries[uid]
        if entry.admission is not None:
            for share in entry.admission.choices[uid].more:
                held = dict(entry.binding.demand.held((share,)))
                taken[share.cluster] = taken.get(share.cluster, 0) + held.get(resource, 0)
    return taken
