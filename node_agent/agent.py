"""The agent's process: everything put together, started in the right order, and ended cleanly.

Nothing of it needs an API server, kubelet or a driver to be there: what is missing is told, shown, and found
when it comes.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Final

from fairway.kube.client import KubeClient
from fairway.kube.denials import Denials
from fairway.kube.observation import ReflectorMetrics
from fairway.service.http import Check
from fairway.service.metrics import Declared, WatchCounters
from fairway.service.program import Program
from fairway.service.program import run as run_program
from fairway.service.version import release
from node_agent.metrics import WATCHES, AgentMetrics
from node_agent.permissions import PERMISSIONS
from node_agent.publisher import Publisher
from node_agent.publishing import Publication
from node_agent.sampling import Sample, Sampler
from node_agent.settings import Settings
from node_agent.sources import Sources, real_sources
from node_agent.writer import Writer

logger = logging.getLogger(__name__)

_WAIT_S: Final = 2.0
"""How long the first look waits for what is stored and listed, so that it knows all at once."""


def run(settings: Settings) -> int:
    """Look and write until SIGTERM or SIGINT; the exit code."""
    return run_program(settings.logs, lambda stop: serve(settings, stop))


async def serve(
    settings: Settings,
    stop: asyncio.Event,
    sources: Callable[[Settings, KubeClient, ReflectorMetrics], Sources] = real_sources,
) -> int:
    """Look and write until ``stop`` is set. Raises EndpointError."""
    program = Program(settings.endpoints, settings.notices, watch_stalls=False)
    async with AsyncExitStack() as stack:
        denials = Denials(PERMISSIONS)
        program.tell_denied(lambda: [("cluster", one.verb, one.resource) for one in denials.current()])
        api = settings.api
        client = await stack.enter_async_context(
            KubeClient.from_flags(api.kubeconfig, api.master, context=api.context, denials=denials)
        )
        writer = Writer(client, settings.node, time.monotonic)
        watches = WatchCounters(Declared(program.registry), WATCHES).of()
        found = sources(settings, client, watches)
        if found.close is not None:
            stack.push_async_callback(found.close)
        sampler = Sampler(
            settings.node,
            found.devices,
            found.holders,
            version=release(),
            period_s=settings.period_s,
            clock=time.monotonic,
            wall_clock=time.time,
            sleep=asyncio.sleep,
            draw=random.random,
            boot_id=found.boot_id,
        )
        metrics = AgentMetrics(
            program.registry,
            version=release(),
            last=lambda: sampler.last,
            foreign_writes=lambda: writer.foreign_writes,
            wall_clock=time.time,
        )
        sampler.watch(metrics.looked)
        await stack.enter_async_context(program.endpoints(lambda: _checks(sampler.last, writer)))
        async with program.work() as work:
            for name, task in found.tasks.items():
                work.begin(name, task)
            before = [] if found.listed is None else [found.listed]
            if settings.publishes:
                publisher = Publisher(
                    Publication(settings.node),
                    writer,
                    clock=time.monotonic,
                    resume=sampler.resume,
                    metrics=metrics,
                )
                sampler.watch(publisher.looked)
                work.begin("publishing", publisher.run())
                before.append(publisher.asked)
            sampler.watch(lambda sample: stop.set() if sample.reading.restart else None)
            work.begin("sampling", _sample(sampler, before))
            logger.info("looking", extra={"node": settings.node, "period_s": settings.period_s})
            await stop.wait()
    return 0


async def _sample(sampler: Sampler, before: Sequence[asyncio.Event]) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(_WAIT_S):
            for event in before:
                await event.wait()
    await sampler.run()


def _checks(last: Sample | None, writer: Writer) -> list[Check]:
    """Ready is who has looked; what cannot be read or written is said, and mended by no restart."""
    problem = "" if last is None else last.made.agent.problem
    return [
        Check("devices", last is not None, "not looked at yet" if last is None else problem),
        Check("written", True, writer.problem),
    ]
