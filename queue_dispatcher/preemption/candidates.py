"""Candidates: what runs and may be displaced for a workload, by the policy of that workload's queue. Pure.

Mirrors Kueue 0.20 (pkg/scheduler/preemption, candidates and their order).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from queue_dispatcher.api.cluster_queue import Preemption, ReclaimWithinCohort, WithinClusterQueue
from queue_dispatcher.ledger.cells import Cell, Charge, holds_any
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.ledger.tree import UNLIMITED


@dataclass(frozen=True, slots=True)
class Preemptor:
    """A workload that finds no room. ``queue``: its ClusterQueue, with that one's ``policy``. ``priority``:
    without ageing. ``enqueued_ms``: since when it waits, epoch milliseconds. ``charge``: as what it would be
    charged.
    """

    id: str
    queue: str
    policy: Preemption
    priority: int
    enqueued_ms: int
    charge: Charge


@dataclass(frozen=True, slots=True)
class Candidate:
    """What runs and is displaced as one: a workload, or those that were released together. Or the surplus of
    an elastic workload in one cluster: pods that may go one by one, while it runs on with its minimum.

    ``members``: uids of bindings. ``enqueued_ms``: since when it had its place in the line, and ``since_ms``:
    when it was admitted, both epoch milliseconds. ``is_going``: it is being displaced already. ``pods``: of a
    surplus, so many in ``cluster``, each charged ``charge``, and ``surplus`` in all clusters at most; 0 where
    all of it goes.
    """

    id: str
    queue: str
    charge: Charge
    priority: int
    enqueued_ms: int
    since_ms: int
    members: tuple[str, ...]
    is_going: bool = False
    pods: int = 0
    cluster: str = ""
    surplus: int = 0

    @property
    def count(self) -> int:
        """In how many steps it goes: pod by pod, or at once."""
        return max(1, self.pods)

    @property
    def whole_charge(self) -> Charge:
        """What all of that is charged."""
        return tuple((cell, amount * self.count) for cell, amount in self.charge)


def lacking(ledger: Ledger, capacity: Mapping[Cell, int], queue: str, charge: Charge) -> frozenset[Cell]:
    """The cells of which quota or capacity leaves less than the charge to the queue."""
    path = ledger.tree.paths[queue]
    return frozenset(
        cell
        for cell, amount in charge
        if amount > ledger.available_at(path, cell)
        or amount > capacity.get(cell, UNLIMITED) - ledger.totals.get(cell, 0)
    )


def queues_of(ledger: Ledger, preemptor: Preemptor, cells: Collection[Cell]) -> list[str]:
    """The queues whose workloads it may displace, for what it lacks of these cells: its own, and those of
    its tree that use more than they own.
    """
    tree, policy = ledger.tree, preemptor.policy
    path = tree.paths.get(preemptor.queue)
    if path is None:
        return []
    found = [] if policy.within_cluster_queue is WithinClusterQueue.NEVER else [preemptor.queue]
    if policy.reclaim_within_cohort is not ReclaimWithinCohort.NEVER and len(path) > 1:
        borrowing = ledger.borrowing(tree.subtree(path[-1]), cells)
        found += (tree.nodes[number].name for number in borrowing if number != path[0])
    return found


def highest_of(preemptor: Preemptor, queue: str) -> int | None:
    """Up to which priority `may_displace` allows anything of one of `queues_of`; None for any."""
    if queue != preemptor.queue:
        is_any = preemptor.policy.reclaim_within_cohort is ReclaimWithinCohort.ANY
        return None if is_any else preemptor.priority - 1
    may_equal = preemptor.policy.within_cluster_queue is WithinClusterQueue.LOWER_OR_NEWER_EQUAL_PRIORITY
    return preemptor.priority - (not may_equal)


def may_displace_any(preemptor: Preemptor, lowest: int | None) -> bool:
    """Whether the policy allows any priority at all of what runs, the lowest of which this is; None where
    nothing does.
    """
    if lowest is None:
        return False
    if preemptor.policy.reclaim_within_cohort is ReclaimWithinCohort.ANY:
        return True
    highest = highest_of(preemptor, preemptor.queue)
    return highest is None or lowest <= highest


def may_displace(preemptor: Preemptor, one: Candidate, cells: Collection[Cell]) -> bool:
    """Whether the policy allows it, of a candidate in one of `queues_of`, and it holds any of these cells."""
    if not holds_any(one.charge, cells):
        return False
    highest = highest_of(preemptor, one.queue)
    if highest is not None and one.priority > highest:
        return False
    if one.queue != preemptor.queue or one.priority < preemptor.priority:
        return True
    return one.enqueued_ms > preemptor.enqueued_ms


def in_order(candidates: Iterable[Candidate], queue: str) -> list[Candidate]:
    """Whom to displace first for a workload of the queue: what goes anyway, who borrows, lower priority, who
    started last.
    """
    return sorted(candidates, key=lambda one: place_of(one, queue))


def place_of(one: Candidate, queue: str) -> tuple[bool, bool, int, int, str]:
    """Its place in that order: no two have the same."""
    return not one.is_going, one.queue == queue, one.priority, -one.since_ms, one.id
