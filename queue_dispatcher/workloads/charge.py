"""What an admitted workload is charged with: its reservation, and from placement on what is really placed.

Until Karmada has placed it, all of the reservation, to every flavor that it was admitted to. What is placed
moves to the flavor that has its cluster: one that it was admitted to, else one that its queue offers, else it
stays where it was. What is reserved and not placed yet (growth, copies for clusters that may come back) stays
with the flavors of the reservation. So the charge is never below what is placed, nor below the reservation.

Where the workload has finished in one cluster of several, that part is given back at once: what a Job was
given for its pods there it never asks for again, and no other cluster gets it.
"""

from collections.abc import Collection, Iterable, Mapping

from queue_dispatcher.ledger.cells import CellTable, Charge
from queue_dispatcher.workloads.demand import Component, Demand, Placed, Requests
from queue_dispatcher.workloads.flavors import Reaches

FlavorsByResource = Mapping[str, tuple[str, ...]]


def charge_of(
    reserved: Requests,
    admitted_to: FlavorsByResource,
    demand: Demand,
    placed: Iterable[Placed],
    finished: Collection[str],
    offered: FlavorsByResource,
    reaches: Reaches,
    table: CellTable,
) -> Charge:
    """The charge of a workload.

    ``reserved``: what it was admitted with, or for one that was not, what it is expected to hold; empty to
    charge no more than what is placed. ``admitted_to``: the flavors of the record, or of the best
    alternative, by resource. ``offered``: the flavors of its queue, by resource; a resource that is neither
    admitted to a flavor nor offered is not charged.
    """
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
        for flavor in _base(resource, admitted_to, offered) if amount > 0 else ():
            total[flavor, resource] = total.get((flavor, resource), 0) + amount
    return tuple(
        sorted(
            (table.cell(flavor, resource), amount) for (flavor, resource), amount in total.items() if amount
        )
    )


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
