"""What HAMi leaves on nodes and pods: the devices of a node as JSON, the devices of a pod as text.

Mirrors pkg/device-plugin/nvidiadevice/nvinternal/plugin/register.go, pkg/device/devices.go,
pkg/device/nvidia/device.go and pkg/scheduler/scheduler.go of Project-HAMi/HAMi @ 4707fb0, with the defaults
of its chart: every device ten times in allocatable, memory in MiB, cores in percent of a device.
"""

from datetime import datetime

import msgspec

from benchmarks.openb.placement import SPLIT, Bound
from benchmarks.openb.schemes import GPU, NodeMarks, PodMarks, Sharing, device_id, model_of, no_reservations
from benchmarks.openb.times import moment
from benchmarks.openb.trace import WHOLE_MILLI, Machine

MEMORY = "nvidia.com/gpumem"
CORES = "nvidia.com/gpucores"
WHOLE_CORES = 100


class _Registered(msgspec.Struct, omit_defaults=True):
    """A device as the device plugin registers it; Go leaves out what is zero."""

    id: str
    index: int = 0
    count: int = 0
    devmem: int = 0
    devcore: int = 0
    type: str = ""
    numa: int = 0
    mode: str = ""
    health: bool = False


def share(machine: Machine, gpu_milli: int) -> tuple[int, int]:
    """MiB and percent of the cores that thousandths of one of the machine's GPUs are, rounded down."""
    return model_of(machine).memory_mib * gpu_milli // WHOLE_MILLI, WHOLE_CORES * gpu_milli // WHOLE_MILLI


def _node(machine: Machine) -> NodeMarks:
    if not machine.gpus:
        return NodeMarks(0)
    model = model_of(machine)
    kind = model.name if model.name.startswith("NVIDIA") else f"NVIDIA-{model.name}"
    devices = [
        _Registered(
            id=device_id(machine, index),
            index=index,
            count=SPLIT,
            devmem=model.memory_mib,
            devcore=WHOLE_CORES,
            type=kind,
            numa=2 * index // machine.gpus,
            mode="hami-core",
            health=True,
        )
        for index in range(machine.gpus)
    ]
    return NodeMarks(
        machine.gpus * SPLIT,
        {
            "hami.io/node-handshake": f"Requesting_{moment(0):%Y-%m-%d %H:%M:%S}",
            "hami.io/node-nvidia-register": msgspec.json.encode(devices).decode(),
        },
    )


def _pod(bound: Bound, machine: Machine) -> PodMarks:
    task = bound.task
    if not task.gpus:
        return PodMarks()
    memory, cores = share(machine, task.gpu_milli)
    # Who asks for whole GPUs says only how many; the webhook adds all cores, which makes them exclusive.
    asked = {GPU: task.gpus, CORES: cores} | ({MEMORY: memory} if task.is_fractional else {})
    devices = "".join(f"{device_id(machine, index)},NVIDIA,{memory},{cores}:" for index in bound.devices)
    at = _seconds(moment(task.created_s))
    return PodMarks(
        asked,
        {
            "hami.io/bind-phase": "success",
            "hami.io/bind-time": at,
            "hami.io/vgpu-devices-allocated": f"{devices};",
            "hami.io/vgpu-devices-to-allocate": ";",
            "hami.io/vgpu-node": machine.name,
            "hami.io/vgpu-time": at,
        },
        scheduler="hami-scheduler",
    )


def _seconds(at: datetime) -> str:
    return str(int(at.timestamp()))


HAMI = Sharing("hami", takes_fractions=True, node=_node, pod=_pod, reserve=no_reservations)
