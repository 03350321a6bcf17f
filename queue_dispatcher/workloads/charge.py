"""What an admitted workload is charged with: its reservation, and from placement on what is really placed.

Until Karmada has placed it, all of the reservation, to every flavor that it was admitted to. What is placed
moves to the flavor that has its cluster: one that it was admitted to, else one that its queue offers, else it
stays where it was. What is reserved and not placed yet (growth, copies for clusters that may come back) stays
with the flavors of the reservation. So the charge is never below what is placed, nor below the reservation.

Of several copies each goes to a cluster of its own, so no flavor is charged more of them than it has clusters
for; where that is more than one flavor's, which ones Karmada chooses is not known, and each flavor is charged
the most that it may get.

Where the workload has finished in one cluster of several, that part is given back at once: what a Job was
given for its pods there it never asks for again, and no other cluster gets it.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from queue_dispatcher.ledger.cells import CellTable, Charge
from queue_dispatcher.workloads.demand import Component, Demand, Placed, Requests
from queue_dispatcher.workloads.flavors import Reaches

FlavorsByResource = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Copies:
    """A workload that so many clusters get whole, out of those that its placement permits."""

    count: int
    permitted: Collection[str]


def charge_of(
    reserved: Requests,
    admitted_to: FlavorsByResource,
    demand: Demand,
    placed: Iterable[Placed],
    finished: Collection[str],
    offered: FlavorsByResource,
    reaches: Reaches,
    table: CellTable,
    copies: Copies | None = None,
) -> Charge:
    """The charge of a workload.

    ``reserved``: what it was admitted with, or for one that was not, what it is expected to hold; empty to
    charge no more than what is placed. ``admitted_to``: the flavors of the record, or of the best
    alternative, by resource. ``offered``: the flavors of its queue, by resource; a resource that is neither
    admitted to a flavor nor offered is not charged. ``copies``: None for a workload that is divided.
    """
    placed = tuple(placed)
    total: dict[tuple[str, str], int] = {}
    left = dict(reserved)
    for share in placed:
        for component, count in demand.at(share):
            for resource, request in component.requests:
                amount = request * count
                left[resource] = left.get(resource, 0) - amount
                if share.cluster in finished:
                    continue
                flavor = _flavor(resource, share.cluster, component, admitted_to, offered, reaches)
                if flavor is not None:
                    total[flavor, resource] = total.get((flavor, resource), 0) + amount
    for resource, amount in left.items():
        least = max(0, amount) + sum(part for (_, name), part in total.items() if name == resource)
        base = _base(resource, admitted_to, offered) if amount > 0 else ()
        for flavor in base:
            total[flavor, resource] = total.get((flavor, resource), 0) + amount
        if copies is not None and len(base) > 1:
            most = _most(resource, demand, placed, finished, copies, admitted_to, offered, reaches)
            charged = {f: min(part, most.get(f, 0)) for (f, name), part in total.items() if name == resource}
            # Less than there is altogether means that flavors or clusters have changed since.
            if sum(charged.values()) >= least:
                total |= {(flavor, resource): part for flavor, part in charged.items()}
    return tuple(
        sorted(
            (table.cell(flavor, resource), amount) for (flavor, resource), amount in total.items() if amount
        )
    )


def _most(
    resource: str,
    demand: Demand,
    placed: Iterable[Placed],
    finished: Collection[str],
    copies: Copies,
    admitted_to: FlavorsByResource,
    offered: FlavorsByResource,
    reaches: Reaches,
) -> dict[str, int]:
    """By flavor, the most of the resource that it can come to be charged, wherever the copies go."""

    def at(cluster: str, pods: Iterable[tuple[Component, int]]) -> dict[str, int]:
        held: dict[str, int] = {}
        for component, count in pods:
            amount = count * dict(component.requests).get(resource, 0)
            flavor = _flavor(resource, cluster, component, admitted_to, offered, reaches)
            if amount and flavor is not None:
                held[flavor] = held.get(flavor, 0) + amount
        return held

    whole = [(component, component.replicas) for component in demand.components]
    most: dict[str, int] = {}
    there = set()
    for share in placed:
        there.add(share.cluster)
        if share.cluster in finished:
            continue
        wanted, held = at(share.cluster, whole), at(share.cluster, demand.at(share))
        for flavor in wanted.keys() | held.keys():
            more = max(wanted.get(flavor, 0), held.get(flavor, 0))
            most[flavor] = most.get(flavor, 0) + more
    others = [at(cluster, whole) for cluster in copies.permitted if cluster not in there]
    for flavor in {flavor for held in others for flavor in held}:
        amounts = sorted((held.get(flavor, 0) for held in others), reverse=True)
        most[flavor] = most.get(flavor, 0) + sum(amounts[: max(0, copies.count - len(there))])
    return most


def _base(resource: str, admitted_to: FlavorsByResource, offered: FlavorsByResource) -> tuple[str, ...]:
    """The flavors of a reservation. A record that was edited to name none frees nobody."""
    return admitted_to.get(resource) or offered.get(resource, ())[:1]


def _flavor(
    resource: str,
    cluster: str,
    component: Component,
    admitted_to: FlavorsByResource,
    offered: FlavorsByResource,
    reaches: Reaches,
) -> str | None:
    """The flavor of what is placed in a cluster."""
    for flavors in (admitted_to.get(resource, ()), offered.get(resource, ())):
        for flavor in flavors:
            reach = reaches.get(flavor)
            if reach and cluster in reach.clusters and component.claim.allows(reach.node_labels):
                return flavor
    return next(iter(_base(resource, admitted_to, offered)), None)
