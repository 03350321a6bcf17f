"""The devices of the node, read again and again: reads with a deadline, and XIDs between them.

A read that hangs is given up, and what was known goes on being told, with a `problem` that says so; XIDs that
are heard meanwhile count at once. The device at which it hung is not asked again before the call has
returned, so that the others are read.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from node_agent import device_reader
from node_agent.device_reader import Progress
from node_agent.earlier import Earlier
from node_agent.known import Known, at_rest, hearing, resumed
from node_agent.reading import NodeReading
from node_agent.watchdog import HungError, Watchdog
from node_agent.xid_events import XidEvents

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
        self._avoid: set[int] = set()

    def read(self) -> NodeReading:
        """All devices now; what was known of them, and why not more, where NVML does not answer."""
        heard, now_s = tuple(self._events.take()), self._clock()
        progress = Progress()
        if not self._watchdog.abandoned:
            self._avoid.clear()
        try:
            reading, self._known = self._watchdog.run(
                partial(device_reader.read, self._known, heard, now_s, progress, frozenset(self._avoid))
            )
        except HungError as error:
            if progress.index is not None:
                self._avoid.add(progress.index)
            self._known = hearing(self._known.abandoned(), heard, now_s)
            return self._at_rest(str(error))
        self._last, self._read_at_s = reading, self._clock()
        followed = self._known.parents if self._known.connected else frozenset()
        self._events.follow(followed, self._known.session)
        problems = [each for each in (reading.problem, self._events.problem) if each]
        return replace(reading, problem="; ".join(problems))

    def resume(self, earlier: Earlier, age_s: float) -> None:
        """Go on from what an agent before us knew so many seconds ago."""
        self._known = resumed(self._known, earlier, self._clock() - age_s)

    def _at_rest(self, why: str) -> NodeReading:
        devices = tuple(at_rest(device) for device in self._known.devices.values())
        if self._read_at_s is None:
            return NodeReading(devices=devices, problem=why, incomplete=not devices, hung=True)
        age_s = self._clock() - self._read_at_s
        problem = f"{why}; the devices are as of {age_s:.0f} s ago"
        return replace(self._last, devices=devices, problem=problem, hung=True)
