"""Who holds which device, asked of kubelet, /proc and the API server, and put together.

An allocation does not change while its container lives, so kubelet is asked now and then, and what it said
stays for a while when it does not answer: a restarted kubelet takes nothing from anybody. Which devices it
may give is asked with it; one before 1.23 does not say so, which is no problem. /proc is read on a thread.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from fairway.kube.client import KubeClient
from fairway.kube.observation import ReflectorMetrics, ReflectorState
from fairway.kube.optional_kind import OptionalKind
from fairway.kube.reflector import Reflector
from node_agent.allocations import Allocation, PluginDevice
from node_agent.claimed_devices import ClaimedDevices, slices_of
from node_agent.holders import Holdings, holdings
from node_agent.local_pods import LocalPods, pods_on
from node_agent.pod_resources import SOCKET, PodResources, PodResourcesError
from node_agent.processes import PROC, ProcessTable
from node_agent.reading import NodeReading
from node_agent.schedulable import schedulable

ASK_EVERY_S = 10.0
KEEP_S = 300.0
SETTLE_S = 60.0
"""How long the lists of pods and slices and kubelet's first answer are waited for before one does without."""

_UNLISTED: Final = "the pods of this node have not been listed: who owns what is not known"


class Attribution:
    """Attributes one reading after the other. ``clock`` is monotonic.

    ``pods_are_read``: whether ``pods`` has been filled once; ``is_listed``: whether that, and ``claimed``,
    will not be any better known. kubelet is asked every ``ask_every_s``; its last answer counts for
    ``keep_s``.
    """

    def __init__(
        self,
        kubelet: PodResources,
        processes: ProcessTable,
        pods: LocalPods,
        claimed: ClaimedDevices,
        *,
        pods_are_read: Callable[[], bool],
        is_listed: Callable[[], bool],
        clock: Callable[[], float],
        ask_every_s: float = ASK_EVERY_S,
        keep_s: float = KEEP_S,
    ) -> None:
        self._kubelet, self._processes = kubelet, processes
        self._pods, self._claimed = pods, claimed
        self._pods_are_read, self._is_listed = pods_are_read, is_listed
        self._clock = clock
        self._ask_every_s, self._keep_s = ask_every_s, keep_s
        self._allocations: tuple[Allocation, ...] | None = None
        self._allocatable: tuple[PluginDevice, ...] = ()
        self._settles_s = clock() + SETTLE_S
        self._asked_s: float | None = None
        self._answered_s: float | None = None
        self._problem = ""

    async def look(self, reading: NodeReading) -> Holdings:
        """Who holds which device of the reading; what could not be asked is among the problems."""
        if not reading.devices:
            return Holdings()
        await self._ask()
        pids = {process.pid for device in reading.devices for process in device.processes}
        processes = await asyncio.to_thread(self._processes.look, sorted(pids))
        pods = self._pods if self._pods_are_read() else None
        found = holdings(reading, self._allocations or (), processes, pods, self._claimed.ids)
        known = self._allocations is not None
        return replace(
            found,
            problems=(*filter(None, (self._problem, _UNLISTED if pods is None else "")), *found.problems),
            schedulable=schedulable(reading.devices, self._allocatable),
            allocations_known=known,
            settled=(known and self._is_listed()) or self._clock() >= self._settles_s,
        )

    async def close(self) -> None:
        """Give the connection to kubelet up."""
        await self._kubelet.close()

    async def _ask(self) -> None:
        now_s = self._clock()
        if self._asked_s is not None and now_s - self._asked_s < self._ask_every_s:
            return
        self._asked_s = now_s
        try:
            self._allocations = await self._kubelet.list()
        except PodResourcesError as error:
            self._problem = str(error)
            if self._answered_s is None or now_s - self._answered_s >= self._keep_s:
                self._allocations, self._allocatable = None, ()
            return
        self._problem, self._answered_s = "", now_s
        try:
            self._allocatable = await self._kubelet.allocatable()
        except PodResourcesError:
            self._allocatable = ()


@dataclass(frozen=True, slots=True)
class Followed:
    """``attribution`` knows pods and claimed devices while ``tasks``, by name, run beside it.

    ``listed``: set once they have been listed, or will not be as things are.
    """

    attribution: Attribution
    tasks: Mapping[str, Coroutine[object, object, None]]
    listed: asyncio.Event


def follow(
    client: KubeClient,
    node: str,
    metrics: ReflectorMetrics,
    *,
    clock: Callable[[], float],
    socket: Path = SOCKET,
    proc: Path = PROC,
) -> Followed:
    """An attribution for this node. A server without ResourceSlices, or that denies them, is done without."""
    pods, claimed, listed = LocalPods(), ClaimedDevices(), asyncio.Event()

    def changed(_: ReflectorState | None = None) -> None:
        state = reflector.state
        if (state.synced_once or state.is_forbidden) and (slices.is_synced or slices.is_left_out):
            listed.set()

    reflector = Reflector(client, pods_on(node), pods, metrics=metrics, on_state=changed, clock=clock)
    slices = OptionalKind(client, slices_of(node), claimed, metrics, clock=clock, changed=changed)
    attribution = Attribution(
        PodResources(socket),
        ProcessTable(proc),
        pods,
        claimed,
        pods_are_read=lambda: reflector.state.synced_once,
        is_listed=listed.is_set,
        clock=clock,
    )
    return Followed(attribution, {"pods": reflector.run(), "resourceslices": slices.run()}, listed)
