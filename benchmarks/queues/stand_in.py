"""A stand-in for Karmada and its members: places what is released, runs it for its time, reports its end.

What Kueue's suite fakes in the same way: a timer from the moment that the release is seen. Karmada would
write three times more for each placement; here one patch places, and one tells the end.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from benchmarks.queues.objects import BINDINGS as ROOT
from benchmarks.queues.objects import FINISHED, MEMBER
from fairway.kube.client import KubeClient
from fairway.kube.objects import KubeStruct, ObjectMeta, object_key
from fairway.kube.reflector import Reflector
from fairway.kube.resource import ResourceKind

_MERGE = "application/merge-patch+json"


class _Suspension(KubeStruct, frozen=True):
    scheduling: bool = False


class _Spec(KubeStruct, frozen=True):
    suspension: _Suspension | None = None
    clusters: list[dict[str, object]] | None = None


class _Status(KubeStruct, frozen=True):
    aggregated_status: list[dict[str, object]] | None = None


class Binding(KubeStruct, frozen=True):
    """A binding, as far as one has to know it to place it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _Spec = _Spec()
    status: _Status = _Status()


BINDINGS = ResourceKind("resourcebindings", f"{ROOT}/resourcebindings", Binding)


@dataclass(slots=True)
class Life:
    """When one workload came, was released and ended (``time.monotonic``), and how often it was written."""

    created_s: float = 0.0
    released_s: float = 0.0
    finished_s: float = 0.0
    seen_writes: int = 0


@dataclass(slots=True)
class Lives:
    """All workloads by key; ``running`` now, the most cores ever in use, and the integral of cores in use."""

    by_key: dict[str, Life] = field(default_factory=dict)
    finished: int = 0
    cores: int = 0
    most_cores: int = 0
    core_seconds: float = 0.0
    changed_s: float = 0.0

    def use(self, cores: int, now_s: float) -> None:
        """So many cores more, or fewer, are in use from now on."""
        self.core_seconds += self.cores * (now_s - self.changed_s)
        self.changed_s, self.cores = now_s, self.cores + cores
        self.most_cores = max(self.most_cores, self.cores)


class StandIn:
    """Follows the bindings. ``runtime_s`` and ``cores`` are by class, the first part of a binding's name."""

    def __init__(
        self, client: KubeClient, lives: Lives, runtime_s: Mapping[str, float], cores: Mapping[str, int]
    ) -> None:
        self._client = client
        self._lives = lives
        self._runtime_s = runtime_s
        self._cores = cores
        self._group: asyncio.TaskGroup | None = None
        self.on_finished: Callable[[], None] = lambda: None

    async def run(self) -> None:
        """Follow until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            group.create_task(Reflector(self._client, BINDINGS, self).run())

    def keys(self) -> Collection[str]:
        """Keys of all workloads."""
        return self._lives.by_key.keys()

    def upsert(self, binding: Binding) -> None:
        """A binding was written by somebody."""
        now_s = time.monotonic()
        life = self._lives.by_key.setdefault(object_key(binding.metadata), Life())
        life.seen_writes += 1
        life.created_s = life.created_s or now_s
        held = binding.spec.suspension is not None and binding.spec.suspension.scheduling
        if not held and not life.released_s and self._group is not None:
            life.released_s = now_s
            self._group.create_task(self._live(binding.metadata, life))

    def delete(self, key: str) -> None:
        """No workload is deleted in these suites."""

    async def _live(self, metadata: ObjectMeta, life: Life) -> None:
        path = f"{ROOT}/namespaces/{metadata.namespace}/resourcebindings/{metadata.name}"
        kind = metadata.name.split("-", 1)[0]
        self._lives.use(self._cores[kind], life.released_s)
        ends_s = life.released_s + self._runtime_s[kind]
        placed = {"spec": {"clusters": [{"name": MEMBER, "replicas": 1}]}}
        await self._client.patch(path, placed, Binding, content_type=_MERGE)
        await asyncio.sleep(max(0.0, ends_s - time.monotonic()))
        self._lives.use(-self._cores[kind], time.monotonic())
        await self._client.patch(path + "/status", {"status": FINISHED}, Binding, content_type=_MERGE)
        life.finished_s = time.monotonic()
        self._lives.finished += 1
        self.on_finished()
