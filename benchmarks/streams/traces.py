"""Streams that were not made for this: the openb trace of Alibaba, and what Kueue's generator creates.

The trace tells when its pods came and how long they ran, on a fleet that was never full. Here they come in a
shorter time, so that they keep as much of a fleet busy as is wanted, and run for as long as they did, but for
those that ran for longer than a day: services, which would only make the fleet smaller. A pod that takes a
part of a GPU counts for a whole one. Gangs are added as in the drawn stream.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.openb.trace import Task, read_tasks
from benchmarks.queues.suite import Suite
from benchmarks.streams.drawn import GANG_EVERY_MS, GANG_RUNS_MS, GPUS
from benchmarks.streams.jobs import Job, Stream, ordered

OPENB_GANG: Final = 128
OPENB_LOAD: Final = 0.85
"""Of pods and gangs together, as a share of the fleet."""
LONGEST_RUN_S: Final = 86_400
QUIET_UNTIL_S: Final = 9_400_000
"""Before, the trace has a pod every few days."""


def openb(folder: Path) -> Stream:
    """The trace in this folder, all in the queue ``main``. Raises TraceError."""
    tasks = [
        task
        for task in read_tasks(folder)
        if task.gpus and task.created_s >= QUIET_UNTIL_S and task.runs_s > 0
    ]
    gang_load = OPENB_GANG * GANG_RUNS_MS / GANG_EVERY_MS
    return squeezed(tasks, OPENB_LOAD * GPUS - gang_load)


def squeezed(tasks: Sequence[Task], load: float) -> Stream:
    """Tasks in the order of their arrival, coming so fast that they use ``load`` GPUs, and gangs beside."""
    runs_ms = [1000 * min(task.runs_s, LONGEST_RUN_S) for task in tasks]
    used = sum(task.gpus * runs for task, runs in zip(tasks, runs_ms, strict=True))
    ends_ms, began_s = int(used / load), tasks[0].created_s
    shorter = ends_ms / (1 + tasks[-1].created_s - began_s)
    jobs = [
        Job("main", task.gpus, int((task.created_s - began_s) * shorter), runs)
        for task, runs in zip(tasks, runs_ms, strict=True)
    ]
    jobs += [
        Job("main", OPENB_GANG, at_ms, GANG_RUNS_MS, is_gang=True)
        for at_ms in range(GANG_EVERY_MS, ends_ms, GANG_EVERY_MS)
    ]
    return ordered(jobs, ends_ms)


def kueue(suite: Suite) -> Stream:
    """A suite of Kueue, as its generator would create it if no request took any time.

    The large ones, each as large as the quota of its queue, are its gangs.
    """
    most = max(each.cpu_per_workload for each in suite.workload_sets)
    jobs = [
        Job(
            queue,
            each.cpu_per_workload,
            (number + 1) * each.creation_interval_ms,
            each.runtime_ms,
            is_gang=each.cpu_per_workload == most,
            priority=each.class_name,
        )
        for queue, _ in suite.queues()
        for each in suite.workload_sets
        for number in range(each.count)
    ]
    return ordered(jobs, max(job.arrives_ms for job in jobs))
