"""How much of the free GPUs the usual tasks could not use: the measure of fragmentation gradient descent.

A GPU is not fragmented in itself, only for a task: what is free on it is lost to a task that does not fit
there. So the measure is an expectation over the tasks that usually come. For one shape of task, all that is
free on a node counts as lost if the node cannot host the task (too little cpu, too few GPUs with enough left,
a product that the task does not accept) or if the task needs no GPU; otherwise what is free on those GPUs
that have too little left for it. The fragmentation of a node is the mean of that over the shapes, weighted
by their popularity; that of a cluster is the sum over its nodes. Memory plays no part in it.

Mirrors GetTypicalPods, GetNodePodFrag and NodeGpuShareFragAmountScore of pkg/utils/frag.go in
hkust-adsl/kubernetes-scheduler-simulator @ 8f3d641 (Weng et al., USENIX ATC '23).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

IntVector = NDArray[np.int64]

WHOLE_MILLI = 1000
"""A whole GPU, in thousandths."""

POPULAR_PERCENT = 95
"""The share of all tasks that the shapes of a mix stand for, as the source has it."""


@dataclass(frozen=True, slots=True)
class TaskShape:
    """What one task asks for: milli-cores, and of ``gpus`` GPUs of one node ``gpu_milli`` thousandths each.

    Both are 0 for a task without GPUs. ``products``: those that will do; empty means any.
    """

    cpu_milli: int
    gpus: int = 0
    gpu_milli: int = 0
    products: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskMix:
    """The shapes that tasks usually have, most frequent first, each with how many tasks had it."""

    shapes: tuple[tuple[TaskShape, int], ...]

    @property
    def tasks(self) -> int:
        """How many tasks the mix stands for; a shape's popularity is its count divided by this."""
        return sum(count for _, count in self.shapes)


def popular(tasks: Iterable[TaskShape], percent: int = POPULAR_PERCENT) -> TaskMix:
    """The most frequent shapes, so many that they make up at least ``percent`` of all tasks.

    Of equally frequent shapes the larger come first, by cpu, then GPU share, then GPUs. Raises ValueError
    where there is no task, or for a percentage outside 1..100.
    """
    if not 1 <= percent <= 100:
        raise ValueError(f"percent: expected 1 to 100, found {percent}")
    counted = Counter(tasks)
    if not counted:
        raise ValueError("tasks: expected at least one, found none")
    ordered = sorted(counted.items(), key=_rank, reverse=True)
    total = counted.total()
    kept, covered = 0, 0
    while covered * 100 < percent * total:
        covered += ordered[kept][1]
        kept += 1
    return TaskMix(tuple(ordered[:kept]))


def _rank(counted: tuple[TaskShape, int]) -> tuple[int, int, int, int, tuple[str, ...]]:
    shape, count = counted
    return count, shape.cpu_milli, shape.gpu_milli, shape.gpus, shape.products


@dataclass(frozen=True, slots=True)
class GpuNode:
    """What is free on one node: thousandths of each of its GPUs, milli-cores; below 0 counts as 0."""

    gpu_milli: Sequence[int]
    cpu_milli: int
    product: str = ""


class GpuNodes:
    """The free GPUs of many nodes in columns, so that a mix is held against all of them at once."""

    def __init__(self, nodes: Iterable[GpuNode]) -> None:
        listed = list(nodes)
        width = max((len(node.gpu_milli) for node in listed), default=0)
        # A GPU that a node does not have is as good as one with nothing free: it hosts nothing, adds nothing.
        self._gpus = np.zeros((len(listed), width), dtype=np.int64)
        for row, node in enumerate(listed):
            self._gpus[row, : len(node.gpu_milli)] = node.gpu_milli
        np.maximum(self._gpus, 0, out=self._gpus)
        self._cpu: IntVector = np.array([max(0, node.cpu_milli) for node in listed], dtype=np.int64)
        self._free: IntVector = self._gpus.sum(axis=1)
        self._products: dict[str, NDArray[np.bool_]] = {}
        names = np.array([node.product for node in listed], dtype=np.str_)
        for product in {node.product for node in listed}:
            self._products[product] = names == product

    def __len__(self) -> int:
        """How many nodes there are."""
        return len(self._free)

    @property
    def free_milli(self) -> int:
        """What is free of all GPUs together, in thousandths of one."""
        return int(self._free.sum())

    def lost(self, shape: TaskShape) -> IntVector:
        """What is free on each node and of no use to a task of this shape, in thousandths of a GPU."""
        if not shape.gpus or not shape.gpu_milli:
            return self._free.copy()
        useful = self._gpus >= shape.gpu_milli
        hosts = (np.count_nonzero(useful, axis=1) >= shape.gpus) & (self._cpu >= shape.cpu_milli)
        if shape.products:
            hosts &= self._accepted(shape.products)
        usable = np.where(useful, self._gpus, 0).sum(axis=1)
        return self._free - np.where(hosts, usable, 0)

    def _accepted(self, products: tuple[str, ...]) -> NDArray[np.bool_]:
        accepted = np.zeros(len(self._cpu), dtype=np.bool_)
        for product in products:
            if product in self._products:
                accepted |= self._products[product]
        return accepted


@dataclass(frozen=True, slots=True, eq=False)
class Fragmentation:
    """How much of what is free a mix of tasks could not use, on average.

    ``weighted``: for each node thousandths of a GPU times ``tasks``, which keeps it exact. ``free_milli``:
    what is free of all GPUs together.
    """

    weighted: IntVector
    tasks: int
    free_milli: int

    @property
    def milli(self) -> Fraction:
        """The fragmentation of all nodes together, in thousandths of a GPU, exact."""
        return Fraction(int(self.weighted.sum()), self.tasks)

    def of_node(self, index: int) -> Fraction:
        """The fragmentation of one node, in thousandths of a GPU, exact."""
        return Fraction(int(self.weighted[index]), self.tasks)

    @property
    def share_of_free(self) -> Fraction:
        """The fragmentation as a share of what is free, 0 to 1; 0 where nothing is free."""
        return self.milli / self.free_milli if self.free_milli else Fraction(0)


def fragmentation(nodes: GpuNodes, mix: TaskMix) -> Fragmentation:
    """The fragmentation of the nodes for this mix of tasks. O(nodes x GPUs a node x shapes), exact.

    Raises ValueError for a mix without tasks.
    """
    if not mix.tasks:
        raise ValueError("mix: expected at least one task, found none")
    weighted = np.zeros(len(nodes), dtype=np.int64)
    for shape, count in mix.shapes:
        weighted += nodes.lost(shape) * count
    return Fragmentation(weighted, mix.tasks, nodes.free_milli)
