"""Builders of what runs in a tree of queues, and of who wants in."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from queue_dispatcher.api.cluster_queue import Preemption, ReclaimWithinCohort, WithinClusterQueue
from queue_dispatcher.ledger.cells import Cell, Charge
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.preemption.candidates import Candidate, Preemptor, may_displace, queues_of
from queue_dispatcher.preemption.may_go import may_go_of
from queue_dispatcher.preemption.planning import Offer, Plan, best_plan, short_of

LOWER = Preemption(WithinClusterQueue.LOWER_PRIORITY)
ANY = Preemption(reclaim_within_cohort=ReclaimWithinCohort.ANY)
ALL = Preemption(WithinClusterQueue.LOWER_OR_NEWER_EQUAL_PRIORITY, ReclaimWithinCohort.ANY)


@dataclass
class World:
    """``running``: what is charged in ``ledger``, and what of that is ``surplus``. ``policies``: by queue;
    those left out displace nobody. ``capacity``: by cell, of what there is less than all quotas.
    """

    ledger: Ledger
    policies: dict[str, Preemption] = field(default_factory=dict)
    running: list[Candidate] = field(default_factory=list)
    surplus: list[Candidate] = field(default_factory=list)
    capacity: dict[Cell, int] = field(default_factory=dict)

    def runs(self, name: str, queue: str, charge: Charge, priority: int = 0, since_ms: int = 0) -> Candidate:
        """Came into the line when it was admitted."""
        made = Candidate(name, queue, charge, priority, since_ms, since_ms, (name,))
        self.start(made)
        return made

    def runs_elastic(
        self, name: str, queue: str, pod: Charge, least: int, pods: int, priority: int = 0, since_ms: int = 0
    ) -> Candidate:
        """With so many pods, of which ``least`` are enough."""
        made = self.runs(name, queue, times(pod, pods), priority, since_ms)
        if pods > least:
            self.surplus.append(
                replace(
                    made, id=f"{name}+", charge=pod, pods=pods - least, cluster="m1", surplus=pods - least
                )
            )
        return made

    def start(self, one: Candidate) -> None:
        self.running.append(one)
        self.ledger.charge(one.queue, one.charge)

    def goes(self, one: Candidate) -> None:
        """A victim goes: all of it, or pods."""
        if not one.pods:
            self.stop(next(other for other in self.running if other.id == one.id))
            self.surplus = [other for other in self.surplus if other.members != one.members]
            return
        (before,) = (other for other in self.running if other.members == one.members)
        self.stop(before)
        self.start(replace(before, charge=less(before.charge, times(one.charge, one.pods))))
        self.surplus = [other for other in self.surplus if other.members != one.members]

    def stop(self, one: Candidate) -> None:
        self.running.remove(one)
        self.ledger.give_back(one.queue, one.charge)

    def preemptor(self, one: Candidate) -> Preemptor:
        policy = self.policies.get(one.queue, Preemption())
        return Preemptor(one.id, one.queue, policy, one.priority, one.enqueued_ms, one.charge)

    def candidates(self, preemptor: Preemptor) -> list[Candidate]:
        short = short_of(self.ledger, self.capacity, preemptor)
        queues = queues_of(self.ledger, preemptor, short)
        known = (*self.running, *self.surplus)
        return [one for one in known if one.queue in queues and may_displace(preemptor, one, short)]

    def plan(
        self, one: Candidate, offers: Iterable[Offer] = (Offer(""),), kept: Collection[str] = ()
    ) -> Plan | None:
        """``kept``: those that it may not displace, by id."""
        preemptor = self.preemptor(one)
        may_go = may_go_of([of for of in self.candidates(preemptor) if of.id not in kept])
        return best_plan(self.ledger, self.capacity, preemptor, may_go, offers, 1_000_000)

    def victims(self, one: Candidate) -> list[str] | None:
        plan = self.plan(one)
        return None if plan is None else sorted(told(victim.candidate) for victim in plan.victims)

    def fits(self, one: Candidate, without: Iterable[Candidate] = ()) -> bool:
        ledger = self.ledger.fork()
        for gone in without:
            ledger.give_back(gone.queue, times(gone.charge, gone.count))
        path = ledger.tree.paths[one.queue]
        return all(
            amount <= ledger.available_at(path, cell)
            and amount <= self.capacity.get(cell, 1 << 60) - ledger.totals.get(cell, 0)
            for cell, amount in one.charge
        )


def told(one: Candidate) -> str:
    """Its name, and of a surplus how many pods of it go."""
    return f"{one.id}{one.pods}" if one.pods else one.id


def times(charge: Charge, pods: int) -> Charge:
    return tuple((cell, amount * pods) for cell, amount in charge)


def less(charge: Charge, other: Charge) -> Charge:
    taken = dict(other)
    return tuple((cell, amount - taken.get(cell, 0)) for cell, amount in charge)


def wants(
    name: str, queue: str, charge: Charge, priority: int = 0, enqueued_ms: int = 1_000_000
) -> Candidate:
    return Candidate(name, queue, charge, priority, enqueued_ms, enqueued_ms, (name,))


def started(one: Candidate, since_ms: int) -> Candidate:
    return replace(one, since_ms=since_ms)
