"""A webhook on loopback, and calls to it as an API server makes them."""

import asyncio
import io
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import msgspec
from prometheus_client import CollectorRegistry

from fairway.accelerators.builtin import builtin_catalogue
from fairway.scope import Scope
from fairway.service.addresses import BindAddress
from fairway.service.https import serving_context
from tests.certs import Authority, Pair
from webhook.app import ANSWER_WITHIN_S, MAX_CONNECTIONS, MAX_CONNECTIONS_OF_ONE, application, bind, serve
from webhook.metrics import WebhookMetrics
from webhook.tls import Serving, install

LOOPBACK = BindAddress("127.0.0.1", 0)


def serving_of(pair: Pair, authority: Authority) -> Serving:
    return Serving(pair.certificate, pair.key, authority.pem)


def trusting(*authorities: bytes) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=b"".join(authorities).decode())


@dataclass(slots=True)
class Running:
    """A webhook that serves, and a session that trusts it."""

    url: str
    port: int
    context: ssl.SSLContext
    registry: CollectorRegistry
    session: aiohttp.ClientSession
    authority: Authority

    async def post(
        self, body: bytes, path: str = "/bindings", headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        async with self.session.post(self.url + path, data=io.BytesIO(body), headers=headers) as response:
            return response.status, await response.read()

    async def ask(self, review: object, path: str = "/bindings") -> dict[str, Any]:
        status, body = await self.post(msgspec.json.encode(review), path)
        assert status == 200, body
        answer: dict[str, Any] = msgspec.json.decode(body)["response"]
        return answer

    async def until(self, condition: Callable[[], bool]) -> None:
        """Give way to the webhook until the condition holds."""
        while not condition():  # noqa: ASYNC110 - counters of a metrics library wake nobody
            await asyncio.sleep(0)

    def counted(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(f"fairway_webhook_{name}", labels) or 0.0


@asynccontextmanager
async def running(
    *,
    answer_within_s: float = ANSWER_WITHIN_S,
    max_connections: int = MAX_CONNECTIONS,
    max_connections_of_one: int = MAX_CONNECTIONS_OF_ONE,
) -> AsyncIterator[Running]:
    authority = Authority("webhook-ca")
    context = serving_context()
    install(context, serving_of(authority.issue("webhook"), authority))
    registry = CollectorRegistry()
    metrics = WebhookMetrics(registry, version="1")
    app = application(Scope(builtin_catalogue()), metrics, answer_within_s=answer_within_s)
    connector = aiohttp.TCPConnector(ssl=trusting(authority.pem))
    async with (
        serve(
            app,
            bind(LOOPBACK),
            context,
            metrics,
            max_connections=max_connections,
            max_connections_of_one=max_connections_of_one,
        ) as port,
        aiohttp.ClientSession(connector=connector) as session,
    ):
        yield Running(f"https://localhost:{port}", port, context, registry, session, authority)
