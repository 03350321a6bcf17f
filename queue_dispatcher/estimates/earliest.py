"""When a workload that fits nowhere would fit at the earliest: of which that can be asked, and the answer.

One cluster has to take all of it, so that the answers of clusters can be compared and room be held in one of
them. A workload that Karmada divides is asked about as if it went to one cluster. Pure.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from queue_dispatcher.cycle.earliest import Earliest, first_of
from queue_dispatcher.estimates.cluster_room import ClusterRoom
from queue_dispatcher.estimates.questions import Question, verdict_of

MAX_EARLIEST: Final = 4_096
"""Workloads of which it is remembered when they would fit."""
NOBODY_SAYS: Final = "no estimator says when there is room, or whether there would ever be"


@dataclass(frozen=True, slots=True)
class EarliestAnswer:
    """``asked_ms``: when it was asked, monotonic. ``best``: where to hold room, see `first_of`.

    ``unknown``: where there is no best, why that cannot be told; empty where nothing is to be held, as it
    fits now.
    """

    asked_ms: int
    best: Earliest | None = None
    unknown: str = ""


def cannot_be_told(questions: Sequence[Question]) -> str:
    """Why it cannot be asked when there is room; empty where it can."""
    if not questions:
        return "nothing of it can be asked about"
    if len(questions) > 1:
        return "when a group fits cannot be told: each of its members may go to another cluster"
    if questions[0].clusters_needed > 1:
        return "when it fits cannot be told: it goes to several clusters at once"
    return ""


def fits_now(question: Question, rooms: Iterable[ClusterRoom]) -> bool:
    """Whether these have room for all of it."""
    verdict, _ = verdict_of(question, [*rooms])
    return verdict is not None and verdict.fits > 0


def answer_of(
    question: Question, rooms: Sequence[ClusterRoom], before: Earliest | None, day_ms: int, asked_ms: int
) -> EarliestAnswer:
    """What the answers of all clusters mean at ``day_ms``, since the epoch; ``asked_ms`` is monotonic.

    A cluster that does not answer is not chosen. If no other can be, that is not known, and whoever holds
    room there may go on.
    """
    if fits_now(question, rooms):
        # Where it holds room it goes on to, until it has started: what it fits in others may take before.
        return EarliestAnswer(asked_ms, replace(before, at_ms=day_ms) if before is not None else None)
    best = first_of((room.earliest for room in rooms if room.earliest is not None), before, day_ms)
    silent = [room.unknown for room in rooms if room.unknown]
    return EarliestAnswer(asked_ms, best, "" if best is not None else "; ".join(silent[:2]) or NOBODY_SAYS)
