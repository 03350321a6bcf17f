"""How far what is known of a cluster can be trusted now, and what to do with a question meanwhile.

The rule: answer from the last complete state while contact was lost for no longer than the limit; before the
first complete state, wait inside the caller's deadline; when that lasts, say doubt at once, because
karmada-scheduler places one binding at a time and a slow answer holds up all others.
"""

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class Freshness:
    """One cluster at one moment.

    ``synced``: a complete state has been read. ``lost_s``: how long contact has been lost, or how long the
    first complete state has been awaited; None in contact. ``recovering``: one is being read now.
    ``detail`` says what is wrong, for people.
    """

    synced: bool
    lost_s: float | None
    recovering: bool
    detail: str


class Verdict(Enum):
    """What to do with a question."""

    ANSWER = "answer"
    WAIT = "wait"
    DOUBT = "doubt"


def verdict(freshness: Freshness, stale_after_s: float) -> Verdict:
    """Answer while the state is good enough, wait while that may change soon, else doubt."""
    if freshness.synced and (freshness.lost_s is None or freshness.lost_s <= stale_after_s):
        return Verdict.ANSWER
    if freshness.recovering or (freshness.lost_s is not None and freshness.lost_s <= stale_after_s):
        return Verdict.WAIT
    return Verdict.DOUBT


def worst(parts: tuple[Freshness, ...]) -> Freshness:
    """The freshness of something that needs all of these."""
    lost = [part.lost_s for part in parts if part.lost_s is not None]
    return Freshness(
        synced=all(part.synced for part in parts),
        lost_s=max(lost, default=None),
        recovering=bool(lost) and all(part.recovering for part in parts if part.lost_s is not None),
        detail="; ".join(part.detail for part in parts if part.detail),
    )
