"""What is free on one node while pods are placed on it: whole devices, shares of devices, counters.

A device for one is free until somebody has it. A device for several has capacities, of which every holder
takes some, and takes its counters only once. All that is taken can be given back, so that a search can try.

Mirrors the checks of allocateDevice in structured/internal/incubating/allocator_incubating.go of
k8s.io/dynamic-resource-allocation, Kubernetes 1.36. Difference: counters are kept by driver and pool here, by
the pool's name alone there.
"""

from dataclasses import dataclass

from fairway.dra.candidates import Candidate
from fairway.dra.devices import CounterId, Device
from fairway.dra.in_use import InUse
from fairway.dra.pools import NodeDevices


@dataclass(slots=True)
class Ledger:
    """What is free on a node while pods are placed on it; devices by their place on the node."""

    devices: tuple[Device, ...]
    counters: dict[CounterId, int]
    whole: set[int]
    shares: dict[int, dict[str, int]]
    held: set[int]
    """Shared devices of which somebody holds a share, so that their counters are taken already."""

    def fits(self, candidate: Candidate, *, admin: bool) -> bool:
        """Whether the device can be allocated; administrators do not mind that it is taken."""
        place = candidate.place
        if not admin and place in self.whole:
            return False
        return self.has_room(candidate) and (
            self._has_counters(place)
            or all(self.counters[counter] >= amount for counter, amount in self.devices[place].counters)
        )

    def has_room(self, candidate: Candidate) -> bool:
        """Whether as much of each capacity is left as the allocation takes."""
        taken = self.shares.get(candidate.place)
        if taken is None:
            return True
        limits = dict(self.devices[candidate.place].capacities)
        return all(taken.get(name, 0) + amount <= limits[name].value for name, amount in candidate.share)

    def take(self, candidate: Candidate, *, admin: bool) -> bool:
        """Takes the device or a share of it; says whether its counters were taken with it.

        Administrators never take a whole device, so that giving it back cannot take it from its holder.
        """
        place = candidate.place
        device = self.devices[place]
        if device.shared:
            taken = self.shares.setdefault(place, {})
            for name, amount in candidate.share:
                taken[name] = taken.get(name, 0) + amount
        elif not admin:
            self.whole.add(place)
        if self._has_counters(place):
            return False
        if device.shared:
            self.held.add(place)
        for counter, amount in device.counters:
            self.counters[counter] -= amount
        return True

    def give_back(self, candidate: Candidate, *, admin: bool, counted: bool) -> None:
        """Takes back what `take` did."""
        place = candidate.place
        device = self.devices[place]
        if device.shared:
            taken = self.shares[place]
            for name, amount in candidate.share:
                taken[name] -= amount
        elif not admin:
            self.whole.discard(place)
        if counted:
            self.held.discard(place)
            for counter, amount in device.counters:
                self.counters[counter] += amount

    def _has_counters(self, place: int) -> bool:
        return self.devices[place].shared and place in self.held


def ledger_of(node: NodeDevices, in_use: InUse) -> Ledger:
    """What is free on the node, given what claims hold in the whole cluster."""
    places = list(enumerate(node.devices))
    whole = {place for place, one in places if one.id in in_use.whole or one.id in in_use.broken}
    shares = {place: dict(in_use.shares[one.id]) for place, one in places if one.id in in_use.shares}
    return Ledger(node.devices, in_use.free_counters(node.pools), whole, shares, set(shares))
