"""Outages: which clusters are away and for how long, as this process has seen it.

A cluster is away while it is not Ready, while it is being removed, and while work is placed in it though
there is no such cluster. What a process saw happen it times by its own monotonic clock. What had happened
before it came, it takes to be as old as is written, or as it has known of it, whichever is longer; but as
that was written by another clock, it has to have known of it for a while.

Nor is a cluster a place to go to that has just come back: where all were away at once, it was the way to them
that was cut, and the others are about to be back too.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Final, NamedTuple

from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.workloads.fleet import Cluster

SETTLED_MS: Final = 60_000
"""For so long a process must have known of what it did not see happen; and a cluster must have been here."""


class _Span(NamedTuple):
    """``since_ms``: since when it is so, monotonic; ``was_seen``: whether this process saw it become so."""

    is_here: bool
    since_ms: int
    was_seen: bool


class Outages:
    """Of the clusters that ``clusters`` tells, by name."""

    def __init__(self, clusters: Callable[[], Mapping[str, Cluster]]) -> None:
        self._clusters = clusters
        self._spans: dict[str, _Span] = {}
        # What has changed since it was last said how late it is; by name, whether it was known before.
        self._changed: dict[str, bool] = {}

    def changed(self, name: str, before: Cluster | None, after: Cluster | None) -> None:
        """A cluster is there, looks different, or is gone."""
        if before is None or before.is_here != (after is not None and after.is_here):
            self._spans.pop(name, None)
            self._changed[name] = before is not None or name in self._changed

    def advance(self, elapsed_ms: int, used: Collection[str]) -> None:
        """It is that late, monotonic milliseconds, and work is placed in the clusters ``used``."""
        for name, was_seen in self._changed.items():
            known = self._clusters().get(name)
            self._spans[name] = _Span(known is not None and known.is_here, elapsed_ms, was_seen)
        self._changed.clear()
        for name in used:
            if name not in self._spans:
                self._spans[name] = _Span(False, elapsed_ms, False)
        clusters = self._clusters()
        for name in [one for one in self._spans if one not in clusters and one not in used]:
            del self._spans[name]

    def away(self) -> list[str]:
        """The clusters that are away, in order."""
        return sorted(name for name, span in self._spans.items() if not span.is_here)

    def away_ms(self, name: str, now: Moment) -> int | None:
        """How long the cluster has been away; None if it is not."""
        span = self._spans.get(name)
        if span is None or span.is_here:
            return None
        own_ms = now.elapsed_ms - span.since_ms
        known = self._clusters().get(name)
        if span.was_seen or known is None or not known.lost_ms:
            return own_ms
        return max(own_ms, now.day_ms - known.lost_ms)

    def left_ms(self, name: str, timeout_ms: int, now: Moment) -> int | None:
        """How long until the cluster has been away for ``timeout_ms``, 0 or below if it has; None if it is
        not away.
        """
        away_ms = self.away_ms(name, now)
        if away_ms is None:
            return None
        span = self._spans[name]
        known_ms = 0 if span.was_seen else span.since_ms + SETTLED_MS - now.elapsed_ms
        return max(timeout_ms - away_ms, known_ms)

    def settled(self, elapsed_ms: int) -> frozenset[str]:
        """The clusters that have been here for a while."""
        return frozenset(name for name in self._spans if self.is_settled(name, elapsed_ms))

    def is_settled(self, name: str, elapsed_ms: int) -> bool:
        """Whether the cluster has been here for a while."""
        span = self._spans.get(name)
        return span is not None and span.is_here and elapsed_ms - span.since_ms >= SETTLED_MS

    def here_ms(self, names: Collection[str]) -> int:
        """Since when the last of those of the clusters that are here is, monotonic; 0 where none is."""
        spans = (self._spans.get(name) for name in names)
        return max((span.since_ms for span in spans if span is not None and span.is_here), default=0)

    def settles_in_ms(self, elapsed_ms: int) -> int | None:
        """How long until the next cluster has been here for a while; None if all have that are here."""
        left = (span.since_ms + SETTLED_MS - elapsed_ms for span in self._spans.values() if span.is_here)
        return min((one for one in left if one > 0), default=None)
