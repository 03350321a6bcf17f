"""Who uses what in a cluster, worked out once for all who ask within a moment, as finished pages.

A state may be `SHARED_S` old when it is asked for. One that still waits for its turn has not begun, so
however many ask, of a cluster at most one state is being worked out and one waits.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager

SHARED_S = 2.0
"""How old a state may be, in seconds since it was copied, for one more call to get it."""
MOST_IN_HAND = 8
"""States that calls have in hand, each some 10 MB where the cluster is large, however many share one."""
_MOST_TO_WAIT_S = 5.0

Pages = list[bytes]
Gather = Callable[[Callable[[], None]], Coroutine[None, None, Pages]]
"""Works out the pages of one cluster; calls what it is given once the state is copied."""


class CrowdedError(Exception):
    """Too many states are being sent to their clients for one more; the message says what to do."""


class SharedUsage:
    """For one event loop."""

    def __init__(self) -> None:
        self._current: dict[str, _State] = {}
        self._in_hand: set[_State] = set()
        self._places = asyncio.Condition()

    @asynccontextmanager
    async def pages(self, cluster: str, gather: Gather, within_s: float) -> AsyncIterator[Awaitable[Pages]]:
        """The pages of the cluster, to be waited for, which are in hand until this ends.

        Waits for a place among them at most half of ``within_s``. Raises CrowdedError where there is none.
        """
        state = await self._taken(cluster, gather, min(_MOST_TO_WAIT_S, within_s / 2))
        state.takers += 1
        try:
            # One who goes does not take the pages from the others.
            yield asyncio.shield(state.task)
        finally:
            state.takers -= 1
            if not state.takers:
                await self._put_down(cluster, state)

    async def _taken(self, cluster: str, gather: Gather, within_s: float) -> "_State":
        def has_place() -> bool:
            return cluster in self._current or len(self._in_hand) < MOST_IN_HAND

        if not has_place():
            try:
                async with asyncio.timeout(within_s), self._places:
                    await self._places.wait_for(has_place)
            except TimeoutError:
                raise CrowdedError(
                    f"expected a place among the {MOST_IN_HAND} answers of Usage that are on their way to "
                    f"slow clients, waited {within_s:.1f} s for one: ask again later, and take pages sooner"
                ) from None
        state = self._current.get(cluster)
        if state is None or (state.task.done() and (state.task.cancelled() or state.task.exception())):
            state = self._current[cluster] = _State(gather, lambda begun: self._begun(cluster, begun))
        self._in_hand.add(state)
        return state

    def _begun(self, cluster: str, state: "_State") -> None:
        asyncio.get_running_loop().call_later(SHARED_S, self._forget, cluster, state)

    def _forget(self, cluster: str, state: "_State") -> None:
        if self._current.get(cluster) is state:
            del self._current[cluster]

    async def _put_down(self, cluster: str, state: "_State") -> None:
        self._in_hand.discard(state)
        if not state.task.done():
            self._forget(cluster, state)
            state.task.cancel()
        async with self._places:
            self._places.notify_all()


class _State:
    """One moment of a cluster, being worked out or done, and how many calls have it in hand."""

    def __init__(self, gather: Gather, begun: Callable[["_State"], None]) -> None:
        self.takers = 0
        self.task = asyncio.create_task(gather(lambda: begun(self)))
