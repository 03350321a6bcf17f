"""Where the tasks run: one after the other as they arrived, until so much of the GPUs is taken.

The rule is best fit: of the machines that can host a task the one with the least GPU left free, then the
least cpu, then the first of the list; on it the device with the least left that is enough, and for whole
GPUs the first untouched ones. A task without GPUs goes by the same rule, so it fills the cpu of machines
whose GPUs are taken before it breaks into others. With a seed, machine and device are drawn at random from
those that can host the task instead. What fits nowhere is left out, as it would wait outside the cluster; if
the tasks run out too early they arrive once more.

Any placement holds in every sharing scheme: cpu, memory and pod slots are kept, a device is shared by at
most ten pods as HAMi has it, and a slot is left for the pod with which KAI reserves a device.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from benchmarks.openb.trace import WHOLE_MILLI, Machine, Task

MAX_PODS = 110
"""Pods a node, as the kubelet has it by default."""

SPLIT = 10
"""Pods a device, as HAMi has it by default (deviceSplitCount)."""

_CPU_SCALE = 1 << 40


@dataclass(frozen=True, slots=True)
class Bound:
    """A task on a machine: by number, with the numbers of the devices it uses there.

    ``round``: 0 when the task arrived for the first time.
    """

    task: Task
    machine: int
    devices: tuple[int, ...]
    round: int = 0

    @property
    def name(self) -> str:
        """The name of its pod."""
        return f"{self.task.name}-{self.round + 1}" if self.round else self.task.name


@dataclass(frozen=True, slots=True)
class Placement:
    """All machines and what runs on them, in the order of arrival.

    ``left_out``: so many tasks found no place when they arrived for the first time.
    """

    machines: tuple[Machine, ...]
    bound: tuple[Bound, ...]
    left_out: int

    @property
    def total_milli(self) -> int:
        """All GPUs, in thousandths of one."""
        return sum(machine.gpus for machine in self.machines) * WHOLE_MILLI

    @property
    def allocated_milli(self) -> int:
        """What the tasks take of them."""
        return sum(bound.task.total_gpu_milli for bound in self.bound)


def place(
    machines: Sequence[Machine], tasks: Sequence[Task], load_percent: int, seed: int | None = None
) -> Placement:
    """Place tasks until they take ``load_percent`` of all GPUs, or less if no more fit. Deterministic."""
    floor = _Floor(machines)
    goal = sum(machine.gpus for machine in machines) * WHOLE_MILLI * load_percent
    rng = None if seed is None else Random(seed)
    bound: list[Bound] = []
    hopeless: set[tuple[int, int, int, int, tuple[str, ...]]] = set()
    allocated = left_out = round_ = 0
    while allocated * 100 < goal:
        before = allocated
        for task in tasks:
            if allocated * 100 >= goal:
                break
            # Nothing is ever given back, so what did not fit once never will.
            shape = (task.cpu_milli, task.memory_mib, task.gpus, task.gpu_milli, task.models)
            found = None if shape in hopeless else floor.find(task, rng)
            if found is None:
                hopeless.add(shape)
                left_out += not round_
                continue
            floor.take(task, *found)
            bound.append(Bound(task, *found, round_))
            allocated += task.total_gpu_milli
        if allocated == before:
            break
        round_ += 1
    return Placement(tuple(machines), tuple(bound), left_out)


class _Floor:
    """What is free, in columns: a row for each machine, and for each of its devices a field in the row."""

    def __init__(self, machines: Sequence[Machine]) -> None:
        width = max((machine.gpus for machine in machines), default=0)
        # A device that a machine does not have has less than nothing free, so that nothing ever fits.
        self._gpu = np.full((len(machines), max(width, 1)), -1, dtype=np.int64)
        for row, machine in enumerate(machines):
            self._gpu[row, : machine.gpus] = WHOLE_MILLI
        self._sharers = np.zeros_like(self._gpu)
        self._left = np.array([machine.gpus * WHOLE_MILLI for machine in machines], dtype=np.int64)
        self._cpu = np.array([machine.cpu_milli for machine in machines], dtype=np.int64)
        self._memory = np.array([machine.memory_mib for machine in machines], dtype=np.int64)
        self._pods = np.full(len(machines), MAX_PODS, dtype=np.int64)
        self._model = np.array([machine.model for machine in machines], dtype=np.str_)

    def find(self, task: Task, rng: Random | None) -> tuple[int, tuple[int, ...]] | None:
        """A machine and devices for the task; None if it fits nowhere."""
        fits = self._devices(task)
        hosts = (self._cpu >= task.cpu_milli) & (self._memory >= task.memory_mib)
        hosts &= self._pods >= (2 if task.is_fractional else 1)
        if task.gpus:
            hosts &= np.count_nonzero(fits, axis=1) >= task.gpus
        if task.models:
            hosts &= np.isin(self._model, task.models)
        rows = np.flatnonzero(hosts)
        if not len(rows):
            return None
        if rng is None:
            row = int(rows[np.argmin(self._left[rows] * _CPU_SCALE + self._cpu[rows])])
        else:
            row = int(rows[rng.randrange(len(rows))])
        devices = np.flatnonzero(fits[row])
        if task.is_fractional:
            nth = int(np.argmin(self._gpu[row, devices])) if rng is None else rng.randrange(len(devices))
            return row, (int(devices[nth]),)
        return row, tuple(devices[: task.gpus].tolist())

    def take(self, task: Task, row: int, devices: tuple[int, ...]) -> None:
        """The task runs there from now on."""
        for device in devices:
            self._gpu[row, device] -= task.gpu_milli
            self._sharers[row, device] += 1
        self._left[row] -= task.total_gpu_milli
        self._cpu[row] -= task.cpu_milli
        self._memory[row] -= task.memory_mib
        # The pod that reserves the device in KAI takes a slot with the first fraction on it.
        opens = task.is_fractional and self._sharers[row, devices[0]] == 1
        self._pods[row] -= 2 if opens else 1

    def _devices(self, task: Task) -> NDArray[np.bool_]:
        if task.is_fractional:
            return (self._gpu >= task.gpu_milli) & (self._sharers < SPLIT)
        return np.equal(self._gpu, WHOLE_MILLI)
