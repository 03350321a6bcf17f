"""Follows a kind that a server may not have, or may not let us read: looks now and then whether it does.

What is found goes to a sink like that of any reflector. Every program has such kinds: the CRDs of others, new
API groups, whatever an administrator grants later. None of them may hold up the rest, so what stands in the
way is a state that can be asked for (`Standing`), and is told once.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import Generic, TypeVar

from fairway.kube.client import KubeClient
from fairway.kube.errors import Denied, Forbidden, KubeError, NotFound, Unauthorized
from fairway.kube.observation import Phase, ReflectorMetrics, ReflectorState
from fairway.kube.pace import take_turn
from fairway.kube.reflector import Reflector, Sink
from fairway.kube.resource import KubeObjectLike, ResourceKind

logger = logging.getLogger(__name__)

LOOK_AGAIN_S = 60.0
RETRY_S = 5.0
_T = TypeVar("_T", bound=KubeObjectLike)


class Standing(Enum):
    """Where one stands with a kind. What was read before stays as it last was, except where it is absent."""

    UNREAD = "not read yet"
    FOLLOWED = "followed"
    ABSENT = "not served"
    FORBIDDEN = "not allowed"


_UNREAD, _LONG_S = "not read yet", 10.0


class OptionalKind(Generic[_T]):
    """Keeps ``sink`` equal to the first of ``kinds`` that the server serves.

    ``kinds`` are the same objects in several versions, the preferred one first. ``changed`` is called when
    the standing or the reflector's state changes. While none of the kinds is served the sink is emptied,
    unless it ``keeps``. ``clock`` is monotonic; ``look_again_s``: how long to wait after a plain no,
    ``retry_s``: after any other failure. ``level``: how loudly to tell that the kind is not served, or that
    nobody answers.
    """

    def __init__(
        self,
        client: KubeClient,
        kinds: Sequence[ResourceKind[_T]],
        sink: Sink[_T],
        metrics: ReflectorMetrics,
        *,
        clock: Callable[[], float],
        changed: Callable[[], None] = lambda: None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        look_again_s: float = LOOK_AGAIN_S,
        retry_s: float = RETRY_S,
        keeps: bool = False,
        level: int = logging.DEBUG,
    ) -> None:
        self.name = kinds[0].name
        self.standing = Standing.UNREAD
        self.problem = _UNREAD
        """Why it is not followed; empty while it is."""
        self._client = client
        self._kinds = kinds
        self._sink = sink
        self._metrics = metrics
        self._clock = clock
        self._changed = changed
        self._sleep = sleep
        self._look_again_s, self._retry_s = look_again_s, retry_s
        self._keeps = keeps
        self._level = level
        self._told = ""
        self._since_s = clock()
        self._followed: _Followed[_T] | None = None

    @property
    def is_synced(self) -> bool:
        """Whether it has been read completely once."""
        return self.state.synced_once

    @property
    def is_failing(self) -> bool:
        """Whether reading it has failed, or has taken long already."""
        is_new = self.problem in ("", _UNREAD) and self._clock() - self._since_s < _LONG_S
        return not self.is_synced and not is_new

    @property
    def is_left_out(self) -> bool:
        """Whether nothing of it is going to be read as things are: not served, or not allowed."""
        return self.standing in (Standing.ABSENT, Standing.FORBIDDEN)

    @property
    def state(self) -> ReflectorState:
        """How its reflector is doing; before there is one, as if it were connecting."""
        if self._followed is not None:
            return self._followed.reflector.state
        held, error = len(self._sink.keys()), self.problem or None
        return ReflectorState(self.name, Phase.CONNECTING, False, self._since_s, None, error, "", held)

    async def catch_up(self) -> None:
        """See `Reflector.catch_up`; at once where it is not followed. Raises KubeError."""
        if self._followed is not None:
            await self._followed.reflector.catch_up()

    async def run(self) -> None:
        """Follow it until cancelled, whenever it is served."""
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
        except Forbidden as error:
            self._refused(error)
            return self._look_again_s
        except KubeError as error:
            # Who we are may be known a moment later, for everything at once.
            self._tell(logging.WARNING if isinstance(error, Unauthorized) else self._level, str(error))
            self._stand(self.standing, str(error))
            return self._retry_s
        if served is not (None if followed is None else followed.kind) and not (
            served is None and self._keeps
        ):
            await self._follow(served)
        if served is None:
            self._tell(self._level, f"{self.name} are not served by {self._client.server}")
            if not self._keeps:
                for key in tuple(self._sink.keys()):
                    self._sink.delete(key)
            self._stand(Standing.ABSENT, f"{self.name} are not served")
            return LOOK_AGAIN_S
        self._told = ""
        self._note()
        return LOOK_AGAIN_S

    async def _served(self) -> ResourceKind[_T] | None:
        """The first of the versions that is served. Raises KubeError where the server does not say."""
        for kind in self._kinds:
            # Many may look at once, and each opens a connection.
            await take_turn()
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
                on_state=lambda state: self._note(),
                clock=self._clock,
            )
            self._followed = _Followed(kind, reflector)

    def _refused(self, error: Forbidden) -> None:
        if not isinstance(error, Denied):
            # What is not allowed has been told by the client, with what is lost by it.
            self._tell(logging.WARNING, f"{error}; {self.name} are not heeded until then")
        if self._followed is None:
            self._stand(Standing.FORBIDDEN, str(error))

    def _note(self) -> None:
        """Take the standing from the reflector."""
        state = self.state
        if state.is_forbidden and not state.synced_once:
            self._stand(Standing.FORBIDDEN, state.last_error or "")
        elif self.standing is Standing.ABSENT and state.synced_once and state.phase is not Phase.WATCHING:
            # What is kept goes on being asked for, which fails until it is served again.
            self._changed()
        elif state.synced_once or self.standing is not Standing.FORBIDDEN:
            self._stand(Standing.FOLLOWED, state.last_error or "")
        else:
            self._changed()

    def _stand(self, standing: Standing, problem: str) -> None:
        self.standing, self.problem = standing, problem
        self._changed()

    def _tell(self, level: int, message: str) -> None:
        if message != self._told:
            logger.log(level, "%s", message)
        self._told = message


class _Followed(Generic[_T]):
    """One version of the kind and the reflector that follows it."""

    def __init__(self, kind: ResourceKind[_T], reflector: Reflector[_T]) -> None:
        self.kind = kind
        self.reflector = reflector
        self.task = asyncio.create_task(reflector.run(), name=kind.name)
