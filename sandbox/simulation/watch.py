"""One client's watch of one resource: events in order, each some time after it happened."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from sandbox.simulation.objects import Obj
from sandbox.simulation.timeline import Timeline

Deliver = Callable[[str, Obj], None]
"""Hears ADDED, MODIFIED, DELETED or BOOKMARK with the object; ERROR with a Status; CLOSED when it is over."""

DELAY_MS = 5


@dataclass(slots=True, eq=False)
class Watch:
    """``delay_ms``: how long events take. ``is_silent``: nothing arrives any more, and nobody says so."""

    timeline: Timeline
    resource: str
    user: str
    deliver: Deliver
    delay_ms: int = DELAY_MS
    is_silent: bool = False
    is_open: bool = True
    _due_ms: int = 0
    _queue: deque[tuple[int, str, Obj]] = field(default_factory=deque)

    def tell(self, kind: str, obj: Obj, delay_ms: int) -> None:
        """Let it arrive after ``delay_ms``, and after everything before it."""
        if self.is_silent or not self.is_open:
            return
        self._due_ms = max(self._due_ms, self.timeline.now_ms + delay_ms)
        self._queue.append((self._due_ms, kind, obj))
        if len(self._queue) == 1:
            self.timeline.at(self._due_ms, self._arrive)

    def stop(self) -> None:
        """The client leaves."""
        self.is_open = False
        self._queue.clear()

    def close(self) -> None:
        """The server ends it in order; what was on its way is lost."""
        self._end("CLOSED", {})

    def fail(self, code: int, message: str) -> None:
        """The server ends it with an error."""
        self._end("ERROR", {"kind": "Status", "code": code, "message": message})

    def _end(self, kind: str, obj: Obj) -> None:
        if self.is_open and not self.is_silent:
            self._queue.clear()
            self.timeline.after(self.delay_ms, lambda: self._ended(kind, obj))
            self.is_silent = True

    def _ended(self, kind: str, obj: Obj) -> None:
        if self.is_open:
            self.is_open = False
            self.deliver(kind, obj)

    def _arrive(self) -> None:
        queue, now_ms = self._queue, self.timeline.now_ms
        while queue and queue[0][0] <= now_ms:
            _, kind, obj = queue.popleft()
            if not self.is_silent:
                self.deliver(kind, obj)
        if queue:
            self.timeline.at(queue[0][0], self._arrive)
