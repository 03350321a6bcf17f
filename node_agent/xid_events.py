"""XIDs as the driver tells of them: events, which NVML hands out to whoever waits for them in a thread.

The thread waits for the devices that it was last told of (`follow`), and begins anew when they or the
driver's session change. While it waits it holds a connection of its own, since NVML counts them: the library
is never shut down under a wait. Errors end its event set and its connection, and it tries again later; a wait
that hangs holds up nobody: the thread is a daemon, and `problem` says for how long nothing was heard of it.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from node_agent import nvml

_WAIT_S = 5.0
_RETRY_S = 2.0  # short: while one device is lost, the XIDs of others are not heard of


@dataclass(frozen=True, slots=True)
class DeviceXid:
    """An XID of a device, or of one of its GPU instances alone. ``at_s``: by the clock of the reads."""

    device: str
    xid: int
    at_s: float
    gpu_instance: int | None = None


@contextmanager
def _connected() -> Iterator[None]:
    nvml.init()
    try:
        yield
    finally:
        with suppress(nvml.NvmlError):
            nvml.shutdown()


@contextmanager
def _event_set() -> Iterator[nvml.EventSet]:
    events = nvml.event_set()
    try:
        yield events
    finally:
        with suppress(nvml.NvmlError):
            nvml.free_event_set(events)


@dataclass(frozen=True, slots=True)
class _Wanted:
    devices: frozenset[str] = frozenset()
    session: int = 0


class XidEvents:
    """The thread, and what it heard. ``clock``: seconds, the one that reads are timed by."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, wait_s: float = _WAIT_S, retry_s: float = _RETRY_S
    ) -> None:
        self._clock = clock
        self._wait_s = wait_s
        self._retry_s = retry_s
        self._lock = threading.Condition()
        self._wanted = _Wanted()
        self._heard: list[DeviceXid] = []
        self._alive_at = clock()
        self._problem = ""
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="xid-events", daemon=True)

    def start(self) -> None:
        """Begins to listen, once `follow` has named devices."""
        self._thread.start()

    def stop(self, timeout_s: float) -> bool:
        """Ends the thread; False where it hangs in a call, which then ends with the process."""
        with self._lock:
            self._stopping = True
            self._lock.notify_all()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def follow(self, devices: frozenset[str], session: int) -> None:
        """The devices that there are now, none to let the driver go; ``session``: the reads' connection."""
        with self._lock:
            if not self._wanted.devices:
                self._alive_at = self._clock()
            self._wanted = _Wanted(devices, session)
            self._lock.notify_all()

    def take(self) -> list[DeviceXid]:
        """What was heard since the last time."""
        with self._lock:
            heard, self._heard = self._heard, []
            return heard

    @property
    def problem(self) -> str:
        """Why XIDs are not heard of, or not of all devices; empty where they are."""
        with self._lock:
            silent_s = self._clock() - self._alive_at
            if self._wanted.devices and silent_s > 3 * (self._wait_s + self._retry_s):
                return f"XIDs: the wait for events has not returned for {silent_s:.0f} s"
            return self._problem

    def _run(self) -> None:
        while (wanted := self._next_wanted()) is not None:
            try:
                with _connected(), _event_set() as events:
                    self._listen(events, wanted)
            except nvml.NvmlError as error:
                self._tell(f"XIDs are not heard of: {error}")
                self._pause(self._retry_s)

    def _next_wanted(self) -> _Wanted | None:
        """Waits until there are devices; None when the thread has to end."""
        with self._lock:
            self._lock.wait_for(lambda: self._stopping or bool(self._wanted.devices))
            self._alive_at = self._clock()
            return None if self._stopping else self._wanted

    def _listen(self, events: nvml.EventSet, wanted: _Wanted) -> None:
        names = self._register(events, wanted.devices)
        while self._is_current(wanted):
            begun = time.monotonic()
            event = nvml.next_xid(events, int(self._wait_s * 1000))
            if event is not None:
                self._hear(event, names)
            elif (left_s := self._wait_s - (time.monotonic() - begun)) > self._wait_s / 2:
                self._pause(left_s)  # a library that does not wait must not keep a core busy

    def _register(self, events: nvml.EventSet, devices: frozenset[str]) -> dict[int, str]:
        names: dict[int, str] = {}
        silent: list[str] = []
        for index in range(nvml.device_count()):
            try:
                device = nvml.device(index)
                if (name := nvml.uuid(device)) in devices:
                    names[nvml.address(device)] = name
                    nvml.register_xids(device, events)
            except nvml.DriverAway:
                raise
            except nvml.NvmlError as error:
                silent.append(f"device {index}: {error}")
        self._tell(f"XIDs are not heard of some devices: {'; '.join(silent)}" if silent else "")
        return names

    def _hear(self, event: nvml.XidEvent, names: dict[int, str]) -> None:
        device = names.get(event.address)
        if device is not None:
            with self._lock:
                self._heard.append(DeviceXid(device, event.xid, self._clock(), event.gpu_instance))

    def _is_current(self, wanted: _Wanted) -> bool:
        with self._lock:
            self._alive_at = self._clock()
            return not self._stopping and self._wanted == wanted

    def _tell(self, problem: str) -> None:
        with self._lock:
            self._problem = problem

    def _pause(self, seconds: float) -> None:
        with self._lock:
            wanted = self._wanted
            self._lock.wait_for(lambda: self._stopping or self._wanted != wanted, seconds)
