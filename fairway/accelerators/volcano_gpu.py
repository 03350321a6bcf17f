"""Volcano's older GPU sharing: ``volcano.sh/gpu-memory`` on one device, ``volcano.sh/gpu-number`` whole ones.

A node has ``gpu-number`` equal devices, numbered from 0, that divide ``gpu-memory`` between them; a bound
pod says in ``volcano.sh/gpu-index`` which it is on. A pod is on one device for its memory, whatever its
containers ask separately, and devices given by number are nobody else's. Volcano counts no memory for the
latter, so that with both features on it may put others there; here it may not.

Mirrors pkg/scheduler/api/devices/nvidia/gpushare/ of Volcano as of August 2026. Memory is in the resource's
own unit, mostly MiB. Init containers, which Volcano takes the largest of, are not looked at.
"""

from fairway.accelerators.annotation import MOST, MOST_ENTRIES, shown, summed_up, too_many, whole_number
from fairway.accelerators.devices import (
    Device,
    DeviceClaim,
    DeviceUse,
    NodeFacts,
    PodAsk,
    PodFacts,
    Read,
    Scheme,
)

GPU_MEMORY = "volcano.sh/gpu-memory"
NUMBER = "volcano.sh/gpu-number"
INDEX = "volcano.sh/gpu-index"
UNHEALTHY = "volcano.sh/gpu-unhealthy-ids"

_NO_USES: Read[tuple[DeviceUse, ...]] = Read(())


def _devices(node: NodeFacts) -> Read[tuple[Device, ...]] | None:
    number = node.allocatable.get(NUMBER, 0)
    if number <= 0 or GPU_MEMORY not in node.allocatable:
        return None
    if number > MOST_ENTRIES:
        return Read((), (too_many(NUMBER, number),))
    problems: list[str] = []
    unhealthy: set[int] = set()
    for entry in (node.annotations.get(UNHEALTHY) or "").split(",", MOST_ENTRIES):
        id = whole_number(entry)
        if id is not None:
            unhealthy.add(id)
        elif entry:
            # As Volcano has it: a name that is no number takes no device away.
            problems.append(f"annotation {UNHEALTHY}: {shown(entry)} is no device number and is left out")
    memory = min(node.allocatable[GPU_MEMORY], MOST * MOST_ENTRIES) // number
    found = (Device(str(id), memory, cores=0, usable=id not in unhealthy) for id in range(number))
    return Read(tuple(found), summed_up(problems, UNHEALTHY))


def _uses(pod: PodFacts) -> Read[tuple[DeviceUse, ...]]:
    text = pod.annotations.get(INDEX)
    if text is None:
        return _NO_USES
    memory = sum(container.get(GPU_MEMORY, 0) for container in pod.containers)
    uses: list[DeviceUse] = []
    problems: list[str] = []
    for entry in text.split(",", MOST_ENTRIES):
        id = whole_number(entry)
        if id is None:
            problems.append(f"annotation {INDEX}: {shown(entry)} is no device number and is not counted")
        else:
            # Without memory the pod has the device by number.
            uses.append(DeviceUse(str(id), memory, exclusive=memory <= 0))
    return Read(tuple(uses), summed_up(problems, INDEX))


def _claims(ask: PodAsk) -> Read[tuple[DeviceClaim, ...]] | None:
    total = ask.total
    memory, number = total.get(GPU_MEMORY, 0), total.get(NUMBER, 0)
    for name, amount in ((GPU_MEMORY, memory), (NUMBER, number)):
        if not 0 <= amount <= MOST:
            return Read((), (f"{name} is {amount}, expected a plain number from 0 to {MOST}",))
    claims: list[DeviceClaim] = []
    if memory:
        claims.append(DeviceClaim(1, memory))
    if number:
        claims.append(DeviceClaim(number, exclusive=True))
    return Read(tuple(claims)) if claims else None


VOLCANO_GPU = Scheme("volcano-gpu", frozenset(), devices=_devices, uses=_uses, claims=_claims)
"""Both resources are in the node's allocatable; the devices say where a sum fits on none of them."""

MARKS = frozenset({INDEX})
"""A pod that holds devices of this scheme has one of these annotations."""
