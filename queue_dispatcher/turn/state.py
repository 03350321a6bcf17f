"""What one dispatcher knows: the cache of what is watched, and what turns keep beside it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cycle.actions import ClassKey
from queue_dispatcher.cycle.decide import AdmissionCycles
from queue_dispatcher.cycle.earliest import Earliest
from queue_dispatcher.cycle.eta import Eta
from queue_dispatcher.cycle.items import Item
from queue_dispatcher.cycle.reasons import Reason
from queue_dispatcher.cycle.reservation import NO_RESERVATIONS, Reservations
from queue_dispatcher.cycle.snapshot import Verdict
from queue_dispatcher.cycle.turns import NO_TURNS
from queue_dispatcher.estimates.estimates import Estimates
from queue_dispatcher.ledger.cells import Cell, Charge
from queue_dispatcher.preemption.planning import Plan
from queue_dispatcher.turn.following import NOT_DECIDED
from queue_dispatcher.turn.notices import Notice
from queue_dispatcher.turn.window import ReleaseWindow


@dataclass(slots=True)
class View:
    """What the last cycle found, for those who ask. ``full_since_ms``: by item, since when it only waits for
    the release window; times are of the monotonic clock. ``undecided``: of what is not in ``waits``.
    ``displacing``: by item, what is to be told of those that are displaced for it.
    ``reservations``: those of the leader, which alone knows them.
    """

    waits: Mapping[ClassKey, Reason] = field(default_factory=dict)
    decided_ms: int = 0
    full_since_ms: dict[str, int] = field(default_factory=dict)
    undecided: Reason = NOT_DECIDED
    displacing: Mapping[str, str] = field(default_factory=dict)
    reservations: Reservations = NO_RESERVATIONS


@dataclass(frozen=True, slots=True)
class Basis:
    """All that a decision looks at; ``tokens``: None while the release window keeps nobody waiting."""

    changes: int
    envelope: Mapping[Cell, int]
    verdicts: Mapping[str, Verdict]
    tokens: tuple[int, int] | None
    earliest: Mapping[str, Earliest]
    claims: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Displacement:
    """Others are being displaced for an item that is to be charged so, by this plan, since ``since_ms``,
    monotonic.
    """

    item: Item
    charge: Charge
    plan: Plan
    since_ms: int


@dataclass(frozen=True, slots=True)
class Decided:
    """When it was last decided, on what, and when time alone would change it."""

    basis: Basis
    at_ms: int
    next_due_ms: int | None


class TurnState:
    """The state of one dispatcher; one writer. ``estimates``: None where no estimators are asked.

    ``term``: how often it has changed whether this process leads. ``leader``: the identity of whoever leads,
    empty for nobody. ``room_ms``: by cluster, when room last appeared there, monotonic. ``turns``: who has
    had how much of the release window. ``reservations``: those of the last decision; ``reserved``: by id, the
    items of which it was told that they hold one. ``cycles``: what still
    holds of one cycle in the next. ``decided``: the last decision, while to decide anew would find the same.
    ``evicting``: whom evictions were begun of and may still be on their way. ``displacements``: by item, for
    whom others go; ``displaces_again_ms``: by item, when another plan may be made, monotonic. ``notices``:
    what there is to tell; whoever tells it empties it. ``etas``: by item, when it was last
    expected to start.
    """

    def __init__(self, cache: Cache, estimates: Estimates | None) -> None:
        self.cache = cache
        self.estimates = estimates
        self.window = ReleaseWindow()
        self.is_leading = False
        self.term = 0
        self.leader = ""
        self.room_ms: dict[str, int] = {}
        self.view = View()
        self.decided: Decided | None = None
        self.turns = NO_TURNS
        self.reservations = NO_RESERVATIONS
        self.reserved: dict[str, Item] = {}
        self.evicting: set[str] = set()
        self.displacements: dict[str, Displacement] = {}
        self.displaces_again_ms: dict[str, int] = {}
        self.cycles = AdmissionCycles()
        self.notices: list[Notice] = []
        self.etas: Mapping[str, Eta] = {}

    def call_off(self, item_id: str) -> None:
        """Nobody is displaced for the item any more; whom its plan has reached has gone all the same."""
        del self.displacements[item_id]
        ends = self.cache.ends
        for uid in [uid for uid, displaced in ends.displaced_by.items() if displaced.by == item_id]:
            ends.keep(uid)

    def advance(self, now: Moment) -> None:
        """It is ``now``, for all that time alone changes."""
        self.cache.advance(now)
