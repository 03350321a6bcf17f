"""What can be tried over the network: each cluster's estimator and each webhook, many at once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final, TypeVar
from urllib.parse import urlsplit

from rich.console import Console

from admin.doctor.admission import WebhookConfiguration
from admin.doctor.estimator_address import Address, BadService, addresses, discovery, services_on_karmada
from admin.doctor.estimator_probe import ask_estimator
from admin.doctor.evidence import Evidence, NotRead, Plane, Reached
from admin.doctor.kinds import CLUSTERS, MUTATING, VALIDATING
from admin.doctor.tls_probe import Unresolved, resolve, verify
from admin.progress import Steps, steps
from admin.remote import Tls
from fairway.kube.resource import ResourceKind

T = TypeVar("T")
C = TypeVar("C", bound=WebhookConfiguration)

_AT_ONCE: Final = 16
_HTTPS: Final = 443

_Server = tuple[str, int, bytes | None]


async def probed(evidence: Evidence, tls: Tls, console: Console) -> Evidence:
    """The evidence with what came of asking around. Raises RemoteError for a TLS file that cannot be read."""
    if evidence.karmada is None:
        return evidence
    estimators, servers = dict(_estimators(evidence)), _webhooks(evidence)
    gate = asyncio.Semaphore(_AT_ONCE)
    async with steps(len(estimators) + len(servers), console) as progress:

        async def asked(cluster: str, where: Sequence[Address]) -> Reached | None:
            return await _one(gate, progress, cluster, lambda: ask_estimator(cluster, where, tls))

        async def called(server: _Server) -> Reached | None:
            return await _one(gate, progress, server[0], lambda: _call(server))

        answers = await asyncio.gather(*(asked(*each) for each in estimators.items()))
        handshakes = await asyncio.gather(*(called(server) for server in servers))
    webhooks: dict[str, Reached] = {}
    for urls, reached in zip(servers.values(), handshakes, strict=True):
        for url in urls:
            # Of two configurations that call the same URL the worse counts.
            if reached is not None and (url not in webhooks or reached.problem):
                webhooks[url] = reached
    return replace(
        evidence,
        estimators={name: each for name, each in zip(estimators, answers, strict=True) if each is not None},
        webhooks=webhooks,
    )


async def _one(gate: asyncio.Semaphore, progress: Steps, news: str, ask: Callable[[], Awaitable[T]]) -> T:
    async with gate:
        progress.seen(news)
        try:
            return await ask()
        finally:
            progress.done()


def _estimators(evidence: Evidence) -> Iterable[tuple[str, tuple[Address, ...]]]:
    try:
        clusters = evidence.on_karmada().listed(CLUSTERS)
        external = services_on_karmada(evidence)
    except NotRead:
        return
    by = discovery(evidence)
    for cluster in clusters:
        try:
            yield cluster.name, addresses(cluster.name, by, external)
        except BadService:
            # A check of its own says so.
            continue


def _webhooks(evidence: Evidence) -> dict[_Server, list[str]]:
    """URLs by what is called for them and whom to trust."""
    servers: dict[_Server, list[str]] = {}
    karmada = evidence.on_karmada()
    for configuration in (*_listed(karmada, MUTATING), *_listed(karmada, VALIDATING)):
        for entry in configuration.webhooks or ():
            url = entry.client_config.url or ""
            where = _address(url)
            if where is not None:
                servers.setdefault((*where, entry.client_config.ca_bundle), []).append(url)
    return servers


def _listed(plane: Plane, kind: ResourceKind[C]) -> tuple[C, ...]:
    try:
        return plane.listed(kind)
    except NotRead:
        # The checks of these kinds say so.
        return ()


def _address(url: str) -> tuple[str, int] | None:
    """Host and port of an https URL; None for anything else, which the API server refuses anyway."""
    try:
        parts = urlsplit(url)
        found = parts.hostname, parts.port or _HTTPS
    except ValueError:
        return None
    return (found[0], found[1]) if parts.scheme == "https" and found[0] else None


async def _call(server: _Server) -> Reached | None:
    host, port, authorities = server
    try:
        await resolve(host, port)
    except Unresolved:
        return None
    return await verify(host, port, authorities)
