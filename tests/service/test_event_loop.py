"""A loop for many servers: which of them it looks after in a pass, and names that nobody resolves."""

import asyncio
import socket
import threading
from collections import Counter
from contextlib import ExitStack

import pytest

from fairway.service.event_loop import LOOKUPS, MOST_AT_ONCE, FairSelector, new_event_loop


@pytest.mark.parametrize("many", [1, MOST_AT_ONCE, MOST_AT_ONCE + 1, 5 * MOST_AT_ONCE + 3])
def test_each_gets_its_turn_and_few_at_once(many: int) -> None:
    with ExitStack() as stack:
        selector = stack.enter_context(FairSelector())
        for _ in range(many):
            ours, theirs = (stack.enter_context(each) for each in socket.socketpair())
            theirs.send(b"ready, and never read")
            selector.register(ours, 1)
        turns: Counter[int] = Counter()
        rounds = -(-many // MOST_AT_ONCE)
        for _ in range(10 * rounds):
            chosen = selector.select(0)
            assert 0 < len(chosen) <= MOST_AT_ONCE
            turns.update(key.fd for key, _ in chosen)
        assert len(turns) == many
        assert max(turns.values()) - min(turns.values()) <= 1


def test_a_loop_serves_more_connections_than_fit_into_a_pass() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        await writer.drain()
        writer.close()

    async def ask(port: int, number: int) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"{number}\n".encode())
        answer = await reader.read()
        writer.close()
        return answer

    async def scenario() -> None:
        async with await asyncio.start_server(echo, "127.0.0.1", 0, backlog=200) as server:
            port = server.sockets[0].getsockname()[1]
            answers = await asyncio.gather(*(ask(port, number) for number in range(100)))
        assert answers == [f"{number}\n".encode() for number in range(100)]

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(scenario())


def test_names_that_nobody_resolves_keep_neither_others_nor_the_work_of_threads_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolved = threading.Event()

    def getaddrinfo(host: str, *_: object) -> list[str]:
        if host == "nobody.example":
            resolved.wait()
        return [host]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        hanging = [asyncio.create_task(loop.getaddrinfo("nobody.example", 443)) for _ in range(LOOKUPS - 1)]
        assert len(await loop.getaddrinfo("a.example", 443)) == 1
        assert await asyncio.to_thread(lambda: "done") == "done"
        resolved.set()
        await asyncio.gather(*hanging)

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(scenario())
