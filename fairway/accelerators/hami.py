"""HAMi: devices shared by memory and cores, for NVIDIA and every vendor that follows its pattern.

Each vendor is a scheme of its own, since a claim on one vendor's devices says nothing of another's. A node
lists its devices in an annotation, a pod the devices it was given.

A device takes no pods while it is unhealthy or cordoned, or while the node does not advertise the vendor's
count resource. That last replaces the age of the handshake (``Requesting_<time>``): its time is the
scheduler's and has no zone, and HAMi itself, since 2.8 for NVIDIA and since 2.9 for all, takes devices for
gone only once kubelet advertises none. ``Deleted_<time>``, which schedulers before 2.8 left when they had
given the devices up, is taken at its word.

A device in MIG mode is cut as pods come, by a layout that the annotations do not tell in full. It is counted
for one pod at a time, of the memory of its largest part.

Mirrors pkg/device/devices.go, pkg/device/<vendor>/ and pkg/scheduler/ of HAMi 2.10.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from fairway.accelerators.allocation import read_allocation
from fairway.accelerators.annotation import listed, shown, summed_up
from fairway.accelerators.devices import NO_USES, Device, DeviceUse, NodeFacts, PodFacts, Read, Scheme
from fairway.accelerators.hami_claims import SOFT, TEMPLATE, hami_claims
from fairway.accelerators.hami_vendors import VENDORS, Rule, Vendor
from fairway.accelerators.register import MIG, Registered, numa_node, read_register, text_device

_SOFT_NODE = "hami-vnpu-core"
_DELETED = "Deleted"
# A pod on all cores of a device wants all its memory or all of the device, and no part in MIG mode is that.
_CORES_IN_MIG_MODE = 99


def _devices(vendor: Vendor, node: NodeFacts) -> Read[tuple[Device, ...]] | None:
    text = node.annotations.get(vendor.register)
    if text is None:
        return None
    read = read_register(vendor.register, text, text_device)
    problems = list(read.problems)
    gone = _gone(vendor, node)
    if gone and read.found:
        problems.append(gone)
    cordoned = listed(node.annotations.get(vendor.cordon, "")) if vendor.cordon else ()
    soft = node.annotations.get(_SOFT_NODE) == "true"
    found: list[Device] = []
    in_mig_mode = 0
    for registered in read.found:
        is_known = vendor.word.lower() in registered.product.lower()
        if not is_known:
            problems.append(
                f"annotation {vendor.register}, device {shown(registered.id)}: its type "
                f"{shown(registered.product)} has no {vendor.word} in it, so that HAMi does not find it"
            )
        usable = registered.healthy and is_known and not gone and registered.id not in cordoned
        in_mig_mode += registered.mode == MIG
        found.append(_device(vendor, registered, usable, soft))
    problems = list(summed_up(problems, vendor.register))
    if in_mig_mode:
        problems.append(
            f"annotation {vendor.register}: {in_mig_mode} devices are in mode {MIG}, where each is counted "
            "for one pod at a time only"
        )
    return Read(tuple(found), tuple(problems))


def _gone(vendor: Vendor, node: NodeFacts) -> str:
    handshake = node.annotations.get(vendor.handshake, "") if vendor.handshake else ""
    if handshake.startswith(_DELETED):
        return (
            f"annotation {vendor.handshake} is {shown(handshake)}: HAMi has given the devices up, and they "
            "take no pods until the device plugin reports them again"
        )
    if node.allocatable.get(vendor.count, 0) <= 0:
        said = f" ({vendor.handshake}: {shown(handshake)})" if handshake else ""
        return f"status.allocatable has no {vendor.count}, so that the registered devices take no pods{said}"
    return ""


def _device(vendor: Vendor, registered: Registered, usable: bool, soft: bool) -> Device:
    device = Device(
        registered.id,
        registered.memory,
        registered.cores,
        registered.count,
        registered.product,
        numa_node(registered.numa),
        registered.mode,
        usable,
    )
    if registered.mode == MIG:
        memory, slots = registered.memory_to_cut, min(1, registered.count)
        return replace(device, memory=memory, cores=_CORES_IN_MIG_MODE, slots=slots)
    match vendor.rule:
        case Rule.SHARE | Rule.SHARE_OF_CORES:
            return device
        case Rule.SLOT:
            return replace(device, cores=100)
        case Rule.SIZE:
            # The links that HAMi looks for are within the first four devices and within the last four.
            return replace(device, cores=0, numa=numa_node(registered.index // 4))
        case Rule.TEMPLATE:
            numa = numa_node(registered.index // 2) if vendor.in_pairs else device.numa
            return replace(device, cores=100, numa=numa, mode=SOFT if soft else TEMPLATE)


def _uses(vendor: Vendor) -> Callable[[PodFacts], Read[tuple[DeviceUse, ...]]]:
    # Bound here, since every pod of a cluster comes by.
    allocated, to_allocate = vendor.allocated, vendor.to_allocate

    def uses(pod: PodFacts) -> Read[tuple[DeviceUse, ...]]:
        annotations = pod.annotations
        name = allocated if annotations.get(allocated) else to_allocate
        text = annotations.get(name)
        return read_allocation(name, text) if text else NO_USES

    return uses


def _scheme(vendor: Vendor) -> Scheme:
    return Scheme(
        f"hami-{vendor.name}",
        vendor.managed,
        frozenset({vendor.allocated, vendor.to_allocate}),
        devices=partial(_devices, vendor),
        uses=_uses(vendor),
        claims=partial(hami_claims, vendor),
    )


HAMI: tuple[Scheme, ...] = tuple(_scheme(vendor) for vendor in VENDORS)
"""One scheme for each vendor: ``hami-nvidia``, ``hami-amd``, ..."""
