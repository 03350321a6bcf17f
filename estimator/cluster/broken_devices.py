"""What the devices that an agent found mean for the node they are on: which resource, how much of it, labels.

Pure, from one report and one node. The rule: what is free of a resource is the lesser of allocatable and of
the devices that work, less what pods hold. Allocatable and labels are believed before the agent is: it takes
devices away and never adds any, and where it contradicts a label the label holds and that is told.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from msgspec import structs

from estimator.cluster.device_reports import BadDevice, DeviceReport
from estimator.reasons import counted, shown
from fairway.accelerators.builtin import builtin_catalogue
from fairway.accelerators.catalogue import DeviceClass, Entry, Role
from fairway.accelerators.devices import Read
from fairway.accelerators.mig_geometry import profile_name
from fairway.accelerators.product_names import spelled
from fairway.accelerators.products import NodeProduct, node_product
from fairway.resources import Amounts, is_extended

PRODUCT_LABEL, MEMORY_LABEL = "nvidia.com/gpu.product", "nvidia.com/gpu.memory"
CLIQUE_LABEL, CAPABLE_LABEL = "nvidia.com/gpu.clique", "nvidia.com/mig.capable"
_PLAIN = "nvidia.com/gpu"

_ADVERTISED = (DeviceClass.WHOLE, DeviceClass.PARTITION, DeviceClass.SHARED, DeviceClass.ATOMIC)
_SUFFIX = re.compile(r"(-MIG-.*|-SHARED)+$")
_VALUE = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_SHOWN = 3

HeldBy = Callable[[str, str], Mapping[str, int]]
"""What the pod of a key (namespace/name) and uid holds of the node, nothing where it is not on it."""


@dataclass(frozen=True, slots=True)
class Stated:
    """What the Node object says: allocatable, what capacity is beyond it, labels."""

    allocatable: Amounts = field(default_factory=dict)
    unhealthy: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    def capacity(self, resource: str) -> int:
        """Allocatable and what is unhealthy by the device plugin, together."""
        return self.allocatable.get(resource, 0) + self.unhealthy.get(resource, 0)


@dataclass(frozen=True, slots=True)
class Broken:
    """The devices of one resource of a node that do not work.

    ``short``: how much of allocatable that is beyond what the device plugin has taken away already; ``held``:
    how much of this pods hold that are known to run on such devices. ``devices``: how many do not work, and
    ``why``, one sentence each. Not ``is_told``: whether pods run on them is not known, so that all that pods
    hold counts against the devices that work.
    """

    short: int
    held: int
    devices: int
    why: tuple[str, ...]
    is_told: bool = True


@dataclass(frozen=True, slots=True)
class _Offer:
    """What a resource of the node stands for: ``piece``, a MIG profile, empty for whole devices, None for
    whole ones though MIG is on; ``times`` of it for each of ``devices``."""

    resource: str
    piece: str | None
    times: int
    devices: int


def broken_devices(report: DeviceReport, node: Stated, held_by: HeldBy) -> Read[dict[str, Broken]]:
    """By resource what does not work; problems where it is not known which resource stands for a device."""
    found: dict[str, Broken] = {}
    problems: list[str] = []
    if not report.bad:
        return Read(found)
    offers = [_offer(report, node, entry) for entry in _entries(node, report.is_nvidia).values()]
    for piece, bad in _by_piece(report, offers).items():
        mine = [offer for offer in offers if offer.piece == piece]
        if len(mine) != 1:
            problems.append(_not_one(piece, [offer.resource for offer in mine]))
            continue
        problems += _contradictions(mine[0], node)
        aside = _aside(report, piece)
        # Two kinds of devices are never the same resource.
        found[mine[0].resource] = _broken(node, mine[0], bad, aside, held_by)
    return Read(found, tuple(problems))


def _by_piece(report: DeviceReport, offers: list[_Offer]) -> dict[str | None, list[BadDevice]]:
    """What does not work, by what stands for it."""
    found: dict[str | None, list[BadDevice]] = {}
    if any(offer.piece is None for offer in offers):
        whole = {device.id: device for device in report.bad if device.id == device.gpu}
        for device in report.bad:
            if device.gpu not in whole:
                # Of the whole one nothing was said, so it is not known who holds it.
                whole[device.gpu] = structs.replace(
                    device, id=device.gpu, profile="", holders=None, is_schedulable=None
                )
        found[None] = list(whole.values())
    else:
        for device in report.bad:
            if device.is_counted:
                found.setdefault(device.profile, []).append(device)
    return found


def _aside(report: DeviceReport, piece: str | None) -> list[BadDevice]:
    """What works and kubelet does not give, or may not, of what stands for it."""
    found = (one for one in report.aside if one.is_schedulable is not True)
    if piece is not None:
        return [one for one in found if one.is_counted and one.profile == piece]
    broken = {one.gpu for one in report.bad}
    return [one for one in found if one.id == one.gpu and one.gpu not in broken]


def _broken(
    node: Stated, offer: _Offer, bad: list[BadDevice], aside: list[BadDevice], held_by: HeldBy
) -> Broken:
    """How much of the resource is gone, see docs/device-health.md ("What is taken from a node's room").

    kubelet counts what it may give. Where it is not known of which devices that is, what the plugin has taken
    away is first what works by the agent, and then what the plugin looks for as well. Where it is less than
    what was told of by name, that is what works too.
    """
    resource, times = offer.resource, offer.times
    allocatable = node.allocatable.get(resource, 0)
    # A plugin that starts without a lost device does not even count it as capacity.
    taken = max(node.capacity(resource), offer.devices * times) - allocatable
    gone = sum(one.is_schedulable is False for one in bad) * times
    working = sum(one.is_schedulable is False for one in aside) * times
    same = sum(one.is_schedulable is None and one.is_plugins for one in bad) * times
    # The node may not have told of it yet, or the plugin was started anew since the agent told.
    gone_still = min(gone, max(0, taken - working))
    taken_same = min(same, max(0, taken - gone - len(aside) * times))
    short = min(allocatable, len(bad) * times - gone_still - taken_same)
    shares: Counter[str] = Counter()
    most: dict[str, int] = {}
    for device in (*bad, *(one for one in aside if one.is_schedulable is False)):
        for holder in device.holders or ():
            has = held_by(holder.pod, holder.uid).get(resource, 0)
            if has:
                shares[holder.pod] += min(holder.shares, times)
                most[holder.pod] = has
    held = sum(min(units, most[pod]) for pod, units in shares.items())
    why = tuple(dict.fromkeys(device.why for device in bad))
    return Broken(short, min(held, short), len(bad), why, all(one.holders is not None for one in bad))


def _offer(report: DeviceReport, node: Stated, entry: Entry) -> _Offer:
    resource, product, listed = entry.resource, _product(entry, node), report.listed
    capacity = node.capacity(resource)
    piece = profile_name(product.piece)
    named = listed.piece(capacity) if report.is_nvidia and not piece else piece
    devices = listed.gpus if named is None else listed.count(named)
    times = product.advertised_per_device
    if times == 1 and not entry.labels.tell_how_many(node.labels):
        times = listed.times(devices, capacity)
    return _Offer(resource, named, times, devices)


def _not_one(piece: str | None, found: list[str]) -> str:
    named = f"MIG {piece} instances" if piece else "devices"
    told = ", ".join(shown(one) for one in sorted(found)[:_SHOWN]) or "none"
    return (
        f"expected one resource of the node to stand for its {named}, found {told}: none of it is taken away"
    )


def _contradictions(offer: _Offer, node: Stated) -> Iterator[str]:
    capacity = node.capacity(offer.resource)
    if offer.piece is None:
        yield (
            f"MIG is on, and {offer.resource} stands for whole devices (MIG strategy none): what is broken "
            "of one takes all of it"
        )
    if offer.devices * offer.times != capacity:
        each = f", {offer.times} of it each" if offer.times > 1 else ""
        listed = f"lists {counted(offer.devices, 'device')}{each}"
        yield f"{listed}, but the node has {capacity} of {offer.resource}"


def _entries(node: Stated, is_nvidia: bool) -> dict[str, Entry]:
    catalogue = builtin_catalogue()
    return {
        resource: entry
        for resource in sorted(node.allocatable.keys() | node.unhealthy.keys())
        if is_extended(resource)
        and node.capacity(resource) > 0
        and (entry := catalogue.device(resource)) is not None
        and entry.is_accelerator
        and (entry.vendor == "NVIDIA") == is_nvidia
        and entry.role is Role.COUNT
        and entry.device_class in _ADVERTISED
    }


def _product(entry: Entry, node: Stated) -> NodeProduct:
    resource = entry.resource
    allocatable = node.allocatable.get(resource, 0)
    return node_product(entry, node.labels, allocatable, node.capacity(resource)).found


def filled_labels(report: DeviceReport, node: Stated) -> Read[dict[str, str]]:
    """What labels lack and the agent knows; problems where the two contradict each other."""
    filled: dict[str, str] = {}
    problems: list[str] = []
    if not report.is_nvidia:
        return Read(filled)
    labels, product = node.labels, spelled(report.listed.product)
    stated = labels.get(PRODUCT_LABEL, "")
    if product and stated and spelled(_SUFFIX.sub("", stated)).lower() != product.lower():
        problems.append(_contradicts(PRODUCT_LABEL, stated, report.listed.product))
    if _VALUE.fullmatch(product) and not any(labels.get(key) for key in _labels("product")):
        filled[PRODUCT_LABEL] = product + _cut_alike(report, node)
    cut_alike, memory = _cut_alike(report, node), labels.get(MEMORY_LABEL, "")
    mib = report.piece_mib if cut_alike else report.memory_mib
    if mib and not any(labels.get(key) for key in _labels("memory")):
        filled[MEMORY_LABEL] = str(mib)
    elif report.memory_mib and not report.is_cut and _differs(memory, report.memory_mib):
        problems.append(_contradicts(MEMORY_LABEL, memory, f"{report.memory_mib} MiB"))
    clique = labels.get(CLIQUE_LABEL, "")
    if _VALUE.fullmatch(report.clique) and not clique:
        filled[CLIQUE_LABEL] = report.clique
    elif report.clique and clique and clique != report.clique:
        problems.append(_contradicts(CLIQUE_LABEL, clique, report.clique))
    if report.is_cut and CAPABLE_LABEL not in labels:
        filled[CAPABLE_LABEL] = "true"
    return Read(filled, tuple(problems))


def _differs(label: str, mib: int) -> bool:
    """Whether it is another size; drivers count the memory that they keep for themselves or not."""
    return label.isascii() and label.isdigit() and abs(int(label[:18]) - mib) * 10 > mib


def _cut_alike(report: DeviceReport, node: Stated) -> str:
    """What a product's label ends in where the plain resource stands for MIG instances (strategy single)."""
    is_plain = report.is_cut and not any(one.startswith("nvidia.com/mig-") for one in node.allocatable)
    profile = report.listed.piece(node.capacity(_PLAIN)) if is_plain else ""
    return f"-MIG-{profile}" if profile else ""


def _labels(of: str) -> tuple[str, ...]:
    entry = builtin_catalogue().device(_PLAIN)
    assert entry is not None
    return entry.labels.product if of == "product" else entry.labels.memory


def _contradicts(label: str, stated: str, found: str) -> str:
    return f"label {label} says {shown(stated)!r}, the devices say {shown(found)!r}: the label counts"
