"""The processes that a measurement needs: started, waited for within bounds, and ended whatever happens."""

import select
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from benchmarks.caller import Address
from benchmarks.cluster import Scale

CLUSTER = "member1"
Metrics = dict[tuple[str, str], float]
"""Values by name and ``kind`` label, which is empty where there is none; summed over other labels."""

_API_WITHIN_S = 120.0
_LISTENS_WITHIN_S = 180.0
"""A process that ends is noticed at once: only one that hangs is waited for."""
_ENDS_WITHIN_S = 10.0
_LOOPBACK = "127.0.0.1"


class StartFailed(RuntimeError):
    """A process did not come up; the message ends with the last lines of what it said."""


@dataclass(frozen=True, slots=True)
class Api:
    """A running fake API server: ``url`` offers WatchList, ``paging_url`` pages alone, to read."""

    url: str
    paging_url: str


@dataclass(frozen=True, slots=True)
class Estimator:
    """A running estimator of ours. ``started_s`` is when its process was created (``time.perf_counter``)."""

    address: Address
    metrics_url: str
    started_s: float
    log: Path
    process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        """Of its process."""
        return self.process.pid

    def last_words(self) -> str:
        """The end of its log."""
        return tail(self.log)

    def metrics(self) -> Metrics:
        """Its metrics now."""
        with urllib.request.urlopen(self.metrics_url, timeout=10) as response:
            text = response.read().decode()
        found: Metrics = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                key = (sample.name, sample.labels.get("kind", ""))
                found[key] = found.get(key, 0.0) + sample.value
        return found


@contextmanager
def running_api(scale: Scale, *, shared: bool = False) -> Iterator[Api]:
    """A fake API server with a cluster of this scale, whose pods may share devices. Raises StartFailed."""
    command = ["benchmarks.api", "--nodes", str(scale.nodes), "--pods", str(scale.pods)]
    command += ["--shared"] if shared else []
    with running_module(command) as (process, log):
        assert process.stdout is not None
        readable, _, _ = select.select([process.stdout], [], [], _API_WITHIN_S)
        urls = process.stdout.readline().decode().split() if readable else []
        if len(urls) != 2:
            raise StartFailed(f"the fake API server did not load {scale}:\n{tail(log)}")
        yield Api(*urls)


@contextmanager
def starting_estimator(master_url: str, *options: str) -> Iterator[Estimator]:
    """An estimator of the API server at this URL, right after its process was created."""
    with starting("--cluster-name", CLUSTER, "--master", master_url, *options) as own:
        yield own


@contextmanager
def starting(*options: str) -> Iterator[Estimator]:
    """An estimator with these flags, right after its process was created."""
    port, metrics_port = free_ports(2)
    command = ["estimator", "--server-port", str(port)]
    command += ["--metrics-bind-address", f"{_LOOPBACK}:{metrics_port}", "--health-probe-bind-address", "0"]
    command += options
    started_s = time.perf_counter()
    with running_module(command) as (process, log):
        metrics_url = f"http://{_LOOPBACK}:{metrics_port}/metrics"
        yield Estimator(Address(_LOOPBACK, port), metrics_url, started_s, log, process)


def await_listening(estimator: Estimator) -> None:
    """Return once it accepts connections. Raises StartFailed."""
    address = (estimator.address.host, estimator.address.port)
    while True:
        try:
            socket.create_connection(address, 1).close()
            return
        except OSError:
            waited_s = time.perf_counter() - estimator.started_s
            if waited_s > _LISTENS_WITHIN_S or estimator.process.poll() is not None:
                raise StartFailed(
                    f"the estimator does not listen on {estimator.address} after {waited_s:.0f} s:\n"
                    f"{estimator.last_words()}"
                ) from None
            time.sleep(0.002)


@contextmanager
def running_module(module_and_arguments: list[str]) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """``python -m`` in a process of its own, with its standard output as a pipe; and the file of its log."""
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        log = Path(directory, "log")
        with log.open("wb") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.child", *module_and_arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        try:
            yield process, log
        finally:
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_ENDS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def free_ports(count: int) -> list[int]:
    """Ports of the loopback interface that nobody listens on now."""
    sockets = [socket.create_server((_LOOPBACK, 0)) for _ in range(count)]
    ports: list[int] = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def tail(log: Path) -> str:
    """The last lines of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-10:])
