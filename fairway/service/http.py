"""The small HTTP endpoints of a service: health, readiness, metrics and profiling, on the service's own loop.

``/healthz`` says that the loop turns, nothing more, so that a slow member cluster never gets a pod killed;
``/readyz`` lists every check with a reason. Metrics and health may share one address, as in Karmada's
components (cmd/scheduler-estimator/app, 1.19).
"""

import asyncio
import contextlib
import errno
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from aiohttp import web
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from fairway.service.addresses import BindAddress
from fairway.service.common_flags import EndpointSettings
from fairway.service.profiling import add_profiling_routes

Checks = Callable[[], Sequence["Check"]]


class EndpointError(RuntimeError):
    """An address that cannot be listened on; the message names the purpose, the address and the cause."""


@dataclass(frozen=True, slots=True)
class Check:
    """One condition of readiness: whether it holds, and why or why not."""

    name: str
    ok: bool
    detail: str


@contextlib.asynccontextmanager
async def serve_endpoints(
    asked: EndpointSettings,
    *,
    checks: Checks,
    registry: CollectorRegistry,
    before_metrics: Callable[[], Awaitable[None]] | None = None,
) -> AsyncIterator[EndpointSettings]:
    """Serve while the context is open; endpoints with equal addresses share a listener.

    Where they really listen is returned, with chosen ports filled in.
    ``checks`` is asked on every ``/readyz``; ``registry`` is collected on every ``/metrics``, after
    ``before_metrics``.
    Raises EndpointError.
    """
    apps: dict[BindAddress, web.Application] = {}
    purposes: dict[BindAddress, list[str]] = {}

    def on(address: BindAddress | None, purpose: str, add_routes: Callable[[web.Application], None]) -> None:
        if address is not None:
            add_routes(apps.setdefault(address, web.Application()))
            purposes.setdefault(address, []).append(purpose)

    on(asked.health, "health", lambda app: _add_health_routes(app, checks))
    on(asked.metrics, "metrics", lambda app: _add_metrics_route(app, registry, before_metrics))
    on(asked.profiling, "profiling", add_profiling_routes)

    async with contextlib.AsyncExitStack() as stack:
        bound: dict[BindAddress | None, BindAddress | None] = {None: None}
        for address, app in apps.items():
            listener = _listen(address, " and ".join(purposes[address]))
            bound[address] = BindAddress(address.host, listener.getsockname()[1])
            runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            await web.SockSite(runner, listener).start()
        yield EndpointSettings(bound[asked.health], bound[asked.metrics], bound[asked.profiling])


def _listen(address: BindAddress, purpose: str) -> socket.socket:
    try:
        if not address.host and socket.has_dualstack_ipv6():
            try:
                return socket.create_server(
                    ("", address.port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=128
                )
            except OSError as error:
                # IPv6 is compiled in but switched off on this host, as in many containers.
                if error.errno not in {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}:
                    raise
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        return socket.create_server((address.host, address.port), family=family, backlog=128)
    except OSError as error:
        raise EndpointError(f"cannot serve {purpose} on {address}: {error.strerror or error}") from error


def _add_health_routes(app: web.Application, checks: Checks) -> None:
    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readyz(_: web.Request) -> web.Response:
        results = checks()
        ready = all(check.ok for check in results)
        return web.Response(status=200 if ready else 503, text=describe_checks(results))

    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)


def describe_checks(checks: Sequence[Check]) -> str:
    """One line a check as the Kubernetes API server writes them, ``[+]name ok: detail``, then the verdict."""
    lines = [
        f"[{'+' if check.ok else '-'}]{check.name} {'ok' if check.ok else 'failed'}"
        + (f": {check.detail}" if check.detail else "")
        for check in checks
    ]
    return "\n".join([*lines, "ready" if all(check.ok for check in checks) else "not ready"]) + "\n"


@dataclass(frozen=True, slots=True)
class _Collected(Collector):
    metrics: Sequence[Metric]

    def collect(self) -> Iterable[Metric]:
        return self.metrics


def _add_metrics_route(
    app: web.Application, registry: CollectorRegistry, before: Callable[[], Awaitable[None]] | None
) -> None:
    async def metrics(request: web.Request) -> web.Response:
        if before is not None:
            await before()
        encode, content_type = choose_encoder(",".join(request.headers.getall("Accept", [])))
        # Values are read on the loop, where their writers are, a metric in a turn: no collector may yield
        # while it goes through what others write. The text, the longer job, is made in a thread.
        read = []
        for metric in registry.collect():
            read.append(metric)
            await asyncio.sleep(0)
        body = await asyncio.to_thread(encode, _Collected(read))
        return web.Response(body=body, headers={"Content-Type": content_type})

    app.router.add_get("/metrics", metrics)
