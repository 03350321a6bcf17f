"""What ``fairway notify`` has done, or would do, as a value."""

from dataclasses import dataclass
from enum import StrEnum

from admin.document import Failure
from admin.top import Note

FORMAT = "fairway-notify/1"
KARMADA = "karmada"
"""Where an Event is that is on a template."""


class Outcome(StrEnum):
    """What became of a workload with findings."""

    TOLD = "told"
    WOULD_BE_TOLD = "would be told"
    TOLD_TODAY = "told within a day"
    SEEN = "told when seen again"
    """By a run in another hour."""
    NOT_TOLD = "not told"


@dataclass(frozen=True, slots=True)
class Line:
    """One workload. ``where``: the cluster with the Event, or `KARMADA`; ``problem``: why it was not told.

    ``clusters``: those that have its pods, the most wasteful first. What it holds, and wastes of that, in
    thousandths of devices.
    """

    where: str
    namespace: str
    kind: str
    name: str
    clusters: tuple[str, ...]
    outcome: Outcome
    reason: str
    type: str
    message: str
    problem: str = ""
    allocated_milli: int = 0
    wasted_milli: int = 0


@dataclass(frozen=True, slots=True)
class Rest:
    """``workloads`` of a namespace with findings that this run did not come to; the next one may."""

    where: str
    namespace: str
    workloads: int


@dataclass(frozen=True, slots=True)
class Notification:
    """All of a run; lines in the order of what workloads waste."""

    format: str
    made_at: str
    release: str
    dry_run: bool
    lines: tuple[Line, ...]
    rest: tuple[Rest, ...]
    notes: tuple[Note, ...]
    failures: tuple[Failure, ...]

    @property
    def is_partial(self) -> bool:
        """Whether something could not be read, or somebody not be told."""
        return bool(self.failures) or any(line.outcome is Outcome.NOT_TOLD for line in self.lines)
