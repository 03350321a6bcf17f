"""Fungibility: which flavor a workload gets where each has its price, borrowing or displacing. Pure.

Mirrors Kueue 0.20 (pkg/scheduler/flavorassigner, shouldTryNextFlavor and isPreferred; KEP-582). Flavors are
looked at in the queue's order. The search stops at one that can be had for nothing, or at a price at which
the queue says that it may stop; of those that were looked at otherwise the best is taken.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from queue_dispatcher.api.cluster_queue import FlavorFungibility, FlavorPreference, SearchPolicy


class Mode(IntEnum):
    """How a flavor can be had, the better the higher."""

    NONE = 0
    """Not now: displacing others would not help, or nobody may be displaced."""
    PREEMPT = 1
    """Once others have gone, some of its own queue among them."""
    RECLAIM = 2
    """Once others have gone, all of queues that borrow."""
    FIT = 3
    """At once."""


class Outcome(NamedTuple):
    """What a flavor costs. ``distance``: how many levels above the queue it would be borrowed from, once
    those have gone that have to; 0 for nothing borrowed.
    """

    mode: Mode
    distance: int = 0


NONE: Final = Outcome(Mode.NONE)
CHEAPEST: Final = Outcome(Mode.RECLAIM)
"""The least that displacing may come to: what is assumed of a flavor in which nobody has been looked for."""


def chosen(outcomes: Sequence[Outcome], fungibility: FlavorFungibility) -> int | None:
    """Which of the flavors, in the queue's order, by number; None where none can be had."""
    for number, one in enumerate(outcomes):
        if _stops(one, fungibility):
            return number
    # Of equal ones the first.
    best = max(range(len(outcomes)), key=lambda number: _worth(outcomes[number], fungibility), default=None)
    return None if best is None or outcomes[best].mode is Mode.NONE else best


def _stops(one: Outcome, fungibility: FlavorFungibility) -> bool:
    if one.mode is Mode.NONE:
        return False
    if one.mode is not Mode.FIT and fungibility.when_can_preempt is SearchPolicy.TRY_NEXT_FLAVOR:
        return False
    return not one.distance or fungibility.when_can_borrow is SearchPolicy.MAY_STOP_SEARCH


def _worth(one: Outcome, fungibility: FlavorFungibility) -> tuple[bool, int, int]:
    if fungibility.preference is FlavorPreference.PREEMPTION_OVER_BORROWING:
        return one.mode is not Mode.NONE, -one.distance, one.mode
    return one.mode is not Mode.NONE, one.mode, -one.distance
