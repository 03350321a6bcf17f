"""Starts dispatchers by forking a process that has imported everything: milliseconds instead of a second.

Reads ``{"argv": [...], "log": path}``, one a line, and answers ``started PID``; says ``ended PID CODE`` when
one has. A forked child has nothing of its predecessors' memory: this process runs no dispatcher itself.
"""

import json
import os
import select
import signal
import sys
import traceback

from fairway.kube.lease import new_identity
from fairway.service.common_flags import Text
from fairway.service.grpc_environment import prepare_grpc_environment
from queue_dispatcher.flags import parse

prepare_grpc_environment()
from queue_dispatcher.server import run  # noqa: E402 - importing gRPC reads the environment


def _start(argv: list[str], log: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number in (1, 2):
        os.dup2(out, number)
    code = 70
    try:
        code = _run(argv)
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run(argv: list[str]) -> int:
    """What `queue_dispatcher.main` does, its imports already made."""
    settings = parse(argv, version="test", identity=new_identity())
    assert not isinstance(settings, Text)
    return run(settings)


def _say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def serve() -> None:
    """Until the end of the input; then all children are killed."""
    children: set[int] = set()
    try:
        _serve(children)
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)


def _serve(children: set[int]) -> None:
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    pending = b""
    while True:
        ready, _, _ = select.select([0, woken], [], [])
        if woken in ready:
            os.read(woken, 512)
            while (reaped := _reap()) is not None:
                children.discard(reaped[0])
                _say(f"ended {reaped[0]} {reaped[1]}")
        if 0 in ready:
            chunk = os.read(0, 65536)
            if not chunk:
                return
            *lines, pending = (pending + chunk).split(b"\n")
            for line in lines:
                asked = json.loads(line)
                children.add(pid := _start(asked["argv"], asked["log"]))
                _say(f"started {pid}")


def _reap() -> tuple[int, int] | None:
    """A child that has ended, and its exit code, negative for a signal."""
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, os.waitstatus_to_exitcode(status)) if pid else None


if __name__ == "__main__":
    serve()
