"""Follows a resource that a cluster may not have: looks now and then whether, and how, it is served.

What is found goes to a sink like that of any reflector. Nobody waits for it, and nothing that is known of the
cluster becomes stale when it cannot be read: what depends on it is as it last was, or as if there were none.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from fairway.kube.client import KubeClient
from fairway.kube.errors import Forbidden, KubeError, NotFound, Unauthorized
from fairway.kube.observation import Phase, ReflectorMetrics, ReflectorState
from fairway.kube.reflector import Reflector, Sink
from fairway.kube.resource import KubeObjectLike, ResourceKind

logger = logging.getLogger(__name__)

LOOK_AGAIN_S = 60.0
RETRY_S = 5.0
_T = TypeVar("_T", bound=KubeObjectLike)


class OptionalResource(Generic[_T]):
    """Keeps ``sink`` equal to the first of ``kinds`` that the server serves, and empty while it serves none.

    ``kinds`` are the same objects in several versions. ``clock`` is monotonic, in seconds. ``on_state`` is
    told whenever the state of what follows the resource changes.
    """

    def __init__(
        self,
        client: KubeClient,
        kinds: Sequence[ResourceKind[_T]],
        sink: Sink[_T],
        metrics: ReflectorMetrics,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        on_state: Callable[[ReflectorState], None] | None = None,
    ) -> None:
        self._client = client
        self._kinds = kinds
        self._sink = sink
        self._metrics = metrics
        self._clock = clock
        self._sleep = sleep
        self._on_state = on_state
        self._problem = ""
        self._followed: _Followed[_T] | None = None

    async def run(self) -> None:
        """Follow the resource until cancelled, whenever it is served."""
        try:
            while True:
                await self._sleep(await self._look())
        finally:
            await self._follow(None)

    async def _look(self) -> float:
        """Follow what is served now; in how many seconds to look again."""
        followed = self._followed
        if followed is not None and followed.reflector.state.phase is Phase.WATCHING:
            return LOOK_AGAIN_S
        try:
            served = await self._served()
        except (Unauthorized, Forbidden) as error:
            self._note(f"{error}; {self._kinds[0].name} are not heeded until then")
            return LOOK_AGAIN_S
        except KubeError:
            # The reflectors of what a cluster must have tell that it cannot be reached.
            return RETRY_S
        self._problem = ""
        if served is not (None if followed is None else followed.kind):
            await self._follow(served)
        if served is None:
            for key in tuple(self._sink.keys()):
                self._sink.delete(key)
        return LOOK_AGAIN_S

    async def _served(self) -> ResourceKind[_T] | None:
        """The first of the versions that is served. Raises KubeError where the server does not say."""
        for kind in self._kinds:
            try:
                await self._client.get_bytes(kind.path, {"limit": "1"})
            except NotFound:
                continue
            return kind
        return None

    async def _follow(self, kind: ResourceKind[_T] | None) -> None:
        followed, self._followed = self._followed, None
        if followed is not None:
            followed.task.cancel()
            await asyncio.wait((followed.task,))
        if kind is not None:
            reflector = Reflector(
                self._client,
                kind,
                self._sink,
                metrics=self._metrics,
                on_state=self._on_state,
                clock=self._clock,
            )
            self._followed = _Followed(kind, reflector)

    def _note(self, problem: str) -> None:
        if problem != self._problem:
            logger.warning("%s", problem)
        self._problem = problem


class _Followed(Generic[_T]):
    """One version of the resource and the reflector that follows it."""

    def __init__(self, kind: ResourceKind[_T], reflector: Reflector[_T]) -> None:
        self.kind = kind
        self.reflector = reflector
        self.task = asyncio.create_task(reflector.run(), name=kind.name)
