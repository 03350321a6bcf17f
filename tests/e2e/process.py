"""Programs as processes that never outlive the tests, whatever happens to these.

Each is the head of a process group of its own and is ended with it; where ``setpriv`` is there, the kernel
ends it too when the tests themselves are killed.
"""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

LOOPBACK = "127.0.0.1"
STARTS_WITHIN_S = 240.0
LOOK_S = 0.05
_STOPS_WITHIN_S = 30.0
# Below the ports that connections are given as their own end, so that none of these is taken meanwhile.
_FIRST_PORT, _LAST_PORT = 20_000, 32_000


class ProgramFailed(RuntimeError):
    """A program did not start or did not last; the message ends with the end of its log."""


def _ports() -> Iterator[int]:
    start = _FIRST_PORT + os.getpid() * 101 % (_LAST_PORT - _FIRST_PORT)
    while True:
        yield from range(start, _LAST_PORT)
        start = _FIRST_PORT


_candidates = _ports()


def free_port() -> int:
    """A port of loopback that nobody listens on, never the same twice."""
    for port in _candidates:
        with closing(socket.socket()) as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            return port
    raise AssertionError("the candidates never end")


@dataclass(slots=True)
class Program:
    """A command that may run; what it writes is appended to ``log``."""

    name: str
    command: Sequence[str]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it; it must not run."""
        assert not self.runs, f"{self.name} runs already"
        guard = ("setpriv", "--pdeathsig", "KILL", "--") if shutil.which("setpriv") else ()
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [*guard, *self.command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                env={**os.environ, **self.environment},
            )

    def kill(self) -> None:
        """End it and all its children at once."""
        if self._process is not None:
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    async def stop(self) -> int:
        """Ask it to end; its exit code, or that of a kill if it does not."""
        assert self._process is not None, f"{self.name} was never started"
        if self._process.poll() is None:
            self._process.terminate()
        try:
            return await asyncio.to_thread(self._process.wait, _STOPS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return self._process.wait()

    async def until_ready(self, url: str) -> None:
        """Wait until it answers there with 200, whoever signed its certificate. Raises ProgramFailed."""
        async with aiohttp.ClientSession() as session:
            try:
                async with asyncio.timeout(STARTS_WITHIN_S):
                    while True:
                        if not self.runs:
                            raise ProgramFailed(f"{self.name} ended at its start:\n{self.last_words()}")
                        if await _answers(session, url):
                            return
                        await asyncio.sleep(LOOK_S)
            except TimeoutError:
                raise ProgramFailed(f"{self.name}: no 200 from {url}:\n{self.last_words()}") from None

    def last_words(self, lines: int = 15) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-lines:])


async def _answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url, ssl=False, timeout=aiohttp.ClientTimeout(total=5)) as answer:
            return answer.status == 200
    except (aiohttp.ClientError, TimeoutError):
        return False


@dataclass(slots=True)
class Served:
    """A program that says at ``ready_at`` when it is ready."""

    program: Program
    ready_at: str

    async def start(self) -> None:
        """Start it; it is ready then."""
        self.program.start()
        await self.ready()

    async def ready(self) -> None:
        """Wait until it says so."""
        await self.program.until_ready(self.ready_at)


@dataclass(slots=True)
class Programs:
    """All that was started, so that all of it is ended."""

    folder: Path
    _all: list[Program] = field(default_factory=list)

    def new(self, name: str, *command: str | Path, environment: Mapping[str, str] | None = None) -> Program:
        """A program that is not started yet, with its log in the folder."""
        program = Program(
            name, [str(word) for word in command], self.folder / f"{name}.log", environment or {}
        )
        self._all.append(program)
        return program

    def start(self, name: str, *command: str | Path) -> Program:
        """A program that is started."""
        program = self.new(name, *command)
        program.start()
        return program

    def named(self, name: str) -> Program:
        """The newest of that name."""
        return next(program for program in reversed(self._all) if program.name == name)

    def end(self) -> None:
        """End everything, the newest first."""
        for program in reversed(self._all):
            program.kill()
