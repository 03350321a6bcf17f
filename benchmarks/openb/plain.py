"""The two ways of counting that people use instead: one sum over the cluster, one division for each node.

Both read the same placement as the oracle, so that they differ from it in the way of counting alone.
"""

from collections.abc import Mapping

from benchmarks.openb.members import Member
from benchmarks.openb.oracle import Ask, Host
from benchmarks.openb.schemes import GPU, Sharing
from benchmarks.openb.trace import WHOLE_MILLI


def naive_sum(hosts: list[Host], ask: Ask) -> int:
    """All that is free of the GPUs of the cluster, divided by what one pod takes of them."""
    free = sum(WHOLE_MILLI - gpu.milli for host in hosts for gpu in host.gpus)
    return free // (ask.gpus * ask.gpu_milli)


def advertised_free(member: Member, sharing: Sharing) -> list[int]:
    """What nvidia.com/gpu in allocatable less requests gives on each node."""
    free = [sharing.node(machine).gpus for machine in member.machines]
    for bound in member.bound:
        free[bound.machine] -= sharing.pod(bound, member.machines[bound.machine]).resources.get(GPU, 0)
    for reservation in sharing.reserve(member.bound, member.machines):
        free[reservation.machine] -= reservation.marks.resources.get(GPU, 0)
    return free


def node_division(hosts: list[Host], free_gpus: list[int], ask: Ask, names: Mapping[str, int]) -> int:
    """What dividing allocatable less requests on each node gives, as Karmada's estimator does it.

    ``names``: the extended resources that one pod asks for; ``free_gpus`` is free of nvidia.com/gpu on each
    host, and of any other name nothing. Mirrors MaxDivided of pkg/util/resource.go in
    karmada-io/karmada @ f8fdd02.
    """
    total = 0
    for host, free in zip(hosts, free_gpus, strict=True):
        limits = [host.pods]
        if ask.cpu_milli:
            limits.append(host.cpu_milli // ask.cpu_milli)
        if ask.memory_mib:
            limits.append(host.memory_mib // ask.memory_mib)
        for name, amount in names.items():
            limits.append(max(0, free if name == GPU else 0) // amount)
        total += min(limits)
    return total
