"""The dispatcher's visibility API as a source: queues, positions and reasons, read over HTTP.

Any replica answers, the leader or not. What goes wrong is told with the URL and what to do about it.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import aiohttp
import msgspec

from fairway.visibility import LocalQueueView, QueueList, QueueView, WorkloadList

T = TypeVar("T")

DEFAULT_URL = "http://127.0.0.1:8082"
ENVIRONMENT = "FAIRWAY_DISPATCHER"
_ROOT = "/visibility/v1"
_TIMEOUT_S = 15.0
_MOST_BYTES = 64 << 20
_NOT_FOUND = 404
_FIRST_FAILURE = 300
_REMEDY = (
    "is the dispatcher reachable there? For example: kubectl -n karmada-system port-forward "
    "deploy/fairway-dispatcher 8082, or --dispatcher URL"
)


class DispatcherError(Exception):
    """The dispatcher gave no usable answer; the message names the URL and says what to do."""


class NoSuch(DispatcherError):
    """The dispatcher knows no such object; the message says what it knows."""


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """Where a dispatcher's visibility API is. ``ca_file``: who signed its certificate, for https."""

    url: str
    ca_file: Path | None = None

    @asynccontextmanager
    async def connected(self) -> AsyncIterator["Connection"]:
        """Connections for a while. Raises DispatcherError for a URL or file that cannot be used."""
        if not self.url.startswith(("http://", "https://")):
            raise DispatcherError(f"--dispatcher {self.url}: expected a URL such as {DEFAULT_URL}")
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
        async with aiohttp.ClientSession(timeout=timeout, trust_env=False) as session:
            yield Connection(session, self.url.rstrip("/"), self._tls())

    def _tls(self) -> ssl.SSLContext | bool:
        if self.ca_file is None:
            return True
        try:
            return ssl.create_default_context(cafile=str(self.ca_file))
        except (OSError, ssl.SSLError) as error:
            raise DispatcherError(
                f"--ca-file {self.ca_file}: {error}; expected certificates in PEM"
            ) from None


class Connection:
    """Asks one dispatcher. Every method raises DispatcherError."""

    def __init__(self, session: aiohttp.ClientSession, url: str, tls: ssl.SSLContext | bool) -> None:
        self._session = session
        self._url = url
        self._tls = tls

    async def queues(self) -> QueueList:
        """All ClusterQueues, without their workloads."""
        return await self._get("/queues", QueueList)

    async def queue(self, name: str, limit: int) -> QueueView:
        """A ClusterQueue and its first ``limit`` pending workloads."""
        return await self._get(f"/queues/{quote(name, safe='')}", QueueView, limit)

    async def local_queue(self, namespace: str, name: str, limit: int) -> LocalQueueView:
        """A LocalQueue and its first ``limit`` pending workloads."""
        path = f"/namespaces/{quote(namespace, safe='')}/queues/{quote(name, safe='')}"
        return await self._get(path, LocalQueueView, limit)

    async def workloads(self, namespace: str, name: str) -> WorkloadList:
        """The workloads of a namespace with a name, of whatever kind."""
        path = f"/workloads/{quote(namespace, safe='')}/{quote(name, safe='')}"
        return await self._get(path, WorkloadList)

    async def _get(self, path: str, document: type[T], limit: int = 0) -> T:
        url = f"{self._url}{_ROOT}{path}"
        params = {"limit": str(limit)} if limit else {}
        try:
            async with self._session.get(url, params=params, ssl=self._tls) as response:
                body = await response.content.read(_MOST_BYTES)
                status = response.status
        except TimeoutError:
            raise DispatcherError(f"{url}: no answer within {_TIMEOUT_S:.0f} s; {_REMEDY}") from None
        except (aiohttp.ClientError, ValueError, OSError) as error:
            raise DispatcherError(f"{url}: {error or type(error).__name__}; {_REMEDY}") from None
        if status == _NOT_FOUND:
            raise NoSuch(f"{url}: {_said(body) or 'not found'}")
        if status >= _FIRST_FAILURE:
            raise DispatcherError(f"{url}: HTTP {status}: {_said(body)}; {_REMEDY}")
        try:
            return msgspec.json.decode(body, type=document)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DispatcherError(
                f"{url}: {error}; expected the visibility API of a Fairway dispatcher: {_REMEDY}"
            ) from None


async def pending_queues(connection: Connection, queues: QueueList, limit: int) -> list[QueueView]:
    """Every queue in which something waits, each with its first ``limit`` workloads."""
    waiting = [queue.name for queue in queues.queues if queue.pending]
    return list(await asyncio.gather(*(connection.queue(name, limit) for name in waiting)))


def _said(body: bytes) -> str:
    return body[:300].decode(errors="replace").strip()
