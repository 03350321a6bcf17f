"""How does the real dispatcher stand 1,000 ClusterQueues with 100,000 held workloads?

The fleet of `benchmarks.queues.fleet` on the fake API server: nothing in it has room, but for one queue. The
dispatcher is started as a process; its first decision is the release of what waits there. Then one workload
after the other comes to that queue: from the moment it is created to the moment that a watch tells of its
release is what a user feels of the dispatcher, the API server's part included. Cycles are measured by the
dispatcher itself.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from statistics import median

import msgspec

from benchmarks.proc import cpu_s, memory_mib
from benchmarks.processes import StartFailed, tail
from benchmarks.queues import fleet
from benchmarks.queues.dispatcher import Dispatcher, starting_dispatcher
from benchmarks.queues.objects import BINDINGS, MEMBER
from benchmarks.queues.progress import say
from benchmarks.queues.servers import fleet_server
from benchmarks.queues.stand_in import Binding
from benchmarks.report import Case, Figure, Result, Target
from benchmarks.sides import Setting
from fairway.kube.client import KubeClient
from fairway.kube.objects import object_key
from fairway.kube.reflector import Reflector
from fairway.kube.resource import ResourceKind

_STARTED_WITHIN_S = 300.0
_RELEASED_WITHIN_S = 30.0
_SAY_EVERY_S = 5.0
_PAUSE_S = 0.02
_FAST = 1e6
_MERGE = "application/merge-patch+json"
_PATH = f"{BINDINGS}/namespaces/{fleet.PROBE}/resourcebindings"
_JOBS = f"/apis/batch/v1/namespaces/{fleet.PROBE}/jobs"
_FIRST = f"{fleet.PROBE}/first-job"
_WATCHED = ResourceKind("resourcebindings", _PATH, Binding)


def measure(setting: Setting) -> Result:
    """Figures of one fleet. Raises StartFailed."""
    is_quick = setting.seconds <= 1
    queues, pending, events = (100, 10_000, 50) if is_quick else (1_000, 100_000, 300)
    return Result(
        "dispatcher_scale",
        "The dispatcher with a full fleet before it",
        [asyncio.run(_case(queues, pending, events))],
    )


@dataclass(frozen=True, slots=True)
class _Reading:
    """What the dispatcher had used at a moment; seconds of CPU, of cycles, and MiB at the most."""

    cpu_s: float
    cycles: float
    cycles_s: float
    writes: float
    most_mib: float


async def _case(queues: int, pending: int, events: int) -> Case:
    say(f"loading {pending:,} bindings and as many Jobs")
    with fleet_server(queues, pending) as server:
        server_before_s = cpu_s(server.pid)
        async with server.client() as client, _watching(client) as seen:
            with starting_dispatcher(server.flags) as dispatcher:
                began_s = time.monotonic()
                await _started(seen, dispatcher, began_s)
                started_s = seen.released_s[_FIRST] - began_s
                server_s = cpu_s(server.pid) - server_before_s
                start = await _reading(dispatcher)
                await dispatcher.ready()
                await _place(client, _FIRST)
                say(f"first decision after {started_s:.1f} s; {events} workloads come one by one")
                before = await _reading(dispatcher)
                took_s = sorted([await _one(client, seen, number, pending) for number in range(events)])
                after = await _reading(dispatcher)
    cycle_s = (after.cycles_s - before.cycles_s) / max(1.0, after.cycles - before.cycles)
    figures = [
        Figure("first decision", started_s, "s", Target(90.0)),
        Figure("CPU until then", start.cpu_s, "s"),
        Figure("each binding", 1e6 * start.cpu_s / pending, "us"),
        Figure("server's CPU", server_s, "s"),
        Figure("memory then", start.most_mib, "MiB"),
        Figure("most memory", after.most_mib, "MiB", Target(2048.0)),
        Figure("saturated cycle", 1e3 * cycle_s, "ms", Target(20.0)),
        Figure("event to release p50", 1e3 * median(took_s), "ms"),
        Figure("p99", 1e3 * took_s[int(0.99 * (len(took_s) - 1))], "ms", Target(500.0)),
        Figure("longest", 1e3 * took_s[-1], "ms"),
        Figure("CPU each", 1e3 * (after.cpu_s - before.cpu_s) / events, "ms"),
    ]
    faults = []
    if after.writes != events + 1:
        faults.append(f"{after.writes:,.0f} bindings written, expected {events + 1:,}")
    return Case(f"{queues:,} queues, {pending:,} pending", figures, faults)


@dataclass(slots=True)
class _Seen:
    """What a watch of the probe's namespace has told; the reflector's sink. When each was released."""

    released_s: dict[str, float] = field(default_factory=dict)
    _released: dict[str, asyncio.Event] = field(default_factory=dict)

    def keys(self) -> Collection[str]:
        """All that were released."""
        return self.released_s.keys()

    def upsert(self, binding: Binding) -> None:
        """A binding is there, or has changed."""
        suspension = binding.spec.suspension
        if suspension is None or not suspension.scheduling:
            key = object_key(binding.metadata)
            self.released_s.setdefault(key, time.monotonic())
            self.released(key).set()

    def delete(self, key: str) -> None:
        """Nothing is deleted."""

    def released(self, key: str) -> asyncio.Event:
        """Is set once the binding was released."""
        return self._released.setdefault(key, asyncio.Event())


@asynccontextmanager
async def _watching(client: KubeClient) -> AsyncIterator[_Seen]:
    seen = _Seen()
    following = asyncio.create_task(Reflector(client, _WATCHED, seen).run())
    try:
        yield seen
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def _started(seen: _Seen, dispatcher: Dispatcher, began_s: float) -> None:
    """Return once the dispatcher has decided something. Raises StartFailed."""
    released = seen.released(_FIRST)
    while not released.is_set():
        try:
            async with asyncio.timeout(_SAY_EVERY_S):
                await released.wait()
        except TimeoutError:
            waited_s = time.monotonic() - began_s
            say(
                f"{waited_s:.0f} s: CPU {dispatcher.cpu_s():.1f} s, "
                f"{memory_mib(dispatcher.pid, 'VmRSS'):.0f} MiB"
            )
            if waited_s > _STARTED_WITHIN_S or dispatcher.process.poll() is not None:
                log = tail(dispatcher.log)
                raise StartFailed(f"no decision within {waited_s:.0f} s:\n{log}") from None


async def _one(client: KubeClient, seen: _Seen, number: int, pending: int) -> float:
    """Create a workload that fits, and have it placed once it is released; how long that took. In seconds."""
    name = f"event-{number:04d}"
    await client.post(_JOBS, fleet.job(fleet.PROBE, name, 1), msgspec.Raw)
    key = f"{fleet.PROBE}/{name}-job"
    body = fleet.binding(fleet.PROBE, name, 1, 10 * pending + number)
    began_s = time.monotonic()
    await client.post(_PATH, body, msgspec.Raw)
    async with asyncio.timeout(_RELEASED_WITHIN_S):
        await seen.released(key).wait()
    await _place(client, key)
    await asyncio.sleep(_PAUSE_S)
    return seen.released_s[key] - began_s


async def _place(client: KubeClient, key: str) -> None:
    placed = {"spec": {"clusters": [{"name": MEMBER, "replicas": 1}]}}
    await client.patch(f"{_PATH}/{key.partition('/')[2]}", placed, msgspec.Raw, content_type=_MERGE)


async def _reading(dispatcher: Dispatcher) -> _Reading:
    metrics = await asyncio.to_thread(dispatcher.metrics)
    return _Reading(
        cpu_s=dispatcher.cpu_s(),
        cycles=metrics["fairway_cycle_seconds_count"],
        cycles_s=metrics["fairway_cycle_seconds_sum"],
        writes=metrics.get("fairway_binding_writes_total", 0.0),
        most_mib=memory_mib(dispatcher.pid, "VmHWM"),
    )
