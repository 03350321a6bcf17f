import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Counter

from fairway.service.addresses import BindAddress
from fairway.service.common_flags import EndpointSettings
from fairway.service.http import Check, EndpointError, describe_checks, serve_endpoints

ANY = BindAddress("127.0.0.1", 0)
Get = Callable[..., Awaitable[tuple[int, str, str]]]


@contextlib.asynccontextmanager
async def serving(
    *,
    health: BindAddress | None = None,
    metrics: BindAddress | None = None,
    profiling: BindAddress | None = None,
    checks: Callable[[], Sequence[Check]] = lambda: (),
    registry: CollectorRegistry | None = None,
) -> AsyncIterator[tuple[EndpointSettings, Get]]:
    async with (
        serve_endpoints(
            EndpointSettings(health, metrics, profiling),
            checks=checks,
            registry=registry or CollectorRegistry(),
        ) as endpoints,
        aiohttp.ClientSession() as session,
    ):

        async def get(
            address: BindAddress | None, path: str, accept: str = "*/*", method: str = "GET"
        ) -> tuple[int, str, str]:
            assert address is not None
            url = f"http://{address.host or '127.0.0.1'}:{address.port}{path}"
            async with session.request(method, url, headers={"Accept": accept}) as response:
                return response.status, await response.text(), response.headers["Content-Type"]

        yield endpoints, get


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def test_healthz_is_ok_whatever_the_checks_say() -> None:
    async def scenario() -> None:
        async with serving(health=ANY, checks=lambda: [Check("sync", False, "")]) as (at, get):
            assert (await get(at.health, "/healthz"))[:2] == (200, "ok")
            assert (await get(at.health, "/healthz", method="HEAD"))[0] == 200

    asyncio.run(scenario())


def test_readyz_follows_the_checks_and_tells_each() -> None:
    checks = [Check("grpc", True, ""), Check("cluster m1", False, "first list not complete")]

    async def scenario() -> None:
        async with serving(health=ANY, checks=lambda: checks) as (at, get):
            status, text, _ = await get(at.health, "/readyz")
            assert (status, text) == (503, describe_checks(checks))
            checks[1] = Check("cluster m1", True, "5000 nodes")
            assert (await get(at.health, "/readyz"))[0] == 200

    asyncio.run(scenario())


def test_checks_read_as_lines_with_a_verdict() -> None:
    assert describe_checks([Check("a", True, ""), Check("b", False, "why")]) == (
        "[+]a ok\n[-]b failed: why\nnot ready\n"
    )
    assert describe_checks([Check("a", True, "5 nodes")]) == "[+]a ok: 5 nodes\nready\n"


@pytest.mark.parametrize(
    ("accept", "content_type", "ending"),
    [
        ("*/*", "text/plain; version=0.0.4", "answers_total 3.0\n"),
        ("application/openmetrics-text; version=1.0.0", "application/openmetrics-text", "# EOF\n"),
    ],
)
def test_metrics_come_in_the_format_asked_for(accept: str, content_type: str, ending: str) -> None:
    registry = CollectorRegistry()
    Counter("answers", "Answers.", registry=registry).inc(3)

    async def scenario() -> None:
        async with serving(metrics=ANY, registry=registry) as (at, get):
            status, text, got_type = await get(at.metrics, "/metrics", accept)
            assert status == 200
            assert got_type.startswith(content_type)
            assert "answers_total 3.0" in text
            if "openmetrics" in accept:
                assert text.endswith(ending)

    asyncio.run(scenario())


def test_different_addresses_serve_their_own_paths_only() -> None:
    async def scenario() -> None:
        health, metrics = BindAddress("127.0.0.1", free_port()), BindAddress("127.0.0.1", free_port())
        async with serving(health=health, metrics=metrics) as (at, get):
            assert (at.health, at.metrics) == (health, metrics)
            assert (await get(health, "/metrics"))[0] == 404
            assert (await get(metrics, "/healthz"))[0] == 404
            assert (await get(metrics, "/debug/pprof/"))[0] == 404

    asyncio.run(scenario())


def test_equal_addresses_share_one_listener() -> None:
    async def scenario() -> None:
        async with serving(health=ANY, metrics=ANY, profiling=ANY) as (at, get):
            assert at.health == at.metrics == at.profiling
            for path in ("/healthz", "/readyz", "/metrics", "/debug/pprof/"):
                assert (await get(at.health, path))[0] == 200

    asyncio.run(scenario())


def test_what_is_switched_off_does_not_listen() -> None:
    async def scenario() -> None:
        async with serving(metrics=ANY) as (at, _):
            assert (at.health, at.profiling) == (None, None)
            assert at.metrics is not None

    asyncio.run(scenario())


def test_every_interface_is_served_without_a_host() -> None:
    async def scenario() -> None:
        async with serving(health=BindAddress("", 0)) as (at, get):
            assert at.health is not None
            assert (await get(at.health, "/healthz"))[:2] == (200, "ok")

    asyncio.run(scenario())


@pytest.mark.parametrize("host", ["127.0.0.1", "", "no-such-host.invalid"])
def test_an_address_that_cannot_be_had_is_named_and_nothing_stays_open(host: str) -> None:
    async def scenario() -> None:
        free = BindAddress("127.0.0.1", free_port())
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = BindAddress(host, taken.getsockname()[1])
            with pytest.raises(EndpointError, match="cannot serve metrics on") as caught:
                async with serving(health=free, metrics=address):
                    raise AssertionError("served on a taken address")
            assert str(address) in str(caught.value)
        async with serving(health=free):
            pass

    asyncio.run(scenario())
