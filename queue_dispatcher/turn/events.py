"""Events: all that changes a turn's state beside what is watched, which the cache takes as it comes."""

from collections.abc import Mapping
from dataclasses import dataclass

from queue_dispatcher.bindings.objects import ResourceBinding
from queue_dispatcher.estimates.estimates import Answered
from queue_dispatcher.turn.writes import Fate, Write


@dataclass(frozen=True, slots=True)
class Saw:
    """A binding as it is on the server: the answer to a patch, or read again."""

    binding: ResourceBinding


@dataclass(frozen=True, slots=True)
class Wrote:
    """What became of a write; ``message`` of one that was refused or given up. `Saw` comes before."""

    write: Write
    fate: Fate
    message: str = ""


@dataclass(frozen=True, slots=True)
class Led:
    """From now on this process leads and its writes are made, or does so no more."""

    is_leading: bool


@dataclass(frozen=True, slots=True)
class Counted:
    """The estimator of a cluster has counted pods: by uid of the binding, how many are bound there; None of
    those whose pods it cannot tell.
    """

    cluster: str
    bound: Mapping[str, int | None]


Event = Saw | Wrote | Led | Answered | Counted
