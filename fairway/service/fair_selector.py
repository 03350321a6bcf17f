"""An event loop that looks after a few sockets in each of its passes, however many are ready.

asyncio calls everything that is ready before it looks again, and a hundred connections that answer at once,
with a step of a TLS handshake or a piece of a list each, would hold the loop for tens of milliseconds.
"""

import asyncio
import selectors

MOST_AT_ONCE = 8
_Ready = list[tuple[selectors.SelectorKey, int]]


class FairSelector(selectors.DefaultSelector):
    """Of more ready files than `MOST_AT_ONCE` those that had no turn for longest; the rest stays ready."""

    def __init__(self) -> None:
        super().__init__()
        self._had_turn: set[int] = set()

    def select(self, timeout: float | None = None) -> _Ready:
        """See `selectors.BaseSelector.select`."""
        ready = super().select(timeout)
        if len(ready) <= MOST_AT_ONCE:
            self._had_turn.clear()
            return ready
        waiting = [each for each in ready if each[0].fd not in self._had_turn]
        if not waiting:
            self._had_turn.clear()
            waiting = ready
        chosen = waiting[:MOST_AT_ONCE]
        self._had_turn.update(key.fd for key, _ in chosen)
        return chosen


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A loop with such a selector."""
    return asyncio.SelectorEventLoop(FairSelector())
