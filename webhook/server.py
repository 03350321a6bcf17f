"""The webhook process: everything put together, started in the right order, and ended cleanly.

Nothing of it needs anything else to answer a review: without karmada-apiserver it goes on with the
certificate it has. Ready means that reviews can be answered, not that somebody sends them.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import AsyncExitStack

from fairway.kube.client import KubeClient
from fairway.kube.denials import Denials
from fairway.kube.errors import BadConfig
from fairway.scope import Scope
from fairway.scope_flags import read_scope
from fairway.service.http import Check
from fairway.service.program import CANNOT_WORK, Program
from fairway.service.program import run as run_program
from fairway.service.version import release
from webhook.app import application, bind
from webhook.app import serve as serve_reviews
from webhook.certificate_files import CertificateFiles
from webhook.certificate_secret import CertificateSecret
from webhook.live_certificates import LiveCertificates
from webhook.metrics import WebhookMetrics
from webhook.permissions import PERMISSIONS
from webhook.registration import Registration, Wanted
from webhook.settings import FilesSettings, Settings

logger = logging.getLogger(__name__)


def run(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT; the exit code."""
    return run_program(settings.logs, lambda stop: serve(settings, stop))


async def serve(settings: Settings, stop: asyncio.Event, started: Callable[[int], None] | None = None) -> int:
    """Serve until ``stop`` is set, then finish the reviews in flight.

    The exit code is 2 for a configuration that can never work. ``started`` is called with the port once
    reviews are served. Raises StartError, EndpointError, TlsError.
    """
    scope = read_scope(settings.scope)
    program = Program(settings.endpoints)
    metrics = WebhookMetrics(program.registry, version=release())
    metrics.watch_stalls(program.stalls.reading)
    async with AsyncExitStack() as stack:
        bound = stack.enter_context(bind(settings.address))
        denials = Denials(PERMISSIONS)
        program.tell_denied(lambda: [("karmada", one.verb, one.resource) for one in denials.current()])
        api = settings.api
        client = await stack.enter_async_context(
            KubeClient.from_flags(api.kubeconfig, api.master, context=api.context, denials=denials)
        )
        if settings.asks_karmada:
            try:
                await client.check_configuration()
            except BadConfig as error:
                logger.error("cannot start: %s", error)
                return CANNOT_WORK
        certificates = LiveCertificates(_source(settings, client))
        metrics.watch_certificates(certificates.reading)
        registration = _registration(settings, scope, client, certificates, metrics)
        await stack.enter_async_context(
            program.endpoints(lambda: [_check(certificates), *_registered(registration)])
        )
        async with program.work() as work:
            work.begin("certificates", certificates.run())
            if await _first(certificates.ready, stop):
                async with serve_reviews(
                    application(scope, metrics, observe=settings.observe),
                    bound,
                    certificates.context,
                    metrics,
                ) as port:
                    logger.info("serving", extra={"port": port, "url": settings.url})
                    if started is not None:
                        started(port)
                    if registration is not None:
                        work.begin("registration", registration.run())
                    await stop.wait()
    return 0


async def _first(ready: asyncio.Event, stop: asyncio.Event) -> bool:
    """Wait for either; whether it is ``ready``."""
    waits = [asyncio.ensure_future(event.wait()) for event in (ready, stop)]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
    return ready.is_set() and not stop.is_set()


def _check(certificates: LiveCertificates) -> Check:
    ready = certificates.ready.is_set()
    return Check("certificate", ready, certificates.problem)


def _registered(registration: Registration | None) -> list[Check]:
    """Whether anybody is going to ask; reviews are answered all the same, so it makes nobody unready."""
    if registration is None:
        return []
    problem = registration.problem
    return [Check("registration", True, f"not as it should be: {problem}" if problem else "")]


def _registration(
    settings: Settings,
    scope: Scope,
    client: KubeClient,
    certificates: LiveCertificates,
    metrics: WebhookMetrics,
) -> Registration | None:
    if settings.registration is None:
        return None
    # Nobody is to wait for a webhook that only looks on.
    failure_policy = "Ignore" if settings.observe else settings.registration.failure_policy
    wanted = Wanted(settings.registration.name, scope, settings.url, failure_policy)
    return Registration(client, wanted, lambda: certificates.authorities, metrics.looked)


def _source(settings: Settings, client: KubeClient) -> CertificateFiles | CertificateSecret:
    where = settings.certificates
    if isinstance(where, FilesSettings):
        return CertificateFiles(where.certificate, where.key, where.authorities, time.monotonic)
    return CertificateSecret(client, where, settings.host, time.time)
