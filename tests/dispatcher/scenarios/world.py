"""The whole dispatcher against the fake API server and a scripted Karmada, in virtual time."""

import asyncio
import contextlib
import datetime
import json
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar, Unpack

from prometheus_client import CollectorRegistry

from fairway.accelerators.builtin import builtin_catalogue
from fairway.kube.client import KubeClient
from fairway.names import ADMISSION, QUEUEING, REQUEUE
from fairway.scope import Scope
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.clock import SteadyClock
from queue_dispatcher.dispatcher import BindingApi, Dispatcher, Estimation
from queue_dispatcher.metrics import DispatcherMetrics
from queue_dispatcher.sources import Sources
from sandbox.fakeapi import FakeApi, store, virtual_time
from tests.dispatcher.scenarios import objects
from tests.dispatcher.scenarios.karmada import Karmada
from tests.dispatcher.scenarios.objects import FAIRWAY, WORK, Obj, Options, Quotas

T = TypeVar("T")
EPOCH_S = 1_800_000_000.0
TICK_S = 0.02


def now_s() -> float:
    """The time of day in virtual time."""
    return EPOCH_S + asyncio.get_running_loop().time()


def run(scenario: Callable[["World"], Coroutine[Any, Any, T]], room: dict[str, int] | None = None) -> T:
    """Run a scenario in a world of its own, in virtual time."""

    async def play() -> T:
        async with world(room=room) as made:
            return await scenario(made)

    return virtual_time.run(play())


class Told:
    """Remembers what people are told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def tell(self, entry: Entry, reason: str, message: str, *, is_warning: bool = False) -> None:
        self.told.append((entry.binding.name, reason))


class Running:
    """One dispatcher process, more or less."""

    def __init__(self, dispatcher: Dispatcher, sources: Sources, tasks: list[asyncio.Task[None]]) -> None:
        self.dispatcher, self.sources, self._tasks = dispatcher, sources, tasks

    async def kill(self) -> None:
        """End at once, whatever is under way."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError, BaseExceptionGroup):
                await task


class World:
    """``karmada`` acts every 20 ms unless it is stopped."""

    def __init__(self, api: FakeApi, karmada: Karmada) -> None:
        self.api, self.karmada = api, karmada
        self.told = Told()
        self.running: Running | None = None
        self.leads = True
        self._clients: list[KubeClient] = []

    # Objects.

    def add(self, path: str, *made: Obj) -> None:
        for obj in made:
            self.api.create(path, obj)

    def fleet(self, **gpus: int) -> None:
        """Clusters with so many GPUs, each a flavor of its own name."""
        self.add("/api/v1/namespaces", {"metadata": {"name": "team"}})
        for name, count in gpus.items():
            self.add("/apis/cluster.karmada.io/v1alpha1/clusters", objects.cluster(name, count))
            self.add(f"{FAIRWAY}/resourceflavors", objects.flavor(name, name))

    def queue(self, name: str, quotas: Quotas, namespace: str = "team", **spec: object) -> None:
        """A ClusterQueue, and a LocalQueue of the same name that leads to it."""
        made = objects.cluster_queue(name, quotas)
        made["spec"] |= spec
        self.add(f"{FAIRWAY}/clusterqueues", made)
        self.add(f"{FAIRWAY}/namespaces/{namespace}/localqueues", objects.local_queue(name, name))

    def submit(
        self,
        name: str,
        queue: str = "main",
        namespace: str = "team",
        *,
        said: dict[str, str] | None = None,
        **options: Unpack[Options],
    ) -> str:
        """A Job, labelled with what is ``said``, and its held binding, whose key is answered."""
        named = {"fairway.dev/queue": queue} if queue else {}
        self.add(f"/apis/batch/v1/namespaces/{namespace}/jobs", objects.job(name, named | (said or {})))
        return self.bind(name, namespace, **options)

    def namespace(self, name: str, queueing: str) -> None:
        """A namespace, there already if it is ``team``, says how far queues reach into it."""
        if name != "team":
            self.add("/api/v1/namespaces", {"metadata": {"name": name}})
        labels = {QUEUEING: queueing}
        self.api.update(f"/api/v1/namespaces/{name}", lambda obj: obj["metadata"].update(labels=labels))

    def bind(self, name: str, namespace: str = "team", **options: Unpack[Options]) -> str:
        """A binding without its template."""
        made = objects.binding(name, namespace, **options)
        self.add(f"{WORK}/namespaces/{namespace}/resourcebindings", made)
        return f"{namespace}/{made['metadata']['name']}"

    def binding(self, key: str) -> Obj:
        return self.karmada.bindings()[key]

    def edit(self, key: str, change: Callable[[Obj], object]) -> None:
        self.api.update(Karmada.path(key), change)

    def delete(self, key: str) -> None:
        self.api.delete(Karmada.path(key))

    def is_held(self, key: str) -> bool:
        return bool((self.binding(key)["spec"].get("suspension") or {}).get("scheduling"))

    def is_placed(self, key: str) -> bool:
        return bool(self.binding(key)["spec"].get("clusters"))

    def record(self, key: str) -> Obj | None:
        return self._annotation(key, ADMISSION)

    def requeue(self, key: str) -> Obj | None:
        return self._annotation(key, REQUEUE)

    def _annotation(self, key: str, name: str) -> Obj | None:
        text = (self.binding(key)["metadata"].get("annotations") or {}).get(name)
        return None if text is None else json.loads(text)

    def released(self, keys: Iterable[str]) -> list[str]:
        """Those that are not held."""
        return [key for key in keys if not self.is_held(key)]

    # The dispatcher.

    async def start(
        self,
        *,
        estimation: Estimation | None = None,
        volcano: bool = False,
        leader: str = "",
        observe: bool = False,
    ) -> Running:
        """With ``leader``, a replica that follows that one; else the one that leads."""
        client = KubeClient.from_url(self.api.url, qps=-1)
        self._clients.append(client)
        loop = asyncio.get_running_loop()
        clock = SteadyClock(now_s, loop.time)
        metrics = DispatcherMetrics(CollectorRegistry(), version="test")
        sources: list[Sources] = []
        dispatcher = Dispatcher(
            BindingApi(client),
            Scope(builtin_catalogue()),
            metrics,
            clock,
            lambda: bool(sources) and sources[0].is_synced,
            lambda: sources[0].catch_up(),
            estimation=estimation,
            teller=self.told,
            volcano=volcano,
            observe=observe,
            rng=random.Random(1),
        )
        sources.append(
            Sources(
                client,
                dispatcher.cache,
                metrics.reflector(),
                dispatcher.controller.changed,
                volcano=volcano,
                clock=loop.time,
            )
        )
        tasks = [
            asyncio.create_task(sources[0].run()),
            asyncio.create_task(dispatcher.controller.run()),
        ]
        if leader:
            dispatcher.controller.led_by(lambda: leader)
        else:
            tasks.append(asyncio.create_task(dispatcher.lead(lambda: self.leads)))
        self.running = Running(dispatcher, sources[0], tasks)
        return self.running

    @asynccontextmanager
    async def leading(self) -> AsyncIterator[None]:
        """The replica that followed leads for a while."""
        task = asyncio.create_task(self.dispatcher.lead(lambda: self.leads))
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    @property
    def dispatcher(self) -> Dispatcher:
        assert self.running is not None
        return self.running.dispatcher

    async def passes(self, seconds: float) -> None:
        """Time passes, in which everybody acts: the longer, the more rarely Karmada does."""
        end_s = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < end_s:
            self.karmada.step(now_s())
            await asyncio.sleep(TICK_S if seconds < 10 else 0.5)

    async def until(self, condition: Callable[[], bool], within_s: float = 30.0) -> None:
        """Time passes until the condition holds."""
        end_s = asyncio.get_running_loop().time() + within_s
        while not condition():
            assert asyncio.get_running_loop().time() < end_s, "it never came to that"
            await self.passes(TICK_S)

    def check(self) -> None:
        """The laws that hold at any moment."""
        cache = self.dispatcher.cache
        while not cache.settle():
            pass
        assert cache.charges.ledger.charges() == cache.charges.recomputed().charges()


@asynccontextmanager
async def world(*, room: dict[str, int] | None = None) -> AsyncIterator[World]:
    real = store._now
    store._now = lambda: datetime.datetime.fromtimestamp(now_s(), datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        async with FakeApi() as api:
            made = World(api, Karmada(api, room))
            try:
                yield made
            finally:
                if made.running is not None:
                    await made.running.kill()
                for client in made._clients:
                    await client.close()
    finally:
        store._now = real
