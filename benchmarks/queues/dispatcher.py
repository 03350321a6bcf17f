"""The dispatcher as a process to be measured."""

import asyncio
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.proc import cpu_s
from benchmarks.processes import StartFailed, free_ports, running_module, tail

_READY_WITHIN_S = 120.0
_LOOK_EVERY_S = 0.05


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """A running dispatcher."""

    process: subprocess.Popen[bytes]
    log: Path
    health_url: str
    visibility_url: str

    @property
    def pid(self) -> int:
        """Of its process."""
        return self.process.pid

    def cpu_s(self) -> float:
        """The CPU time that it has used, in seconds."""
        return cpu_s(self.pid)

    async def ready(self) -> None:
        """Return once it says that it is ready. Raises StartFailed."""
        async with asyncio.timeout(_READY_WITHIN_S):
            while not await asyncio.to_thread(self._says_ready):
                if self.process.poll() is not None:
                    raise StartFailed(f"the dispatcher ended instead of starting:\n{tail(self.log)}")
                await asyncio.sleep(_LOOK_EVERY_S)

    def _says_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.health_url}/readyz", timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            return False


@contextmanager
def starting_dispatcher(flags: Sequence[str]) -> Iterator[Dispatcher]:
    """A dispatcher with these flags, right after its process was created."""
    health, visibility = free_ports(2)
    command = [
        "queue_dispatcher",
        *flags,
        "--leader-elect=false",
        "--kube-api-qps=-1",
        f"--health-probe-bind-address=127.0.0.1:{health}",
        f"--visibility-bind-address=127.0.0.1:{visibility}",
        "--metrics-bind-address=0",
    ]
    with running_module(command) as (process, log):
        yield Dispatcher(process, log, f"http://127.0.0.1:{health}", f"http://127.0.0.1:{visibility}")
