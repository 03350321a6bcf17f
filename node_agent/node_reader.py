"""The devices of the node, read again and again: reads with a deadline, and XIDs between them.

A read that hangs is given up, and what was known goes on being told, with a `problem` that says so.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from node_agent import device_reader
from node_agent.device_reader import Known
from node_agent.earlier import Earlier
from node_agent.reading import NodeReading
from node_agent.watchdog import HungError, Watchdog
from node_agent.xid_events import DeviceXid, XidEvents

DEADLINE_S = 30.0
"""A healthy driver answers for 16 devices within a second; while it resets one it takes longer."""


class NodeReader:
    """Only one thread may use it. ``clock``: seconds, never going back; the one that ``events`` uses too."""

    def __init__(
        self,
        events: XidEvents,
        clock: Callable[[], float] = time.monotonic,
        watchdog: Watchdog | None = None,
    ) -> None:
        self._events = events
        self._clock = clock
        self._watchdog = watchdog or Watchdog("NVML", DEADLINE_S)
        self._known = Known()
        self._last = NodeReading()
        self._read_at_s: float | None = None
        self._pending: list[DeviceXid] = []

    def read(self) -> NodeReading:
        """All devices now; what was known of them, and why not more, where NVML does not answer."""
        self._pending += self._events.take()
        try:
            reading, self._known = self._watchdog.run(
                partial(device_reader.read, self._known, tuple(self._pending), self._clock())
            )
        except HungError as error:
            self._known = self._known.abandoned()
            return self._at_rest(str(error))
        self._last, self._read_at_s, self._pending = reading, self._clock(), []
        followed = self._known.parents if self._known.connected else frozenset()
        self._events.follow(followed, self._known.session)
        problems = [each for each in (reading.problem, self._events.problem) if each]
        return replace(reading, problem="; ".join(problems))

    def resume(self, earlier: Earlier, age_s: float) -> None:
        """Go on from what an agent before us knew so many seconds ago."""
        self._known = device_reader.resumed(self._known, earlier, self._clock() - age_s)

    def _at_rest(self, why: str) -> NodeReading:
        if self._read_at_s is None:
            return NodeReading(problem=why, hung=True)
        devices = tuple(device_reader.at_rest(device) for device in self._last.devices)
        age_s = self._clock() - self._read_at_s
        problem = f"{why}; the devices are as of {age_s:.0f} s ago"
        return replace(self._last, devices=devices, problem=problem, hung=True)
