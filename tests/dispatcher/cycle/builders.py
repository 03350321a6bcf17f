"""A fleet on paper: queues, what waits in them, and cycles whose admissions are really charged.

fleet = Fleet(root("org", gpu=8), queue("a", "org"))
fleet.submit("a", "train", gpu=4, at=1)
assert fleet.cycle() == ["train"]
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from queue_dispatcher.api.ageing import Ageing
from queue_dispatcher.api.cluster_queue import (
    NO_PREEMPTION,
    Preemption,
    QueueingStrategy,
    ReclaimWithinCohort,
)
from queue_dispatcher.api.reservation import ReservationPolicy
from queue_dispatcher.cycle.actions import Admit, Decision, Probe, class_key
from queue_dispatcher.cycle.decide import decide
from queue_dispatcher.cycle.earliest import Earliest
from queue_dispatcher.cycle.endings import Endings
from queue_dispatcher.cycle.items import Alternative, Item, Shape
from queue_dispatcher.cycle.pending import PendingQueue
from queue_dispatcher.cycle.reasons import Reason
from queue_dispatcher.cycle.reservation import NO_RESERVATIONS
from queue_dispatcher.cycle.sharing import Sharing
from queue_dispatcher.cycle.snapshot import QueueState, Snapshot, Verdict
from queue_dispatcher.cycle.turns import NO_TURNS
from queue_dispatcher.ledger.cells import Charge, added
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.ledger.tree import QuotaNode, QuotaTree
from tests.dispatcher.ledger.builders import TABLE, cell, charge

STRICT = QueueingStrategy.STRICT_FIFO
BEST_EFFORT = QueueingStrategy.BEST_EFFORT_FIFO
BACKFILL = QueueingStrategy.BACKFILL_FIFO


def shape(*alternatives: Charge, probe: str = "", never: Reason | None = None) -> Shape:
    """One object for each call, as the cache makes one for each shape of a queue."""
    ways = tuple(Alternative((), one) for one in alternatives)
    return Shape(f"{alternatives} {probe} {never}", (), ways, never, probe)


def option(of: Charge) -> Alternative:
    """Charged so; where of several cells, each stands for a flavor that Karmada may put it on."""
    names = [(cell, TABLE.name(cell)) for cell, _ in of]
    flavors = {number: ("any", f"{name.flavor} {name.resource}") for number, name in names}
    places = tuple(Alternative((flavors[number],), ((number, amount),)) for number, amount in of)
    return Alternative(tuple(flavors.values()), of, places if len(of) > 1 else ())


def shape_of_parts(*parts: Sequence[Charge], avoids_borrowing: bool = False, probe: str = "") -> Shape:
    """Of a workload whose parts have alternatives of their own, each by `option`."""
    first, *further = (tuple(map(option, options)) for options in parts)
    return Shape(
        f"{parts} {avoids_borrowing} {probe}",
        (),
        first,
        probe=probe,
        further=tuple(further),
        avoids_borrowing=avoids_borrowing,
    )


def bound(clusters: str, **amounts: int) -> Alternative:
    """Charged so, and bound to these clusters, named with one letter each."""
    of = charge(**amounts)
    flavors = tuple((name.resource, name.flavor) for name in (TABLE.name(cell) for cell, _ in of))
    return Alternative(flavors, of, clusters=frozenset(clusters))


def wherever(*flavors: Alternative, clusters: str = "") -> Alternative:
    """On any of these flavors, which is Karmada's to choose, or the dispatcher's; ``clusters``: all theirs,
    unless there are no others.
    """
    return Alternative(
        tuple(pair for one in flavors for pair in one.flavors),
        added(*(one.charge for one in flavors)),
        flavors,
        clusters=frozenset(clusters) if clusters else None,
    )


def preplaced(*parts: Sequence[Alternative], avoids_borrowing: bool = False, probe: str = "p") -> Shape:
    """Of a workload whose release states where to."""
    first, *further = map(tuple, parts)
    key = f"{parts} {avoids_borrowing} {probe}"
    return Shape(key, (), first, None, probe, tuple(further), avoids_borrowing, may_preplace=True)


class Fleet:
    """Queues by name; every queue of the tree can have work submitted. ``now_ms`` is the clock."""

    def __init__(self, *nodes: QuotaNode, strategy: QueueingStrategy = BEST_EFFORT) -> None:
        self.ledger = Ledger(QuotaTree(nodes, TABLE))
        self.strategy = strategy
        self.queues: dict[str, QueueState] = {}
        self.running: dict[str, tuple[str, Charge]] = {}
        self.now_ms = 0
        self.turns = NO_TURNS
        self.endings = Endings()
        self.earliest: dict[str, Earliest] = {}
        self.reservations = NO_RESERVATIONS
        self._shapes: dict[object, Shape] = {}

    def configure(
        self,
        name: str,
        *,
        sharing: Sharing | None = None,
        is_over_budget: bool = False,
        strategy: QueueingStrategy | None = None,
        ageing: Ageing | None = None,
        priority: int = 0,
        reclaims: bool = False,
        stopped: Reason | None = None,
        reservation: ReservationPolicy | None = None,
    ) -> None:
        """Say how a queue treats its work."""
        state = self._queue(name)
        self.queues[name] = replace(
            state,
            strategy=strategy or state.strategy,
            ageing=ageing or state.ageing,
            priority=priority,
            preemption=Preemption(reclaim_within_cohort=ReclaimWithinCohort.ANY)
            if reclaims
            else NO_PREEMPTION,
            stopped=stopped,
            reservation=reservation or state.reservation,
            sharing=sharing or state.sharing,
            is_over_budget=is_over_budget,
        )

    def submit(
        self,
        queue: str,
        name: str,
        way: Shape | None = None,
        *,
        at: int = 0,
        priority: int = 0,
        due: int = 0,
        members: int = 1,
        ageing: Ageing | None = None,
        runtime: int | None = None,
        max_wait: int | None = None,
        probe: str = "",
        line: str = "",
        **amounts: int,
    ) -> Item:
        """Work called ``name``, which is its id too; equal amounts in one queue are one shape.

        ``runtime``: for how many milliseconds it runs at the most; ``max_wait``: should wait at the most.
        """
        key = (queue, charge(**amounts), probe)
        found = way or self._shapes.setdefault(key, shape(charge(**amounts), probe=probe))
        parts = tuple(f"{name}/{number}" for number in range(members))
        item = Item(
            name,
            name,
            parts,
            queue,
            queue,
            found,
            priority,
            at,
            due,
            ageing=ageing,
            runtime_ms=runtime,
            max_wait_ms=max_wait,
            line=line,
        )
        self._queue(queue).pending.add(item)
        return item

    def snapshot(
        self,
        *,
        tokens: int = 1_000_000,
        preplaced_tokens: int = 1_000_000,
        in_flight: int = 0,
        max_probes: int = 16,
        verdicts: Mapping[str, Verdict] | None = None,
        free: Mapping[str, int] | None = None,
    ) -> Snapshot:
        envelope = {cell(name): amount for name, amount in (free or {}).items()}
        return Snapshot(
            self.ledger,
            self.queues,
            envelope,
            verdicts or {},
            tokens,
            preplaced_tokens,
            in_flight=in_flight,
            max_probes=max_probes,
            turns=self.turns,
            endings=self.endings,
            earliest=self.earliest,
            reservations=self.reservations,
        )

    def decide(
        self,
        *,
        tokens: int = 1_000_000,
        preplaced_tokens: int = 1_000_000,
        in_flight: int = 0,
        max_probes: int = 16,
        verdicts: Mapping[str, Verdict] | None = None,
        free: Mapping[str, int] | None = None,
    ) -> Decision:
        """Decide now; nothing is carried out."""
        snapshot = self.snapshot(
            tokens=tokens,
            preplaced_tokens=preplaced_tokens,
            in_flight=in_flight,
            max_probes=max_probes,
            verdicts=verdicts,
            free=free,
        )
        return decide(snapshot, self.now_ms)

    def carry_out(self, decision: Decision) -> list[str]:
        """Charge what was admitted and take it out of its queue; answers the names, in order."""
        self.turns, self.reservations = decision.turns, decision.reservations
        for action in decision.actions:
            if isinstance(action, Admit):
                item, paid = action.item, action.alternative.charge
                assert self.queues[item.queue].pending.remove(item.id) is item
                self.ledger.charge(item.queue, paid)
                self.running[item.id] = (item.queue, paid)
                ends = None if item.runtime_ms is None else self.now_ms + item.runtime_ms
                self.endings.put(item.id, item.queue, paid, ends)
        return admitted(decision)

    def cycle(self, *, tokens: int = 1_000_000, free: Mapping[str, int] | None = None) -> list[str]:
        """Decide and carry out."""
        return self.carry_out(self.decide(tokens=tokens, free=free))

    def finish(self, name: str) -> None:
        """What runs gives its quota back."""
        self.ledger.give_back(*self.running.pop(name))
        self.endings.drop(name)

    def reason(self, decision: Decision, name: str) -> Reason | None:
        """Why the decision lets it wait; None if it is not said, which is right only for what it admits."""
        item = next(i for state in self.queues.values() for i in state.pending if i.id == name)
        return next(
            (reason for key, reason in decision.waits.items() if key == class_key(item)),
            None,
        )

    def reasons(self, decision: Decision) -> dict[str, str]:
        """The kinds of reasons of all that is not admitted, by name."""
        waiting = {i.id for state in self.queues.values() for i in state.pending} - set(admitted(decision))
        found = {name: self.reason(decision, name) for name in sorted(waiting)}
        return {name: reason.kind for name, reason in found.items() if reason is not None}

    def _queue(self, name: str) -> QueueState:
        return self.queues.setdefault(name, QueueState(name, PendingQueue(name), self.strategy))


def admitted(decision: Decision) -> list[str]:
    """The names of what is admitted, in order."""
    return [action.item.name for action in decision.actions if isinstance(action, Admit)]


def probed(decision: Decision) -> list[str]:
    """The names of what the estimators are to be asked about, in order."""
    return [action.item.name for action in decision.actions if isinstance(action, Probe)]
