"""What a reflector did, recorded, with a way to wait for it."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, KeysView
from contextlib import asynccontextmanager, suppress
from typing import Generic, TypeVar

from fairway.kube.objects import object_key
from fairway.kube.observation import NullReflectorMetrics, Phase, ReflectorState
from fairway.kube.reflector import Reflector
from fairway.kube.resource import KubeObjectLike

T = TypeVar("T", bound=KubeObjectLike)


class Mirror(NullReflectorMetrics, Generic[T]):
    """A sink, the metrics and the state listener of one reflector.

    ``calls`` lists what the sink was told, ``counts`` what was counted (``relist expired``), ``lists`` the
    objects and deletions of every complete list, ``states`` every state reported, ``pauses_s`` how long the
    reflector would have slept.
    """

    def __init__(self, *, last_pause: int | None = None) -> None:
        self._last_pause = last_pause
        self.objects: dict[str, T] = {}
        self.calls: list[tuple[str, str]] = []
        self.counts: Counter[str] = Counter()
        self.lists: list[tuple[int, int]] = []
        self.states: list[ReflectorState] = []
        self.pauses_s: list[float] = []
        self._changed = asyncio.Event()

    # The sink.

    def keys(self) -> KeysView[str]:
        return self.objects.keys()

    def upsert(self, obj: T) -> None:
        self.objects[object_key(obj.metadata)] = obj
        self._note("upsert", object_key(obj.metadata))

    def delete(self, key: str) -> None:
        self.objects.pop(key, None)
        self._note("delete", key)

    def _note(self, what: str, key: str) -> None:
        self.calls.append((what, key))
        self._changed.set()

    # The metrics.

    def event(self, resource: str, type: str) -> None:
        self._count(f"event {type}")

    def dropped(self, resource: str) -> None:
        self._count("dropped")

    def undecodable(self, resource: str) -> None:
        self._count("undecodable")

    def listed(self, resource: str, objects: int, deleted: int, duration_s: float) -> None:
        self.lists.append((objects, deleted))
        self._count("listed")

    def relist(self, resource: str, reason: str) -> None:
        self._count(f"relist {reason}")

    def half_open(self, resource: str) -> None:
        self._count("half_open")

    def error(self, resource: str, reason: str) -> None:
        self._count(f"error {reason}")

    def _count(self, what: str) -> None:
        self.counts[what] += 1
        self._changed.set()

    # State and time.

    def on_state(self, state: ReflectorState) -> None:
        self.states.append(state)
        self._changed.set()

    async def sleep(self, pause_s: float) -> None:
        """Instead of sleeping: note how long, and let everything else run; the last pause does not end."""
        self.pauses_s.append(pause_s)
        self._changed.set()
        if len(self.pauses_s) == self._last_pause:
            await asyncio.Event().wait()
        await asyncio.sleep(0)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def until_watching(self) -> None:
        await self.until(lambda: bool(self.states) and self.states[-1].phase is Phase.WATCHING)


@asynccontextmanager
async def running(reflector: Reflector[T]) -> AsyncIterator[None]:
    """Run it in the background; an exception out of it fails the test."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(reflector.run())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.gather(task)
