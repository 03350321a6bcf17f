"""How long after its start does the estimator give the first right answer, and does it stall meanwhile?

The estimator is asked from the moment it listens, as karmada-scheduler would ask it: with a deadline, again
and again. Until it knows the whole cluster it may say that it has no opinion. Any other number than the
right one, which is counted from the generated cluster, is wrong. On a busy machine most of a stall may be the
wait for a CPU, which is shown beside it.
"""

import time

from benchmarks.caller import Connection, header_block
from benchmarks.cluster import Scale, replicas_of
from benchmarks.proc import cpu_wait_s, memory_mib
from benchmarks.processes import (
    CLUSTER,
    Estimator,
    StartFailed,
    await_listening,
    running_api,
    starting_estimator,
)
from benchmarks.report import Case, Figure, Result, Target
from benchmarks.shapes import REPLICAS, answer_of, replicas_request
from benchmarks.sides import PROBE, TARGET_NODES, Setting

_TARGET_PODS = 150_000
_FIRST_S, _STALL_MS, _STALLS = Target(15.0), Target(20.0), Target(0)
_NO_OPINION = -1
_WORST_DELAY = "fairway_estimator_loop_worst_delay_seconds"
_STALLED = "fairway_estimator_loop_stalls_total"
_DEADLINE = ("grpc-timeout", "3S")
_WITHIN_S = 120.0


def measure(setting: Setting) -> Result:
    """Figures for both ways of reading a list. Raises StartFailed, CallFailed.

    Asked on for ``setting.seconds`` after the first right answer: what is tidied up then might stall, too.
    """
    scale = Scale(min(TARGET_NODES, setting.sync_pods // 30), setting.sync_pods)
    cases = []
    with running_api(scale) as api:
        for name, url in (("streamed list", api.url), ("list in pages", api.paging_url)):
            with starting_estimator(url) as own:
                cases.append(_case(f"{scale}, {name}", scale, own, setting.seconds))
    return Result("first_answer", "From the start of the process to the first right answer", cases)


def _case(label: str, scale: Scale, own: Estimator, asked_on_s: float) -> Case:
    await_listening(own)
    listens_s = time.perf_counter() - own.started_s
    expected = replicas_of(scale, PROBE)
    headers = header_block(REPLICAS, str(own.address), (_DEADLINE,))
    message = replicas_request(CLUSTER, PROBE)
    first_right_s: float | None = None
    wrong: list[int] = []
    with Connection(own.address) as connection:
        while True:
            answer = answer_of(connection.call(headers, message))
            elapsed_s = time.perf_counter() - own.started_s
            if answer == expected:
                first_right_s = first_right_s or elapsed_s
            elif answer != _NO_OPINION or first_right_s is not None:
                wrong.append(answer)
            if first_right_s is not None and elapsed_s > first_right_s + asked_on_s:
                break
            if elapsed_s > _WITHIN_S:
                raise StartFailed(
                    f"no right answer about {scale} in time, expected {expected}:\n{own.last_words()}"
                )
    metrics = own.metrics()
    at_scale = scale.pods == _TARGET_PODS
    figures = [
        Figure("listens after", listens_s, "s"),
        Figure("first right answer", first_right_s, "s", _FIRST_S if at_scale else None),
        Figure("longest stall", 1e3 * metrics[_WORST_DELAY, ""], "ms", _STALL_MS if at_scale else None),
        Figure("stalls", metrics[_STALLED, ""], "", _STALLS if at_scale else None),
        Figure("kept from a CPU", cpu_wait_s(own.pid), "s"),
        Figure("memory", memory_mib(own.pid, "VmRSS"), "MiB"),
    ]
    faults = [f"answered {sorted(set(wrong))}, the right answer is {expected}"] if wrong else []
    return Case(label, figures, faults)
