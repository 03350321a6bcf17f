"""From process ids to the containers that they run in, read under a proc root such as /proc or /host/proc.

A number alone is not a process: between the driver naming it and us reading it, it may have ended and the
number been given away. Its start time says which process it is, so it is read before and after, and what was
found once is kept for that number with that start time. Only containers are kept: a process without one may
still be on its way into it.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from node_agent.cgroups import NoPod, PodContainer, pod_containers

PROC = Path("/proc")

MOST_PROCESSES = 32_768
"""As many as are looked at in one go; 8 devices of 48 MPS clients each are 384."""

_STAT_BYTES = 4_096
_CGROUP_BYTES = 65_536


class Unseen(StrEnum):
    """Why nothing is known of a process."""

    ENDED = "has ended"
    ZOMBIE = "has ended and was not waited for"
    REUSED = "ended while it was looked at, and its number was given away"
    DENIED = "may not be looked at: the agent needs the host's PID namespace and /proc without hidepid"
    UNREADABLE = "has a /proc entry that is not what Linux writes"
    FOREIGN = "is in another PID namespace: the agent needs hostPID"
    TOO_MANY = f"is beyond the {MOST_PROCESSES} that are looked at"


@dataclass(frozen=True, slots=True)
class Process:
    """A process that was there. ``start_ticks``: clock ticks after boot; ``containers``: see
    `pod_containers`."""

    pid: int
    start_ticks: int
    name: str
    containers: tuple[PodContainer, ...] | NoPod


@dataclass(frozen=True, slots=True)
class _Stat:
    name: str
    state: str
    threads: int
    start_ticks: int


class ProcessTable:
    """Looks processes up; remembers those of the last look. Not for several threads at once."""

    def __init__(self, proc: Path = PROC) -> None:
        self._proc = proc
        self._known: dict[tuple[int, int], Process] = {}

    def look(self, pids: Iterable[int]) -> dict[int, Process | Unseen]:
        """What each process is now; never raises for what is found there. Reads one or three files for
        each."""
        found: dict[int, Process | Unseen] = {}
        for pid in pids:
            if pid not in found:
                found[pid] = self._look(pid) if len(found) < MOST_PROCESSES else Unseen.TOO_MANY
        self._known = {
            (one.pid, one.start_ticks): one
            for one in found.values()
            if isinstance(one, Process) and not isinstance(one.containers, NoPod)
        }
        return found

    def _look(self, pid: int) -> Process | Unseen:
        if pid <= 0:
            # The driver writes 0 for a process that the caller's namespace does not have.
            return Unseen.FOREIGN
        before = self._stat(pid)
        if isinstance(before, Unseen):
            return before
        # The first thread may end before the others, which then still hold what the process held.
        if before.state in "ZXx" and before.threads < 2:
            return Unseen.ZOMBIE
        known = self._known.get((pid, before.start_ticks))
        if known is not None:
            return known
        text = self._read(pid, "cgroup", _CGROUP_BYTES)
        if isinstance(text, Unseen):
            return text
        after = self._stat(pid)
        if isinstance(after, Unseen):
            return after
        if after.start_ticks != before.start_ticks:
            return Unseen.REUSED
        if len(text) == _CGROUP_BYTES:
            # The last line is cut somewhere, and half a path names another cgroup.
            text = text[: text.rfind(b"\n") + 1]
        containers = pod_containers(text.decode("utf-8", "surrogateescape"))
        return Process(pid, after.start_ticks, after.name, containers)

    def _stat(self, pid: int) -> _Stat | Unseen:
        data = self._read(pid, "stat", _STAT_BYTES)
        if isinstance(data, Unseen):
            return data
        # The name stands in parentheses and may have spaces and parentheses itself; no later field does.
        head, closed, rest = data.rpartition(b")")
        fields = rest.split()
        number, opened, name = head.partition(b"(")
        if not closed or not opened or number.strip() != b"%d" % pid or len(fields) < 20:
            return Unseen.UNREADABLE
        threads, start = fields[17], fields[19]
        if not threads.isdigit() or not start.isdigit():
            return Unseen.UNREADABLE
        return _Stat(
            name.decode("utf-8", "replace"), fields[0].decode("ascii", "replace"), int(threads), int(start)
        )

    def _read(self, pid: int, name: str, most: int) -> bytes | Unseen:
        try:
            descriptor = os.open(self._proc / str(pid) / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            return _unseen(error)
        try:
            data = b""
            while len(data) < most and (part := os.read(descriptor, most - len(data))):
                data += part
            return data
        except OSError as error:
            return _unseen(error)
        finally:
            os.close(descriptor)


def _unseen(error: OSError) -> Unseen:
    match error:
        case FileNotFoundError() | ProcessLookupError() | NotADirectoryError():
            return Unseen.ENDED
        case PermissionError():
            return Unseen.DENIED
        case _:
            return Unseen.UNREADABLE
