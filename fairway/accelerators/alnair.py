"""Alnair: a pod's ``alnair/vgpu-memory`` (GiB) and ``alnair/vgpu-compute`` (percent) come from one device.

A node lists its devices' ids and their sizes in GiB in two annotations, the second of which the device plugin
misspells (``vitual-gpu-count``) and the scheduler reads spelt right; both are read. A bound pod lists the
pieces of 1 GiB that it was given, ``<device id>_<number>``.

Each allocation writes the pod's annotation anew, so that with several containers it names the last one's
pieces only; what the pod asks for beyond them counts on each device that is named. Compute is given by number
alone, and counts on each device that the pod is on. Alnair's scheduler never subtracts what is used and so
promises more than its device plugin can give; here it is subtracted.

Mirrors alnair-device-plugin/pkg/devicepluginserver/ and autonomous-scheduler/vGPUScheduler/ of Alnair (2023).
"""

from collections import Counter

from fairway.accelerators.annotation import MOST_ENTRIES, listed, no_amount, shown, summed_up, whole_number
from fairway.accelerators.devices import (
    NO_USES,
    Device,
    DeviceClaim,
    DeviceUse,
    NodeFacts,
    PodAsk,
    PodFacts,
    Read,
    Scheme,
)

VGPU_MEMORY = "alnair/vgpu-memory"
COMPUTE = "alnair/vgpu-compute"
COUNT = "ai.centaurus.io/physical-gpu-count"
IDS = "ai.centaurus.io/physical-gpu-uuids"
SIZES = ("ai.centaurus.io/vitual-gpu-count", "ai.centaurus.io/virtual-gpu-count")
PIECES = "ai.centaurus.io/alnair-gpu-id"


def _devices(node: NodeFacts) -> Read[tuple[Device, ...]] | None:
    annotations = node.annotations
    sizes_name = next((name for name in SIZES if name in annotations), None)
    if COUNT not in annotations and IDS not in annotations and sizes_name is None:
        return None
    ids = listed(annotations.get(IDS, ""))
    sizes = listed(annotations.get(sizes_name or "", ""))
    problems: list[str] = []
    if annotations.get(COUNT, str(len(ids))).strip() != str(len(ids)) or len(sizes) != len(ids):
        problems.append(
            f"annotations {COUNT} ({shown(annotations.get(COUNT, ''))}), {IDS} ({len(ids)}) and "
            f"{sizes_name or SIZES[0]} ({len(sizes)}) do not agree on the number of devices; devices without "
            "an id or a size take no pods"
        )
    if len(ids) > MOST_ENTRIES:
        problems.append(f"annotation {IDS} lists {len(ids)} devices; only {MOST_ENTRIES} are read")
    present = node.allocatable.get(VGPU_MEMORY, 0) > 0
    if ids and not present:
        problems.append(f"status.allocatable has no {VGPU_MEMORY}, so that the devices take no pods")
    found: dict[str, Device] = {}
    for id, text in zip(ids[:MOST_ENTRIES], sizes, strict=False):
        size = whole_number(text)
        if size is None:
            problems.append(
                f"annotation {sizes_name}: {shown(text)} is no number of GiB; {shown(id)} takes no pods"
            )
        elif id in found:
            problems.append(f"annotation {IDS} lists {shown(id)} twice; the first one counts")
        else:
            found[id] = Device(id, size, usable=present)
    return Read(tuple(found.values()), summed_up(problems, IDS))


def _uses(pod: PodFacts) -> Read[tuple[DeviceUse, ...]]:
    text = pod.annotations.get(PIECES)
    if not text:
        return NO_USES
    pieces: Counter[str] = Counter()
    unread: dict[str, bool] = {}
    problems: list[str] = []
    # As many pieces as a node has GiB, which are more than it has devices.
    for entry in text.split(",", 64 * MOST_ENTRIES):
        device, _, number = entry.strip().rpartition("_")
        if device and whole_number(number) is not None:
            pieces[device] += 1
        elif entry.strip():
            unread[entry.strip()] = True
            problems.append(
                f"annotation {PIECES}: {shown(entry)} is no <device id>_<number>; a device of that name "
                "counts as used up"
            )
    asked = sum(container.get(VGPU_MEMORY, 0) for container in pod.containers)
    missing = max(0, asked - pieces.total()) if pieces else 0
    compute = min(100, sum(container.get(COMPUTE, 0) for container in pod.containers))
    uses = [DeviceUse(device, count + missing, compute) for device, count in pieces.items()]
    uses += [DeviceUse(device, 0, exclusive=True) for device in list(unread)[:MOST_ENTRIES]]
    return Read(tuple(uses), summed_up(problems, PIECES))


def _claims(ask: PodAsk) -> Read[tuple[DeviceClaim, ...]] | None:
    total = ask.total
    memory, compute = total.get(VGPU_MEMORY, 0), total.get(COMPUTE, 0)
    if not memory and not compute:
        return None
    problems = no_amount(total, VGPU_MEMORY, COMPUTE)
    # The plugin takes more than 100 percent for 100.
    return Read(() if problems else (DeviceClaim(1, memory, cores=min(compute, 100)),), problems)


ALNAIR = Scheme("alnair", frozenset(), frozenset({PIECES}), devices=_devices, uses=_uses, claims=_claims)
"""Both resources are in the node's allocatable; the devices say where a sum fits on none of them."""
