"""The machines of the trace as member clusters: one for each GPU model, and one for those without GPUs."""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from benchmarks.openb.objects import Obj, node_object, pod_object, reservation_object
from benchmarks.openb.placement import Bound, Placement
from benchmarks.openb.schemes import Sharing
from benchmarks.openb.trace import WHOLE_MILLI, Machine, Task

CPU_ONLY = "cpu"
_KUBECTL_INDENT = 4


@dataclass(frozen=True, slots=True)
class Member:
    """One member cluster: its machines, and what runs on them by number within ``machines``."""

    name: str
    machines: tuple[Machine, ...]
    bound: tuple[Bound, ...]

    @property
    def gpus(self) -> int:
        """How many GPUs it has."""
        return sum(machine.gpus for machine in self.machines)

    @property
    def allocated_milli(self) -> int:
        """What its pods take of them, in thousandths of one."""
        return sum(bound.task.total_gpu_milli for bound in self.bound)

    def __str__(self) -> str:
        share = f"{self.allocated_milli / self.gpus / WHOLE_MILLI:.1%} allocated" if self.gpus else "no GPUs"
        return f"{len(self.machines):,} nodes, {self.gpus:,} GPUs, {share}, {len(self.bound):,} pods"


def members(placement: Placement) -> tuple[Member, ...]:
    """The member clusters, those with most GPUs first."""
    numbers: dict[str, list[int]] = {}
    for number, machine in enumerate(placement.machines):
        numbers.setdefault(machine.model.lower() or CPU_ONLY, []).append(number)
    at = {number: (name, nth) for name, own in numbers.items() for nth, number in enumerate(own)}
    bound: dict[str, list[Bound]] = {name: [] for name in numbers}
    for one in placement.bound:
        name, nth = at[one.machine]
        bound[name].append(Bound(one.task, nth, one.devices, one.round))
    found = [
        Member(name, tuple(placement.machines[n] for n in own), tuple(bound[name]))
        for name, own in numbers.items()
    ]
    return tuple(sorted(found, key=lambda member: (-member.gpus, member.name)))


def arriving(tasks: Iterable[Task], sharing: Sharing) -> tuple[Task, ...]:
    """The tasks that come to clusters of this scheme: fractions only where it has a way to place them."""
    return tuple(task for task in tasks if sharing.takes_fractions or not task.is_fractional)


def dump(member: Member, sharing: Sharing) -> bytes:
    """The cluster as ``kubectl get nodes,pods -A -o json`` would print it; the same bytes every time."""
    items: list[Obj] = [
        node_object(machine, sharing.node(machine), member.name, number)
        for number, machine in enumerate(member.machines)
    ]
    for bound in member.bound:
        machine = member.machines[bound.machine]
        items.append(pod_object(bound, machine, sharing.pod(bound, machine)))
    items += [
        reservation_object(reservation, member.machines[reservation.machine])
        for reservation in sharing.reserve(member.bound, member.machines)
    ]
    whole = {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}
    return msgspec.json.format(msgspec.json.encode(whole, order="sorted"), indent=_KUBECTL_INDENT) + b"\n"
