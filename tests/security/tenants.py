"""Two tenants in one fleet, and what each is told. Every name of the one contains MARK."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp

from fairway.kube.client import KubeClient
from fairway.kube.errors import KubeError
from fairway.service.addresses import BindAddress
from queue_dispatcher.visibility.outcome import Outcome
from queue_dispatcher.visibility.reviews import Reviews
from queue_dispatcher.visibility.server import VisibilityServer
from sandbox.fakeapi import FakeApi
from tests.dispatcher.scenarios.objects import FAIRWAY, cluster_queue, local_queue
from tests.dispatcher.scenarios.world import World

MARK = "zeta"
ALPHA, ZETA = "team-alpha", f"team-{MARK}"
ADMIN_TOKEN, ALPHA_TOKEN, ZETA_TOKEN, NOBODY_TOKEN = (
    "token-admin",
    "token-alpha",
    "token-zeta",
    "token-nobody",
)
READER_URL = "/visibility/v1/workloads"
"""What ClusterRole fairway-visibility-reader grants."""
PATHS = (
    "/queues",
    "/queues/research?limit=1000",
    f"/queues/{MARK}-only",
    f"/namespaces/{ALPHA}/queues/main",
    f"/namespaces/{ZETA}/queues/{MARK}-local",
    f"/workloads/{ALPHA}/alpha-1",
    f"/workloads/{ALPHA}/alpha-lost",
    f"/workloads/{ZETA}/{MARK}-1",
    f"/workloads/{ALPHA}/{MARK}-1",
    f"/queues?namespace={ZETA}",
)


async def two_tenants(world: World, strategy: str = "StrictFIFO") -> None:
    """Both wait in one queue, Zeta at its head; each has a queue of its own and a workload without one."""
    for name in (ALPHA, ZETA):
        world.add("/api/v1/namespaces", {"metadata": {"name": name}})
    world.fleet(m1=100)
    parent = cluster_queue("root", {"m1": 2})
    world.add(
        f"{FAIRWAY}/clusterqueues",
        parent,
        cluster_queue("research", {"m1": 2}, strategy=strategy, parent="root"),
    )
    world.add(f"{FAIRWAY}/clusterqueues", cluster_queue(f"{MARK}-only", {"m1": 2}, parent="root"))
    world.add(f"{FAIRWAY}/namespaces/{ALPHA}/localqueues", local_queue("main", "research"))
    world.add(f"{FAIRWAY}/namespaces/{ZETA}/localqueues", local_queue(f"{MARK}-local", "research"))
    world.add(f"{FAIRWAY}/namespaces/{ZETA}/localqueues", local_queue("main", f"{MARK}-only"))
    await world.start()
    first = world.submit(f"{MARK}-0", f"{MARK}-local", ZETA, gpus=4)
    await world.until(lambda: world.is_placed(first))
    for number in (1, 2, 3):
        world.submit(f"{MARK}-{number}", f"{MARK}-local", ZETA, gpus=3)
        await world.passes(1.1)
        world.submit(f"alpha-{number}", "main", ALPHA, gpus=5)
        await world.passes(1.1)
    world.submit(f"{MARK}-lost", f"{MARK}-none", ZETA, gpus=1)
    world.submit("alpha-lost", "none", ALPHA, gpus=1)
    await world.passes(1)


def people(api: FakeApi) -> None:
    """An administrator, one of each team, and one whom nobody has granted anything."""
    access = api.access
    access.know(ADMIN_TOKEN, "admin", "operators")
    access.know(ALPHA_TOKEN, "alice")
    access.know(ZETA_TOKEN, "zoe", "zetas")
    access.know(NOBODY_TOKEN, "nobody")
    access.grant("operators", "get", READER_URL)
    access.grant("alice", "get", "localqueues.fairway.dev", ALPHA)
    access.grant("zetas", "get", "localqueues.fairway.dev", ZETA)


@dataclass(slots=True)
class Told:
    """An answer."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class Desk:
    """A visibility API, and questions to it."""

    url: str
    session: aiohttp.ClientSession
    api: FakeApi
    errors: list[KubeError]
    outcomes: Counter[Outcome]

    async def ask(self, path: str, token: str = "", **headers: str) -> Told:
        """An answer to a path below the root."""
        sent = {**({"Authorization": f"Bearer {token}"} if token else {}), **headers}
        async with self.session.get(f"{self.url}/visibility/v1{path}", headers=sent) as response:
            return Told(response.status, dict(response.headers), await response.read())


@asynccontextmanager
async def desk(world: World, *, guarded: bool = True, head_within_s: float = 10.0) -> AsyncIterator[Desk]:
    """Visibility of the world's dispatcher; times are the loop's."""
    clock = asyncio.get_running_loop().time
    errors: list[KubeError] = []
    outcomes: Counter[Outcome] = Counter()
    people(world.api)
    async with KubeClient.from_url(world.api.url, qps=-1) as client:
        reviews = Reviews(client, errors.append, clock=clock) if guarded else None
        server = VisibilityServer(
            world.dispatcher,
            world.dispatcher.controller._clock,
            reviews,
            observe=lambda outcome: outcomes.update([outcome]),
            monotonic=clock,
        )
        async with (
            server.serve(BindAddress("127.0.0.1", 0), head_within_s=head_within_s) as address,
            aiohttp.ClientSession() as session,
        ):
            yield Desk(f"http://{address}", session, world.api, errors, outcomes)
