"""What claims hold: devices taken whole, shares of devices that several may hold, and counters.

Only a claim's status counts: what it asks for holds nothing yet. Access for administrators takes nothing.
What cannot be read counts as taking the whole device, so that a mistake never makes room.

Mirrors structured/internal/allocatedstate.go of k8s.io/dynamic-resource-allocation, Kubernetes 1.36.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fairway.dra.devices import CounterId, DeviceId, full_name
from fairway.dra.pools import Pool
from fairway.kube.resource_slices import DeviceResult, ResourceClaim
from fairway.quantity import QuantityError, parse_nano


@dataclass(frozen=True, slots=True)
class InUse:
    """What is held of a cluster's devices.

    ``whole``: devices that nobody else can have. ``shares``: of the devices that several hold, how much of
    each capacity is taken, by full name in nano-units. ``broken``: devices that do not work: nobody shall
    have them, though nobody need hold them, so that they take no counters.
    """

    whole: frozenset[DeviceId] = frozenset()
    shares: Mapping[DeviceId, Mapping[str, int]] = field(default_factory=dict)
    broken: frozenset[DeviceId] = frozenset()

    def free_counters(self, pools: Iterable[Pool]) -> dict[CounterId, int]:
        """What is left of the pools' counters, in nano-units; below zero where more is held than exists."""
        free: dict[CounterId, int] = {}
        for pool in pools:
            free |= pool.counters
            for device in pool.devices:
                if device.counters and (device.id in self.whole or device.id in self.shares):
                    for counter, amount in device.counters:
                        free[counter] = free.get(counter, 0) - amount
        return free


@dataclass(frozen=True, slots=True)
class Holding:
    """A device that a claim holds: whole, or what it took of each capacity, by full name in nano-units."""

    device: DeviceId
    share: tuple[tuple[str, int], ...] | None = None


def read_holdings(key: str, claim: ResourceClaim) -> tuple[tuple[Holding, ...], tuple[str, ...]]:
    """What the claim of this key holds, and a sentence for each result that could not be read."""
    found: list[Holding] = []
    problems: list[str] = []
    allocation = claim.status.allocation
    for index, result in enumerate((allocation.devices.results if allocation else None) or ()):
        if result.admin_access:
            continue
        device = DeviceId(result.driver, result.pool, result.device)
        if result.share_id is None:
            found.append(Holding(device))
            continue
        try:
            found.append(Holding(device, tuple(_consumed(result).items())))
        except QuantityError as error:
            where = f"ResourceClaim {key}: status.allocation.devices.results[{index}].consumedCapacity"
            problems.append(f"{where}: {error}; device {device} counts as taken whole")
            found.append(Holding(device))
    return tuple(found), tuple(problems)


def held_by(holdings: Iterable[Holding]) -> InUse:
    """What all of these are together."""
    whole: set[DeviceId] = set()
    shares: dict[DeviceId, dict[str, int]] = {}
    for holding in holdings:
        if holding.share is None:
            whole.add(holding.device)
            continue
        held = shares.setdefault(holding.device, {})
        for name, amount in holding.share:
            held[name] = held.get(name, 0) + amount
    return InUse(frozenset(whole), shares)


def _consumed(result: DeviceResult) -> dict[str, int]:
    taken: dict[str, int] = {}
    for name, raw in (result.consumed_capacity or {}).items():
        amount = parse_nano(raw if raw is not None else "")
        if amount < 0:
            raise QuantityError(raw)
        taken[full_name(name, result.driver)] = amount
    return taken
