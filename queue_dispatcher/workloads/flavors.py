"""Which flavors a workload can be charged to, before anybody knows where Karmada will place it.

The dispatcher chooses a flavor, Karmada the clusters, among all that the placement permits. So a flavor can
be chosen for a workload only where it has all of them; then each such flavor is an alternative, and the first
that fits wins. Otherwise the workload may land on several, and it is charged to each of them in full until it
is placed: quota is never exceeded, wherever it lands. Then an alternative is a choice of flavors that between
them have every place that any has. A placement that keeps to the clusters of one flavor is never charged
twice.

As in Kueue, resources of one group come from the same flavor, and a queue's order of flavors is its
preference. Resources that no group covers are not limited, except accelerators: for those there is no quota.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice, product

from queue_dispatcher.api.cluster_queue import ClusterQueue, ResourceGroup
from queue_dispatcher.api.resource_flavor import ResourceFlavor
from queue_dispatcher.cycle.items import Alternative
from queue_dispatcher.cycle.reasons import Reason, never_fits
from queue_dispatcher.ledger.cells import CellTable
from queue_dispatcher.workloads.demand import Component, Demand, Requests
from queue_dispatcher.workloads.fleet import Cluster, clusters_of

MAX_ALTERNATIVES = 64
"""Combinations of flavors beyond this many are not tried."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What a flavor means on this fleet: its clusters, and what all its nodes there are labelled with."""

    clusters: frozenset[str]
    node_labels: Mapping[str, str] = field(default_factory=dict)


Reaches = Mapping[str, Reach]
"""By the flavor's name."""


def reach_of(flavor: ResourceFlavor, fleet: Iterable[Cluster]) -> Reach:
    """The reach of a flavor."""
    return Reach(clusters_of(flavor, fleet), flavor.node_labels)


def alternatives(
    demand: Demand,
    copies: int,
    queue: ClusterQueue,
    reaches: Reaches,
    permitted: frozenset[str],
    is_accelerator: Callable[[str], bool],
    table: CellTable,
) -> tuple[Alternative, ...] | Reason:
    """The ways to charge a workload to its queue, the preferred first, or why there is none.

    ``permitted``: the clusters that its placement permits. That the amounts may be more than the queue could
    ever use is for the ledger to find out.
    """
    total = demand.total(copies)
    if not permitted:
        return never_fits("its placement permits none of the clusters that there are")
    covered = {resource for group in queue.groups for resource in group.covered}
    for resource, _ in total:
        if resource not in covered and is_accelerator(resource):
            return never_fits(f"queue {queue.name} has no quota for {resource}")
    choices: list[list[tuple[tuple[str, str], ...]]] = []
    for group in queue.groups:
        resources = [resource for resource, _ in total if resource in group.covered]
        if not resources:
            continue
        found = _choices(group, _asking(demand, resources), reaches, permitted)
        if isinstance(found, str):
            return never_fits(f"{', '.join(resources)}: {found} of queue {queue.name}")
        choices.append([tuple((r, flavor) for r in resources for flavor in choice) for choice in found])
    amounts = dict(total)
    return tuple(
        _alternative([pair for choice in combination for pair in choice], amounts, table)
        for combination in islice(product(*choices), MAX_ALTERNATIVES)
    )


def offered(queue: ClusterQueue) -> Mapping[str, tuple[str, ...]]:
    """The flavors from which a queue offers a resource, in its order, by resource."""
    return {
        resource: tuple(quotas.flavor for quotas in group.flavors)
        for group in queue.groups
        for resource in group.covered
    }


def offered_by_all(total: Requests, reaches: Reaches) -> Mapping[str, tuple[str, ...]]:
    """All flavors for all resources: what a workload without a queue takes up capacity of."""
    names = tuple(sorted(reaches))
    return {resource: names for resource, _ in total}


def _asking(demand: Demand, resources: list[str]) -> tuple[Component, ...]:
    return tuple(c for c in demand.components if c.replicas and any(r in resources for r, _ in c.requests))


def _choices(
    group: ResourceGroup, asking: tuple[Component, ...], reaches: Reaches, permitted: frozenset[str]
) -> list[tuple[str, ...]] | str:
    """Flavors to charge together, the preferred first; or why none of the group's can be."""
    there = [
        (quotas.flavor, reaches[quotas.flavor])
        for quotas in group.flavors
        if quotas.flavor in reaches and not reaches[quotas.flavor].clusters.isdisjoint(permitted)
    ]
    if not there:
        return "the clusters that its placement permits are in no flavor"
    suiting = {
        name: [component.claim.allows(reach.node_labels) for component in asking] for name, reach in there
    }
    if not all(any(suits) for suits in zip(*suiting.values(), strict=True)):
        return "its node selector or node affinity contradicts the node labels of every flavor"
    whole = [name for name, reach in there if reach.clusters >= permitted and all(suiting[name])]
    if whole:
        return [(name,) for name in whole]
    where = {
        name: {(n, c) for n, suits in enumerate(suiting[name]) if suits for c in reach.clusters & permitted}
        for name, reach in there
    }
    covers: dict[frozenset[str], tuple[str, ...]] = {}
    for name in where:
        if where[name]:
            cover = _cover(name, where)
            covers.setdefault(frozenset(cover), cover)  # in another order they are the same charge
    return list(covers.values())


def _cover(first: str, where: Mapping[str, set[tuple[int, str]]]) -> tuple[str, ...]:
    """Flavors, ``first`` the first, that together have all places that any has; each has some of its own.

    What lands in a place is charged to the first of them that has it, so a flavor that adds none is left out.
    """
    covered: set[tuple[int, str]] = set()
    cover = []
    for name in (first, *where):
        if not where[name] <= covered:
            covered |= where[name]
            cover.append(name)
    return tuple(cover)


def _alternative(pairs: list[tuple[str, str]], amounts: Mapping[str, int], table: CellTable) -> Alternative:
    charge = ((table.cell(flavor, resource), amounts[resource]) for resource, flavor in pairs)
    return Alternative(tuple(pairs), tuple(sorted(charge)))
