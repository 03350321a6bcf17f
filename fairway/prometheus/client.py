"""Asking one Prometheus, by GET /api/v1/query, within a deadline and within bounds.

A Prometheus that cannot be asked at all is an error; a query that fails costs what it would have filled.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import aiohttp

from fairway.kube.credentials import Credentials, proxy_for, tls_context
from fairway.kube.errors import BadConfig, Unreachable
from fairway.kube.transport import open_session, transport_errors
from fairway.prometheus.answer import (
    MOST_SERIES,
    PrometheusError,
    Sample,
    Vector,
    refusal,
    too_many,
    vector,
)
from fairway.prometheus.exporters import METRICS, Exporter, Value
from fairway.prometheus.queries import DEVICES, HOLDERS, MEASURES, SERIES, STATES, well
from fairway.prometheus.server import Server
from fairway.prometheus.told import Told, by_key, id_of


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked, and within which bounds: all measures, by a command that somebody waits for.

    ``sparse``: those of ``values`` of which 0 is asked for the devices in ``doubted`` alone, by `id_of`: of
    tens of thousands nearly all are 0.
    ``is_whole``: a query that fails, or is answered with a warning, is an error, for those who would take a
    gap for health.
    """

    values: frozenset[Value] = frozenset(Value)
    sparse: frozenset[Value] = frozenset()
    doubted: Mapping[Value, frozenset[str]] = field(default_factory=dict)
    deadline_s: float = 120.0
    most_series: int = MOST_SERIES
    most_bytes: int = 256 << 20
    is_whole: bool = False

    def query(self, value: Value, exporter: Exporter) -> str:
        """What is asked for this of the exporter's metrics; empty for nothing."""
        asked = next((one.of(exporter) for one in MEASURES if one.value is value), "")
        # NaN is not 0 either, and to be told.
        return f"({asked}) != 0" if asked and value in self.sparse else asked


EVERYTHING = Wanted()

_AT_ONCE = 2
# Of 40 characters each, in one URL.
_NAMES = 100
_OK = 200
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Found:
    """What a Prometheus told, by exporter, and what it could not."""

    told: tuple[Told, ...]
    problems: tuple[str, ...]


@asynccontextmanager
async def connected(server: Server, at_s: float, wanted: Wanted) -> AsyncIterator["Client"]:
    """A client that gives up after the deadline of ``wanted``. Raises PrometheusError."""
    credentials, tls = await asyncio.to_thread(_shown_to, server)
    until_s = asyncio.get_running_loop().time() + wanted.deadline_s
    async with open_session() as session:
        yield Client(server, session, credentials, tls, at_s, until_s, wanted)


async def ask(server: Server, at_s: float, seen: Callable[[str], None], wanted: Wanted = EVERYTHING) -> Found:
    """Everything that is told of devices at the moment ``at_s``. Raises PrometheusError.

    ``seen`` is told what is being read.
    """
    async with connected(server, at_s, wanted) as client:
        found = [await _asked(client, exporter, seen) for exporter in Exporter]
    told = tuple(one for one in found if one is not None)
    if not told and client.problems:
        raise PrometheusError(client.problems[0])
    if not told:
        raise PrometheusError(
            f"{server}: no series of {' nor of '.join(Exporter)} (such as {SERIES[Exporter.AGENT]} and "
            "DCGM_FI_DEV_GPU_UTIL); expected it to scrape one of them, under its own metric names"
        )
    return Found(told, tuple(dict.fromkeys(client.problems)))


async def _asked(client: "Client", exporter: Exporter, seen: Callable[[str], None]) -> Told | None:
    """What the exporter's metrics tell; None where there are none, or too many."""
    count = await client.vector(f"count({SERIES[exporter]})")
    series = max((sample.value for sample in count.samples), default=0.0)
    if not series > 0:
        return None
    seen(f"{series:,.0f} series of {exporter}")
    if series > client.wanted.most_series:
        client.problems.append(too_many(f"{client.server}, {exporter}", series, client.wanted.most_series))
        return None
    devices = (await client.vector(DEVICES[exporter])).samples
    gate = asyncio.Semaphore(_AT_ONCE)

    async def one(about: str, query: str) -> tuple[Sample, ...]:
        async with gate:
            try:
                return (await client.vector(query)).samples
            except PrometheusError as error:
                if client.wanted.is_whole:
                    raise PrometheusError(f"{error} (asked for {about}, by {exporter})") from error
                client.problems.append(f"{about}, by {exporter}, is not known: {error}")
                return ()

    queries = {
        value: query for value in client.wanted.values if (query := client.wanted.query(value, exporter))
    }
    values = dict(zip(queries, await asyncio.gather(*map(one, queries, queries.values())), strict=True))
    for value, names in client.wanted.doubted.items():
        silent = names - set(map(id_of, by_key(METRICS[exporter], values.get(value, ()))))
        doubted = sorted({name.partition("/")[0] for name in silent})
        for start in range(0, len(doubted), _NAMES):
            if query := well(exporter, value, doubted[start : start + _NAMES]):
                values[value] += await one(value, query)
    if exporter is not Exporter.AGENT:
        return Told(exporter, client.at_s, devices, values=values)
    holders, states = await one("who holds devices", HOLDERS), await one("health", STATES)
    return Told(exporter, client.at_s, devices, holders, states, values)


class Client:
    """Asks one server. ``until_s``: the deadline, by the loop's clock.

    ``problems``: what was warned of, and what failed.
    """

    def __init__(
        self,
        server: Server,
        session: aiohttp.ClientSession,
        credentials: Credentials,
        tls: ssl.SSLContext | None,
        at_s: float,
        until_s: float,
        wanted: Wanted,
    ) -> None:
        self.server, self.at_s = server, at_s
        self.problems: list[str] = []
        self.wanted = wanted
        self._session, self._credentials, self._tls, self._until_s = session, credentials, tls, until_s

    async def vector(self, query: str, at_s: float | None = None) -> Vector:
        """The answer to an instant query, about ``at_s`` where that is another moment.

        Raises PrometheusError.
        """
        left_s = self._until_s - asyncio.get_running_loop().time()
        params = {
            "query": query,
            "time": f"{self.at_s if at_s is None else at_s:.3f}",
            "timeout": f"{max(1, int(left_s))}s",
        }
        where = str(self.server)
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        if self._credentials.authorization is not None:
            headers["Authorization"] = self._credentials.authorization
        try:
            with transport_errors(where):
                async with asyncio.timeout(max(0.0, left_s)):
                    response = await self._session.get(
                        f"{self.server.url}/api/v1/query",
                        params=params,
                        headers=headers,
                        ssl=self._tls or True,
                        proxy=proxy_for(self._credentials),
                        allow_redirects=False,
                    )
                    async with response:
                        body = await self._body(response)
        except Unreachable as error:
            raise PrometheusError(str(error)) from error
        if response.status != _OK:
            raise refusal(where, response.status, body, response.headers.get("Location", ""))
        found = await asyncio.to_thread(vector, where, body, self.wanted.most_series)
        if found.warnings and self.wanted.is_whole:
            raise PrometheusError(
                f"{where} warns: {found.warnings[0]}; expected a whole answer: is a store, or a Prometheus, "
                "that it asks away?"
            )
        self.problems += (f"{where} warns: {text}" for text in found.warnings)
        return found

    async def _body(self, response: aiohttp.ClientResponse) -> bytearray:
        body, most = bytearray(), self.wanted.most_bytes
        async for part in response.content.iter_any():
            body += part
            if len(body) > most:
                raise PrometheusError(
                    f"{self.server}: an answer of more than {most >> 20} MiB; expected less: give the "
                    "Prometheus of one cluster"
                )
        return body


def _shown_to(server: Server) -> tuple[Credentials, ssl.SSLContext | None]:
    """Reads the files. Raises PrometheusError."""
    token = ""
    if server.token_file is not None:
        host = urlsplit(server.url).hostname or ""
        if server.url.startswith("http://") and host not in _LOOPBACK:
            raise PrometheusError(
                f"{server}: a token would travel unencrypted; expected https:// for --prometheus-token-file"
            )
        try:
            token = server.token_file.read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "not ASCII"
            raise PrometheusError(
                f"{server}: --prometheus-token-file {server.token_file}: {why}; expected a bearer token"
            ) from error
        if not token or not token.isprintable() or " " in token:
            raise PrometheusError(
                f"{server}: --prometheus-token-file {server.token_file}: expected one bearer token, "
                "on one line"
            )
    ca_file = None if server.ca_file is None else str(server.ca_file)
    credentials = Credentials(server.url, f"Bearer {token}" if token else None, ca_file=ca_file)
    try:
        return credentials, tls_context(credentials)
    except BadConfig as error:
        raise PrometheusError(str(error)) from error
