"""What is asked about the clusters of the trace: its own most popular tasks, in the words of each scheme."""

from collections import Counter
from collections.abc import Iterable, Mapping

from benchmarks.openb.hami import CORES, MEMORY, share
from benchmarks.openb.kai import fraction
from benchmarks.openb.members import Member
from benchmarks.openb.oracle import Ask
from benchmarks.openb.schemes import GPU
from benchmarks.openb.trace import Task
from estimator.fit.pod_shape import PodShape

_FRACTIONS = 8
_SINGLES = 3
_MIB = 1 << 20


def popular_asks(tasks: Iterable[Task]) -> tuple[Ask, ...]:
    """The most frequent tasks, with their cpu and memory: of each share of a GPU, and of each number of them.

    The eight most frequent shares of a GPU and the smallest, the three most frequent tasks of one whole GPU,
    and for every larger number of GPUs the most frequent task.
    """
    counted = Counter(
        Ask(task.cpu_milli, task.memory_mib, task.gpus, task.gpu_milli) for task in tasks if task.gpus
    )
    ordered = sorted(counted, key=lambda ask: (-counted[ask], str(ask)))
    fractions: dict[int, Ask] = {}
    several: dict[int, Ask] = {}
    singles: list[Ask] = []
    for ask in ordered:
        if ask.is_fractional:
            fractions.setdefault(ask.gpu_milli, ask)
        elif ask.gpus > 1:
            several.setdefault(ask.gpus, ask)
        else:
            singles.append(ask)
    shares = list(fractions.values())
    smallest = [fractions[milli] for milli in sorted(fractions)[:1]]
    shares = list(dict.fromkeys((*shares[:_FRACTIONS], *smallest)))
    return (*shares, *singles[:_SINGLES], *(several[gpus] for gpus in sorted(several)))


def whole_shape(ask: Ask, member: Member) -> PodShape:
    """The question to a cluster without sharing."""
    return _shape(ask, {GPU: ask.gpus})


def hami_shape(ask: Ask, member: Member) -> PodShape:
    """The question to a HAMi cluster: MiB and percent of its own GPUs; whole GPUs by number alone."""
    if not ask.is_fractional:
        return _shape(ask, {GPU: ask.gpus})
    machine = next((machine for machine in member.machines if machine.gpus), None)
    memory, cores = share(machine, ask.gpu_milli) if machine else (ask.gpu_milli, ask.gpu_milli // 10)
    return _shape(ask, {GPU: 1, MEMORY: memory} | ({CORES: cores} if ask.limits_cores else {}))


def kai_shape(ask: Ask, member: Member) -> PodShape:
    """The question to a KAI cluster: a fraction is an annotation and names no GPU."""
    if not ask.is_fractional:
        return _shape(ask, {GPU: ask.gpus})
    return _shape(ask, {}, (("gpu-fraction", fraction(ask.gpu_milli)),))


def _shape(ask: Ask, extended: Mapping[str, int], annotations: tuple[tuple[str, str], ...] = ()) -> PodShape:
    native = {"cpu": ask.cpu_milli, "memory": ask.memory_mib * _MIB}
    requests = {name: amount for name, amount in {**native, **extended}.items() if amount}
    return PodShape(requests=tuple(sorted(requests.items())), annotations=annotations)
