"""What does it cost an estimator to ask a Prometheus about all devices of a cluster?

Every node has eight GPUs that DCGM's exporter tells of; on one node of a hundred a GPU does not work. Beside
each look but the first a timer that is due every millisecond says how late the event loop is: nothing may
hold it up for more than 20 ms. Measured in this process, tuned as the estimator is.
"""

import asyncio
import os
import select
import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from benchmarks.cluster import GPU, Scale, node_name
from benchmarks.lateness import lateness, tuned
from benchmarks.proc import memory_mib
from benchmarks.processes import StartFailed, running_module, tail
from benchmarks.prometheus_server import GPUS, ONE_BROKEN_IN
from benchmarks.report import Case, Figure, Result, Target
from benchmarks.sides import TARGET_NODES, Setting
from estimator.cluster.mirror import ClusterMirror
from estimator.member import MemberCluster
from estimator.prometheus_source import PrometheusSource
from fairway.kube.objects import Node
from fairway.prometheus.server import Server

_LATE_MS, _MEMORY_MIB = Target(20.0), Target(100.0)
_LOOKS = 5
_STARTS_WITHIN_S = 60.0


def measure(setting: Setting) -> Result:
    """Figures for each size. Raises StartFailed."""
    cases = [_case(scale) for scale in setting.scales]
    return Result("prometheus_look", "Asking Prometheus about 8 GPUs of each node", cases)


def _case(scale: Scale) -> Case:
    complaints: list[str] = []
    mirror = ClusterMirror(lambda *told: complaints.append(" ".join(told)))
    has = {"cpu": "192", "memory": "2048Gi", "pods": "110", GPU: str(GPUS)}
    for number in range(scale.nodes):
        made = {"metadata": {"name": node_name(number)}, "status": {"allocatable": has, "capacity": has}}
        mirror.nodes.upsert(msgspec.convert(made, Node))
    mirror.node_devices.tick(time.monotonic())
    before_mib = memory_mib(os.getpid(), "VmRSS")
    with _prometheus(scale.nodes) as url, tuned():
        took_s, cpu_s, late_s = asyncio.run(_looks(mirror, url, complaints))
    added_mib = memory_mib(os.getpid(), "VmRSS") - before_mib
    is_target = scale.nodes == TARGET_NODES
    figures = [
        Figure("a look", 1e3 * took_s, "ms"),
        Figure("processor time", 1e3 * cpu_s, "ms"),
        Figure("loop late, p99", 1e3 * late_s[int(len(late_s) * 0.99)], "ms"),
        Figure("loop late, worst", 1e3 * late_s[-1], "ms", _LATE_MS if is_target else None),
        Figure("memory added", added_mib, "MiB", _MEMORY_MIB if is_target else None),
    ]
    found, expected = len(list(mirror.columns.broken)), -(-scale.nodes // ONE_BROKEN_IN)
    faults = [] if found == expected else [f"{found} nodes with a broken GPU, expected {expected}"]
    return Case(f"{scale.nodes:,} nodes", figures, [*faults, *complaints[:3]])


async def _looks(mirror: ClusterMirror, url: str, complaints: list[str]) -> tuple[float, float, list[float]]:
    """The mean time of a look, processor time of it, and how late the loop was, ascending, in seconds."""
    source = PrometheusSource(
        MemberCluster("m", mirror, time.monotonic),
        [Server(url)],
        60.0,
        lambda *told: complaints.append(" ".join(told)),
        lambda: None,
        clock=time.monotonic,
        wall_clock=time.time,
    )
    took_s = cpu_s = 0.0

    async def looks() -> None:
        nonlocal took_s, cpu_s
        began_s, used_s = time.perf_counter(), time.process_time()
        for _ in range(_LOOKS):
            await source.look()
        took_s, cpu_s = time.perf_counter() - began_s, time.process_time() - used_s

    await source.look()
    late_s = await lateness(looks)
    return took_s / _LOOKS, cpu_s / _LOOKS, late_s


@contextmanager
def _prometheus(nodes: int) -> Iterator[str]:
    with running_module(["benchmarks.prometheus_server", str(nodes)]) as (process, log):
        assert process.stdout is not None
        readable, _, _ = select.select([process.stdout], [], [], _STARTS_WITHIN_S)
        url = process.stdout.readline().decode().strip() if readable else ""
        if not url:
            raise StartFailed(f"the fake Prometheus did not start:\n{tail(log)}")
        yield url
