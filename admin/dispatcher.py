"""The dispatcher's visibility API as a source: queues, positions and reasons, read over HTTP.

Any replica answers, the leader or not. What goes wrong is told with the URL and what to do about it. A
dispatcher that is asked too much says when to come back, and is asked again then.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import aiohttp
import msgspec

from admin.printable import printable
from admin.tokens import HOW_TO_GET_ONE, Bearer, NoTokens, TokenError, Tokens
from fairway.kube.transport import in_words
from fairway.visibility import LocalQueueView, QueueList, QueueView, WorkloadList

T = TypeVar("T")

DEFAULT_URL = "http://127.0.0.1:8082"
ENVIRONMENT = "FAIRWAY_DISPATCHER"
_ROOT = "/visibility/v1"
_TIMEOUT_S = 15.0
_MOST_BYTES = 64 << 20
_UNAUTHORIZED = 401
_LATER = (429, 503)
_FIRST_FAILURE = 300
_TRIES = 5
_LONGEST_WAIT_S = 5.0
_AT_ONCE = 4
_REMEDY = (
    "is the dispatcher reachable there? For example: kubectl -n fairway-system port-forward "
    "deploy/fairway-dispatcher 8082, or --dispatcher URL"
)


class DispatcherError(Exception):
    """The dispatcher gave no usable answer; the message names the URL and says what to do."""


class NoSuch(DispatcherError):
    """The dispatcher knows no such object; the message says what it knows."""


@dataclass(frozen=True, slots=True)
class Dispatcher:
    """Where a dispatcher's visibility API is.

    ``ca_file``: who signed its certificate, for https. ``bearer``: whose token is sent; None for none.
    ``namespaces``: what the answers shall be about, instead of all that one may see.
    """

    url: str
    ca_file: Path | None = None
    bearer: Bearer | None = None
    namespaces: tuple[str, ...] = ()

    @property
    def kubeconfig(self) -> tuple[str | None, str]:
        """File, None for kubectl's, and context by which karmada-apiserver is reached as the same user."""
        bearer = self.bearer or Bearer()
        return None if bearer.kubeconfig is None else str(bearer.kubeconfig), bearer.context

    @asynccontextmanager
    async def connected(
        self, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> AsyncIterator["Connection"]:
        """Connections for a while. Raises DispatcherError for a URL or file that cannot be used."""
        if not self.url.startswith(("http://", "https://")):
            raise DispatcherError(f"--dispatcher {self.url}: expected a URL such as {DEFAULT_URL}")
        try:
            tokens = NoTokens() if self.bearer is None else self.bearer.tokens(self.url)
        except TokenError as error:
            raise DispatcherError(str(error)) from None
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
        async with aiohttp.ClientSession(timeout=timeout, trust_env=False) as session:
            yield Connection(session, self.url.rstrip("/"), self._tls(), tokens, self.namespaces, sleep)

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

    def __init__(
        self,
        session: aiohttp.ClientSession,
        url: str,
        tls: ssl.SSLContext | bool,
        tokens: Tokens,
        namespaces: Sequence[str],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._session = session
        self._url = url
        self._tls = tls
        self._tokens = tokens
        self._namespaces = namespaces
        self._sleep = sleep
        self._places = asyncio.Semaphore(_AT_ONCE)

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
        params = [("namespace", name) for name in self._namespaces]
        if limit:
            params.append(("limit", str(limit)))
        async with self._places:
            body = await self._answered(url, params)
        try:
            return msgspec.json.decode(body, type=document)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise DispatcherError(
                f"{url}: {error}; expected the visibility API of a Fairway dispatcher: {_REMEDY}"
            ) from None

    async def _answered(self, url: str, params: Sequence[tuple[str, str]]) -> bytes:
        try:
            token = await self._tokens.current()
            answer = await self._once(url, params, token)
            for _ in range(_TRIES - 1):
                if answer.status == _UNAUTHORIZED and (replaced := await self._tokens.replaced()):
                    token = replaced
                elif answer.status in _LATER and answer.retry_after_s is not None:
                    await self._sleep(min(answer.retry_after_s, _LONGEST_WAIT_S))
                else:
                    break
                answer = await self._once(url, params, token)
        except TokenError as error:
            raise DispatcherError(f"{url}: {error}") from None
        if answer.status < _FIRST_FAILURE:
            return answer.body
        said = _said(answer.body)
        match answer.status:
            case 404:
                raise NoSuch(f"{url}: {said or 'not found'}")
            case 401:
                raise DispatcherError(f"{url}: {said}; {HOW_TO_GET_ONE}")
            case 403:
                raise DispatcherError(f"{url}: {said}")
            case status:
                raise DispatcherError(f"{url}: HTTP {status}: {said}; {_REMEDY}")

    async def _once(self, url: str, params: Sequence[tuple[str, str]], token: str) -> "_Answer":
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            async with self._session.get(
                url, params=params, headers=headers, ssl=self._tls, allow_redirects=False
            ) as response:
                body = await response.content.read(_MOST_BYTES)
                later = response.headers.get("Retry-After", "")
                return _Answer(response.status, body, float(later) if later.isdecimal() else None)
        except TimeoutError:
            raise DispatcherError(f"{url}: no answer within {_TIMEOUT_S:.0f} s; {_REMEDY}") from None
        except (aiohttp.ClientError, ValueError, OSError) as error:
            raise DispatcherError(f"{url}: {in_words(error)}; {_REMEDY}") from None


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: bytes
    retry_after_s: float | None


class _Refusal(msgspec.Struct):
    error: str


async def pending_queues(connection: Connection, queues: QueueList, limit: int) -> list[QueueView]:
    """Every queue in which something waits, each with its first ``limit`` workloads."""
    waiting = [queue.name for queue in queues.queues if queue.pending]
    return list(await asyncio.gather(*(connection.queue(name, limit) for name in waiting)))


def _said(body: bytes) -> str:
    try:
        text = msgspec.json.decode(body, type=_Refusal).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        text = body.decode(errors="replace")
    return printable(text.strip(), 500)
