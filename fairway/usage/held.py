"""Which devices a pod holds, physically: of what product, and what part of each.

Of whole devices a pod holds as many as it requests; of devices that are advertised several times
(time-slicing, MPS) a part each; of MIG instances the part of a device that one is by the placement table, or
a whole device where the table does not know it; which of these a resource stands for labels say, or else what
the node's agent lists; of devices that a sharing scheme divides what annotations
say.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType

import msgspec

from fairway.accelerators.catalogue import Catalogue, DeviceClass, Entry
from fairway.accelerators.devices import (
    ANY_SLOTS,
    PPM,
    Device,
    DeviceUse,
    NodeFacts,
    PodAsk,
    Read,
    Scheme,
    withdrawn,
)
from fairway.accelerators.listed import Listed
from fairway.accelerators.mig_geometry import most_instances, profile_name
from fairway.accelerators.neuron import NEURON_CORE, cores_per_chip
from fairway.accelerators.products import node_product
from fairway.accelerators.schemes import SCHEMES
from fairway.kube.objects import Node, RawResources
from fairway.resources import Amounts, ResourceError, is_extended, parse_amounts
from fairway.usage.bound_pod import BoundPod

WHOLE_NANO = 1_000_000_000
"""A device, in the unit of parts of it: so fine that thousandths can be dealt out without a rest."""

_OPENING = tuple(scheme for scheme in SCHEMES if scheme.opens)
_NVIDIA = "NVIDIA"
_BY_SCHEME = (DeviceClass.FRACTION, DeviceClass.MEMORY_POOL)


class Held(msgspec.Struct, frozen=True, gc=False):
    """So many pieces of devices, each ``nano`` billionths of one, rounded up.

    ``device``: the id of the device, where a sharing scheme names it. ``is_instance``: a piece is a MIG
    instance. ``group``: the same for pods that share a device which their scheme has opened; the ``opener``
    among them holds the device for the others.
    """

    product: str
    nano: int
    pieces: int
    device: str = ""
    is_instance: bool = False
    group: str = ""
    opener: bool = False


@dataclass(frozen=True, slots=True)
class _Piece:
    """What one of a resource is on a node: ``nano`` billionths of a device, with ``many`` to a device."""

    product: str
    nano: int
    many: int = 1
    is_instance: bool = False


def node_facts(node: Node) -> NodeFacts:
    """The node as adapters look at it; an amount that cannot be read counts as none."""
    has = _amounts(node.status.allocatable)
    unhealthy = withdrawn(has, _amounts(node.status.capacity, is_extended))
    metadata = node.metadata
    return NodeFacts(metadata.name, metadata.labels or {}, metadata.annotations or {}, has, unhealthy)


def _amounts(raw: RawResources | None, is_wanted: Callable[[str], bool] = bool) -> Amounts:
    has: Amounts = {}
    for resource, amount in (raw or {}).items():
        # Whoever counts the node's devices has told it.
        with suppress(ResourceError):
            if is_wanted(resource):
                has.update(parse_amounts({resource: amount}))
    return has


Inventory = Callable[[Scheme, NodeFacts], Mapping[str, Device]]
"""The devices of a node that a scheme shares, by id."""


def stated_devices(scheme: Scheme, node: NodeFacts) -> Mapping[str, Device]:
    """What the node itself says of them, those that take no pods any more among them."""
    read = scheme.devices(node.recovered())
    return {device.id: device for device in read.found} if read else {}


class HeldDevices:
    """Tells what pods hold on the nodes of one cluster; what nodes are is worked out once each.

    ``lists``: what agents list, by node, which tells where labels do not.
    """

    def __init__(
        self,
        nodes: Iterable[NodeFacts],
        catalogue: Catalogue,
        inventory: Inventory = stated_devices,
        lists: Mapping[str, Listed] = MappingProxyType({}),
    ) -> None:
        self._catalogue, self._lists = catalogue, lists
        self._inventory = inventory
        self._nodes = {node.name: node for node in nodes}
        self._entries: dict[str, Entry | None] = {}
        self._pieces: dict[tuple[str, str], _Piece] = {}
        self._devices: dict[tuple[str, str], Mapping[str, Device]] = {}

    def of(self, pod: BoundPod) -> Read[tuple[Held, ...]]:
        """What the pod holds of its node's accelerators; nothing where its request cannot be read."""
        if pod.tenancy.problem:
            return Read((), (f"pod {pod.namespace}/{pod.name}: {pod.tenancy.problem}; it holds nothing",))
        request = dict(pod.tenancy.asks)
        if not request and not pod.uses:
            return Read(())
        found = (*self._shared(pod, request), *self._counted(pod.node, request))
        return Read(tuple(held for held in found if held.nano > 0 and held.pieces > 0))

    def accelerators(self) -> tuple[str, ...]:
        """The nodes that have any, by name."""
        return tuple(sorted(node for node in self._nodes if any(self._resources(node))))

    def _shared(self, pod: BoundPod, request: Amounts) -> Iterator[Held]:
        """What sharing schemes say; what they count device by device leaves ``request``."""
        node, said = self._node(pod.node), dict(pod.uses)
        for scheme in _OPENING:
            group = next((pod.labels[mark] for mark in scheme.marks if mark in pod.labels), "")
            if group and scheme not in said and request.pop(scheme.opens, 0):
                product = self._piece(pod.node, scheme.opens).product
                yield Held(product, WHOLE_NANO, 1, group=group, opener=True)
        for scheme, uses in pod.uses:
            if not scheme.opens:
                for resource in tuple(request):
                    if scheme.claims(PodAsk((((resource, 1),),))) is not None:
                        del request[resource]
            known = self._known(scheme, pod.node)
            opened = scheme.new_device(node) if scheme.new_device else None
            for use in uses:
                device = known.get(use.device, opened)
                names = self._resources(pod.node)
                product = next((self._piece(pod.node, name).product for name in names), "")
                if scheme.opens:
                    yield Held(product, _part(use, device), 1, group=use.device)
                else:
                    product = product or (device.product if device else "")
                    yield Held(product, _part(use, device), 1, device=use.device)

    def _counted(self, node: str, request: Amounts) -> Iterator[Held]:
        for resource, amount in sorted(request.items()):
            entry = self._entry(resource)
            if entry is None or entry.device_class in _BY_SCHEME:
                continue
            piece = self._piece(node, resource)
            if piece.many > 1:
                yield Held(piece.product, WHOLE_NANO, amount // piece.many)
                yield Held(piece.product, _of_whole(amount % piece.many, piece.many), 1)
            else:
                yield Held(piece.product, piece.nano, amount, is_instance=piece.is_instance)

    def _entry(self, resource: str) -> Entry | None:
        if resource not in self._entries:
            entry = self._catalogue.device(resource) if is_extended(resource) else None
            self._entries[resource] = entry if entry is not None and entry.is_accelerator else None
        return self._entries[resource]

    def _resources(self, node: str) -> Iterator[str]:
        facts = self._node(node)
        names = sorted(facts.allocatable.keys() | facts.unhealthy.keys())
        return (name for name in names if facts.capacity(name) > 0 and self._entry(name))

    def _node(self, name: str) -> NodeFacts:
        return self._nodes.get(name) or NodeFacts(name)

    def _piece(self, node: str, resource: str) -> _Piece:
        key = (node, resource)
        known = self._pieces.get(key)
        if known is None:
            known = self._pieces[key] = self._read_piece(self._node(node), resource)
        return known

    def _read_piece(self, node: NodeFacts, resource: str) -> _Piece:
        entry = self._entry(resource) or Entry(resource, DeviceClass.WHOLE)
        # Pods hold what kubelet gave them while the plugin still offered it.
        allocatable, capacity = node.allocatable.get(resource, 0), node.capacity(resource)
        product = node_product(entry, node.labels, allocatable, capacity).found
        if resource == NEURON_CORE:
            cores = cores_per_chip(node.recovered().allocatable, node.labels).found
            return _Piece(product.product, WHOLE_NANO, max(1, cores))
        times, name = product.advertised_per_device, product.product
        partition = product.piece
        known = self._lists.get(node.name)
        if known is not None and entry.vendor == _NVIDIA:
            name = name or known.product
            piece = partition or known.piece(capacity)
            partition = piece or ""
            # A device that is not listed would pass for a replica of the others, were it not for the shares.
            if times == 1 and known.are_replicas and not entry.labels.tell_how_many(node.labels):
                times = known.replicas(piece and profile_name(piece), allocatable, capacity)
        most = most_instances(name, partition) if partition else 1
        return _Piece(product.product, _of_whole(1, most * times), 1, bool(partition))

    def _known(self, scheme: Scheme, node: str) -> Mapping[str, Device]:
        key = (scheme.name, node)
        if key not in self._devices:
            self._devices[key] = self._inventory(scheme, self._node(node))
        return self._devices[key]


def _part(use: DeviceUse, device: Device | None) -> int:
    """The larger of the parts of memory and of compute, in billionths; all of a device that nobody knows."""
    if use.exclusive or device is None:
        return WHOLE_NANO
    memory = _of_whole(use.memory_ppm, PPM)
    if device.memory:
        memory += _of_whole(use.memory, device.memory)
    cores = _of_whole(use.cores, device.cores) if device.cores else 0
    slots = _of_whole(1, device.slots) if 0 < device.slots < ANY_SLOTS else 0
    return min(WHOLE_NANO, max(memory, cores) or slots or WHOLE_NANO)


def _of_whole(part: int, parts: int) -> int:
    """So many of the equal parts of a device, in billionths, rounded up."""
    return -(-part * WHOLE_NANO // parts)
