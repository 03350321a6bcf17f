"""How often a client may ask, and how much at once; pure: the time is an argument.

A client beyond its bound is told so and when to come back; others do not notice. Clients that have not been
seen for longest are forgotten first, which costs them nothing: a forgotten client starts with a full
allowance.
"""

from collections import OrderedDict
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """``per_second`` requests on average, ``burst`` in a row, ``at_once`` in hand; ``clients`` are known."""

    per_second: float
    burst: int
    at_once: int
    clients: int = 4096


@dataclass(slots=True)
class _Client:
    left: float
    since_s: float
    at_once: int = 0


class Allowances:
    """What each client has left. Times are monotonic, in seconds."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._clients: OrderedDict[str, _Client] = OrderedDict()

    def begin(self, client: str, now_s: float) -> float:
        """Take one request's place: 0 if it may be answered, and `end` is to follow; else seconds to wait."""
        known = self._refilled(client, now_s)
        bounds = self._bounds
        if known.at_once >= bounds.at_once:
            return 1.0
        if known.left < 1.0:
            return (1.0 - known.left) / bounds.per_second
        known.left -= 1.0
        known.at_once += 1
        return 0.0

    def end(self, client: str) -> None:
        """The request that `begin` let in is over."""
        known = self._clients.get(client)
        if known is not None:
            known.at_once -= 1

    def _refilled(self, client: str, now_s: float) -> _Client:
        bounds = self._bounds
        known = self._clients.get(client)
        if known is None:
            known = self._clients[client] = _Client(float(bounds.burst), now_s)
            self._forget()
        self._clients.move_to_end(client)
        earned = max(0.0, now_s - known.since_s) * bounds.per_second
        known.left = min(float(bounds.burst), known.left + earned)
        known.since_s = now_s
        return known

    def _forget(self) -> None:
        while len(self._clients) > self._bounds.clients:
            # One that is being answered is not forgotten, or its place would never be given back.
            idle = next((name for name, one in self._clients.items() if not one.at_once), None)
            if idle is None:
                return
            del self._clients[idle]
