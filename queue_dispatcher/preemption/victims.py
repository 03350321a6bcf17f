"""Victims: the fewest workloads that have to be displaced for another one, by shares. Pure.

Mirrors Kueue 0.20 with fair sharing (pkg/scheduler/preemption and preemption/fairsharing; KEP-1714). Victims
are looked for where the share is largest, from the root of the tree down to a queue. A queue that stays
within what it owns takes anybody there who borrows. Else one of another queue is taken if what holds the
preemptor, right below the node that both queues have in common, has by then no larger share than what holds
the victim; in a second round where that was smaller before.

Whoever is displaced can never displace its preemptor in turn. Kueue proves that for one victim; of several
each may come back within what the others have left (kueue#14543), so here the whole plan is looked at. Of
three each may still displace the next, by different rights: see `queue_dispatcher.preemption.precedence`.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from queue_dispatcher.ledger.cells import Cell
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.ledger.tree import UNLIMITED
from queue_dispatcher.preemption.candidates import Candidate, Preemptor, in_order


class Relation(StrEnum):
    """By what right a workload is displaced."""

    PRIORITY = "InClusterQueue"
    """It is in the same queue, and of lower priority or newer."""
    RECLAIM = "InCohortReclamation"
    """Its queue borrows what the preemptor's owns."""
    SHARE = "InCohortFairSharing"
    """Both borrow, and its share is the larger one."""


class Victim(NamedTuple):
    """Who is to go, and why that is right."""

    candidate: Candidate
    relation: Relation


class Displacing:
    """Takes victims out of a copy of the ledger, one after the other.

    ``capacity``: by cell, what there is in all, where that is known. ``short``: the cells of which the
    preemptor lacks some.
    """

    def __init__(
        self, ledger: Ledger, capacity: Mapping[Cell, int], preemptor: Preemptor, short: Collection[Cell]
    ) -> None:
        self._preemptor = preemptor
        self._capacity = capacity
        self._path = ledger.tree.paths[preemptor.queue]
        # As if it had started: whose share is smaller is asked of the state that is to come.
        self._ledger = ledger.fork()
        self._ledger.charge(preemptor.queue, preemptor.charge)
        self._owns_it = not self._borrows(self._path[0], short)

    def fits(self) -> bool:
        """Whether quota and capacity allow what was asked for, without the victims so far."""
        ledger, one = self._ledger, self._preemptor
        ledger.give_back(one.queue, one.charge)
        try:
            return all(
                amount <= ledger.available_at(self._path, cell)
                and amount <= self._capacity.get(cell, UNLIMITED) - ledger.totals.get(cell, 0)
                for cell, amount in one.charge
            )
        finally:
            ledger.charge(one.queue, one.charge)

    def take(self, one: Candidate) -> None:
        """It goes."""
        self._ledger.give_back(one.queue, one.charge)

    def put_back(self, one: Candidate) -> None:
        """It stays after all."""
        self._ledger.charge(one.queue, one.charge)

    def victims(self, candidates: Iterable[Candidate]) -> Iterator[Victim]:
        """Who may go, in order, of these; each is gone once it is told, and the next asked for if that is not
        enough.
        """
        ledger, later = self._ledger, list[Candidate]()
        first = _Targets(ledger, self._preemptor, candidates)
        for queue in first.queues():
            if queue == self._path[0]:
                yield self._taken(first.pop(queue), Relation.PRIORITY)
                continue
            if self._owns_it:
                yield self._taken(first.pop(queue), Relation.RECLAIM)
                continue
            own, other = self._apart(queue)
            share = ledger.share_of(own)
            while (one := first.next(queue)) is not None:
                first.pop(queue)
                if share <= self._share_without(one, other):
                    yield self._taken(one, Relation.SHARE)
                    break
                later.append(one)
        second = _Targets(ledger, self._preemptor, later)
        for queue in second.queues():
            if queue != self._path[0]:
                own, other = self._apart(queue)
                if ledger.share_of(own) < ledger.share_of(other):
                    yield self._taken(second.pop(queue), Relation.SHARE)
            second.drop(queue)

    def may_return(self, one: Candidate) -> bool:
        """Whether one that was taken could displace the preemptor in turn, once that has started and nobody
        else has come back. By priority it never could.
        """
        ledger = self._ledger
        queue, cells = ledger.tree.paths[one.queue][0], [cell for cell, _ in one.charge]
        if queue == self._path[0] or not self._borrows(self._path[0], cells):
            return False
        own, other = self._apart(queue)
        share = ledger.share_of(own)
        ledger.give_back(self._preemptor.queue, self._preemptor.charge)
        before = ledger.share_of(own)
        ledger.charge(self._preemptor.queue, self._preemptor.charge)
        self.put_back(one)
        returned, owns_it = ledger.share_of(other), not self._borrows(queue, cells)
        self.take(one)
        return owns_it or returned <= before or returned < share

    def _borrows(self, queue: int, cells: Iterable[Cell]) -> bool:
        return any(self._ledger.borrows(queue, cell) for cell in cells)

    def _taken(self, one: Candidate, relation: Relation) -> Victim:
        self.take(one)
        return Victim(one, relation)

    def _share_without(self, one: Candidate, node: int) -> int:
        self.take(one)
        try:
            return self._ledger.share_of(node)
        finally:
            self.put_back(one)

    def _apart(self, queue: int) -> tuple[int, int]:
        """The nodes right below the one that both queues have in common, the preemptor's first."""
        tree = self._ledger.tree
        pairs = zip(reversed(self._path), reversed(tree.paths[tree.nodes[queue].name]), strict=False)
        return next((own, other) for own, other in pairs if own != other)


def fewest(
    displacing: Displacing, taken: Sequence[Victim], fits_with: Callable[[Candidate], bool] | None = None
) -> list[Victim]:
    """Of those that were taken, in this order, the ones that have to go: without the last it did not fit, and
    of the others it puts back whom it can, the last first.

    ``fits_with``: whether one may stay, as far as something else than quota and capacity goes.
    """
    kept = list(taken)
    for place in range(len(kept) - 2, -1, -1):
        one = kept[place].candidate
        displacing.put_back(one)
        if displacing.fits() and (fits_with is None or fits_with(one)):
            # As Kueue does: the last one takes its place.
            kept[place] = kept[-1]
            kept.pop()
        else:
            displacing.take(one)
    return kept


class _Targets:
    """The candidates by queue, each queue's in their order, and in which queue to look next."""

    def __init__(self, ledger: Ledger, preemptor: Preemptor, candidates: Iterable[Candidate]) -> None:
        self._ledger, self._preemptor = ledger, preemptor
        self._path = ledger.tree.paths[preemptor.queue]
        self._of: dict[int, deque[Candidate]] = {}
        for one in in_order(candidates, preemptor.queue):
            self._of.setdefault(ledger.tree.paths[one.queue][0], deque()).append(one)
        self._passed_over: set[int] = set()

    def queues(self) -> Iterator[int]:
        """Where to look next, as long as there is anywhere."""
        root = self._path[-1]
        if len(self._path) == 1:
            while self._of.get(root):
                yield root
            return
        while root not in self._passed_over:
            found = self._largest(root)
            if found is not None:
                yield found

    def next(self, queue: int) -> Candidate | None:
        """The next one of the queue; None if there is none left."""
        left = self._of[queue]
        return left[0] if left else None

    def pop(self, queue: int) -> Candidate:
        """The next one of the queue, which is not looked at again."""
        return self._of[queue].popleft()

    def drop(self, queue: int) -> None:
        """The queue is not looked at again."""
        self._of[queue].clear()

    def _largest(self, above: int) -> int | None:
        """The queue below a node to look in: that of the largest share, step by step down the tree.

        None where there is none; what holds nobody to displace, or borrows nothing, is passed over from then
        on, but for what the preemptor is in.
        """
        ledger, leaf, inner = self._ledger, _NOTHING, _NOTHING
        for node in ledger.tree.children(above):
            if node in self._passed_over:
                continue
            share = ledger.share_of(node)
            if ledger.tree.children(node):
                if not share and node not in self._path:
                    self._passed_over.add(node)
                elif share >= inner[0]:
                    inner = (share, node)
            elif not self._of.get(node) or (not share and node != self._path[0]):
                self._passed_over.add(node)
            elif share > leaf[0] or (share == leaf[0] and self._is_sooner(node, leaf[1])):
                leaf = (share, node)
        if inner is leaf:
            self._passed_over.add(above)
            return None
        return self._largest(inner[1]) if inner[0] >= leaf[0] else leaf[1]

    def _is_sooner(self, queue: int, other: int) -> bool:
        first = (self._of[queue][0], self._of[other][0])
        return in_order(first, self._preemptor.queue)[0] is first[0]


_NOTHING: Final = (-1, -1)
