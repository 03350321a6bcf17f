"""How much memory does the estimator's process take, at rest and while it is asked?

Resident size as the kernel counts it, so only for estimators on this machine.
"""

import time

from benchmarks.component_sets import contested, sets_requests
from benchmarks.contest import contest
from benchmarks.load import Questions
from benchmarks.proc import listener_pid, memory_mib
from benchmarks.report import Case, Figure, Result, Target
from benchmarks.shapes import REPLICAS, SETS, replicas_requests
from benchmarks.sides import TARGET_NODES, Setting, serving

_AT_MOST_MIB = Target(150.0)
_SETTLES_S = 2.0


def measure(setting: Setting) -> Result:
    """Figures at rest, under load, and the highest ever. Raises StartFailed, CallFailed, NotHere."""
    scale = setting.main_scale
    with serving(setting, scale) as sides:
        own = sides.own.pid if sides.own else listener_pid(sides.ours)
        other = listener_pid(sides.other) if sides.other else None
        pids = [own] if other is None else [own, other]
        time.sleep(_SETTLES_S)
        idle = [memory_mib(pid, "VmRSS") for pid in pids]
        contest(sides, Questions(REPLICAS, replicas_requests(setting.cluster)), 8, setting.seconds)
        contest(sides, Questions(SETS, sets_requests(setting.cluster, contested, 64)), 2, setting.seconds)
        loaded = [memory_mib(pid, "VmRSS") for pid in pids]
        peak = [memory_mib(pid, "VmHWM") for pid in pids]
    target = _AT_MOST_MIB if scale.nodes == TARGET_NODES else None
    figures = [
        _figure("at rest", idle, target),
        _figure("under load", loaded, target),
        _figure("highest since the start", peak, None),
    ]
    return Result("memory", "Memory of the process", [Case(str(scale), figures)])


def _figure(name: str, mib: list[float], target: Target | None) -> Figure:
    other = mib[1] if len(mib) > 1 else None
    return Figure(name, mib[0], "MiB", target, other, mib[0] / other if other else None)
