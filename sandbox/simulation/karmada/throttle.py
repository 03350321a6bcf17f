"""A client's own limit of requests, as client-go keeps it: a bucket of tokens that fills by so many a second.

A request that finds no token is not refused but sent later, in the order in which requests were made.
"""

from dataclasses import dataclass, field

TOKEN = 1000
"""Costs are in thousandths of a request, for some things take two and a half on average."""


@dataclass(slots=True)
class Throttle:
    """``qps`` requests a second, ``burst`` at once. Karmada's defaults are 40 and 60; 0: no limit."""

    qps: int = 40
    burst: int = 60
    _tokens: int = field(init=False)
    _at_ms: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._tokens = self.burst * TOKEN

    def reserve(self, now_ms: int, cost: int) -> int:
        """When requests of this ``cost`` are through that are made now; later ones come after."""
        if not self.qps:
            return now_ms
        filled = self._tokens + (now_ms - self._at_ms) * self.qps
        self._at_ms = now_ms
        self._tokens = min(self.burst * TOKEN, filled) - cost
        return now_ms if self._tokens >= 0 else now_ms + -(self._tokens // self.qps)
