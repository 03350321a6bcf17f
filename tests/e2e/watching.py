"""All objects of one resource, as they are and as they were: what tests wait for and look back at."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from fairway.kube.client import KubeClient
from fairway.kube.objects import object_key
from fairway.kube.reflector import Reflector
from fairway.kube.resource import KubeObjectLike, ResourceKind

PATIENCE_S = 120.0
LOOK_S = 0.05

T = TypeVar("T", bound=KubeObjectLike)


async def eventually(holds: Callable[[], Awaitable[bool]], what: str, within_s: float = PATIENCE_S) -> None:
    """Ask again and again until it holds: for what cannot be watched. Raises AssertionError with ``what``."""
    try:
        async with asyncio.timeout(within_s):
            while True:
                if await holds():
                    return
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        raise AssertionError(f"not within {within_s:.0f} s: {what}") from None


@dataclass(frozen=True, slots=True)
class Version(Generic[T]):
    """An object as it stood from ``at_s`` on, by this process's monotonic clock."""

    at_s: float
    object: T


@dataclass(slots=True)
class Changes:
    """Of everything that is watched, so that one may wait for what several servers say together."""

    _happened: asyncio.Event = field(default_factory=asyncio.Event)

    def happen(self) -> None:
        """Something is not as it was."""
        self._happened.set()

    async def until(self, holds: Callable[[], object], what: str, within_s: float = PATIENCE_S) -> None:
        """Wait until it holds; it is looked at after each change. Raises AssertionError with ``what``."""
        try:
            async with asyncio.timeout(within_s):
                while not holds():
                    self._happened.clear()
                    await self._happened.wait()
        except TimeoutError:
            raise AssertionError(f"not within {within_s:.0f} s: {what}") from None


@dataclass(slots=True)
class Watched(Generic[T]):
    """``now`` by ``namespace/name``; ``past`` likewise, everything that was ever seen.

    ``listeners`` are told of every version, the first included.
    """

    kind: ResourceKind[T]
    changes: Changes
    now: dict[str, T] = field(default_factory=dict)
    past: dict[str, list[Version[T]]] = field(default_factory=dict)
    listeners: list[Callable[[T], None]] = field(default_factory=list)
    _task: asyncio.Task[None] | None = None

    def start(self, client: KubeClient) -> None:
        """Follow them until `stop`."""
        self._task = asyncio.create_task(Reflector(client, self.kind, self).run())

    async def stop(self) -> None:
        """Follow them no more."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def keys(self) -> Collection[str]:
        """Of all that exist."""
        return self.now.keys()

    def upsert(self, obj: T) -> None:
        """It exists and looks like this."""
        key = object_key(obj.metadata)
        self.now[key] = obj
        self.past.setdefault(key, []).append(Version(time.monotonic(), obj))
        for listener in self.listeners:
            listener(obj)
        self.changes.happen()

    def delete(self, key: str) -> None:
        """It is gone."""
        self.now.pop(key, None)
        self.changes.happen()

    def within(self, namespace: str) -> Iterator[T]:
        """Those of one namespace."""
        return (obj for obj in self.now.values() if obj.metadata.namespace == namespace)

    async def until_of(
        self, key: str, holds: Callable[[T], object], what: str, within_s: float = PATIENCE_S
    ) -> T:
        """Wait until it holds of one object. Raises AssertionError with what is known of it."""
        try:
            await self.changes.until(lambda: key in self.now and holds(self.now[key]), what, within_s)
        except AssertionError as error:
            raise AssertionError(f"{key}: {error}; it is {self.now.get(key)}") from None
        return self.now[key]

    def first_s(self, key: str, holds: Callable[[T], object], since_s: float = 0.0) -> float:
        """When it was first seen to hold. Raises AssertionError if never."""
        for version in self.past.get(key, ()):
            if version.at_s >= since_s and holds(version.object):
                return version.at_s
        raise AssertionError(f"{key}: never seen so")

    def versions(self, key: str, since_s: float = 0.0) -> list[T]:
        """As it stood, in order."""
        return [version.object for version in self.past.get(key, ()) if version.at_s >= since_s]
