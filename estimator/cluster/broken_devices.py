"""What the devices that an agent found mean for the node they are on: which resource, how much of it, labels.

Pure, from one report and one node. The rule: what is free of a resource is the lesser of allocatable and of
the devices that work, less what pods hold. Allocatable and labels are believed before the agent is: it takes
devices away and never adds any, and where it contradicts a label the label holds and that is told.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from estimator.cluster.device_reports import BadDevice, DeviceReport
from estimator.reasons import counted, shown
from fairway.accelerators.builtin import builtin_catalogue
from fairway.accelerators.catalogue import DeviceClass, Entry, Role
from fairway.accelerators.devices import Read
from fairway.accelerators.mig_geometry import profile_name
from fairway.accelerators.products import NodeProduct, node_product
from fairway.resources import Amounts, is_extended

PRODUCT_LABEL, MEMORY_LABEL = "nvidia.com/gpu.product", "nvidia.com/gpu.memory"
CLIQUE_LABEL, CAPABLE_LABEL = "nvidia.com/gpu.clique", "nvidia.com/mig.capable"

_ADVERTISED = (DeviceClass.WHOLE, DeviceClass.PARTITION, DeviceClass.SHARED, DeviceClass.ATOMIC)
_SUFFIX = re.compile(r"(-MIG-.*|-SHARED)+$")
_NO_WORD = re.compile(r"[^A-Za-z0-9.]+")
_VALUE = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_SHOWN = 3

HeldBy = Callable[[str], Mapping[str, int]]
"""What the pod of a key (namespace/name) holds of the node, nothing where it is not on it."""


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
class _Advertised:
    """The resource that stands for devices, and how many of it for each."""

    resource: str
    times: int


def broken_devices(report: DeviceReport, node: Stated, held_by: HeldBy) -> Read[dict[str, Broken]]:
    """By resource what does not work; problems where it is not known which resource stands for a device."""
    found: dict[str, Broken] = {}
    problems: list[str] = []
    by_profile: dict[str, list[BadDevice]] = {}
    for device in report.bad:
        if device.is_counted:
            by_profile.setdefault(device.profile, []).append(device)
    for profile, bad in by_profile.items():
        read = _advertised(report, node, profile)
        problems += read.problems
        if read.found is not None:
            # Two kinds of devices are never the same resource.
            found[read.found.resource] = _broken(report, node, read.found, bad, held_by)
    return Read(found, tuple(problems))


def _broken(
    report: DeviceReport, node: Stated, advertised: _Advertised, bad: list[BadDevice], held_by: HeldBy
) -> Broken:
    resource, times = advertised.resource, advertised.times
    listed = report.count(bad[0].profile) * times
    # A plugin that starts without a lost device does not even count it as capacity.
    working = max(node.capacity(resource), listed) - len(bad) * times
    short = min(node.allocatable.get(resource, 0), max(0, node.allocatable.get(resource, 0) - working))
    shares: Counter[str] = Counter()
    for device in bad:
        for pod, units in device.holders or ():
            shares[pod] += min(units, times)
    held = sum(min(units, held_by(pod).get(resource, 0)) for pod, units in shares.items())
    why = tuple(dict.fromkeys(device.why for device in bad))
    return Broken(short, min(held, short), len(bad), why, all(one.holders is not None for one in bad))


def _advertised(report: DeviceReport, node: Stated, profile: str) -> Read[_Advertised | None]:
    named = f"MIG {profile} instances" if profile else "devices"
    entries = _entries(node, report.is_nvidia)
    pieces = {resource: _piece(entry, node) for resource, entry in entries.items()}
    mine = [resource for resource, piece in pieces.items() if piece == profile]
    if not mine and profile and len(report.counts) == 1:
        # All is cut alike and no label says so: the plain name may stand for instances (strategy single).
        mine = [resource for resource, piece in pieces.items() if not piece]
    if len(mine) != 1:
        expected = f"expected one resource of the node to stand for its {named}"
        told = f"{expected}, found {', '.join(shown(one) for one in sorted(mine)[:_SHOWN]) or 'none'}"
        return Read(None, (f"{told}: none of it is taken away",))
    resource = mine[0]
    capacity, count = node.capacity(resource), report.count(profile)
    entry = entries[resource]
    times = _product(entry, node).advertised_per_device
    says = any(node.labels.get(key) for key in (*entry.labels.multiplier, *entry.labels.count))
    if times == 1 and not says and not report.is_partial and capacity > count and capacity % count == 0:
        # Shared in time or by a scheme, and no label says so.
        times = capacity // count
    problems: tuple[str, ...] = ()
    if count * times != capacity:
        each = f", {times} of it each" if times > 1 else ""
        problems = (f"lists {counted(count, 'device')}{each}, but the node has {capacity} of {resource}",)
    return Read(_Advertised(resource, times), problems)


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


def _piece(entry: Entry, node: Stated) -> str:
    """The piece of a device that one of the resource is, empty for a whole one."""
    # Of hosts that are of use together only, the label tells the shape of their group.
    is_whole = entry.device_class is DeviceClass.ATOMIC
    return "" if is_whole else profile_name(_product(entry, node).partition)


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
    labels, product = node.labels, _NO_WORD.sub("-", report.product).strip("-.")
    stated = labels.get(PRODUCT_LABEL, "")
    if product and stated and _NO_WORD.sub("-", _SUFFIX.sub("", stated)).lower() != product.lower():
        problems.append(_contradicts(PRODUCT_LABEL, stated, report.product))
    if _VALUE.fullmatch(product) and not any(labels.get(key) for key in _labels("product")):
        filled[PRODUCT_LABEL] = product + _cut_alike(report, node)
    memory = labels.get(MEMORY_LABEL, "")
    if report.memory_mib and not any(labels.get(key) for key in _labels("memory")):
        filled[MEMORY_LABEL] = str(report.memory_mib)
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
    profile = report.counts[0][0] if len(report.counts) == 1 else ""
    is_plain = profile and not any(one.startswith("nvidia.com/mig-") for one in node.allocatable)
    return f"-MIG-{profile}" if is_plain else ""


def _labels(of: str) -> tuple[str, ...]:
    entry = builtin_catalogue().device("nvidia.com/gpu")
    assert entry is not None
    return entry.labels.product if of == "product" else entry.labels.memory


def _contradicts(label: str, stated: str, found: str) -> str:
    return f"label {label} says {shown(stated)!r}, the devices say {shown(found)!r}: the label counts"
