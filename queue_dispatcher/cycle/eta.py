"""Eta: when what waits is expected to start, and how far that can be relied on. Pure.

Nothing is promised: others may come that go first, and nodes may not be free when amounts are. What is told
is what would follow from what is known, and by whose word.
"""

from collections.abc import Generator
from dataclasses import dataclass
from enum import StrEnum

from queue_dispatcher.cycle.projection import Outlook, Waiting, project


class Confidence(StrEnum):
    """By what it is known."""

    BOUND = "bound"
    """All ends that matter are enforced: what runs for longer is taken back."""
    HISTORY = "history"
    """By how long earlier runs took."""
    UNKNOWN = "unknown"
    """Nobody knows."""


@dataclass(frozen=True, slots=True)
class Eta:
    """``at_ms``: about when; ``by_ms``: about when if all that is in its way runs for as long as it may;
    epoch milliseconds, None where nobody knows. ``why``: why nobody knows, for people.
    """

    confidence: Confidence
    at_ms: int | None = None
    by_ms: int | None = None
    why: str = ""


_NO_NODES = Eta(
    Confidence.UNKNOWN,
    why="the estimators find no nodes for it now; when there will be some is asked for reservations alone",
)
_NO_ENDS = Eta(
    Confidence.UNKNOWN,
    why="nobody knows when what is in its way ends: it has no maxRuntime, and too few alike have ended yet",
)


def etas(outlook: Outlook) -> Generator[None, None, dict[str, Eta]]:
    """Of all that waits, by item; in steps, each well under a millisecond but for those of a cycle."""
    bounds = yield from project(outlook, is_likely=False)
    likely = (yield from project(outlook, is_likely=True)) if outlook.has_history else bounds
    return {
        one.item.id: _eta(one, bounds.get(one.item.id), likely.get(one.item.id)) for one in outlook.waiting
    }


def _eta(one: Waiting, by_ms: int | None, likely_ms: int | None) -> Eta:
    if one.is_refused and one.opens_ms is None:
        return _NO_NODES
    if likely_ms is None and by_ms is None:
        return _NO_ENDS
    if likely_ms is None or (by_ms is not None and by_ms <= likely_ms):
        return Eta(Confidence.BOUND, by_ms, by_ms)
    return Eta(Confidence.HISTORY, likely_ms, by_ms)
