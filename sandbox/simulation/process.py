"""A process of the simulation: its own clock, and a life that may be interrupted or end at any moment."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from sandbox.simulation.coroutines import Later
from sandbox.simulation.timeline import Timeline

Action = Callable[[], None]


@dataclass(slots=True)
class Host:
    """The machine that a process runs on. ``offset_ms``: how far its time of day is from the true one."""

    timeline: Timeline
    offset_ms: int = 0

    def wall_s(self) -> float:
        """Its time of day, in seconds since the epoch."""
        return (self.timeline.now_ms + self.offset_ms) / 1000

    def elapsed_s(self) -> float:
        """Its monotonic clock, in seconds."""
        return self.timeline.now_ms / 1000


@dataclass(slots=True)
class Process:
    """From its start until it is killed. While it is paused nothing of it happens; then all of it at once."""

    host: Host
    is_alive: bool = True
    is_paused: bool = False
    _backlog: list[Action] = field(default_factory=list)

    def act(self, action: Action) -> None:
        """Do this as the process: now, when it goes on, or never."""
        if not self.is_alive:
            return
        if self.is_paused:
            self._backlog.append(action)
        else:
            action()

    def after(self, delay_ms: int, action: Action) -> None:
        """Do this as the process, ``delay_ms`` from now."""
        self.host.timeline.after(delay_ms, lambda: self.act(action))

    async def sleep(self, seconds: float) -> None:
        """As ``asyncio.sleep``."""
        later = Later[None]()
        self.after(max(0, math.ceil(seconds * 1000)), lambda: later.set(None))
        await later

    def pause(self) -> None:
        """As SIGSTOP."""
        self.is_paused = True

    def go_on(self) -> None:
        """As SIGCONT."""
        if not self.is_alive or not self.is_paused:
            return
        self.is_paused = False
        backlog, self._backlog = self._backlog, []
        for number, action in enumerate(backlog):
            if self.is_paused or not self.is_alive:
                self._backlog = backlog[number:] + self._backlog
                return
            action()

    def kill(self) -> None:
        """As SIGKILL."""
        self.is_alive = False
        self._backlog.clear()
