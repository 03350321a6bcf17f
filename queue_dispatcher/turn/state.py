"""What one dispatcher knows: the cache of what is watched, and what turns keep beside it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from queue_dispatcher.api.cluster_queue import ClusterQueue
from queue_dispatcher.bindings.binding import WorkloadReference
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cycle.actions import ClassKey
from queue_dispatcher.cycle.decide import AdmissionCycles
from queue_dispatcher.cycle.earliest import Earliest
from queue_dispatcher.cycle.eta import Eta
from queue_dispatcher.cycle.items import Item
from queue_dispatcher.cycle.reasons import Reason
from queue_dispatcher.cycle.reservation import NO_RESERVATIONS, Reservations
from queue_dispatcher.cycle.snapshot import QueueState, Verdict
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
    """All that a decision looks at; ``tokens``: None while the release window keeps nobody waiting. ``void``:
    those whose plans lead to no start any more, for whom others are looked for with the next decision.
    """

    changes: int
    envelope: Mapping[Cell, int]
    verdicts: Mapping[str, Verdict]
    tokens: tuple[int, int] | None
    earliest: Mapping[str, Earliest]
    claims: tuple[tuple[str, int], ...]
    in_vain: frozenset[ClassKey]
    void: frozenset[str]


class Place(NamedTuple):
    """Where a workload is, or was: ``uid`` is that of its binding."""

    cluster: str
    uid: str
    workload: WorkloadReference


class Stated(NamedTuple):
    """What a cycle is told of a queue, and from what it follows, by which it is known that it still holds.
    ``lasts``: it does then, whatever the time, what others have used and for whom others are displaced.
    """

    queue: ClusterQueue
    state: QueueState
    lasts: bool


@dataclass(frozen=True, slots=True)
class Displacement:
    """Others are being displaced for an item that is to be charged so, by this plan, since ``since_ms``,
    monotonic.

    ``tries``: how many plans there have been for it, with this one. ``places``: where those are, or were,
    that have been displaced for it. ``avoids``: the clusters in which they did not go. ``is_void``: it does
    not lead to a start any more.
    """

    item: Item
    charge: Charge
    plan: Plan
    since_ms: int
    tries: int = 1
    places: tuple[Place, ...] = ()
    avoids: frozenset[str] = frozenset()
    is_void: bool = False


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
    ``under_way``: of whom writes are to be made, or are being made.
    ``evicting``: whom evictions were begun of and may still be on their way. ``displacements``: by item, for
    whom others go; ``displaces_again_ms``: by item, when it is looked for another plan, monotonic;
    ``in_vain_ms``: by class, until when what has room starts, as nobody is to go for it; ``unclaimed``: the
    items that have no claim any more to what was left for them. ``over_budget``: by item, why nobody may be
    displaced for it, as too much was lost by that. ``notices``: what there is to tell; whoever
    tells it empties it. ``etas``: by item, when it was last expected to start.
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
        self.under_way: set[str] = set()
        self.evicting: set[str] = set()
        self.displacements: dict[str, Displacement] = {}
        self.displaces_again_ms: dict[str, int] = {}
        self.in_vain_ms: dict[ClassKey, int] = {}
        self.unclaimed: set[str] = set()
        self.over_budget: dict[str, str] = {}
        self.cycles = AdmissionCycles()
        self.queues: dict[str, Stated] = {}
        self.notices: list[Notice] = []
        self.etas: Mapping[str, Eta] = {}

    def call_off(self, item_id: str) -> None:
        """Nobody is displaced for the item any more; whom its plan has reached has gone all the same."""
        self.displacements.pop(item_id, None)
        self._stay(item_id)

    def give_up(self, item_id: str) -> None:
        """As `call_off`, and what was left for the item is anybody's."""
        self.call_off(item_id)
        self.unclaimed.add(item_id)

    def void(self, item_id: str) -> None:
        """The plan for the item leads to no start any more: another one is looked for at once."""
        if item_id in self.displacements:
            self.displacements[item_id] = replace(self.displacements[item_id], is_void=True)
            self.displaces_again_ms.pop(item_id, None)
        self._stay(item_id)

    def order(self, item_ids: Iterable[str]) -> None:
        """What is made for them is reckoned in that order from now on; others keep their places."""
        plans = self.displacements
        among = [item_id for item_id in item_ids if item_id in plans]
        known, rest = frozenset(among), iter(among)
        self.displacements = {(item := next(rest) if of in known else of): plans[item] for of in plans}

    def move(self, item_id: str, cluster: str) -> None:
        """The room that is made for the item is kept in that cluster now: there it is to start."""
        one = self.displacements.get(item_id)
        if one is not None and not one.is_void and one.plan.cluster not in ("", cluster):
            self.displacements[item_id] = replace(one, plan=replace(one.plan, cluster=cluster))

    def _stay(self, item_id: str) -> None:
        """Whom the plan for the item has not reached yet stays."""
        ends = self.cache.ends
        for uid in [uid for uid, displaced in ends.displaced_by.items() if displaced.by == item_id]:
            ends.keep(uid)
        self.cache.start_in(item_id, ())

    def advance(self, now: Moment) -> None:
        """It is ``now``, for all that time alone changes."""
        self.cache.advance(now)
