"""How many more pods of one shape really fit, counted the plain way: one pod at a time until none fits.

Shares no code with the estimator and reads no dump: it starts from where the tasks were placed. Machines do
not depend on each other, all pods are alike, and a pod uses devices of one machine, so putting each pod on
any device that takes it, those in use first, finds the largest number. Each scheme has its own rule for when
a device takes a pod; that of HAMi is Fit in pkg/device/nvidia/device.go @ 4707fb0, that of KAI is
enoughResourcesOnGpu in pkg/scheduler/api/node_info/gpu_sharing_node_info.go @ 72de64f together with
checkMaxPodsWithGpuGroupReservation in pkg/scheduler/plugins/predicates/predicates.go.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from benchmarks.openb.members import Member
from benchmarks.openb.models import MODELS
from benchmarks.openb.placement import MAX_PODS, SPLIT
from benchmarks.openb.trace import WHOLE_MILLI

_WHOLE_CORES = 100


@dataclass(frozen=True, slots=True)
class Ask:
    """A pod: ``gpu_milli`` thousandths of each of ``gpus`` GPUs; whole ones where that is 1000.

    ``limits_cores``: whether it asks for the same share of the device's cores as of its memory, where the
    scheme divides them apart; else it asks for memory alone.
    """

    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    limits_cores: bool = True

    @property
    def is_fractional(self) -> bool:
        """Whether it asks for a part of a GPU."""
        return self.gpu_milli < WHOLE_MILLI

    def __str__(self) -> str:
        gpus = f"{self.gpu_milli} milli of a GPU" if self.is_fractional else f"{self.gpus} GPUs"
        cores = "" if self.limits_cores else ", memory only"
        return f"{gpus}{cores}, {self.cpu_milli / 1000:g} cpu, {self.memory_mib:,} MiB"


@dataclass(slots=True)
class Gpu:
    """One device: its memory, and what is used of it."""

    memory_mib: int
    milli: int = 0
    used_mib: int = 0
    cores: int = 0
    pods: int = 0


@dataclass(slots=True)
class Host:
    """One machine: what is free of it, and its devices."""

    cpu_milli: int
    memory_mib: int
    pods: int
    gpus: list[Gpu]


Rule = Callable[[Host, Ask], bool]
"""Put the GPU part of one more pod on a host; False, and nothing changed, where that does not go."""


def hosts(member: Member, reserves: bool) -> list[Host]:
    """The machines with what was placed on them. ``reserves``: a pod holds each device that is shared."""
    found = []
    for machine in member.machines:
        gpu = Gpu(MODELS[machine.model].memory_mib) if machine.gpus else Gpu(0)
        gpus = [replace(gpu) for _ in range(machine.gpus)]
        found.append(Host(machine.cpu_milli, machine.memory_mib, MAX_PODS, gpus))
    for bound in member.bound:
        host, task = found[bound.machine], bound.task
        host.cpu_milli -= task.cpu_milli
        host.memory_mib -= task.memory_mib
        host.pods -= 1
        for device in bound.devices:
            gpu = host.gpus[device]
            if reserves and task.is_fractional and not gpu.pods:
                host.pods -= 1
            _use(gpu, task.gpu_milli, limits_cores=True)
    return found


def replicas(hosts: list[Host], ask: Ask, rule: Rule) -> int:
    """How many pods fit in all. Fills the hosts."""
    placed = 0
    for host in hosts:
        while host.pods and host.cpu_milli >= ask.cpu_milli and host.memory_mib >= ask.memory_mib:
            if not rule(host, ask):
                break
            host.cpu_milli -= ask.cpu_milli
            host.memory_mib -= ask.memory_mib
            host.pods -= 1
            placed += 1
    return placed


def whole(host: Host, ask: Ask) -> bool:
    """Whole GPUs that nobody uses; a fraction is never placed."""
    untouched = [gpu for gpu in host.gpus if not gpu.pods]
    if ask.is_fractional or len(untouched) < ask.gpus:
        return False
    for gpu in untouched[: ask.gpus]:
        _use(gpu, ask.gpu_milli, limits_cores=True)
    return True


def hami(host: Host, ask: Ask) -> bool:
    """Memory and cores of one device, in ten parts at the most; whole GPUs must be untouched."""
    if not ask.is_fractional:
        return whole(host, ask)
    for gpu in host.gpus:
        memory, cores = _share(gpu, ask.gpu_milli, ask.limits_cores)
        if gpu.pods >= SPLIT or gpu.memory_mib - gpu.used_mib < memory or _WHOLE_CORES - gpu.cores < cores:
            continue
        if not cores and gpu.cores == _WHOLE_CORES:
            continue
        _use(gpu, ask.gpu_milli, ask.limits_cores)
        return True
    return False


def kai(host: Host, ask: Ask) -> bool:
    """A part of a device that is shared already, or of an untouched one, which takes another pod to hold."""
    if not ask.is_fractional:
        return whole(host, ask)
    for gpu in host.gpus:
        if gpu.pods and gpu.milli + ask.gpu_milli <= WHOLE_MILLI:
            _use(gpu, ask.gpu_milli, limits_cores=True)
            return True
    for gpu in host.gpus:
        if not gpu.pods and host.pods > 1:
            _use(gpu, ask.gpu_milli, limits_cores=True)
            host.pods -= 1
            return True
    return False


def _share(gpu: Gpu, gpu_milli: int, limits_cores: bool) -> tuple[int, int]:
    cores = _WHOLE_CORES * gpu_milli // WHOLE_MILLI if limits_cores else 0
    return gpu.memory_mib * gpu_milli // WHOLE_MILLI, cores


def _use(gpu: Gpu, gpu_milli: int, limits_cores: bool) -> None:
    memory, cores = _share(gpu, gpu_milli, limits_cores)
    gpu.milli += gpu_milli
    gpu.used_mib += memory
    gpu.cores += cores
    gpu.pods += 1
