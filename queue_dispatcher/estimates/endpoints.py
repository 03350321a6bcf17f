"""The replicas of an estimator, as far as its address resolves to several: `HOST:PORT` to addresses of IPs.

A Service with an IP of its own is one endpoint, whoever is behind it; a headless one has an IP a replica.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from typing import Final

KEPT_S: Final = 5.0
"""For so long what an address resolved to is taken to hold."""
PATIENCE_S: Final = 0.5
"""So long is waited for a lookup; it goes on, and until it is over what was known before counts."""


class Endpoints:
    """Looks addresses up, each every few seconds. ``clock`` is monotonic, in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._known: dict[str, tuple[float, tuple[str, ...]]] = {}
        # One at a time of each: those that hang would take up all threads.
        self._looking: dict[str, asyncio.Task[None]] = {}

    def close(self) -> None:
        """Wait for no lookup any more."""
        for task in self._looking.values():
            task.cancel()

    async def of(self, address: str) -> tuple[str, ...]:
        """Where to reach every replica; the address itself where there is but one, or nobody knows.

        Within half a second: who asks while a lookup hangs is told what was known before.
        """
        host, _, port = address.rpartition(":")
        if not port.isdecimal() or _is_ip(host.strip("[]")):
            return (address,)
        known = self._known.get(address)
        if known is not None and known[0] > self._clock():
            return known[1]
        task = self._looking.get(address)
        if task is None:
            task = self._looking[address] = asyncio.create_task(self._look(address, host, int(port)))
            await asyncio.wait((task,), timeout=PATIENCE_S)
        known = self._known.get(address)
        return known[1] if known is not None else (address,)

    async def _look(self, address: str, host: str, port: int) -> None:
        try:
            found = await _resolved(host, port)
            endpoints = found if len(found) > 1 else (address,)
            self._known[address] = self._clock() + KEPT_S, endpoints
        finally:
            del self._looking[address]


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


async def _resolved(host: str, port: int) -> tuple[str, ...]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return ()
    families = {family for family, *_ in found}
    # A host of both families is there twice.
    family = socket.AF_INET if socket.AF_INET in families else socket.AF_INET6
    ips = sorted({str(where[0]) for kind, *_, where in found if kind == family})
    return tuple(f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}" for ip in ips)
