"""What the kernel tells of processes on this machine."""

import os
from pathlib import Path

from benchmarks.caller import Address

_LISTEN = "0A"


class NotHere(RuntimeError):
    """No process that this user may look at listens there."""


def memory_mib(pid: int, field: str) -> float:
    """A field of its memory: ``VmRSS`` is what is resident now, ``VmHWM`` the most there ever was."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) / 1024
    raise NotHere(f"/proc/{pid}/status has no {field}: is the process gone?")


def cpu_s(pid: int) -> float:
    """The CPU time that it has used, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_wait_s(pid: int) -> float:
    """How long its main thread has been ready to run while others had the CPUs."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[1]) / 1e9


def open_files(pid: int) -> int:
    """How many files and sockets it has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def listener_pid(address: Address) -> int:
    """The process that listens on a port of this machine. Raises NotHere."""
    wanted = {f"socket:[{inode}]" for inode in _listening_inodes(address.port)}
    for directory in Path("/proc").glob("[0-9]*/fd"):
        try:
            held = {os.readlink(entry) for entry in directory.iterdir()}
        except OSError:
            continue  # another user's, or gone by now
        if held & wanted:
            return int(directory.parent.name)
    raise NotHere(f"{address}: no process of this machine and user listens there; leave memory out")


def _listening_inodes(port: int) -> list[str]:
    rows = [
        line.split()
        for table in ("/proc/net/tcp", "/proc/net/tcp6")
        if Path(table).exists()
        for line in Path(table).read_text().splitlines()[1:]
    ]
    return [row[9] for row in rows if row[3] == _LISTEN and int(row[1].rpartition(":")[2], 16) == port]
