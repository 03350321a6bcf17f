"""Clients that ask as fast as they are answered, one call at a time each, and the times they waited.

All clients share one thread, which is cheap enough to stay ahead of the server: a call costs it some
twenty microseconds. The server runs in another process.
"""

import gc
import selectors
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Self

from benchmarks.caller import Address, CallFailed, Connection, header_block

_SILENT_S = 60.0


@dataclass(frozen=True, slots=True)
class Questions:
    """Requests to one method, asked in turn, for the Deployment of this namespace and name.

    Without one they name no workload, as an older karmada-scheduler's do: then no template is looked for.
    """

    method: str
    messages: Sequence[bytes]
    workload: str | None = "team-1/bench"

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What karmada-scheduler sends beside each request."""
        return (("object", f"kind=Deployment, name={self.workload}"),) if self.workload else ()


@dataclass(frozen=True, slots=True)
class Round:
    """What one server did in one round: how long each call took, calls a second, replies by request."""

    waited_s: Sequence[float]
    calls_per_s: float
    replies: dict[int, set[bytes]] = field(default_factory=dict)

    def percentile_s(self, percent: float) -> float:
        """How long that share of the calls took at most."""
        ranked = sorted(self.waited_s)
        return ranked[min(len(ranked) - 1, int(len(ranked) * percent / 100))]


class Clients:
    """So many connections to one server. Use as a context manager."""

    def __init__(self, address: Address, count: int) -> None:
        self._address = address
        self._count = count
        self._stack = ExitStack()
        self._connections: list[Connection] = []

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for _ in range(self._count):
                self._connections.append(stack.enter_context(Connection(self._address, timeout_s=_SILENT_S)))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def ask(self, questions: Questions, for_s: float) -> Round:
        """Ask again and again for so long; every client begins with another question. Raises CallFailed."""
        headers = header_block(questions.method, str(self._address), questions.metadata)
        messages, count = questions.messages, len(self._connections)
        waited: list[float] = []
        replies: dict[int, set[bytes]] = {}
        clock = time.perf_counter
        with selectors.DefaultSelector() as selector, _no_collections():
            began = clock()
            until = began + for_s
            for number, connection in enumerate(self._connections):
                asked = number * len(messages) // count % len(messages)
                flight = _Flight(connection, asked, clock())
                connection.start(headers, messages[asked])
                selector.register(connection.socket, selectors.EVENT_READ, flight)
            while selector.get_map():
                ready = selector.select(_SILENT_S)
                if not ready:
                    raise CallFailed(f"{self._address}: no answer for {_SILENT_S:.0f} s")
                for key, _ in ready:
                    flight = key.data
                    reply = flight.connection.receive()
                    if reply is None:
                        continue
                    now = clock()
                    waited.append(now - flight.since)
                    replies.setdefault(flight.asked, set()).add(reply)
                    if now >= until:
                        selector.unregister(flight.connection.socket)
                        continue
                    flight.asked = (flight.asked + 1) % len(messages)
                    flight.since = clock()
                    flight.connection.start(headers, messages[flight.asked])
            took_s = clock() - began
        return Round(waited, len(waited) / took_s, replies)

    def ask_once(self, questions: Questions) -> list[bytes]:
        """The reply to each question, one after the other. Raises CallFailed."""
        headers = header_block(questions.method, str(self._address), questions.metadata)
        return [self._connections[0].call(headers, message) for message in questions.messages]


@dataclass(slots=True)
class _Flight:
    connection: Connection
    asked: int
    since: float


@contextmanager
def _no_collections() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
