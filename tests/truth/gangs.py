"""Clusters and gangs drawn from seeds: gangs that fit exactly once, and sets of which many fit.

A gang that fits once takes every GPU that is free, each node filled by some of its pods, so that there is
hardly another way to place it. Gangs come in three suites: A, of 1, 2, 4 and 8 GPUs with cpu and memory in
proportion; B, of 1 to 6 and 8 GPUs with cpu and memory that have nothing to do with them; and C, those of B
that a scheduler which spreads does not place even where the largest pods come first.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from random import Random
from typing import Final

from estimator.capacity.sets.pod_by_pod import PodByPod, Ties
from tests.builders import NodeBuilder, PodBuilder, cluster, component, never, node, pod, room_of


@dataclass(frozen=True, order=True)
class Size:
    """What a pod asks for, or a node has: devices, whole cores and GiB."""

    gpus: int
    cores: int
    gib: int

    def __add__(self, other: "Size") -> "Size":
        return Size(self.gpus + other.gpus, self.cores + other.cores, self.gib + other.gib)

    def holds(self, other: "Size") -> bool:
        """Whether there is as much of everything."""
        return self.gpus >= other.gpus and self.cores >= other.cores and self.gib >= other.gib


NODE: Final = Size(8, 64, 512)
NOTHING: Final = Size(0, 0, 0)
PODS: Final = range(5, 25)
"""How many pods a gang that fits once may have."""

Tasks = tuple[tuple[int, Size], ...]
"""So many pods of each size."""


@dataclass(frozen=True)
class Fleet:
    """Nodes like `NODE` by what runs on each already, and the gang that is to be released there."""

    name: str
    used: tuple[Size, ...]
    tasks: Tasks

    @property
    def pods(self) -> int:
        """How many pods the gang has."""
        return sum(replicas for replicas, _ in self.tasks)


def tight(suite: str, wanted: int) -> Iterator[Fleet]:
    """So many of a suite, ``A``, ``B`` or ``C``, always the same."""
    drawn = (_drawn(suite, seed) for seed in count())
    return islice((fleet for fleet in drawn if fleet is not None), wanted)


def crowded(kinds: Sequence[Tasks], nodes: int) -> Iterator[Fleet]:
    """For each kind of sets a cluster of so many nodes, about five of eight of whose GPUs are used."""
    for number, tasks in enumerate(kinds):
        chance = Random(f"crowded-{number}")
        used = (_used(chance, chance.choice((2, 3, 4, 5, 6, 7, 8, 8, 0))) for _ in range(nodes))
        yield Fleet(f"kind{number}", tuple(used), tasks)


def _used(chance: Random, gpus: int) -> Size:
    return Size(gpus, gpus * chance.randint(3, 6), gpus * chance.randint(20, 48))


def _drawn(suite: str, seed: int) -> Fleet | None:
    """The fleet of a seed; None where it is none of the suite."""
    chance = Random(f"{suite}-{seed}")
    used = tuple(
        _used(chance, chance.randint(1, 4)) if chance.random() < 0.3 else NOTHING
        for _ in range(chance.randint(4, 8))
    )
    sizes = _sizes(suite, chance)
    pods: Counter[Size] = Counter()
    for taken in used:
        filled = _filled(chance, sizes, taken)
        if filled is None:
            return None
        pods.update(filled)
    if pods.total() not in PODS or len(pods) < 2:
        return None
    tasks = [(replicas, size) for size, replicas in pods.items()]
    chance.shuffle(tasks)
    fleet = Fleet(f"{suite.lower()}{seed}", used, tuple(tasks))
    return None if suite == "C" and _spreads_whole(fleet) else fleet


def _sizes(suite: str, chance: Random) -> list[Size]:
    if suite == "A":
        return [Size(gpus, 6 * gpus, 48 * gpus) for gpus in (1, 2, 4, 8)]
    gpus = chance.sample((1, 2, 3, 4, 5, 6, 8), chance.randint(3, 5))
    return [Size(one, chance.randint(1, 40), chance.randint(4, 320)) for one in gpus]


def _filled(chance: Random, sizes: list[Size], used: Size) -> list[Size] | None:
    """Pods that take all GPUs that are left; None where some tries did not find any."""
    for _ in range(30):
        total, pods = used, list[Size]()
        while total.gpus < NODE.gpus:
            pods.append(chance.choice(sizes))
            total += pods[-1]
        if NODE.holds(total):
            return pods
    return None


def _spreads_whole(fleet: Fleet) -> bool:
    """Whether the estimator's own simulation may place the gang whole, the largest pods first."""
    things: list[NodeBuilder | PodBuilder] = []
    for number, used in enumerate(fleet.used):
        name = f"n{number}"
        things.append(node(name).has(cpu=NODE.cores, memory=f"{NODE.gib}Gi", gpu=NODE.gpus))
        if used != NOTHING:
            runs = pod(f"p{number}").on(name)
            things.append(runs.requests(cpu=used.cores, memory=f"{used.gib}Gi", gpu=used.gpus))
    tasks = sorted(fleet.tasks, key=lambda task: task[1], reverse=True)
    asked = [
        component(str(size), replicas, cpu=size.cores, memory=f"{size.gib}Gi", gpu=size.gpus)
        for replicas, size in tasks
    ]
    order = [one.shape for one in asked for _ in range(one.replicas)]
    scheduler = PodByPod(room_of(cluster(*things)), order)
    return any(scheduler.sets(order, 1, never, ties=ties) != 0 for ties in Ties)
