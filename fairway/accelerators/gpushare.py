"""Aliyun gpushare: a pod's ``aliyun.com/gpu-mem`` comes from one device.

A node has ``aliyun.com/gpu-count`` equal devices, numbered from 0, that divide ``aliyun.com/gpu-mem`` between
them (GiB by default, or MiB). A bound pod says where it is in ``ALIYUN_COM_GPU_MEM_IDX`` and how much it has
in ``ALIYUN_COM_GPU_MEM_POD``; newer schedulers write ``scheduler.framework.gpushare.allocation`` instead,
JSON of container number to device number to memory. Where compute is divided too, it is percent of a device
in ``aliyun.com/gpu-core.percentage`` and in an annotation of the same form.

Mirrors pkg/cache/ and pkg/utils/ of gpushare-scheduler-extender (2023) and cmd/inspect/nodeinfo.go of
gpushare-device-plugin (2022). Which device is unhealthy stands in a config map that nodes do not show: what
kubelet then no longer advertises is missing from each device alike.
"""

import msgspec

from fairway.accelerators.annotation import (
    MOST,
    MOST_ENTRIES,
    UNDECODABLE,
    json_bytes,
    no_amount,
    shown,
    summed_up,
    too_many,
    whole_number,
)
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

GPU_MEM = "aliyun.com/gpu-mem"
COUNT = "aliyun.com/gpu-count"
CORES = "aliyun.com/gpu-core.percentage"
INDEX = "ALIYUN_COM_GPU_MEM_IDX"
POD_MEMORY = "ALIYUN_COM_GPU_MEM_POD"
ALLOCATION = "scheduler.framework.gpushare.allocation"
CORE_ALLOCATION = "gpushare.alibabacloud.com/core-percentage"


def _devices(node: NodeFacts) -> Read[tuple[Device, ...]] | None:
    count = node.allocatable.get(COUNT, 0)
    if count <= 0 or GPU_MEM not in node.allocatable:
        return None
    if count > MOST_ENTRIES:
        return Read((), (too_many(COUNT, count),))
    memory = min(node.allocatable[GPU_MEM], MOST * MOST_ENTRIES) // count
    cores = min(node.allocatable.get(CORES, 0), MOST) // count
    return Read(tuple(Device(str(id), memory, cores) for id in range(count)))


def _uses(pod: PodFacts) -> Read[tuple[DeviceUse, ...]]:
    annotations = pod.annotations
    if ALLOCATION in annotations:
        return _allocated(annotations[ALLOCATION], annotations.get(CORE_ALLOCATION, "{}"))
    if INDEX in annotations:
        return _indexed(annotations[INDEX], annotations.get(POD_MEMORY), pod)
    return NO_USES


def _indexed(index: str, memory_text: str | None, pod: PodFacts) -> Read[tuple[DeviceUse, ...]]:
    if whole_number(index) is None:
        problem = f"annotation {INDEX} is {shown(index)}, expected a device number; the pod is on no device"
        return Read((), (problem,))
    device = str(int(index))
    if memory_text is None:
        asked = sum(container.get(GPU_MEM, 0) for container in pod.containers)
        return Read((DeviceUse(device, asked, exclusive=asked <= 0),))
    memory = whole_number(memory_text)
    if memory is None:
        return Read(
            (DeviceUse(device, 0, exclusive=True),),
            (
                f"annotation {POD_MEMORY} is {shown(memory_text)}, expected a number from 0 to {MOST}; "
                f"all of device {device} counts as used",
            ),
        )
    return Read((DeviceUse(device, memory),))


def _allocated(memory_text: str, cores_text: str) -> Read[tuple[DeviceUse, ...]]:
    memory, problems = _by_device(ALLOCATION, memory_text)
    cores, more = _by_device(CORE_ALLOCATION, cores_text)
    # A device of which an amount could not be read is taken whole.
    unread = {
        device for by_device in (memory, cores) for device, amount in by_device.items() if amount is None
    }
    uses = tuple(
        DeviceUse(
            device,
            memory.get(device) or 0,
            cores.get(device) or 0,
            exclusive=device in unread or (bool(more) and device not in cores),
        )
        for device in dict.fromkeys((*memory, *cores))
    )
    return Read(uses, summed_up([*problems, *more], ALLOCATION))


_ByDevice = dict[str, int | None]


def _by_device(name: str, text: str) -> tuple[_ByDevice, list[str]]:
    try:
        containers = msgspec.json.decode(json_bytes(text), type=dict[str, dict[str, msgspec.Raw]])
    except UNDECODABLE as error:
        expected = "expected JSON of container to device to amount"
        return {}, [f"annotation {name}: {error}; {expected}; it is not counted"]
    totals: _ByDevice = {}
    problems: list[str] = []
    entries = (entry for devices in containers.values() for entry in devices.items())
    for number, (device, raw) in enumerate(entries):
        if number >= MOST_ENTRIES:
            problems.append(f"annotation {name} has more than {MOST_ENTRIES} entries; no more are read")
            break
        if whole_number(device) is None:
            problems.append(f"annotation {name}: {shown(device)} is no device number and is not counted")
            continue
        id = str(int(device))
        written = bytes(raw).decode("utf-8", "replace").strip()
        amount, before = whole_number(written), totals.get(id, 0)
        totals[id] = None if amount is None or before is None else before + amount
        if amount is None:
            problems.append(
                f"annotation {name}, device {id}: {shown(written)} is no number from 0 to {MOST}; all of "
                "that device counts as used"
            )
    return totals, problems


def _claims(ask: PodAsk) -> Read[tuple[DeviceClaim, ...]] | None:
    total = ask.total
    memory, cores = total.get(GPU_MEM, 0), total.get(CORES, 0)
    if not memory and not cores:
        return None
    problems = no_amount(total, GPU_MEM, CORES)
    return Read(() if problems else (DeviceClaim(1, memory, cores=cores),), problems)


GPUSHARE = Scheme(
    "gpushare", frozenset(), frozenset({ALLOCATION, INDEX}), devices=_devices, uses=_uses, claims=_claims
)
"""All its resources are in the node's allocatable; the devices say where a sum fits on none of them."""
