import asyncio
import socket

import pytest

from sandbox.fakeapi.listening import stop_listening


@pytest.mark.parametrize("steps", range(5))
def test_a_connection_made_while_listening_ends_is_closed_whenever_that_is(steps: int) -> None:
    async def run() -> None:
        def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
        with socket.create_connection(server.sockets[0].getsockname()) as caller:
            caller.setblocking(False)
            for _ in range(steps):
                await asyncio.sleep(0)
            await stop_listening(server)
            async with asyncio.timeout(10):
                try:
                    assert await asyncio.get_running_loop().sock_recv(caller, 1) == b""
                except ConnectionResetError:
                    # Not accepted by then: refused by the operating system.
                    assert steps < 2

    asyncio.run(run())
