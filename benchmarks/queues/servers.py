"""API servers to run a suite against: the fake one, and a real one where its programs are at hand."""

import os
import select
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import StartFailed, running_module, tail
from fairway.kube.client import KubeClient
from tests import envtest

_STARTS_WITHIN_S = 60.0
_LOADED_WITHIN_S = 300.0
_FAST = 1e6


@dataclass(frozen=True, slots=True)
class Server:
    """A running API server. ``flags``: how a program of ours is told of it; ``processes``: ids by name."""

    name: str
    flags: Sequence[str]
    processes: Mapping[str, int]
    url: str = ""
    kubeconfig: Path | None = None

    @property
    def pid(self) -> int:
        """Of its only process."""
        (pid,) = self.processes.values()
        return pid

    def client(self) -> KubeClient:
        """A client that is not held back."""
        if self.kubeconfig is None:
            return KubeClient.from_url(self.url, qps=_FAST, burst=int(_FAST))
        return KubeClient.from_kubeconfig(str(self.kubeconfig), qps=_FAST, burst=int(_FAST))


@contextmanager
def fake_server() -> Iterator[Server]:
    """The fake API server, in a process of its own. Raises StartFailed."""
    with _serving("sandbox.fakeapi", within_s=_STARTS_WITHIN_S) as server:
        yield server


@contextmanager
def fleet_server(queues: int, pending: int) -> Iterator[Server]:
    """The same with a full fleet in it, see `benchmarks.queues.fleet`. Raises StartFailed."""
    sizes = ("--queues", str(queues), "--pending", str(pending))
    with _serving("benchmarks.queues.fleet", *sizes, within_s=_LOADED_WITHIN_S) as server:
        yield server


@contextmanager
def _serving(module: str, *arguments: str, within_s: float) -> Iterator[Server]:
    with running_module([module, *arguments]) as (process, log):
        assert process.stdout is not None
        readable, _, _ = select.select([process.stdout], [], [], within_s)
        url = process.stdout.readline().decode().strip() if readable else ""
        if not url:
            raise StartFailed(f"the fake API server did not start:\n{tail(log)}")
        yield Server("fake API server", ("--master", url), {"fake API server": process.pid}, url=url)


@contextmanager
def real_server(programs: Path) -> Iterator[Server]:
    """etcd and kube-apiserver from a folder."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-api-") as state,
        envtest.real_api(programs, Path(state)) as api,
    ):
        flags = ("--kubeconfig", str(api.kubeconfig))
        yield Server("kube-apiserver", flags, _children_of(programs), kubeconfig=api.kubeconfig)


def _children_of(folder: Path) -> dict[str, int]:
    """Our own children whose programs are in this folder, by name."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            program = Path(os.readlink(process / "exe"))
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # another user's, or gone by now
        if parent == os.getpid() and program.parent == folder.resolve():
            found[program.name] = int(process.name)
    return found
