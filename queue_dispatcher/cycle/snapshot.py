"""What a cycle decides from: a value that whoever made it leaves alone until the decision is there."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from queue_dispatcher.api.ageing import NO_AGEING, Ageing
from queue_dispatcher.api.cluster_queue import (
    NO_PREEMPTION,
    FlavorFungibility,
    Preemption,
    QueueingStrategy,
)
from queue_dispatcher.api.reservation import ReservationPolicy
from queue_dispatcher.cycle.actions import ClassKey
from queue_dispatcher.cycle.displacement import Pods
from queue_dispatcher.cycle.earliest import Earliest
from queue_dispatcher.cycle.endings import Endings
from queue_dispatcher.cycle.items import Item
from queue_dispatcher.cycle.order import NOT_SHARED
from queue_dispatcher.cycle.pending import PendingQueue
from queue_dispatcher.cycle.reasons import Reason
from queue_dispatcher.cycle.reservation import NO_RESERVATIONS, Reservations
from queue_dispatcher.cycle.sharing import Sharing
from queue_dispatcher.cycle.turns import NO_TURNS, Turns
from queue_dispatcher.cycle.witness import Witness
from queue_dispatcher.ledger.cells import Cell
from queue_dispatcher.ledger.ledger import Ledger

DEFAULT_POLICY: Final = ReservationPolicy()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the estimators said about one question, a shape's ``probe``.

    ``fits``: how many workloads of the shape have room now, beside each other; 0 for none, with ``reasons``.
    ``clusters``: where; an admission into one of them may take the room of whatever else was to go there.
    ``pods``: those of one workload; each of the ``fits`` ends once ``per`` of them have lost their place, see
    `queue_dispatcher.cycle.displacement`. ``rooms``: by cluster, how many fit there, in units of which one
    workload needs ``per``; None where each of several clusters gets it, or that is not known. ``members``:
    of a group, the verdict about each beside those before, whose ``rooms`` are what they were told to take.
    ``unanswered``: of one that is no answer, what has to happen for one; ``fits`` is 0 then. ``never``: it
    would not even fit if nothing else ran, on the nodes that there are. ``witnesses``: by cluster, where the
    pods have to go there of the first of the ``fits``, of the next beside it, and so on, as far as is known.
    """

    fits: int
    clusters: frozenset[str] = frozenset()
    reasons: tuple[str, ...] = ()
    unanswered: str = ""
    never: bool = False
    pods: Pods = ()
    per: int = 1
    rooms: tuple[tuple[str, int], ...] | None = None
    members: "tuple[Verdict, ...]" = ()
    witnesses: tuple[tuple[str, tuple[Witness, ...]], ...] = ()

    @property
    def says_where(self) -> bool:
        """Whether it is known where those have room that fit."""
        return self.rooms is not None or bool(self.members)

    def left(self, displaced: int) -> int:
        """How many fit still once so many pods have lost their place; never below 0."""
        return max(0, self.fits * self.per - displaced) // self.per


@dataclass(frozen=True, slots=True)
class Looks:
    """Whom to displace is looked for before workloads of a queue start in a flavor that its ``fungibility``
    puts behind displacing others in another one.

    ``in_vain``: the classes for which that was done just now, and nobody is to go. ``claims``: the items for
    which others are going.
    """

    fungibility: FlavorFungibility
    in_vain: frozenset[ClassKey] = frozenset()
    claims: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class QueueState:
    """One ClusterQueue with what waits in it.

    ``priority``: its own among its siblings, the higher the sooner; 0 but for Volcano's queues.
    ``preemption``: what its workloads may displace. ``stopped``: why it admits nothing, if so; a queue that
    cannot be found a place in the quota tree is stopped too. ``reservation``: which of its workloads get one,
    where its strategy has any. ``sharing``: who has used how much of it, where its LocalQueues share it.
    ``is_over_budget``: whether it has used up a soft budget. ``looks``: None where whatever has room starts.
    """

    name: str
    pending: PendingQueue
    strategy: QueueingStrategy = QueueingStrategy.BEST_EFFORT_FIFO
    ageing: Ageing = NO_AGEING
    priority: int = 0
    preemption: Preemption = NO_PREEMPTION
    stopped: Reason | None = None
    reservation: ReservationPolicy = DEFAULT_POLICY
    sharing: Sharing | None = None
    is_over_budget: bool = False
    looks: Looks | None = None

    @property
    def shares(self) -> Mapping[str, int]:
        """By line, what each has used, where LocalQueues share it."""
        return self.sharing.shares if self.sharing is not None else NOT_SHARED

    @property
    def reserves(self) -> bool:
        """Whether its workloads get reservations; what goes behind all others keeps nothing from them."""
        return self.strategy is QueueingStrategy.BACKFILL_FIFO and not self.is_over_budget

    @property
    def may_displace(self) -> bool:
        """Whether its workloads may displace others."""
        return self.preemption != NO_PREEMPTION and not self.is_over_budget


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that an admission cycle looks at.

    ``queues``: by name; those with nothing pending may be left out. ``envelope``: of each cell what is
    physically there and not charged to anybody, below 0 where more is charged than there is; cells that are
    left out have no bound but quota. ``verdicts``: by ``Shape.probe``; a question left out has not been
    answered, or no longer holds. ``tokens``: how many bindings may be released now that Karmada has to place;
    ``preplaced_tokens``: how many that say where. ``in_flight``: how many have been released and not been
    placed yet. ``max_probes``: how many questions one cycle may raise.
    ``elsewhere``: where another process asks the estimators, what those wait for whose answer it knows alone.
    Nothing is kept free for them, as it is not known whether they fit. ``turns``: as the last decision that
    was carried out left them. ``endings``: what runs, and when it ends. ``earliest``: by
    `queue_dispatcher.cycle.reservation.own_probe`, where and when the estimators find room. ``reservations``:
    those of the last decision that was carried out, of which the estimators have been told. ``claims``: the
    items for which others are being displaced, and whose room nobody else may have until then, epoch
    milliseconds, in the order in which that began. ``growing``: elastic workloads of which a part runs, each
    as one pod that it would grow by, but for those of stopped queues; ``over_budget``: those of their queues
    that have used up a soft budget.
    """

    ledger: Ledger
    queues: Mapping[str, QueueState]
    envelope: Mapping[Cell, int] = field(default_factory=dict)
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    tokens: int = 1
    preplaced_tokens: int = 1
    in_flight: int = 0
    max_probes: int = 16
    elsewhere: Reason | None = None
    turns: Turns = NO_TURNS
    endings: Endings = field(default_factory=Endings)
    earliest: Mapping[str, Earliest] = field(default_factory=dict)
    reservations: Reservations = NO_RESERVATIONS
    claims: Mapping[str, int] = field(default_factory=dict)
    growing: Sequence[Item] = ()
    over_budget: Collection[str] = ()
