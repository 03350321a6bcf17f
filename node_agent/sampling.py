"""Reads the devices every few seconds and keeps what everybody shows: the object, the metrics, readiness.

Where readings and holders come from is a pair of small protocols, so that nothing here knows NVML or kubelet.
"""

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from fairway.kube.node_devices import Holder, NodeDevices
from fairway.kube.usage_days import usage_days
from fairway.moments import moment_s
from node_agent.document import Troubles, document, lasting
from node_agent.earlier import Earlier, earlier_devices
from node_agent.held_time import HeldTime, parts
from node_agent.holders import HolderPod
from node_agent.reading import NodeReading
from node_agent.told import Told
from node_agent.window import Windows

logger = logging.getLogger(__name__)

_JITTER: Final = 0.2


class DeviceSource(Protocol):
    """Reads all devices of the node."""

    async def read(self) -> NodeReading:
        """The devices now. Answers in bounded time whatever the driver does, and raises nothing for it."""

    async def resume(self, earlier: Earlier, age_s: float) -> None:
        """Go on from what an agent before us knew so many seconds ago."""


class Held(Protocol):
    """Who holds what, at the moment of a reading."""

    @property
    def holders(self) -> Mapping[str, Sequence[Holder]]:
        """By device id."""

    @property
    def allocations_known(self) -> bool:
        """Whether it is known what was allocated; where not, holders are only those that processes show."""

    @property
    def settled(self) -> bool:
        """False while more of who holds what is about to be known, as it is when an agent begins."""

    @property
    def pods(self) -> Mapping[tuple[str, str], HolderPod]:
        """What else is known of holders, by namespace and name."""

    @property
    def problems(self) -> Sequence[str]:
        """Why not all holders are known, a sentence each."""

    @property
    def schedulable(self) -> Mapping[str, bool]:
        """Of devices, by id, whether kubelet may give them to pods; without those of which nobody knows."""


class HolderSource(Protocol):
    """Finds who holds the devices of a reading."""

    async def look(self, reading: NodeReading) -> Held:
        """Answers in bounded time, and raises nothing for what cannot be known."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One look. ``at_s``: by the monotonic clock; ``took_s``: how long it took; ``settled``: see `Held`."""

    reading: NodeReading
    holders: Mapping[str, Sequence[Holder]]
    made: NodeDevices
    lasting: NodeDevices
    idle_s: Mapping[str, float] = field(default_factory=dict)
    at_s: float = 0.0
    took_s: float = 0.0
    pods: Mapping[tuple[str, str], HolderPod] = field(default_factory=dict)
    settled: bool = True


class Sampler:
    """Looks every ``period_s``, a little sooner or later by ``draw``, so that no work keeps in step with it.

    ``clock`` is monotonic, ``wall_clock`` in seconds since the epoch; ``draw``: any number of [0, 1).
    """

    def __init__(
        self,
        node: str,
        devices: DeviceSource,
        holders: HolderSource,
        *,
        version: str,
        period_s: float,
        clock: Callable[[], float],
        wall_clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        draw: Callable[[], float] = lambda: 0.5,
        boot_id: str = "",
    ) -> None:
        self._node, self._devices, self._holders = node, devices, holders
        self._version, self._period_s = version, period_s
        self._clock, self._wall_clock, self._sleep, self._draw = clock, wall_clock, sleep, draw
        self._watchers: list[Callable[[Sample], None]] = []
        self._boot_id = boot_id
        self._looking = asyncio.Lock()
        self._windows = Windows(period_s)
        self._held_time = HeldTime()
        self._troubles = Troubles()
        self._told, self._unread = Told(logger), frozenset[str]()
        self.last: Sample | None = None

    def watch(self, looked: Callable[[Sample], None]) -> None:
        """Call this after each look."""
        self._watchers.append(looked)

    async def resume(self, stored: NodeDevices) -> float:
        """Go on from what an agent before us wrote; how many seconds ago that was.

        Devices that were idle then and have done nothing since we look count as idle all the time, unless
        more than a window lies between. What was wrong with a device and only told once is wrong with it
        still, unless it was reset. The days' sums go on. Whoever looks afterwards sees all that.
        """
        async with self._looking:
            now_s, now_wall_s = self._clock(), self._wall_clock()
            observed_s = moment_s(stored.observed_at)
            age_s = math.inf if observed_s is None else now_wall_s - observed_s
            if 0 <= age_s <= self._windows.span_s:
                began = {one.id: moment_s(one.window.idle_since) for one in stored.devices if one.window}
                offset_s = now_s - now_wall_s
                self._windows.resume({id: at + offset_s for id, at in began.items() if at is not None})
            days, problems = usage_days(stored)
            for problem in problems:
                logger.warning("NodeDevices %s, as it was before this agent began: %s", self._node, problem)
            self._held_time.go_on(days, -math.inf if observed_s is None else observed_s)
            self._troubles.resume(stored)
            earlier = earlier_devices(stored, self._boot_id)
            await self._devices.resume(earlier, max(0.0, age_s) if math.isfinite(age_s) else 0.0)
        return age_s

    async def run(self) -> None:
        """Look until cancelled; never for more than half of the time, however long a look takes."""
        while True:
            began_s = self._clock()
            await self.look()
            took_s = self._clock() - began_s
            period_s = self._period_s * (1 + _JITTER * (2 * self._draw() - 1))
            await self._sleep(max(period_s - took_s, took_s))

    async def look(self) -> None:
        """Look once."""
        async with self._looking:
            await self._look()

    async def _look(self) -> None:
        began_s = self._clock()
        reading = await self._devices.read()
        now_s, now_wall_s = self._clock(), self._wall_clock()
        self._windows.add(reading.devices, now_s)
        held = await self._holders.look(reading)
        if (reading.devices or not reading.problem) and held.allocations_known:
            self._held_time.add(parts(reading.devices, held.holders), now_s, now_wall_s)
        made = document(
            self._node,
            reading,
            held.holders,
            self._windows.summaries(now_s, now_wall_s),
            self._troubles.see(reading.devices, now_wall_s),
            version=self._version,
            problem="; ".join(held.problems),
            wall_s=now_wall_s,
            schedulable=held.schedulable,
            boot_id=self._boot_id,
            days=self._held_time.days(),
        )
        self._tell(reading, [*held.problems, *made.cut])
        idle = {each.id: self._windows.idle_s(each.id, now_s) for each in reading.devices}
        self.last = Sample(
            reading,
            held.holders,
            made.object,
            lasting(made.object),
            {id: idle_s for id, idle_s in idle.items() if idle_s is not None},
            now_s,
            self._clock() - began_s,
            held.pods,
            held.settled,
        )
        for watcher in self._watchers:
            watcher(self.last)

    def _tell(self, reading: NodeReading, problems: list[str]) -> None:
        nothing = "" if reading.devices or reading.problem else "this node has no device that NVML knows"
        self._told.see(filter(None, (reading.problem, nothing, *problems)))
        for call in sorted(set(reading.unread) - self._unread):
            logger.info("%s: not supported by this driver or device, and left out", call)
        self._unread |= set(reading.unread)
