"""Writes: what a turn asks to be written to bindings, and what became of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from fairway.kube.preconditions import Preconditions


class Purpose(StrEnum):
    """What a write is for."""

    ADMIT = "admit"
    """Release a workload, or its growth, and write down what it is charged."""
    CLEAR_HOLD = "clear_hold"
    """Let go what is held although nothing more is asked for than was admitted."""
    SHRINK = "shrink"
    """Lower the record to what is still asked for."""
    YIELD = "yield"
    """Have an elastic workload run on with fewer pods, so that others may start."""
    TAKE_BACK = "take_back"
    """Suspend what was released and did not start in time."""
    TAKE_BACK_GROWTH = "take_back_growth"
    """Hold again what grew, or lost a part, and found no place for the rest in time."""
    TAKE_BACK_LOST = "take_back_lost"
    """Suspend what was placed in a cluster that is lost, and take it off all of its clusters."""
    LEAVE_LOST = "leave_lost"
    """Take off the clusters that are lost what may be placed elsewhere, while the rest runs on."""
    EVICT = "evict"
    """Suspend what has run for as long as it may, or whose queue is drained, and take it off all clusters, or
    have it stand still where it is.
    """
    WAIT_ON = "wait_on"
    """Note until when what stands still in a cluster waits for that one."""
    SWITCH = "switch"
    """Have the policy there that suspends a workload in its cluster, or have it gone, as its binding says."""
    GIVE_UP = "give_up"
    """Take off its cluster what stands still there and has waited for room in vain."""
    BEGAN = "began"
    """Note when what was placed long after its release began to run."""
    RETRY_CHECK = "retry_check"
    """Note that a check has said Retry, and have it asked again after a while."""
    STARTED = "started"
    """Forget the tries in vain of what runs now."""
    KICK = "kick"
    """Suspend for a moment what Karmada put aside as unschedulable, so that it looks again."""
    REASSERT = "reassert"
    """Clear the clusters of what Karmada placed although it had been taken back."""
    ADOPT = "adopt"
    """Write a record for what runs and can no longer be taken back."""


@dataclass(frozen=True, slots=True)
class Write:
    """One patch to be made, of the binding ``uid``. ``sequence``: what it must keep its order in."""

    uid: str
    sequence: str
    purpose: Purpose


@dataclass(frozen=True, slots=True)
class Companion:
    """Another object, which has to be as ``body`` says before a write is made; not there at all with None.

    ``without``: what nothing would do where this one is refused, for people; then the write is not made.
    Empty where it is made all the same.
    """

    path: str
    body: Mapping[str, object] | None
    without: str = ""

    @property
    def is_needed(self) -> bool:
        """Whether the write is not made where this one is refused."""
        return bool(self.without)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A write as of now: where, what, and for which object in which version; ``first``: what comes before.

    ``body``: None where there is nothing to write beyond that.
    """

    path: str
    body: Mapping[str, object] | None
    when: Preconditions
    first: Companion | None = None


class Fate(StrEnum):
    """What became of a write."""

    APPLIED = "applied"
    GONE = "gone"
    """There is no such object any more."""
    DROPPED = "dropped"
    """It was not made and nothing is to blame for it; it may be decided again at once."""
    REFUSED = "refused"
    """It was not made, and would not be if it were tried again at once."""
    OPEN = "open"
    """Whether it was made is not known, as its object cannot be read; what becomes of it is told later."""
    FAILED = "failed"
    """It was not made, as the server fails at its object, or does not answer about it."""
    GIVEN_UP = "given_up"
    """It was not made because others kept writing; nothing is wrong with the object."""
