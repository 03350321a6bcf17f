"""Volcano's older GPU sharing: ``volcano.sh/gpu-memory`` on one device, ``volcano.sh/gpu-number`` whole ones.

A node has ``gpu-number`` equal devices, numbered from 0, that divide ``gpu-memory`` between them; a bound
pod says in ``volcano.sh/gpu-index`` which it is on. A pod is on one device for its memory, whatever its
containers ask separately, and devices given by number are nobody else's. Volcano counts no memory for the
latter, so that with both features on it may put others there; here it may not.

Mirrors pkg/scheduler/api/devices/nvidia/gpushare/ of Volcano as of August 2026. Memory is in the resource's
own unit, mostly MiB. Init containers, which Volcano takes the largest of, are not looked at.
"""

from fairway.accelerators.annotation import MOST, MOST_ENTRIES, device_numbers, no_amount, summed_up, too_many
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

GPU_MEMORY = "volcano.sh/gpu-memory"
NUMBER = "volcano.sh/gpu-number"
INDEX = "volcano.sh/gpu-index"
UNHEALTHY = "volcano.sh/gpu-unhealthy-ids"


def _devices(node: NodeFacts) -> Read[tuple[Device, ...]] | None:
    number = node.allocatable.get(NUMBER, 0)
    if number <= 0 or GPU_MEMORY not in node.allocatable:
        return None
    if number > MOST_ENTRIES:
        return Read((), (too_many(NUMBER, number),))
    named = filter(None, (node.annotations.get(UNHEALTHY) or "").split(",", MOST_ENTRIES))
    # As Volcano has it: a name that is no number takes no device away.
    unhealthy, problems = device_numbers(UNHEALTHY, named, "left out")
    memory = min(node.allocatable[GPU_MEMORY], MOST * MOST_ENTRIES) // number
    found = (Device(str(id), memory, cores=0, usable=id not in unhealthy) for id in range(number))
    return Read(tuple(found), summed_up(problems, UNHEALTHY))


def _uses(pod: PodFacts) -> Read[tuple[DeviceUse, ...]]:
    text = pod.annotations.get(INDEX)
    if text is None:
        return NO_USES
    memory = sum(container.get(GPU_MEMORY, 0) for container in pod.containers)
    ids, problems = device_numbers(INDEX, text.split(",", MOST_ENTRIES), "not counted")
    # Without memory the pod has the device by number.
    uses = tuple(DeviceUse(str(id), memory, exclusive=memory <= 0) for id in ids)
    return Read(uses, summed_up(problems, INDEX))


def _claims(ask: PodAsk) -> Read[tuple[DeviceClaim, ...]] | None:
    total = ask.total
    memory, number = total.get(GPU_MEMORY, 0), total.get(NUMBER, 0)
    if problems := no_amount(total, GPU_MEMORY, NUMBER):
        return Read((), problems)
    claims = [DeviceClaim(1, memory)] if memory else []
    claims += [DeviceClaim(number, exclusive=True)] if number else []
    return Read(tuple(claims)) if claims else None


VOLCANO_GPU = Scheme(
    "volcano-gpu", frozenset(), frozenset({INDEX}), devices=_devices, uses=_uses, claims=_claims
)
"""Both resources are in the node's allocatable; the devices say where a sum fits on none of them."""
