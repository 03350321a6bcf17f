"""Dispatchers as child processes: each a real one, with its own kubeconfig, log, name and end."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

_LINE_BYTES = 1 << 20
_LOG_BYTES = 6000


@dataclass(eq=False, slots=True)
class Child:
    """A running process; ``code``: how it ended, negative for a signal."""

    pid: int
    log: Path
    code: "asyncio.Future[int]"

    def signal(self, number: signal.Signals) -> None:
        """Nothing if it has ended."""
        if not self.code.done():
            os.kill(self.pid, number)

    def last_words(self) -> str:
        """The end of its log."""
        return self.log.read_bytes()[-_LOG_BYTES:].decode(errors="replace") if self.log.exists() else ""

    async def end(self) -> None:
        """Kill it if it runs, and wait."""
        self.signal(signal.SIGKILL)
        await asyncio.wait((self.code,))


class Launcher(Protocol):
    """Starts dispatchers."""

    async def start(self, argv: Sequence[str], log: Path) -> Child:
        """One with these flags."""


class Interpreters:
    """``python -m queue_dispatcher``, as anybody starts it. Takes about a second of CPU time."""

    async def start(self, argv: Sequence[str], log: Path) -> Child:
        with log.open("ab") as out:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "queue_dispatcher", *argv), stdin=DEVNULL, stdout=out, stderr=out
            )
        return Child(process.pid, log, asyncio.ensure_future(process.wait()))


class Forks:
    """Forks of one process that has imported the program; see `tests.crash.starter`."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._children: dict[int, asyncio.Future[int]] = {}
        self._started: asyncio.Queue[tuple[int, asyncio.Future[int]]] = asyncio.Queue()
        self._lock = asyncio.Lock()

    async def start(self, argv: Sequence[str], log: Path) -> Child:
        assert self._process.stdin is not None
        async with self._lock:
            self._process.stdin.write(json.dumps({"argv": list(argv), "log": str(log)}).encode() + b"\n")
            pid, code = await self._started.get()
        return Child(pid, log, code)

    async def listen(self) -> None:
        """Hear what the starter says, until it ends."""
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            match line.split():
                case [b"started", pid]:
                    code = self._children[int(pid)] = asyncio.get_running_loop().create_future()
                    self._started.put_nowait((int(pid), code))
                case [b"ended", pid, status]:
                    self._children.pop(int(pid)).set_result(int(status))
                case _:
                    raise RuntimeError(f"the starter says {line!r}")


@asynccontextmanager
async def forks() -> AsyncIterator[Forks]:
    """A starter, until the end of the context; it takes about a second to be ready."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.crash.starter"), stdin=PIPE, stdout=PIPE, limit=_LINE_BYTES
    )
    starter = Forks(process)
    listening = asyncio.create_task(starter.listen())
    try:
        yield starter
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
        await listening


def kubeconfig(path: Path, url: str, name: str) -> Path:
    """A kubeconfig for the server at ``url``, with ``name`` as token: so the fake tells clients apart."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "fake", "cluster": {"server": url}}],
        "users": [{"name": name, "user": {"token": name}}],
        "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": name}}],
        "current-context": "fake",
    }
    path.write_text(json.dumps(config))
    return path
