"""Requests to one API server: authenticated, rate-limited and typed; and streams of lines.

Credentials are looked at before each request (`AccessKeeper`), and once more after a 401. Connections
belong to the TLS context they were opened with, so that new requests use a new certificate while watches
that are open go on undisturbed.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypedDict, TypeVar, Unpack

import aiohttp
import msgspec

from fairway.kube.access import Access, AccessKeeper
from fairway.kube.credentials import CredentialSource, InClusterSource, UrlSource
from fairway.kube.denials import Denials
from fairway.kube.errors import (
    BadObject,
    Conflict,
    Denied,
    Invalid,
    NotFound,
    Refused,
    ServerError,
    Silent,
    Unauthorized,
    Unreachable,
)
from fairway.kube.lines import LineSplitter, LineTooLong
from fairway.kube.pace import take_turn
from fairway.kube.request_attributes import attributes
from fairway.kube.status import refusal_from_body
from fairway.kube.throttle import TokenBucket
from fairway.kube.transport import TimedOut, open_session, read_body, transport_errors

T = TypeVar("T")
Params = Mapping[str, str]

JSON = "application/json"
METADATA = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
"""Objects without anything but their metadata: for one object and for watches."""
METADATA_LIST = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""The same for lists."""

DEFAULT_QPS = 20.0
DEFAULT_BURST = 30
MAX_LINE_BYTES = 64 << 20

_CONNECT_TIMEOUT_S = 10.0
_HEADERS_TIMEOUT_S = 30.0
_REQUEST_TIMEOUT_S = 60.0
_WHOLE = aiohttp.ClientTimeout(total=_REQUEST_TIMEOUT_S, sock_connect=_CONNECT_TIMEOUT_S)
# With waits of our own in between.
_IN_PARTS = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT_S, sock_read=_REQUEST_TIMEOUT_S)
# Decoding this takes a millisecond.
_LARGE_BYTES = 512 << 10
_UNAUTHORIZED = 401
_FIRST_FAILURE = 300


@dataclass(frozen=True, slots=True)
class _Request:
    method: str
    path: str
    params: Params
    limits: aiohttp.ClientTimeout = _WHOLE
    headers_within_s: float = _REQUEST_TIMEOUT_S
    encoding: str = "gzip"
    body: bytes | None = None
    content_type: str = JSON
    accept: str = JSON


class _Options(TypedDict, total=False):
    qps: float
    burst: int
    denials: Denials | None


class KubeClient:
    """An HTTP client for one API server; use it as an async context manager, or close it.

    Constructing does no I/O: the first request loads the credentials. Every method raises KubeError.
    ``qps`` and ``burst`` mean what they do in client-go (see `TokenBucket`). ``clock`` is monotonic,
    ``wall_clock`` in seconds since the epoch. ``server`` is the URL, once credentials have been loaded.
    ``denials`` are told of what the server does not allow.
    """

    def __init__(
        self,
        source: CredentialSource,
        *,
        qps: float = DEFAULT_QPS,
        burst: int = DEFAULT_BURST,
        denials: Denials | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._source = source
        self._keeper = AccessKeeper(source, wall_clock)
        self._bucket = TokenBucket(qps, burst, clock)
        self._sleep = sleep
        self.server = "API server"
        self.denials = Denials() if denials is None else denials
        self._session: aiohttp.ClientSession | None = None

    @classmethod
    def from_kubeconfig(
        cls,
        path: str | None = None,
        *,
        context: str | None = None,
        master: str | None = None,
        **options: Unpack[_Options],
    ) -> Self:
        """Credentials of a kubeconfig's ``context`` (default: its current one).

        Without ``path``: the files kubectl would read. ``master`` replaces the server's URL as client-go's
        ``--master`` does; with ``master`` and no ``path`` requests are anonymous.
        """
        if master and not path:
            return cls(UrlSource(master, None), **options)
        # Only here: who runs as a pod's service account goes without the memory that it takes.
        from fairway.kube.kubeconfig_source import KubeconfigSource

        return cls(KubeconfigSource(path, context, master), **options)

    @classmethod
    def from_flags(
        cls, kubeconfig: Path | None, master: str, *, context: str = "", **options: Unpack[_Options]
    ) -> Self:
        """What ``--kubeconfig`` and ``--master`` say; without both, as the service account of our pod."""
        if kubeconfig is None and not master:
            return cls(InClusterSource(), **options)
        path = None if kubeconfig is None else str(kubeconfig)
        return cls.from_kubeconfig(path, context=context or None, master=master or None, **options)

    @classmethod
    def from_url(cls, url: str, *, token: str | None = None, **options: Unpack[_Options]) -> Self:
        """A fixed server URL, with a bearer token or anonymous."""
        return cls(UrlSource(url, token), **options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection; streams still open end with Unreachable."""
        if self._session is not None:
            await self._session.close()

    async def authenticate(self) -> str:
        """Load the credentials now, so that a bad configuration shows at start; answers the server's URL."""
        return (await self._access()).credentials.server

    async def check_configuration(self) -> None:
        """Raises BadConfig for what cannot work whatever else is up or down; asks nobody, runs no plugin."""
        await self._source.check()

    async def get_bytes(self, path: str, params: Params | None = None) -> bytes:
        """The body of a GET."""
        return await self._exchange(_Request("GET", path, params or {}))

    async def get_json(
        self,
        path: str,
        type: type[T],
        params: Params | None = None,
        *,
        accept: str = JSON,
        began: Callable[[], Awaitable[None]] | None = None,
    ) -> T:
        """The body of a GET, decoded as ``type``; ``accept`` asks for another form of it, such as METADATA.

        ``began`` is awaited when the server has begun to answer, however long; only then the rest is read.

        The further pages of a list (``continue`` among the parameters) are not charged to the request rate,
        because a list is one request to the programs whose ``--kube-api-qps`` this is.
        """
        limits = _WHOLE if began is None else _IN_PARTS
        request = _Request("GET", path, params or {}, limits, accept=accept)
        return await self._typed(request, type, began)

    async def post(self, path: str, body: object, type: type[T], params: Params | None = None) -> T:
        """Create; ``body`` is bytes or anything msgspec can encode. Conflict if the object exists."""
        return await self._typed(_Request("POST", path, params or {}, body=_encoded(body)), type)

    async def put(self, path: str, body: object, type: type[T], params: Params | None = None) -> T:
        """Replace; Conflict if ``body`` carries a resourceVersion that is no longer current."""
        return await self._typed(_Request("PUT", path, params or {}, body=_encoded(body)), type)

    async def patch(
        self, path: str, body: object, type: type[T], *, content_type: str, params: Params | None = None
    ) -> T:
        """Patch; ``content_type`` such as ``application/merge-patch+json`` says how ``body`` is meant."""
        request = _Request("PATCH", path, params or {}, body=_encoded(body), content_type=content_type)
        return await self._typed(request, type)

    async def delete(self, path: str, type: type[T], body: object = None, params: Params | None = None) -> T:
        """Delete; ``body`` may be DeleteOptions (preconditions, propagation)."""
        return await self._typed(_Request("DELETE", path, params or {}, body=_encoded(body)), type)

    @asynccontextmanager
    async def stream(
        self, path: str, params: Params | None = None, *, idle_timeout_s: float, accept: str = JSON
    ) -> AsyncGenerator[AsyncIterator[bytes], None]:
        """The lines of a GET that the server keeps open, as they arrive; entering waits for the headers.

        The iterator ends when the server ends the answer. It raises Silent when nothing was read for
        ``idle_timeout_s``, Unreachable when the connection breaks, BadObject for a line above 64 MiB. Lines
        that arrived together follow each other without giving way to other tasks: that is up to the caller.
        """
        limits = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT_S, sock_read=idle_timeout_s)
        patience_s = min(_HEADERS_TIMEOUT_S, idle_timeout_s)
        request = _Request("GET", path, params or {}, limits, patience_s, "identity", accept=accept)
        response = await self._accepted(request)
        try:
            async with aclosing(_lines(response, self._where(request), idle_timeout_s)) as lines:
                yield lines
        except Unreachable:
            self.denials.troubled()
            raise
        finally:
            # Not closed in good order: over TLS that waits for the peer's farewell, and the peer may be dead.
            if response.connection is not None and response.connection.transport is not None:
                response.connection.transport.abort()
            response.close()

    async def _typed(
        self, request: _Request, type: type[T], began: Callable[[], Awaitable[None]] | None = None
    ) -> T:
        body = await self._exchange(request, began)
        if len(body) > _LARGE_BYTES:
            await take_turn()
        try:
            return msgspec.json.decode(body, type=type)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadObject(
                f"{self._where(request)}: {error}; expected JSON of the API type: is this an API server?"
            ) from error

    async def _exchange(self, request: _Request, began: Callable[[], Awaitable[None]] | None = None) -> bytes:
        async with await self._accepted(request) as response:
            if began is not None:
                await began()
            with transport_errors(self._where(request)):
                return await read_body(response)

    async def _accepted(self, request: _Request) -> aiohttp.ClientResponse:
        """The answer, its body still to be read; Refused if it is not a success."""
        if "continue" not in request.params:
            await self._throttle()
        access = await self._access()
        try:
            response = await self._sent(request, access)
        except Unreachable:
            self.denials.troubled()
            raise
        if response.status == _UNAUTHORIZED:
            refusal = await self._refusal(request, response)
            replacement = await self._keeper.replacement(access)
            if replacement is None:
                raise refusal
            response = await self._sent(request, replacement)
        if response.status >= _FIRST_FAILURE:
            raise await self._refusal(request, response)
        self._was_allowed(request)
        return response

    async def _refusal(self, request: _Request, response: aiohttp.ClientResponse) -> Refused:
        where = self._where(request)
        async with response:
            with transport_errors(where):
                body = await read_body(response)
        refusal = refusal_from_body(where, response.status, body, response.headers.get("Retry-After"))
        if isinstance(refusal, Denied):
            asked = attributes(request.method, request.path, request.params)
            if asked is not None:
                self.denials.refused(self.server, asked, refusal.user)
        elif isinstance(refusal, Unauthorized | ServerError):
            self.denials.troubled()
        elif isinstance(refusal, NotFound | Conflict | Invalid):
            # What comes after the question whether it is allowed.
            self._was_allowed(request)
        return refusal

    def _was_allowed(self, request: _Request) -> None:
        if self.denials:
            asked = attributes(request.method, request.path, request.params)
            if asked is not None:
                self.denials.allowed(self.server, asked)

    async def _sent(self, request: _Request, access: Access) -> aiohttp.ClientResponse:
        headers = {"Accept": request.accept, "Accept-Encoding": request.encoding}
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        if access.credentials.authorization is not None:
            headers["Authorization"] = access.credentials.authorization
        if self._session is None:
            self._session = open_session()
        with transport_errors(self._where(request)):
            async with asyncio.timeout(request.headers_within_s):
                return await self._session.request(
                    request.method,
                    access.credentials.server + request.path,
                    params=request.params,
                    data=request.body,
                    headers=headers,
                    timeout=request.limits,
                    ssl=access.tls or True,
                    server_hostname=access.credentials.tls_server_name,
                    proxy=access.proxy,
                    allow_redirects=False,
                )

    async def _access(self) -> Access:
        access = await self._keeper.usable()
        self.server = access.credentials.server
        return access

    async def _throttle(self) -> None:
        wait_s = self._bucket.reserve()
        if wait_s > 0:
            try:
                await self._sleep(wait_s)
            except asyncio.CancelledError:
                self._bucket.give_back()
                raise

    def _where(self, request: _Request) -> str:
        return f"{self.server}: {request.method} {request.path}"


def _encoded(body: object) -> bytes | None:
    return body if body is None or isinstance(body, bytes) else msgspec.json.encode(body)


async def _lines(
    response: aiohttp.ClientResponse, where: str, idle_timeout_s: float
) -> AsyncGenerator[bytes, None]:
    splitter = LineSplitter(MAX_LINE_BYTES)
    while True:
        try:
            with transport_errors(where):
                chunk = await response.content.readany()
            lines = splitter.feed(chunk)
        except LineTooLong as error:
            raise BadObject(f"{where}: {error}; expected one JSON event a line") from error
        except TimedOut as error:
            raise Silent(
                f"{where}: nothing read for {idle_timeout_s:g} s; connecting anew, as the connection may "
                f"be dead"
            ) from error
        for line in lines:
            yield line
        if not chunk:
            break
    if splitter.pending_bytes:
        raise Unreachable(f"{where}: the stream ended in the middle of a line; expected a whole event: retry")
