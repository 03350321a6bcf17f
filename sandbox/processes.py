"""Fairway's programs as child processes: started, waited for, and always ended."""

import asyncio
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from estimator.demo.server_process import end, keep_lines

_READY_WITHIN_S = 30.0
_KEPT_LINES = 200
_LINE_BYTES = 1 << 20
_LOOPBACK = "127.0.0.1"


class ProgramError(RuntimeError):
    """A program did not start, or did not last; the message ends with the last lines of its log."""


@dataclass(slots=True)
class Program:
    """A running program, and the end of its log so far."""

    name: str
    process: Process
    log: deque[str] = field(default_factory=lambda: deque(maxlen=_KEPT_LINES))

    def last_words(self) -> str:
        """The end of its log."""
        return "".join(list(self.log)[-10:])


def free_ports(count: int) -> list[int]:
    """Ports of the loopback interface that nobody listens on now."""
    sockets = [socket.create_server((_LOOPBACK, 0)) for _ in range(count)]
    ports: list[int] = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@asynccontextmanager
async def running(name: str, module: str, flags: Sequence[str], port: int) -> AsyncIterator[Program]:
    """``python -m module`` with flags, once it listens on the port. Raises ProgramError."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module, *flags), stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE, limit=_LINE_BYTES
    )
    assert process.stderr is not None
    program = Program(name, process)
    reading = asyncio.create_task(keep_lines(process.stderr, program.log))
    try:
        await _listens(program, port)
        yield program
    finally:
        await end(process)
        await reading


async def _listens(program: Program, port: int) -> None:
    try:
        async with asyncio.timeout(_READY_WITHIN_S):
            while program.process.returncode is None:
                try:
                    _, writer = await asyncio.open_connection(_LOOPBACK, port)
                except OSError:
                    await asyncio.sleep(0.05)
                    continue
                writer.close()
                return
    except TimeoutError:
        raise ProgramError(
            f"{program.name} does not listen on port {port} after {_READY_WITHIN_S:.0f} s:\n"
            f"{program.last_words()}"
        ) from None
    raise ProgramError(
        f"{program.name} ended with status {program.process.returncode} instead of starting:\n"
        f"{program.last_words()}"
    )
