"""Victims: the fewest workloads that have to be displaced for another one, by shares. Pure.

What elastic workloads run with beyond their minimums goes first, pod by pod; then workloads as a whole.

Mirrors Kueue 0.20 with fair sharing (pkg/scheduler/preemption and preemption/fairsharing; KEP-1714). Victims
are looked for where the share is largest, from the root of the tree down to a queue. A queue that stays
within what it owns takes anybody there who borrows. Else one of another queue is taken if what holds the
preemptor, right below the node that both queues have in common, has by then no larger share than what holds
the victim; in a second round where that was smaller before.

Whoever is displaced can never displace its preemptor in turn. Kueue proves that for one victim; of several
each may come back within what the others have left (kueue#14543), so here the whole plan is looked at. Of
three each may still displace the next, by different rights: see `queue_dispatcher.preemption.precedence`.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final, NamedTuple

from queue_dispatcher.ledger.cells import Cell, Charge
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.preemption.candidates import Candidate, Preemptor, lacking
from queue_dispatcher.preemption.may_go import Lines, MayGo, lines_of
from queue_dispatcher.preemption.targets import Targets


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
        # By workload, how many of its pods are gone one by one, and what they were charged; `_ALL` with it.
        self._pods: dict[str, int] = {}
        self._given: dict[tuple[str, Cell], int] = {}

    def fits(self) -> bool:
        """Whether quota and capacity allow what was asked for, without the victims so far."""
        ledger, one = self._ledger, self._preemptor
        ledger.give_back(one.queue, one.charge)
        try:
            return not lacking(ledger, self._capacity, one.queue, one.charge)
        finally:
            ledger.charge(one.queue, one.charge)

    def take(self, one: Candidate) -> None:
        """It goes; of a surplus one pod."""
        self._ledger.give_back(one.queue, self._left(one))
        self._count(one, 1)

    def put_back(self, one: Candidate) -> None:
        """It stays after all; of one whose surplus goes, the rest."""
        self._count(one, -1)
        self._ledger.charge(one.queue, self._left(one))

    def _left(self, one: Candidate) -> Charge:
        """What it gives back: of all of a workload what pods of it have not given back before."""
        if one.pods or not self._pods.get(one.members[0]):
            return one.charge
        given = self._given
        return tuple((cell, amount - given.get((one.members[0], cell), 0)) for cell, amount in one.charge)

    def _count(self, one: Candidate, sign: int) -> None:
        workload = one.members[0]
        self._pods[workload] = self._pods.get(workload, 0) + sign * (one.pods or _ALL)
        for cell, amount in one.charge if one.pods else ():
            self._given[workload, cell] = self._given.get((workload, cell), 0) + sign * amount

    def victims(self, may_go: MayGo) -> Iterator[Victim]:
        """Who may go, in order, of these, a surplus pod by pod; each is gone once it is told, and the next
        asked for if that is not enough.
        """
        yield from self._of(may_go.pods)
        yield from self._of(may_go.whole)

    def _of(self, lines: Lines) -> Iterator[Victim]:
        ledger, later = self._ledger, list[Candidate]()
        first = Targets(ledger, self._preemptor, lines, self._pods)
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
                self.take(one)
                if self._is_fair(share, other):
                    first.pop(queue)
                    yield Victim(one, Relation.SHARE)
                    break
                self.put_back(one)
                later.append(first.pass_over(queue))
        second = Targets(ledger, self._preemptor, lines_of(later), self._pods)
        for queue in second.queues():
            if queue != self._path[0]:
                own, other = self._apart(queue)
                if ledger.share_of(own) < ledger.share_of(other):
                    yield self._taken(second.pop(queue), Relation.SHARE)
            second.drop(queue)

    def may_return(self, one: Candidate, beside: Iterable[Candidate] = ()) -> bool:
        """Whether one that was taken could displace the preemptor in turn, once that has started and nobody
        else has come back. By priority it never could; nor does what grows again ever displace anybody.

        ``beside``: those of its queue that it might displace as well, so that its queue's share is smaller.
        """
        if one.pods:
            return False
        ledger = self._ledger
        queue = ledger.tree.paths[one.queue][0]
        # By what it would lack; where the nodes are in the way, by all of it.
        cells = lacking(ledger, self._capacity, one.queue, one.charge) or [cell for cell, _ in one.charge]
        if queue == self._path[0] or not self._borrows(self._path[0], cells):
            return False
        own, other = self._apart(queue)
        share = ledger.share_of(own)
        ledger.give_back(self._preemptor.queue, self._preemptor.charge)
        before = ledger.share_of(own)
        ledger.charge(self._preemptor.queue, self._preemptor.charge)
        lower = list(beside)
        self.put_back(one)
        for it in lower:
            self.take(it)
        returned, owns_it = ledger.share_of(other), not self._borrows(queue, cells)
        for it in lower:
            self.put_back(it)
        self.take(one)
        return owns_it or returned <= before or returned < share

    def _borrows(self, queue: int, cells: Iterable[Cell]) -> bool:
        return any(self._ledger.borrows(queue, cell) for cell in cells)

    def _taken(self, one: Candidate, relation: Relation) -> Victim:
        self.take(one)
        return Victim(one, relation)

    def _is_fair(self, share: int, node: int) -> bool:
        """Whether who would have this share may take what was just taken from the node."""
        return share <= self._ledger.share_of(node)

    def _apart(self, queue: int) -> tuple[int, int]:
        """The nodes right below the one that both queues have in common, the preemptor's first."""
        tree = self._ledger.tree
        pairs = zip(reversed(self._path), reversed(tree.paths[tree.nodes[queue].name]), strict=False)
        return next((own, other) for own, other in pairs if own != other)


def fewest(displacing: Displacing, taken: Sequence[Victim], firm: int = 0) -> list[Victim]:
    """Of those that were taken, in this order, the ones that have to go: without the last it did not fit, and
    of the others it puts back whom it can, the last first; none of the first ``firm``. Of a surplus so many
    pods as go, in one; none beside all of it.
    """
    kept = list(taken)
    for place in range(len(kept) - 2, firm - 1, -1):
        one = kept[place].candidate
        if one.pods and _goes_whole(one, kept):
            continue
        displacing.put_back(one)
        if displacing.fits():
            # As Kueue does: the last one takes its place.
            kept[place] = kept[-1]
            kept.pop()
        else:
            displacing.take(one)
    return [one for one in together(kept) if not (one.candidate.pods and _goes_whole(one.candidate, kept))]


def together(victims: Iterable[Victim]) -> list[Victim]:
    """The pods of each surplus in one, where the first of them is."""
    found: dict[str, Victim] = {}
    for one in victims:
        known = found.get(one.candidate.id)
        if known is not None:
            one = known._replace(candidate=replace(known.candidate, pods=known.candidate.pods + 1))
        found[one.candidate.id] = one
    return list(found.values())


def _goes_whole(surplus: Candidate, kept: Iterable[Victim]) -> bool:
    return any(not one.candidate.pods and one.candidate.members == surplus.members for one in kept)


_ALL: Final = 1 << 40
"""More pods than any workload has."""
