"""API servers to run a suite against: the fake one, and a real one where its programs are at hand."""

import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import StartFailed
from fairway.kube.client import KubeClient
from tests import envtest

_STARTS_WITHIN_S = 60.0
_FAST = 1e6


@dataclass(frozen=True, slots=True)
class Server:
    """A running API server. ``flags``: how a program of ours is told of it."""

    name: str
    flags: Sequence[str]
    url: str = ""
    kubeconfig: Path | None = None

    def client(self) -> KubeClient:
        """A client that is not held back."""
        if self.kubeconfig is None:
            return KubeClient.from_url(self.url, qps=_FAST, burst=int(_FAST))
        return KubeClient.from_kubeconfig(str(self.kubeconfig), qps=_FAST, burst=int(_FAST))


@contextmanager
def fake_server() -> Iterator[Server]:
    """The fake API server, in a process of its own. Raises StartFailed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.child", "tests.fakeapi"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        readable, _, _ = select.select([process.stdout], [], [], _STARTS_WITHIN_S)
        url = process.stdout.readline().decode().strip() if readable else ""
        if not url:
            raise StartFailed("the fake API server did not start")
        yield Server("fake API server", ("--master", url), url=url)
    finally:
        process.terminate()
        process.wait()


@contextmanager
def real_server(programs: Path) -> Iterator[Server]:
    """etcd and kube-apiserver from a folder."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-api-") as state,
        envtest.real_api(programs, Path(state)) as api,
    ):
        yield Server("kube-apiserver", ("--kubeconfig", str(api.kubeconfig)), kubeconfig=api.kubeconfig)
