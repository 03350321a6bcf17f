"""Devices that pods share, one by one: what a node has, what a pod uses of them, what a pod asks for.

Sums over a node say nothing where each pod must find its share on single devices. A sharing scheme (HAMi,
Volcano vGPU, ...) keeps that state in annotations and labels; an adapter per scheme reads it into these
types, and everything behind the adapters is the same for all schemes.

Memory is in the scheme's own unit, mostly MiB; cores are in the device's own unit, mostly percent of it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Generic, TypeVar

from fairway.resources import Amounts

ANY_SLOTS = 2**31 - 1
"""The number of slots where the scheme does not limit how many pods share a device."""

PPM = 1_000_000
"""A whole device's memory, where a share of it is asked for."""

NONE_UNHEALTHY: Mapping[str, int] = MappingProxyType({})
"""What most nodes have beyond allocatable."""


@dataclass(frozen=True, slots=True)
class Device:
    """One device of a node.

    ``slots``: how many pods may share it. ``cores`` is 0 where the scheme does not divide compute. Not
    ``usable``: unhealthy or cordoned, so that it takes no new pods while those on it stay.
    """

    id: str
    memory: int
    cores: int = 100
    slots: int = ANY_SLOTS
    product: str = ""
    numa: int = 0
    mode: str = ""
    usable: bool = True


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """What one pod uses of one device; it takes a slot, or with ``exclusive`` all of them.

    The memory is ``memory`` and ``memory_ppm`` millionths of the device's own, rounded down: what a pod says
    of itself may be a share of a device whose size only the node tells.
    """

    device: str
    memory: int
    cores: int = 0
    exclusive: bool = False
    memory_ppm: int = 0


@dataclass(frozen=True, slots=True)
class DeviceFilter:
    """Which devices will do: product and id texts as the scheme matches them; empty means any."""

    products: tuple[str, ...] = ()
    not_products: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    not_ids: tuple[str, ...] = ()
    mode: str = ""

    def allows(self, device: Device) -> bool:
        """Whether the device will do; products match by part, case ignored, ids and mode whole."""
        product = device.product.lower()
        return (
            (not self.products or any(p.lower() in product for p in self.products))
            and not any(p.lower() in product for p in self.not_products)
            and (not self.ids or device.id in self.ids)
            and device.id not in self.not_ids
            and (not self.mode or self.mode == (device.mode or self.mode))
        )


ANY_DEVICE = DeviceFilter()


@dataclass(frozen=True, slots=True)
class DeviceClaim:
    """What each pod asks for: ``count`` different devices of one node, the same of each of them.

    The memory of each is ``memory`` or, where that is 0, ``memory_ppm`` millionths of the device's own,
    rounded down. The cores of each are ``cores`` or, where that is 0, ``cores_ppm`` millionths of the
    device's own, rounded down but at least 1. ``exclusive``: only an untouched device will do, and nobody
    else can use it.
    """

    count: int
    memory: int = 0
    memory_ppm: int = 0
    cores: int = 0
    exclusive: bool = False
    same_numa: bool = False
    filter: DeviceFilter = ANY_DEVICE
    cores_ppm: int = 0


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What an adapter may look at on a node; amounts as in `fairway.resources`.

    ``unhealthy``: what its capacity is beyond allocatable, which device plugins have withdrawn.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    allocatable: Mapping[str, int] = field(default_factory=dict)
    unhealthy: Mapping[str, int] = field(default_factory=lambda: NONE_UNHEALTHY)

    def capacity(self, resource: str) -> int:
        """How much of it there is, whether pods may have it or not."""
        return self.allocatable.get(resource, 0) + self.unhealthy.get(resource, 0)

    def recovered(self) -> "NodeFacts":
        """The node as it was before anything was withdrawn."""
        if not self.unhealthy:
            return self
        names = self.allocatable.keys() | self.unhealthy.keys()
        allocatable = {name: self.capacity(name) for name in names}
        return replace(self, allocatable=allocatable, unhealthy=NONE_UNHEALTHY)


def withdrawn(allocatable: Mapping[str, int], capacity: Mapping[str, int]) -> Mapping[str, int]:
    """What there is of resources beyond allocatable."""
    beyond = {name: has - allocatable.get(name, 0) for name, has in capacity.items()}
    return {name: amount for name, amount in beyond.items() if amount > 0} or NONE_UNHEALTHY


@dataclass(frozen=True, slots=True)
class PodFacts:
    """What an adapter may look at on a pod that is bound to a node: its own request by container."""

    namespace: str
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    containers: tuple[Mapping[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class PodAsk:
    """What an adapter may look at of a pod that is to be placed.

    ``containers``: extended resources by container. Karmada's request sends only their sum; then there is
    a single entry.
    """

    containers: tuple[tuple[tuple[str, int], ...], ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()

    @property
    def total(self) -> Amounts:
        """The sum over all containers."""
        total: Amounts = {}
        for container in self.containers:
            for name, amount in container:
                total[name] = total.get(name, 0) + amount
        return total


_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Read(Generic[_T]):
    """What could be read, and a sentence for each thing that could not: field, what was expected."""

    found: _T
    problems: tuple[str, ...] = ()


NO_USES: Read[tuple[DeviceUse, ...]] = Read(())
"""A pod that holds no device of a scheme."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """One way of sharing devices, as pure functions over what objects say.

    ``managed``: resource names that are decided on devices alone and appear in no node's allocatable.
    ``opens``: the resource of which a free whole unit can become a new device of ``new_device(node)``'s
    kind (KAI reserves a whole GPU when its first fraction comes, with a pod that takes a slot of the node);
    empty where devices are always there.

    ``marks``: a pod that holds devices of the scheme has one of these annotations or labels.
    ``devices(node)``: None where the node does not take part in the scheme.
    ``uses(pod)``: the devices that a bound pod holds; empty for most pods, so it must be quick to say so.
    ``claims(ask)``: what a new pod asks for, one claim for each container that asks; None where it asks
    for nothing of this scheme.
    """

    name: str
    managed: frozenset[str]
    marks: frozenset[str]
    devices: Callable[[NodeFacts], Read[tuple[Device, ...]] | None]
    uses: Callable[[PodFacts], Read[tuple[DeviceUse, ...]]]
    claims: Callable[[PodAsk], Read[tuple[DeviceClaim, ...]] | None]
    opens: str = ""
    new_device: Callable[[NodeFacts], Device | None] | None = None
