"""The dispatcher as a process to be measured."""

import asyncio
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from benchmarks.proc import cpu_s
from benchmarks.processes import StartFailed, free_ports, running_module, tail

_LOOPBACK = "127.0.0.1"
_READY_WITHIN_S = 120.0
_METRICS_WITHIN_S = 30.0
_LOOK_EVERY_S = 0.05


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """A running dispatcher."""

    process: subprocess.Popen[bytes]
    log: Path
    health_url: str
    visibility_url: str
    metrics_url: str

    @property
    def pid(self) -> int:
        """Of its process."""
        return self.process.pid

    def cpu_s(self) -> float:
        """The CPU time that it has used, in seconds."""
        return cpu_s(self.pid)

    def metrics(self) -> dict[str, float]:
        """Its metrics now, each the sum over its labels."""
        with urllib.request.urlopen(f"{self.metrics_url}/metrics", timeout=_METRICS_WITHIN_S) as response:
            text = response.read().decode()
        found: dict[str, float] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                found[sample.name] = found.get(sample.name, 0.0) + sample.value
        return found

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
    health, visibility, metrics = free_ports(3)
    command = [
        "queue_dispatcher",
        *flags,
        "--leader-elect=false",
        "--hold-namespaces=all",
        "--kube-api-qps=-1",
        f"--health-probe-bind-address={_LOOPBACK}:{health}",
        f"--visibility-bind-address={_LOOPBACK}:{visibility}",
        "--visibility-authorization=none",
        f"--metrics-bind-address={_LOOPBACK}:{metrics}",
    ]
    with running_module(command) as (process, log):
        urls = (f"http://{_LOOPBACK}:{port}" for port in (health, visibility, metrics))
        yield Dispatcher(process, log, *urls)
