"""One binding in the cache: as it is on the server, what follows from that, and what of ours is under way."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from queue_dispatcher.bindings.binding import Binding
from queue_dispatcher.bindings.bound import NOT_COUNTED, Counts
from queue_dispatcher.bindings.phase import UNSEEN, Seen
from queue_dispatcher.bindings.record import FOR_NOBODY, AdmissionRecord
from queue_dispatcher.bindings.state import Foreign, State
from queue_dispatcher.cycle.items import Item
from queue_dispatcher.cycle.reasons import Reason, queue_not_found
from queue_dispatcher.workloads.choice import Choice
from queue_dispatcher.workloads.demand import Placed
from queue_dispatcher.workloads.elastic import Elastic
from queue_dispatcher.workloads.keeping import Kept
from queue_dispatcher.workloads.priority import Priority
from queue_dispatcher.workloads.queue_of import Resolved
from queue_dispatcher.workloads.template import TemplateFacts

GroupKey = tuple[str, str, str]
"""ClusterQueue, namespace and name of a group."""

NOT_LOOKED_AT = queue_not_found("not looked at yet")


@dataclass(eq=False, slots=True)
class Admission:
    """A decision to admit that is being carried out.

    ``records``: what each member is to be admitted with, in the order of their release. ``released``: those
    that have been released, or may have been. ``is_off``: nothing more is to be released unless some of it
    has been, which the writes under way are to tell. ``choices``: by member, where it is released to; empty
    where Karmada chooses. ``kept``: by member, what keeps its pods on the nodes of what it is charged to.
    ``passes``: past a reservation.
    """

    item: Item
    records: dict[str, AdmissionRecord]
    choices: Mapping[str, Choice] = field(default_factory=dict)
    kept: Mapping[str, tuple[Kept, ...]] = field(default_factory=dict)
    released: set[str] = field(default_factory=set)
    is_off: bool = False
    passes: bool = False


class Pause(NamedTuple):
    """The pause before a next try, epoch milliseconds: as it is written, and when it ends; 0 without one.

    The clock that wrote it may have been wrong: it ends no later than one that had begun when it was first
    seen.
    """

    written_ms: int = 0
    until_ms: int = 0


class Released(NamedTuple):
    """A release that this process made. ``at_ms``: which one, by the time of its record. ``reason``: why to
    its clusters, empty where Karmada chose; ``guided``: in which of them its pods were told where to go.
    """

    at_ms: int = 0
    reason: str = ""
    guided: tuple[str, ...] = ()


_NOT_OURS: Final = Released()


class Entry:
    """A binding and all that the dispatcher knows of it; only the cache changes it.

    ``state``, ``queue``, ``facts`` and ``priority`` follow from the binding. ``charged_queue``: of its
    written record, or of what was adopted. ``record``: of the admission under way, which counts as made.
    ``line``: the queue in which its item waits, empty if none does. ``waits``: why it cannot be admitted
    whatever room there is. ``retry_ms``: not to be written before, epoch milliseconds; ``failures``: how
    often writing failed in a row; ``note``: what the failure was; ``has_failed``: whether it was the server
    that failed, or did not answer. ``growing_ms``: when a growth that waits was first seen, epoch
    milliseconds, 0 without one. ``pause``: before its next try. ``seen``: of its present release;
    ``counts``: of its pods since then. ``released``: our latest release of it. ``elastic``: how it is;
    ``rigid``: why its minimum has no effect. ``growth``: what it would grow by, if room is left.
    ``shrinks_to``: where it is to stay, and with how many, once the write under way is made;
    ``shrinks_for``: for whom, and why. ``room_in``: the flavors,
    by resource, in which others are displaced for it, if it is to start in those alone meanwhile.
    """

    __slots__ = (
        "admission",
        "binding",
        "charged_queue",
        "counts",
        "elastic",
        "facts",
        "failures",
        "group",
        "growing_ms",
        "growth",
        "has_failed",
        "held_back",
        "is_open",
        "is_writing",
        "item",
        "line",
        "note",
        "pause",
        "priority",
        "queue",
        "record",
        "released",
        "retry_ms",
        "rigid",
        "room_in",
        "seen",
        "shrinks_for",
        "shrinks_to",
        "state",
        "stated_ms",
        "waits",
        "written",
        "written_ms",
    )

    def __init__(self, binding: Binding) -> None:
        self.binding = binding
        self.state: State = Foreign()
        self.queue: Resolved | Reason = NOT_LOOKED_AT
        self.charged_queue = ""
        self.facts = TemplateFacts()
        self.priority = Priority()
        self.admission: Admission | None = None
        self.record: AdmissionRecord | None = None
        self.item: Item | None = None
        self.line = ""
        self.group: GroupKey | None = None
        self.waits: Reason | None = None
        self.is_writing = False
        # Of its write nobody can tell yet whether it was made.
        self.is_open = False
        self.retry_ms = 0
        self.failures = 0
        self.has_failed = False
        self.note = ""
        self.seen = UNSEEN
        self.counts: Counts = NOT_COUNTED
        self.released = _NOT_OURS
        self.growing_ms = 0
        self.elastic: Elastic | None = None
        self.rigid = ""
        self.room_in: tuple[tuple[str, str], ...] = ()
        self.growth: Item | None = None
        self.shrinks_to: tuple[Placed, ...] = ()
        self.shrinks_for = FOR_NOBODY
        # When it was released to places that Karmada has yet to look at, monotonic; 0 for not so.
        self.stated_ms = 0
        self.pause = Pause()
        # The version that our last write made, until the watch has caught up, and what it said meanwhile.
        self.written = ""
        self.written_ms = 0
        self.held_back: Binding | None = None

    @property
    def uid(self) -> str:
        """The binding's uid."""
        return self.binding.uid

    @property
    def waiting(self) -> Item | None:
        """What of it is to be admitted: its item, or what it would grow by."""
        return self.item or self.growth

    @property
    def effective_record(self) -> AdmissionRecord | None:
        """The record of the admission under way, else the one that is written."""
        return self.record or self.binding.record


@dataclass(frozen=True, slots=True)
class PlacedNotice:
    """A released binding is placed. ``seen``: of the release, up to then.

    ``was_in_flight``: Karmada was expected to place it; else it had put it aside, or not looked at it.
    ``was_preplaced``: the release said where.
    """

    uid: str
    queue: str
    seen: Seen
    was_in_flight: bool
    was_preplaced: bool


class Reached(StrEnum):
    """How far what was released has come."""

    PLACED = "placed"
    """All of it has clusters."""
    BOUND = "bound"
    """All of its pods have had nodes, as the estimators of its clusters count them."""
    READY = "ready"
    """All of its pods have run, as its clusters report."""


@dataclass(frozen=True, slots=True)
class ReachedNotice:
    """What this process released has come so far, so long after its release."""

    queue: str
    reached: Reached
    took_ms: int


@dataclass(frozen=True, slots=True)
class FinishedNotice:
    """A workload came to its end."""

    uid: str
    queue: str


@dataclass(frozen=True, slots=True)
class RestartedNotice:
    """Karmada has placed a workload anew that had come to its end."""

    entry: Entry
    queue: str


@dataclass(frozen=True, slots=True)
class MaxWaitMissedNotice:
    """A workload has waited for longer than its ServiceClass says it should."""

    uid: str
    queue: str
    service_class: str


Notice = PlacedNotice | ReachedNotice | FinishedNotice | RestartedNotice | MaxWaitMissedNotice
