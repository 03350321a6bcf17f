"""Volcano vGPU: NVIDIA devices shared by memory and cores, scheduled by Volcano itself.

It descends from HAMi and keeps its annotations and its fit, with differences: percent of memory wins over an
amount, zero percent is no memory at all, nobody gets all cores by default, and cores count to 100 whatever
the device. The register is text of six fields (``id,count,memory,type,healthy,mode``), five in older
versions, or HAMi's JSON. Memory is in the unit of ``volcano.sh/vgpu-memory``: MiB, or a multiple of it that
the cluster configured for devices and pods alike.

Volcano places pods on unhealthy devices, which kubelet then refuses; here they take none. As for HAMi, the
handshake of older versions matters only once the scheduler has given the devices up. A node in MIG mode is
cut by layouts out of Volcano's configuration; each device is counted for one pod at a time.

Mirrors pkg/scheduler/api/devices/nvidia/vgpu/ of Volcano 1.9 and of August 2026, and pkg/util/util.go of
volcano-vgpu-device-plugin 1.9.4. Rules of Volcano's own configuration that keep pods apart are not looked at.
"""

from collections.abc import Mapping

from fairway.accelerators.allocation import read_allocation
from fairway.accelerators.annotation import MOST, listed, shown, truth, whole_number
from fairway.accelerators.devices import (
    NO_USES,
    PPM,
    Device,
    DeviceClaim,
    DeviceFilter,
    DeviceUse,
    NodeFacts,
    PodAsk,
    PodFacts,
    Read,
    Scheme,
)
from fairway.accelerators.register import MIG, Registered, numa_node, read_register

REGISTER = "volcano.sh/node-vgpu-register"
HANDSHAKE = "volcano.sh/node-vgpu-handshake"
ALLOCATED = "volcano.sh/vgpu-ids-new"
NUMBER = "volcano.sh/vgpu-number"
VGPU_MEMORY = "volcano.sh/vgpu-memory"
PERCENTAGE = "volcano.sh/vgpu-memory-percentage"
CORES = "volcano.sh/vgpu-cores"
MODE = "volcano.sh/vgpu-mode"
USE_ID = "volcano.sh/vgpu-use-gpuuuid"
AVOID_ID = "volcano.sh/vgpu-nouse-gpuuuid"
GROUP_POLICY = "volcano.sh/vgpu-podgroup-policy"

_NAMES = frozenset({NUMBER, VGPU_MEMORY, PERCENTAGE, CORES})
_HAMI_CORE = "hami-core"
_WORD = "NVIDIA"
_PERCENT = PPM // 100
# A pod on all cores wants all of the device, and no part in MIG mode is that.
_CORES_IN_MIG_MODE = 99


def _devices(node: NodeFacts) -> Read[tuple[Device, ...]] | None:
    text = node.annotations.get(REGISTER)
    if text is None:
        return None
    read = read_register(REGISTER, text, _text_device)
    problems = list(read.problems)
    gone = _gone(node) if read.found else ""
    if gone:
        problems.append(gone)
    nameless = sum(_WORD not in registered.product for registered in read.found)
    if nameless:
        problems.append(
            f"annotation {REGISTER}: {nameless} devices have no {_WORD} in their type, so that Volcano does "
            "not find them"
        )
    # Volcano has one mode for a node, that of the device that is listed last.
    mode = MIG if read.found and read.found[-1].mode == MIG else _HAMI_CORE
    if mode == MIG:
        problems.append(
            f"annotation {REGISTER}: the devices are in mode {MIG}, where each is counted for one pod at a "
            "time only"
        )
    return Read(tuple(_device(device, mode, not gone) for device in read.found), tuple(problems))


def _device(registered: Registered, mode: str, present: bool) -> Device:
    is_cut = mode == MIG
    return Device(
        registered.id,
        registered.memory_to_cut if is_cut else registered.memory,
        _CORES_IN_MIG_MODE if is_cut else 100,
        min(1, registered.count) if is_cut else registered.count,
        registered.product,
        numa_node(registered.numa),
        mode,
        present and registered.healthy and _WORD in registered.product,
    )


def _gone(node: NodeFacts) -> str:
    handshake = node.annotations.get(HANDSHAKE, "")
    if handshake.startswith("Deleted"):
        return (
            f"annotation {HANDSHAKE} is {shown(handshake)}: Volcano has given the devices up, and they take "
            "no pods; remove the annotation if the device plugin no longer writes it"
        )
    # Older device plugins advertise the number only.
    optional = (name for name in (VGPU_MEMORY, CORES) if name in node.allocatable)
    for name in (NUMBER, *optional):
        if node.allocatable.get(name, 0) <= 0:
            return f"status.allocatable has no {name}, so that the registered devices take no pods"
    return ""


def _text_device(entry: str, number: int) -> Registered | str:
    fields = entry.split(",", 16)
    count, memory = (whole_number(f) for f in fields[1:3]) if len(fields) >= 5 else (None, None)
    healthy = truth(fields[4]) if len(fields) >= 5 else None
    if not fields[0] or count is None or memory is None or healthy is None:
        return f"expected id,count,memory,type,healthy,mode with numbers from 0 to {MOST}"
    mode = fields[5] if len(fields) >= 6 else _HAMI_CORE
    return Registered(fields[0], number - 1, count, memory, 100, fields[3], 0, mode, healthy)


def _uses(pod: PodFacts) -> Read[tuple[DeviceUse, ...]]:
    text = pod.annotations.get(ALLOCATED)
    return read_allocation(ALLOCATED, text) if text else NO_USES


def _claims(ask: PodAsk) -> Read[tuple[DeviceClaim, ...]] | None:
    if not any(name in _NAMES for container in ask.containers for name, _ in container):
        return None
    annotations = dict(ask.annotations)
    filter = _filter(annotations)
    if isinstance(filter, str):
        return Read((), (filter,))
    # Pods of one group on different devices: which device has which group, nodes do not show.
    apart = annotations.get(GROUP_POLICY) == "spread"
    claims = [_container(dict(container), filter, apart) for container in ask.containers]
    problems = tuple(dict.fromkeys(claim for claim in claims if isinstance(claim, str)))
    found = tuple(claim for claim in claims if isinstance(claim, DeviceClaim))
    return Read((), problems) if problems else Read(found) if found else None


def _container(asked: Mapping[str, int], filter: DeviceFilter, apart: bool) -> DeviceClaim | str | None:
    for name, most in ((NUMBER, MOST), (VGPU_MEMORY, MOST), (PERCENTAGE, 100), (CORES, 100)):
        if not 0 <= asked.get(name, 0) <= most:
            return f"{name} is {asked[name]}, expected a plain number from 0 to {most}"
    if NUMBER not in asked and VGPU_MEMORY not in asked:
        alone = next((name for name in (PERCENTAGE, CORES) if name in asked), None)
        return alone and f"{alone} is asked for without {NUMBER}; Volcano gives such a container no device"
    count = asked.get(NUMBER, 1)
    if not count:
        return None
    memory, cores = asked.get(VGPU_MEMORY, 0), asked.get(CORES, 0)
    percent = asked.get(PERCENTAGE, 0 if memory else 100)
    return DeviceClaim(
        count,
        0 if PERCENTAGE in asked else memory,
        percent * _PERCENT,
        cores,
        exclusive=cores == 100 or apart,
        filter=filter,
    )


def _filter(annotations: Mapping[str, str]) -> DeviceFilter | str:
    mode = annotations.get(MODE)
    if mode is not None and mode not in (_HAMI_CORE, MIG):
        return (
            f"annotation {MODE} is {shown(mode)}, expected {_HAMI_CORE} or {MIG}: no node is in another mode"
        )
    wanted = annotations.get("nvidia.com/use-gputype")
    # Where both are given Volcano looks at the wanted ones alone; an empty entry is part of every type.
    unwanted = annotations.get("nvidia.com/nouse-gputype") if wanted is None else None
    return DeviceFilter(
        products=() if wanted is None else tuple(wanted.split(",")),
        not_products=() if unwanted is None else tuple(unwanted.split(",")),
        ids=listed(annotations.get(USE_ID, "")),
        not_ids=listed(annotations.get(AVOID_ID, "")),
        mode=mode or "",
    )


VOLCANO_VGPU = Scheme(
    "volcano-vgpu",
    frozenset({VGPU_MEMORY, PERCENTAGE, CORES}),
    frozenset({ALLOCATED}),
    devices=_devices,
    uses=_uses,
    claims=_claims,
)
"""Newer device plugins advertise memory and cores as well, as sums that say less than the devices do."""
