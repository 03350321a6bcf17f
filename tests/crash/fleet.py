"""The dispatchers of one run: started, killed on demand, and at once started again."""

import asyncio
import signal
from collections.abc import Sequence
from pathlib import Path

from tests.crash.processes import Child, Launcher, kubeconfig

LEASE_FLAGS = (
    "--leader-elect-lease-duration=2s",
    "--leader-elect-renew-deadline=1s",
    "--leader-elect-retry-period=200ms",
)


class Fleet:
    """One replica for each of ``ports``, where it answers about what waits.

    ``faults`` is told of each that ends and was not killed.
    """

    def __init__(
        self,
        launcher: Launcher,
        folder: Path,
        url: str,
        ports: Sequence[int],
        faults: list[str],
        *,
        events: bool,
    ) -> None:
        self._launcher, self._folder, self._url = launcher, folder, url
        self._ports, self._faults = ports, faults
        self._common = [
            "--kube-api-qps=-1",
            f"--events={'true' if events else 'false'}",
            "--health-probe-bind-address=0",
            "--metrics-bind-address=0",
            *(LEASE_FLAGS if len(ports) > 1 else ["--leader-elect=false"]),
        ]
        self._running: dict[str, Child] = {}
        self._killed: set[str] = set()

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number, port in enumerate(self._ports):
                group.create_task(self._keep(number, port))

    async def _keep(self, number: int, port: int) -> None:
        lives = 0
        while True:
            name = f"dispatcher-{number}-{lives}"
            config = kubeconfig(self._folder / f"{name}.json", self._url, name)
            argv = [f"--kubeconfig={config}", f"--visibility-bind-address=127.0.0.1:{port}"]
            argv += ["--visibility-authorization=none", "--hold-namespaces=all", *self._common]
            child = await self._launcher.start(argv, self._folder / f"dispatcher-{number}.log")
            self._running[name] = child
            code = await asyncio.shield(child.code)
            del self._running[name]
            if name not in self._killed:
                self._faults.append(f"{name} ended by itself with exit code {code}")
                return
            lives += 1

    def kill(self, name: str) -> None:
        """SIGKILL, now."""
        self._killed.add(name)
        if (child := self._running.get(name)) is not None:
            child.signal(signal.SIGKILL)

    async def end(self) -> None:
        """Kill all; call it once `run` has ended."""
        for child in self._running.values():
            await child.end()

    def last_words(self) -> str:
        """The ends of all logs."""
        logs = sorted(self._folder.glob("*.log"))
        return "\n".join(log.read_text(errors="replace")[-4000:] for log in logs)
