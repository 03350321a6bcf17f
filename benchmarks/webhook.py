"""How long does the webhook take to answer a review at 300 a second, and how many can it answer?

Reviews of 4.5 kB, as karmada-apiserver sends them: over TLS 1.3 on connections that stay open. At the fixed
rate each review has its moment, and the wait counts from then, whether or not the one before is answered; so
that a pause is paid by all who would have come during it. On a busy machine most of a wait may be that for a
CPU, which is shown for the whole run. Every answer is checked.
"""

import asyncio
import gc
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.proc import cpu_wait_s, memory_mib
from benchmarks.processes import StartFailed
from benchmarks.report import Case, Figure, Result, Target
from benchmarks.sides import Setting
from webhook.certificates import renewed

_HOST = "127.0.0.1"
_RATE_PER_S = 300
_REVIEW_BYTES = 4500
_CONNECTIONS = 16
_P99_MS, _MAX_RATE = Target(25.0), Target(300.0, at_least=True)
_LISTENS_WITHIN_S, _ENDS_WITHIN_S = 180.0, 10.0

Obj = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Question:
    """One request as bytes, and whether its answer has a patch."""

    request: bytes
    is_held: bool


@dataclass(frozen=True, slots=True)
class _Round:
    waited_s: list[float]
    took_s: float
    wrong: int

    def percentile_ms(self, percent: float) -> float:
        ranked = sorted(self.waited_s)
        return 1e3 * ranked[min(len(ranked) - 1, int(len(ranked) * percent / 100))]


def measure(setting: Setting) -> Result:
    """Figures at the fixed rate and as fast as it goes. Raises StartFailed."""
    with _webhook() as running:
        paced, fast = asyncio.run(_ask(running, setting.seconds))
        pid = running.process.pid
        memory, kept_s = memory_mib(pid, "VmRSS"), cpu_wait_s(pid)
    cases = [
        _case(
            f"{_RATE_PER_S} reviews/s",
            paced,
            (memory, kept_s),
            Target(_RATE_PER_S * 0.98, at_least=True),
            _P99_MS,
        ),
        _case(f"{_CONNECTIONS} callers, one review after the other", fast, (memory, kept_s), _MAX_RATE, None),
    ]
    return Result("webhook", "Admission reviews of 4.5 kB over TLS", cases)


def _case(label: str, found: _Round, process: tuple[float, float], rate: Target, p99: Target | None) -> Case:
    figures = [
        Figure("p50", found.percentile_ms(50), "ms"),
        Figure("p99", found.percentile_ms(99), "ms", p99),
        Figure("longest", found.percentile_ms(100), "ms"),
        Figure("answers", len(found.waited_s) / found.took_s, "/s", rate),
        Figure("memory", process[0], "MiB"),
        Figure("kept from a CPU", process[1], "s"),
    ]
    return Case(label, figures, [f"{found.wrong} wrong answers"] if found.wrong else [])


@dataclass(frozen=True, slots=True)
class _Running:
    process: subprocess.Popen[bytes]
    port: int
    authorities: bytes


@contextmanager
def _webhook() -> Iterator[_Running]:
    issued = renewed(None, _HOST, datetime.now(UTC))
    port = _free_port()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        (folder / "tls.crt").write_bytes(issued.certificate)
        (folder / "tls.key").write_bytes(issued.key)
        command = [
            sys.executable,
            "-m",
            "benchmarks.child",
            "webhook",
            "--register=false",
            "--hold-namespaces=all",
        ]
        command += [f"--tls-cert-file={folder / 'tls.crt'}", f"--tls-private-key-file={folder / 'tls.key'}"]
        command += [f"--bind-address={_HOST}", f"--secure-port={port}", "--health-probe-bind-address=0"]
        command += ["--metrics-bind-address=0"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=log)
        try:
            _await_listening(process, port, folder / "log")
            yield _Running(process, port, issued.bundle)
        finally:
            process.terminate()
            try:
                process.wait(_ENDS_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _await_listening(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    began_s = time.perf_counter()
    while True:
        try:
            socket.create_connection((_HOST, port), 1).close()
            return
        except OSError:
            if time.perf_counter() - began_s > _LISTENS_WITHIN_S or process.poll() is not None:
                words = log.read_text(errors="replace")[-2000:]
                raise StartFailed(f"the webhook does not listen on port {port}:\n{words}") from None
            time.sleep(0.01)


async def _ask(running: _Running, seconds: float) -> tuple[_Round, _Round]:
    questions = _questions()
    async with _callers(running) as callers:
        # What is loaded at the first request is no part of the question.
        await _fast(callers, questions, min(0.5, seconds))
        gc.collect()
        gc.disable()
        try:
            paced = await _paced(callers, questions, seconds)
            fast = await _fast(callers, questions, seconds)
        finally:
            gc.enable()
    return paced, fast


class _Caller:
    """One connection that stays open."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, question: _Question) -> bool:
        """Whether the answer is right."""
        self._writer.write(question.request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        body = await self._reader.readexactly(length)
        return (
            head.startswith(b"HTTP/1.1 200 ")
            and b'"allowed":true' in body
            and (b'"patch":' in body) == question.is_held
        )

    def close(self) -> None:
        self._writer.close()


@asynccontextmanager
async def _callers(running: _Running) -> AsyncIterator[list[_Caller]]:
    tls = ssl.create_default_context(cadata=running.authorities.decode())
    callers = [
        _Caller(*await asyncio.open_connection(_HOST, running.port, ssl=tls)) for _ in range(_CONNECTIONS)
    ]
    try:
        yield callers
    finally:
        for caller in callers:
            caller.close()


async def _paced(callers: Sequence[_Caller], questions: Sequence[_Question], seconds: float) -> _Round:
    free: asyncio.Queue[_Caller] = asyncio.Queue()
    for caller in callers:
        free.put_nowait(caller)
    waited: list[float] = []
    wrong = 0

    async def one(question: _Question, due_s: float) -> None:
        nonlocal wrong
        caller = await free.get()
        wrong += not await caller.ask(question)
        free.put_nowait(caller)
        waited.append(time.perf_counter() - due_s)

    began_s = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for number in range(int(seconds * _RATE_PER_S)):
            due_s = began_s + number / _RATE_PER_S
            await asyncio.sleep(max(0.0, due_s - time.perf_counter()))
            group.create_task(one(questions[number % len(questions)], due_s))
    return _Round(waited, time.perf_counter() - began_s, wrong)


async def _fast(callers: Sequence[_Caller], questions: Sequence[_Question], seconds: float) -> _Round:
    waited: list[float] = []
    wrong = 0
    began_s = time.perf_counter()

    async def ask_on(caller: _Caller, number: int) -> None:
        nonlocal wrong
        while (asked_s := time.perf_counter()) < began_s + seconds:
            wrong += not await caller.ask(questions[number % len(questions)])
            waited.append(time.perf_counter() - asked_s)
            number += 1

    async with asyncio.TaskGroup() as group:
        for number, caller in enumerate(callers):
            group.create_task(ask_on(caller, number))
    return _Round(waited, time.perf_counter() - began_s, wrong)


def _questions() -> list[_Question]:
    """Creations that are held, growths that are held, and both that are not."""
    small, big = _binding("1", 2), _binding("1", 6)
    return [
        _Question(_request(small, None), True),
        _Question(_request(_binding("0", 2), None), False),
        _Question(_request(big, small), True),
        _Question(_request(small, big), False),
    ]


def _request(new: Obj, old: Obj | None) -> bytes:
    resource = {"group": "work.karmada.io", "version": "v1alpha2", "resource": "resourcebindings"}
    request: Obj = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "resource": resource,
        "requestResource": resource,
        "name": "train-job",
        "namespace": "team-1",
        "operation": "CREATE" if old is None else "UPDATE",
        "userInfo": {"username": "system:admin", "groups": ["system:masters", "system:authenticated"]},
        "object": new,
        "oldObject": old,
        "dryRun": False,
    }
    review: Obj = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    body = msgspec.json.encode(review)
    # What nobody reads fills it up, as managedFields do.
    request["options"] = {"filling": "x" * max(0, _REVIEW_BYTES - len(body) - 30)}
    body = msgspec.json.encode(review)
    head = f"POST /bindings?timeout=3s HTTP/1.1\r\nHost: {_HOST}\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def _binding(gpus: str, replicas: int) -> Obj:
    toleration = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    requests = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": gpus}
    fields: Obj = {f"f:field-{number}": {".": {}, "f:name": {}} for number in range(20)}
    return {
        "apiVersion": "work.karmada.io/v1alpha2",
        "kind": "ResourceBinding",
        "metadata": {
            "name": "train-job",
            "namespace": "team-1",
            "labels": {"propagationpolicy.karmada.io/permanent-id": "f7a8"},
            "managedFields": [{"manager": "karmada-controller-manager", "fieldsV1": fields}],
        },
        "spec": {
            "resource": {"apiVersion": "batch/v1", "kind": "Job", "namespace": "team-1", "name": "train"},
            "replicas": replicas,
            "replicaRequirements": {
                "nodeClaim": {"tolerations": [toleration]},
                "resourceRequest": requests,
            },
            "placement": {"clusterAffinity": {"clusterNames": [f"member{number}" for number in range(12)]}},
            "clusters": [{"name": "member1", "replicas": 2}],
        },
    }


def _free_port() -> int:
    with socket.create_server((_HOST, 0)) as listener:
        port: int = listener.getsockname()[1]
    return port
