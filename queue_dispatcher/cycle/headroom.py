"""Headroom: what is left of quota, physical capacity and estimates while a cycle admits, for all queues.

Headroom only shrinks within a cycle, so what was refused once need not be asked again before the next. How
one queue reads it is told in `queue_headroom`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from queue_dispatcher.cycle.clusters import ClusterSets
from queue_dispatcher.cycle.displacement import displaced
from queue_dispatcher.cycle.flows import Flows, Where
from queue_dispatcher.cycle.items import Alternative, Item, Shape, probe_of
from queue_dispatcher.cycle.reserving import Reserving
from queue_dispatcher.cycle.snapshot import Snapshot, Verdict
from queue_dispatcher.cycle.waiter import Waiter
from queue_dispatcher.ledger.cells import Cell, Charge
from queue_dispatcher.ledger.ledger import Availability, Ledger
from queue_dispatcher.ledger.tree import UNLIMITED


class Fit(NamedTuple):
    """It may start, charged so; unless ``is_known``, the estimators have to be asked first.

    ``is_preplaced``: its release states where to, as far as is known; else Karmada places it.
    ``is_second``: displacing others in another flavor may go before it, and has yet to be looked for.
    """

    alternative: Alternative
    is_known: bool
    is_preplaced: bool = False
    is_second: bool = False


class Headroom:
    """What the queues of a cycle share; starts as the snapshot says, which stays as it is."""

    def __init__(
        self, snapshot: Snapshot, flows: Flows | None = None, sets: ClusterSets | None = None
    ) -> None:
        flows = flows or Flows(snapshot)
        self.ledger = snapshot.ledger.fork()
        self.changes = 0
        """Grows with all that is taken, which tells whoever looked whether anything has changed since."""
        self.is_taken = False
        """Whether any of it has been taken or held; reservations aside."""
        self.capacity: Mapping[Cell, int] = flows.capacity
        """By cell, what may be charged in all, wherever that is bounded by what is there."""
        self.spent = dict(flows.spent)
        """By cell, all that was ever charged or is kept, in the measure of `Flows.spent`."""
        self.returned: Mapping[Where, int] = flows.returned
        self.verdicts: Mapping[str, Verdict] = flows.verdicts
        self.flows = flows
        """What has changed since the cycle before."""
        self.reserving: Reserving | None = None
        """What is kept for reservations; None until they are made."""
        self._sets = sets or ClusterSets()
        # What was admitted on the word of the estimators, and how much of it each answer has been told.
        self._taken: list[tuple[str, Verdict]] = []
        self._told: dict[str, tuple[int, int]] = {}
        # As `ledger`, with what is held for the heads of StrictFIFO queues; None while nothing is.
        self._held: Ledger | None = None
        self._holders: set[str] = set()

    def free(self, cell: Cell) -> int:
        """What is physically left of a cell, whoever is to be charged."""
        return self.capacity.get(cell, UNLIMITED) - self.ledger.totals.get(cell, 0)

    def available(self, queue: str, path: tuple[int, ...], cell: Cell) -> int:
        """What quota and capacity have left for the queue at the beginning of the path."""
        ledger, capacity = self.ledger, self.capacity.get(cell)
        if self._held is not None:
            amount = self.availability(queue, cell).amount
        else:
            amount = ledger.available_at(path, cell)
        return amount if capacity is None else min(amount, capacity - ledger.totals.get(cell, 0))

    def availability(self, queue: str, cell: Cell) -> Availability:
        """What quota has left for the queue: of what is held for others, nothing that it would borrow."""
        left = self.ledger.availability(queue, cell)
        if self._held is None or queue in self._holders:
            return left
        held = self._held.availability(queue, cell)
        if held.amount >= left.amount:
            return left
        own = min(left.amount, self.ledger.unborrowed(queue, cell))
        return held if held.amount >= own else Availability(own, held.bound_by)

    def estimated(self, shape: Shape, alternative: Alternative, verdict: Verdict | None) -> Fit | None:
        """The fit of a shape with a probe, quota and capacity; None if the estimators find no room."""
        if verdict is None:
            return Fit(alternative, False, shape.is_preplaced)
        if verdict.fits <= 0:
            return None
        # Room that is used up, by alike workloads or by others, is a question to ask again, not a refusal.
        is_known = self._left(probe_of(shape, alternative), verdict) > 0
        return Fit(alternative, is_known, shape.is_preplaced and verdict.says_where)

    def take(self, queue: str, shape: Shape, fit: Fit) -> None:
        """Charge what `QueueHeadroom.can_admit` has found to fit for sure."""
        self.keep(queue, fit.alternative.charge)
        if shape.probe:
            probe = probe_of(shape, fit.alternative)
            self._taken.append((probe, self.verdicts[probe]))

    def pods_left(self, item: Item, alternative: Alternative, verdict: Verdict) -> int:
        """How many pods more of an elastic workload have room, as the estimators have said by pods."""
        rooms = [room for _, room in verdict.rooms or ()]
        most = (max if item.in_one else sum)(rooms or [0])
        return max(0, most - self._lost(probe_of(item.shape, alternative), verdict))

    def grow(self, queue: str, probe: str, verdict: Verdict, charge: Charge, pods: int) -> None:
        """Charge so many pods of an elastic workload, for which `pods_left` has found room."""
        self.keep(queue, charge)
        each = tuple((amounts, pods) for amounts, _ in verdict.pods)
        self._taken.append((probe, replace(verdict, per=pods, pods=each)))

    def _left(self, probe: str, verdict: Verdict) -> int:
        return verdict.left(self._lost(probe, verdict))

    def _lost(self, probe: str, verdict: Verdict) -> int:
        """How many of the pods that it says have room may have lost it in this cycle."""
        told, lost = self._told.get(probe, (0, 0))
        if told < len(self._taken):
            own = self._sets.of(verdict.clusters)
            for by, taken in self._taken[told:]:
                if by == probe:
                    lost += taken.per
                elif own & self._sets.of(taken.clusters):
                    lost += displaced(taken.pods, verdict.pods)
            self._told[probe] = (len(self._taken), lost)
        return lost

    def keep(self, queue: str, charge: Charge) -> None:
        """Let nobody else have it for the rest of the cycle."""
        self.changes += 1
        self.is_taken = True
        self.ledger.charge(queue, charge)
        if self._held is not None:
            self._held.charge(queue, charge)
        self._spend(charge)

    def hold(self, queue: str, charge: Charge) -> None:
        """Keep what the queue owns from those who would borrow it, for the rest of the cycle."""
        self.changes += 1
        self.is_taken = True
        if self._held is None:
            self._held = self.ledger.fork()
        self._held.charge(queue, charge)
        self._holders.add(queue)
        self._spend(charge)

    def reserve(self, reserving: Reserving) -> None:
        """From now on these reservations count."""
        self.reserving = reserving
        if reserving.kept:
            self.changes += 1

    def may_reserve(self, item: Item, depth: int) -> bool:
        """Whether it may get a reservation; False is certain, and only saves finding that out."""
        return self.reserving is not None and self.reserving.is_open(item, depth)

    def reserve_late(self, waiter: Waiter) -> None:
        """Somebody has lost its room."""
        if self.reserving is not None and self.reserving.reserve_late(waiter):
            self.changes += 1

    def is_held(self, queue: str, cell: Cell) -> bool:
        """Whether less is left for the queue because of what is held for others."""
        return self.availability(queue, cell).amount < self.ledger.availability(queue, cell).amount

    def most_in(self, root: int, cell: Cell) -> int:
        """At least what any queue of a tree may be charged."""
        tree, free = self.ledger.tree, self.free(cell)
        if not tree.lends_all(root, cell):
            return free
        return min(free, self.ledger.bounds(tree.nodes[root].name, cell)[0])

    def _spend(self, charge: Charge) -> None:
        for cell, amount in charge:
            self.spent[cell] = self.spent.get(cell, 0) + amount
