"""How GPUs are shared in a cluster, as far as it can be seen on its objects: whole, by HAMi, by KAI.

A scheme says what it adds to the nodes and to the pods of a placement; all else about the objects is the
same for every scheme.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from uuid import UUID, uuid5

from benchmarks.openb.models import MODELS, GpuModel
from benchmarks.openb.placement import Bound
from benchmarks.openb.trace import Machine

GPU = "nvidia.com/gpu"

_NAMES = UUID("6f0e6a0e-8f43-5d0c-9a5e-6b1f6c3a7f11")


@dataclass(frozen=True, slots=True)
class NodeMarks:
    """What a scheme adds to a node: how many GPUs it advertises, and annotations."""

    gpus: int
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PodMarks:
    """What a scheme adds to a pod: extended resources, annotations, labels, its scheduler."""

    resources: Mapping[str, int] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    scheduler: str = "default-scheduler"


@dataclass(frozen=True, slots=True)
class Reservation:
    """A pod that a scheme itself runs to hold a device that others share."""

    name: str
    namespace: str
    machine: int
    device: int
    marks: PodMarks


@dataclass(frozen=True, slots=True)
class Sharing:
    """One scheme. ``reserve`` makes the pods that hold what the placed pods share."""

    name: str
    takes_fractions: bool
    node: Callable[[Machine], NodeMarks]
    pod: Callable[[Bound, Machine], PodMarks]
    reserve: Callable[[tuple[Bound, ...], tuple[Machine, ...]], list[Reservation]]


def stable_id(*parts: object) -> str:
    """A UUID that is the same whenever it is made from the same parts."""
    return str(uuid5(_NAMES, "/".join(map(str, parts))))


def device_id(machine: Machine, device: int) -> str:
    """The UUID of a device, as NVML gives it."""
    return f"GPU-{stable_id('device', machine.name, device)}"


def model_of(machine: Machine) -> GpuModel:
    """What is known of the machine's GPUs; it must have some."""
    return MODELS[machine.model]


def no_reservations(bound: tuple[Bound, ...], machines: tuple[Machine, ...]) -> list[Reservation]:
    """For schemes that run no pods of their own."""
    return []


def _whole_node(machine: Machine) -> NodeMarks:
    return NodeMarks(machine.gpus)


def _whole_pod(bound: Bound, machine: Machine) -> PodMarks:
    return PodMarks({GPU: bound.task.gpus} if bound.task.gpus else {})


WHOLE = Sharing("whole", takes_fractions=False, node=_whole_node, pod=_whole_pod, reserve=no_reservations)
"""Plain Kubernetes: the device plugin hands out whole GPUs, and there are no others."""
