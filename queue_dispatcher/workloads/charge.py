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

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from queue_dispatcher.ledger.cells import CellTable, Charge
from queue_dispatcher.workloads.demand import Component, Demand, Placed, Requests
from queue_dispatcher.workloads.flavors import Reaches

FlavorsByResource = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class AdmittedTo:
    """The flavors that an admission is charged to, by resource.

    ``components``: of one kind of pods, by name, where those differ from the rest.
    """

    flavors: FlavorsByResource = field(default_factory=dict)
    components: Mapping[str, FlavorsByResource] = field(default_factory=dict)

    def of(self, component: Component, resource: str) -> tuple[str, ...]:
        """The flavors of what pods of the component ask for."""
        own = self.components.get(component.name)
        return (own and own.get(resource)) or self.flavors.get(resource, ())


NOWHERE = AdmittedTo()
"""Of what was never admitted."""


@dataclass(frozen=True, slots=True)
class Copies:
    """A workload that so many clusters get whole, out of those that its placement permits."""

    count: int
    permitted: Collection[str]


def charge_of(
    reserved: Requests,
    admitted_to: AdmittedTo,
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
    alternative, by resource; those that are gone do not count. ``offered``: the flavors of its queue, by
    resource; a resource that is neither admitted to a flavor nor offered is not charged. ``copies``: None for
    a workload that is divided.
    """
    admitted_to = _still_there(admitted_to, offered, reaches)
    at = _Placing(tuple(placed), finished, admitted_to, offered, reaches)
    wanted, held = dict(reserved), dict(demand.held(at.placed))
    total: dict[tuple[str, str], int] = {}
    for resource in sorted(wanted.keys() | held.keys()):
        left = max(0, wanted.get(resource, 0) - held.get(resource, 0))
        kept: dict[str, int] = {}
        for component, amount in at.amounts(demand, resource, copies.count if copies is not None else 1):
            waiting = min(left, amount.waiting)
            charged = at.charged(component, resource, demand, amount.held, waiting, copies)
            for flavor, part in charged.items():
                there = amount.held.get(flavor, 0)
                total[flavor, resource] = total.get((flavor, resource), 0) + there
                kept[flavor] = kept.get(flavor, 0) + part - there
            wanted[resource] = wanted.get(resource, 0) - amount.waiting
        # What is reserved beyond what the template asks for, as of one that has shrunk, may be anyone's.
        beyond = min(left, max(0, wanted.get(resource, 0) - held.get(resource, 0)))
        for flavor in _base(admitted_to.flavors, resource, offered) if beyond else ():
            kept[flavor] = kept.get(flavor, 0) + beyond
        for flavor, part in kept.items():
            total[flavor, resource] = total.get((flavor, resource), 0) + min(left, part)
    return tuple(
        sorted(
            (table.cell(flavor, resource), amount) for (flavor, resource), amount in total.items() if amount
        )
    )


def still_there(
    flavors: FlavorsByResource, offered: FlavorsByResource, reaches: Reaches
) -> FlavorsByResource:
    """Those of a record's flavors that are: the queue offers them, or there is such a ResourceFlavor.

    Of one that was renamed or deleted there is no quota to keep, and a record may be edited to name any
    number.
    """
    if all(name in reaches for names in flavors.values() for name in names):
        return flavors
    return {
        resource: tuple(name for name in names if name in reaches or name in offered.get(resource, ()))
        for resource, names in flavors.items()
    }


def _still_there(admitted_to: AdmittedTo, offered: FlavorsByResource, reaches: Reaches) -> AdmittedTo:
    return AdmittedTo(
        still_there(admitted_to.flavors, offered, reaches),
        {name: still_there(flavors, offered, reaches) for name, flavors in admitted_to.components.items()},
    )


class _Amounts(NamedTuple):
    """Of one component and resource: what is placed and goes on, by flavor, and what is not placed yet."""

    held: Mapping[str, int]
    waiting: int


@dataclass(frozen=True, slots=True)
class _Placing:
    """Where a workload is placed, and by what its flavors are told."""

    placed: tuple[Placed, ...]
    finished: Collection[str]
    admitted_to: AdmittedTo
    offered: FlavorsByResource
    reaches: Reaches

    def amounts(self, demand: Demand, resource: str, copies: int) -> Iterator[tuple[Component, _Amounts]]:
        """Of each component that asks for the resource."""
        for index, component in enumerate(demand.components):
            request = dict(component.requests).get(resource, 0)
            if not request:
                continue
            held: dict[str, int] = {}
            waiting = request * component.replicas * copies
            for share in self.placed:
                amount = request * demand.at(share)[index][1]
                waiting -= amount
                flavor = self.flavor(resource, share.cluster, component)
                if amount and share.cluster not in self.finished and flavor is not None:
                    held[flavor] = held.get(flavor, 0) + amount
            yield component, _Amounts(held, max(0, waiting))

    def charged(
        self,
        component: Component,
        resource: str,
        demand: Demand,
        held: Mapping[str, int],
        waiting: int,
        copies: Copies | None,
    ) -> Mapping[str, int]:
        """By flavor, the most that it can come to be charged: what is placed, and what may come."""
        base = self.admitted_to.of(component, resource) or self.offered.get(resource, ())[:1]
        charged = dict(held)
        for flavor in base if waiting else ():
            charged[flavor] = charged.get(flavor, 0) + waiting
        if copies is None or len(base) < 2:
            return charged
        most = self._most(component, resource, demand, copies)
        less = {flavor: min(part, most.get(flavor, 0)) for flavor, part in charged.items()}
        # Less than there is altogether means that flavors or clusters have changed since.
        return less if sum(less.values()) >= waiting + sum(held.values()) else charged

    def _most(self, component: Component, resource: str, demand: Demand, copies: Copies) -> Mapping[str, int]:
        """By flavor, the most that it can come to be charged, wherever the copies go."""
        index = demand.components.index(component)
        request = dict(component.requests)[resource]
        most: dict[str, int] = {}
        there = set()
        for share in self.placed:
            there.add(share.cluster)
            flavor = self.flavor(resource, share.cluster, component)
            if share.cluster not in self.finished and flavor is not None:
                count = max(component.replicas, demand.at(share)[index][1])
                most[flavor] = most.get(flavor, 0) + request * count
        others = Counter(
            self.flavor(resource, cluster, component) for cluster in copies.permitted if cluster not in there
        )
        left = max(0, copies.count - len(there))
        for name, clusters in others.items():
            if name is not None:
                more = request * component.replicas * min(left, clusters)
                most[name] = most.get(name, 0) + more
        return most

    def flavor(self, resource: str, cluster: str, component: Component) -> str | None:
        """The flavor of what is placed in a cluster."""
        own = self.admitted_to.of(component, resource)
        for flavors in (own, self.offered.get(resource, ())):
            for flavor in flavors:
                reach = self.reaches.get(flavor)
                if reach and cluster in reach.clusters and reach.takes(component.claim):
                    return flavor
        return next(iter(own or self.offered.get(resource, ())), None)


def _base(flavors: FlavorsByResource, resource: str, offered: FlavorsByResource) -> tuple[str, ...]:
    """The flavors of a reservation. A record that was edited to name none frees nobody."""
    return flavors.get(resource) or offered.get(resource, ())[:1]
