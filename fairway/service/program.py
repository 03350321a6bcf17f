"""What every program does beside its own work: logs, metrics, endpoints, a watch on its loop, its end."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector

from fairway.service import logs
from fairway.service.certificates import TlsError
from fairway.service.common_flags import EndpointSettings, LogSettings
from fairway.service.http import Checks, EndpointError, serve_endpoints
from fairway.service.lifecycle import StallMonitor, tune_interpreter
from fairway.service.lifecycle import run as run_process
from fairway.service.metrics import PermissionMetrics

logger = logging.getLogger(__name__)


CANNOT_WORK: Final = 2
"""The exit code for a configuration that no waiting mends."""


class StartError(RuntimeError):
    """The program cannot start; the message says what and where."""


def run(settings: LogSettings, serve: Callable[[asyncio.Event], Coroutine[Any, Any, int]]) -> int:
    """Serve until SIGTERM or SIGINT; the exit code, 1 where it cannot start."""
    logs.configure(log_format=settings.format, verbosity=settings.verbosity)
    tune_interpreter()
    try:
        return run_process(serve)
    except (StartError, EndpointError, TlsError) as error:
        logger.error("cannot start: %s", error)
        return 1


class Program:
    """One process: its metrics go into ``registry``, and ``stalls`` watches its loop.

    ``watch_stalls``: whether it does. That wakes the process a hundred times a second, too often for one that
    is on every node and that nobody waits for.
    """

    def __init__(
        self, endpoints: EndpointSettings, notices: Iterable[str] = (), *, watch_stalls: bool = True
    ) -> None:
        self._endpoints = endpoints
        self._watch_stalls = watch_stalls
        self.registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        self.stalls = StallMonitor()
        for notice in notices:
            logger.warning(notice)

    def tell_denied(self, denied: Callable[[], Iterable[tuple[str, str, str]]]) -> None:
        """Show as a metric what is not allowed: API, verb and resource of each."""
        self.registry.register(PermissionMetrics(denied))

    def endpoints(
        self, checks: Checks, before_metrics: Callable[[], Awaitable[None]] | None = None
    ) -> AbstractAsyncContextManager[EndpointSettings]:
        """Health, metrics and profiling served. Raises EndpointError."""
        return serve_endpoints(
            self._endpoints, checks=checks, registry=self.registry, before_metrics=before_metrics
        )

    @asynccontextmanager
    async def work(self) -> AsyncIterator["Work"]:
        """Run what is begun here until the context is left, which cancels it; if it fails, so does this."""
        async with asyncio.TaskGroup() as group:
            work = Work(group)
            if self._watch_stalls:
                work.begin("stalls", self.stalls.run())
            yield work
            work.cancel()
        logger.info("stopped")


class Work:
    """The tasks of a program."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self, name: str, task: Coroutine[Any, Any, None]) -> None:
        """Run it beside the rest."""
        self._tasks.append(self._group.create_task(task, name=name))

    def cancel(self) -> None:
        """End all of them."""
        for task in self._tasks:
            task.cancel()
