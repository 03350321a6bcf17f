"""The real server as a child process: started, waited for, and always ended."""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

_START_WITHIN_S = 20.0
_STOP_WITHIN_S = 8.0
_KEPT_LINES = 200
_LINE_BYTES = 1 << 20

_COMMAND = (sys.executable, "-m", "estimator")
_FLAGS = (
    "--server-port=0",
    "--metrics-bind-address=127.0.0.1:0",
    "--health-probe-bind-address=127.0.0.1:0",
    "--feature-gates=ResourceQuotaEstimate=true",
    "--logging-format=json",
)


class ServerError(RuntimeError):
    """The server did not start, or did not last; the message says how it ended."""


@dataclass(slots=True)
class Server:
    """A server process: its gRPC port on this machine, and the end of its log so far."""

    port: int = 0
    log: deque[str] = field(default_factory=lambda: deque(maxlen=_KEPT_LINES))


class _Record(msgspec.Struct):
    msg: str = ""
    port: int = 0


@asynccontextmanager
async def serving(
    server: Server, snapshots: Mapping[str, Path], command: Sequence[str] = _COMMAND
) -> AsyncIterator[None]:
    """Serve these dumps, by cluster name, while the context lasts. Raises ServerError."""
    flags = [*_FLAGS, *(f"--snapshot={name}={file}" for name, file in snapshots.items())]
    process = await asyncio.create_subprocess_exec(
        *command, *flags, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE, limit=_LINE_BYTES
    )
    assert process.stderr is not None
    reading = None
    try:
        server.port = await _port(process, process.stderr, server.log)
        reading = asyncio.create_task(keep_lines(process.stderr, server.log))
        yield
    finally:
        await end(process)
        if reading is not None:
            await reading


async def _port(process: Process, stderr: asyncio.StreamReader, log: deque[str]) -> int:
    try:
        async with asyncio.timeout(_START_WITHIN_S):
            async for line in stderr:
                log.append(line.decode(errors="replace"))
                port = _port_in(line)
                if port:
                    return port
            status = await process.wait()
    except TimeoutError:
        raise ServerError(f"the server did not start within {_START_WITHIN_S:.0f} s") from None
    raise ServerError(f"the server ended with status {status} instead of starting")


def _port_in(line: bytes) -> int:
    try:
        record = msgspec.json.decode(line, type=_Record)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return 0
    return record.port if record.msg == "serving" else 0


async def keep_lines(stderr: asyncio.StreamReader, log: deque[str]) -> None:
    """Read a program's log to its end; a pipe that nobody empties would block the program."""
    async for line in stderr:
        log.append(line.decode(errors="replace"))


async def end(process: Process) -> None:
    """Ask a process to end, and make it end if it does not soon."""
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(_STOP_WITHIN_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
