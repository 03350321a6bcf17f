"""What KAI leaves on pods: the fraction as an annotation, the shared device as a label, a reserving pod.

The first fraction on a device makes KAI run a pod that asks the device plugin for that whole GPU; all pods on
the device carry the same group as a label, and no fraction asks for a GPU by name. Mirrors
pkg/binder/binding/resourcereservation/resource_reservation.go, pkg/binder/binding/binder.go and
pkg/common/constants/constants.go of NVIDIA/KAI-Scheduler @ 72de64f; the reserving pod asks for no cpu or
memory, as by default.
"""

from benchmarks.openb.placement import Bound
from benchmarks.openb.schemes import GPU, NodeMarks, PodMarks, Reservation, Sharing, device_id, stable_id
from benchmarks.openb.trace import WHOLE_MILLI, Machine

RESERVATIONS = "kai-resource-reservation"
GROUP = "runai-gpu-group"
_SCHEDULER = "kai-scheduler"


def fraction(gpu_milli: int) -> str:
    """The value of the annotation gpu-fraction: ``0.47`` for 470 thousandths of a device."""
    return f"{gpu_milli // WHOLE_MILLI}.{gpu_milli % WHOLE_MILLI:03d}".rstrip("0").rstrip(".")


def _group(machine: Machine, device: int) -> str:
    return stable_id("group", machine.name, device)


def _node(machine: Machine) -> NodeMarks:
    return NodeMarks(machine.gpus)


def _pod(bound: Bound, machine: Machine) -> PodMarks:
    task, queue = bound.task, {"kai.scheduler/queue": "openb"}
    if not task.is_fractional:
        received = {"received-resource-type": "Regular"}
        return PodMarks({GPU: task.gpus} if task.gpus else {}, received, queue, _SCHEDULER)
    return PodMarks(
        {},
        {"gpu-fraction": fraction(task.gpu_milli), "received-resource-type": "Fraction"},
        {**queue, GROUP: _group(machine, bound.devices[0])},
        _SCHEDULER,
    )


def _reserve(bound: tuple[Bound, ...], machines: tuple[Machine, ...]) -> list[Reservation]:
    shared = sorted({(b.machine, b.devices[0]) for b in bound if b.task.is_fractional})
    return [_reservation(machines[number], number, device) for number, device in shared]


def _reservation(machine: Machine, number: int, device: int) -> Reservation:
    group = _group(machine, device)
    marks = PodMarks(
        {GPU: 1},
        {"karpenter.sh/do-not-disrupt": "true", "run.ai/reserve_for_gpu_index": device_id(machine, device)},
        {"app": RESERVATIONS, GROUP: group},
    )
    return Reservation(f"gpu-reservation-{machine.name}-{group[:5]}", RESERVATIONS, number, device, marks)


KAI = Sharing("kai", takes_fractions=True, node=_node, pod=_pod, reserve=_reserve)
