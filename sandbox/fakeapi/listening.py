"""The end of listening."""

import asyncio


async def stop_listening(server: asyncio.Server) -> None:
    """Close the server; what it has accepted by then it serves.

    Before Python 3.12 a connection that is accepted in the very step in which its server is closed is never
    closed: the task that would serve it fails, as the server has no sockets any more.
    """
    loop = asyncio.get_running_loop()
    for listening in server.sockets:
        loop.remove_reader(listening.fileno())
    # First whatever accepts runs, then what it has begun.
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    server.close()
