"""What the estimators read, in a member cluster and on Karmada's API server, as their ServiceAccount."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

from estimator.cluster.mirror import ClusterMirror
from estimator.karmada.source import KarmadaSource
from estimator.karmada.templates import read_template
from estimator.live_source import LiveSource
from estimator.member import MemberCluster
from estimator.member_kinds import MEMBER_KINDS
from estimator.permissions import KARMADA, MEMBER
from fairway.kube.client import KubeClient
from fairway.kube.denials import Denials
from fairway.kube.observation import NullReflectorMetrics
from fairway.kube.permissions import Permission
from sandbox.fakeapi import FakeApi
from tests.builders import no_complaints
from tests.rbac.roles import ESTIMATOR


@asynccontextmanager
async def member(api: FakeApi) -> AsyncIterator[tuple[MemberCluster, LiveSource]]:
    """A cluster that is followed in everything that a question may ever need."""
    cluster = MemberCluster("m", ClusterMirror(no_complaints), time.monotonic)
    source = LiveSource(
        cluster,
        _client(api, MEMBER),
        NullReflectorMetrics(),
        clock=time.monotonic,
        at_once=[kind.name for kind in MEMBER_KINDS],
    )
    async with _running(source.run):
        yield cluster, source


@asynccontextmanager
async def karmada(api: FakeApi) -> AsyncIterator[KarmadaSource]:
    """Karmada's API server, whose templates are followed."""
    source = KarmadaSource(_client(api, KARMADA), read_template, NullReflectorMetrics(), clock=time.monotonic)
    async with _running(source.run):
        yield source


def _client(api: FakeApi, permissions: tuple[Permission, ...]) -> KubeClient:
    return KubeClient.from_url(api.url, token=ESTIMATOR, qps=-1, denials=Denials(permissions))


@asynccontextmanager
async def _running(run: Callable[[], Coroutine[None, None, None]]) -> AsyncIterator[None]:
    task = asyncio.create_task(run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, BaseExceptionGroup):
            await task
