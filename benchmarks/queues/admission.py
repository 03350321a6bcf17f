"""How fast does the real dispatcher take Kueue's suites through an API server, and how much does it write?

Queues, classes and held bindings are created as Kueue's generator creates Workloads; a stand-in places what
is released, waits out its runtime and reports its end. Kueue's own times to admission are stamped before the
write, so what is compared is the time from creation to the end, less the runtime.
"""

import asyncio
import os
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from benchmarks.proc import cpu_s, memory_mib
from benchmarks.queues import load
from benchmarks.queues.dispatcher import starting_dispatcher
from benchmarks.queues.progress import say
from benchmarks.queues.servers import Server, fake_server, real_server
from benchmarks.queues.stand_in import Lives, StandIn
from benchmarks.queues.suite import KUEUE, Suite, read_suite
from benchmarks.report import Case, Figure, Result, Target
from benchmarks.sides import Setting
from tests import envtest

_QUICK = (35, 10, 5)
_WITHIN_FACTOR = 8.0
_TELL_EVERY_S = 5.0
_OF_THE_STAND_IN = 3
"""Writes to each binding that are not the dispatcher's: its creation, its placement, its end."""

_ROOT = Path(__file__).resolve().parents[2]
_CRDS = _ROOT / "manifests" / "crds"
_KARMADA_CRDS = _ROOT.parent / "shared" / "crds"


def measure(setting: Setting) -> Result:
    """Each suite on the fake API server, and on a real one if it is here. Raises StartFailed, NotHere."""
    names = ("baseline",) if setting.seconds <= 1 else ("baseline", "large10k")
    suites = [read_suite(name) for name in names]
    if setting.seconds <= 1:
        suites = [suite.thinned(_QUICK) for suite in suites]
    programs = envtest.assets()
    cases = []
    for suite in suites:
        with fake_server() as server:
            cases.append(asyncio.run(_run(server, suite)))
        if programs is not None:
            with real_server(programs) as server:
                cases.append(asyncio.run(_run(server, suite)))
    title = "Kueue's performance suites through the dispatcher"
    return Result("kueue_suites", title, cases)


@dataclass(frozen=True, slots=True)
class _Use:
    """What it cost: seconds of CPU by process, and the dispatcher's memory at the most."""

    cpu_s: Mapping[str, float]
    rss_mib: float


async def _run(server: Server, suite: Suite) -> Case:
    client = server.client()
    lives = Lives()
    runtimes = {each.class_name: each.runtime_ms / 1000 for each in suite.workload_sets}
    cores = {each.class_name: each.cpu_per_workload for each in suite.workload_sets}
    stand_in = StandIn(client, lives, runtimes, cores)
    async with client:
        if server.kubeconfig is not None:
            await load.install(client, (_KARMADA_CRDS, _CRDS))
        await load.create_queues(client, suite)
        with starting_dispatcher(server.flags) as dispatcher:
            await dispatcher.ready()
            following = asyncio.create_task(stand_in.run())
            telling = asyncio.create_task(_tell(f"{suite.name} on {server.name}", lives, suite))
            processes = {"dispatcher": dispatcher.pid, "generator": os.getpid(), **server.processes}
            before_s = {name: cpu_s(pid) for name, pid in processes.items()}
            lives.changed_s = began_s = time.monotonic()
            try:
                await load.create_workloads(client, suite)
                created_s = time.monotonic() - began_s
                await _all_finished(lives, suite, began_s + _WITHIN_FACTOR * suite.cpu_seconds)
                wall_s = time.monotonic() - began_s
            finally:
                for task in (following, telling):
                    task.cancel()
                await asyncio.gather(following, telling, return_exceptions=True)
            used_s = {name: cpu_s(pid) - before_s[name] for name, pid in processes.items()}
            use = _Use(used_s, memory_mib(dispatcher.pid, "VmHWM"))
    return _case(server, suite, lives, wall_s, created_s, use)


def _by_role(cpu_s: Mapping[str, float]) -> dict[str, float]:
    """The same, with all API servers called by one name: cases are compared figure by figure."""
    return {"API server" if "server" in name else name: used_s for name, used_s in cpu_s.items()}


async def _all_finished(lives: Lives, suite: Suite, until_s: float) -> None:
    while lives.finished < suite.workloads:
        if time.monotonic() > until_s:
            return
        await asyncio.sleep(0.05)


async def _tell(what: str, lives: Lives, suite: Suite) -> None:
    while True:
        await asyncio.sleep(_TELL_EVERY_S)
        say(
            f"{what}: {len(lives.by_key):,} created, {lives.finished:,} of {suite.workloads:,} finished, "
            f"{lives.cores:,} of {suite.total_cpu:,} cores in use"
        )


def _case(server: Server, suite: Suite, lives: Lives, wall_s: float, created_s: float, use: _Use) -> Case:
    waits: defaultdict[str, list[float]] = defaultdict(list)
    for key, life in lives.by_key.items():
        kind = key.partition("/")[2].split("-", 1)[0]
        runtime_s = next(s.runtime_ms for s in suite.workload_sets if s.class_name == kind) / 1000
        if life.finished_s:
            waits[kind].append(life.finished_s - life.created_s - runtime_s)
    rate = lives.finished / wall_s
    own = sum(life.seen_writes for life in lives.by_key.values()) / len(lives.by_key) - _OF_THE_STAND_IN
    kueue = KUEUE[suite.name]
    target = Target(3 * kueue.workloads_per_s, at_least=True)
    figures = [
        Figure("workloads/s", rate, "", target, kueue.workloads_per_s, rate / kueue.workloads_per_s),
        Figure("wall", wall_s, "s"),
        Figure("created in", created_s, "s"),
        *(Figure(f"wait of {s.class_name}", fmean(waits[s.class_name]), "s") for s in suite.workload_sets),
        Figure("cores in use", 100 * lives.core_seconds / (suite.total_cpu * wall_s), "%"),
        Figure("own writes each", own, "", Target(1.2), kueue.writes, own / kueue.writes),
        *(
            Figure(f"CPU of {name} each", 1e3 * used_s / suite.workloads, "ms")
            for name, used_s in {"API server": 0.0, "etcd": 0.0, **_by_role(use.cpu_s)}.items()
        ),
        Figure("CPUs in use", sum(use.cpu_s.values()) / wall_s, ""),
        Figure("dispatcher memory", use.rss_mib, "MiB"),
    ]
    faults = []
    if lives.finished < suite.workloads:
        faults.append(f"{lives.finished:,} of {suite.workloads:,} finished in time")
    if lives.most_cores > suite.total_cpu:
        faults.append(f"{lives.most_cores:,} cores in use at once, quota {suite.total_cpu:,}")
    notes = [f"other: {kueue.source}"]
    return Case(f"{suite.name}, {suite.workloads:,} workloads, {server.name}", figures, faults, notes)
