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

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import pairwise
from typing import Final, NamedTuple

from queue_dispatcher.ledger.cells import Cell, Charge
from queue_dispatcher.ledger.ledger import Ledger
from queue_dispatcher.preemption.candidates import Candidate, Preemptor, in_order, lacking
from queue_dispatcher.preemption.may_go import Lines, MayGo, lines_of


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
        self._pods = Counter[str]()
        self._given = Counter[tuple[str, Cell]]()

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
        if one.pods or not self._pods[one.members[0]]:
            return one.charge
        return tuple((cell, amount - self._given[one.members[0], cell]) for cell, amount in one.charge)

    def _count(self, one: Candidate, sign: int) -> None:
        workload = one.members[0]
        self._pods[workload] += sign * (one.pods or _ALL)
        for cell, amount in one.charge if one.pods else ():
            self._given[workload, cell] += sign * amount

    def victims(self, may_go: MayGo) -> Iterator[Victim]:
        """Who may go, in order, of these, a surplus pod by pod; each is gone once it is told, and the next
        asked for if that is not enough.
        """
        yield from self._of(may_go.pods)
        yield from self._of(may_go.whole)

    def _of(self, lines: Lines) -> Iterator[Victim]:
        ledger, later = self._ledger, list[Candidate]()
        first = _Targets(ledger, self._preemptor, lines, self._pods)
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
        second = _Targets(ledger, self._preemptor, lines_of(later), self._pods)
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


class _Targets:
    """The candidates by queue, each queue's in their order, and in which queue to look next.

    ``gone``: by workload, how many of its pods are.
    """

    def __init__(
        self,
        ledger: Ledger,
        preemptor: Preemptor,
        lines: Lines,
        gone: Mapping[str, int],
    ) -> None:
        self._ledger, self._preemptor, self._lines, self._gone = ledger, preemptor, lines, gone
        tree = ledger.tree
        self._path = tree.paths[preemptor.queue]
        # By node above others, where to look below it, in order; what is not there any more is passed over.
        self._below: dict[int, dict[int, None]] = {}
        pairs = (
            pair
            for path in (tree.paths[queue] for queue in lines.queues)
            for pair in (() if tree.children(path[0]) else pairwise(path))
        )
        for node, above in sorted({*pairs}):
            self._below.setdefault(above, {})[node] = None
        # Of each queue that was looked at the first, where that is known, and the others.
        self._first: dict[int, Candidate] = {}
        self._others: dict[int, Iterator[Candidate]] = {}
        # As of `share_of`: each victim changes the shares of one path.
        self._shares: dict[int, int] = {}

    def queues(self) -> Iterator[int]:
        """Where to look next, as long as there is anywhere."""
        root = self._path[-1]
        if len(self._path) == 1:
            while self._has(root):
                yield root
            return
        while root in self._below:
            found = self._largest(root)
            if found is not None:
                yield found

    def next(self, queue: int) -> Candidate | None:
        """The next one of the queue, of a surplus one pod; None if there is none left."""
        if not self._has(queue):
            return None
        one = self._first[queue]
        return replace(one, pods=1) if one.pods else one

    def pop(self, queue: int) -> Candidate:
        """The same, which goes, and is not looked at again."""
        one = self._first.pop(queue)
        for node in self._ledger.tree.paths[one.queue]:
            self._shares.pop(node, None)
        if one.pods > 1:
            self._first[queue] = replace(one, pods=one.pods - 1)
        return replace(one, pods=1) if one.pods else one

    def pass_over(self, queue: int) -> Candidate:
        """The same with all pods of a surplus."""
        return self._first.pop(queue)

    def _has(self, queue: int) -> bool:
        """Whether one is left in the queue; what can give up no more pods in any cluster is not."""
        others = self._others.get(queue)
        if others is None:
            others = self._others[queue] = self._lines.of(self._ledger.tree.nodes[queue].name)
        one = self._first.pop(queue, None) or next(others, None)
        while one is not None and one.pods and self._gone[one.members[0]] >= one.surplus:
            one = next(others, None)
        if one is not None:
            self._first[queue] = one
        return one is not None

    def drop(self, queue: int) -> None:
        """The queue is not looked at again."""
        self._first.pop(queue, None)
        self._others[queue] = iter(())

    def _largest(self, above: int) -> int | None:
        """The queue below a node to look in: that of the largest share, step by step down the tree.

        None where there is none; what holds nobody to displace, or borrows nothing, is passed over from then
        on, but for what the preemptor is in.
        """
        shares, leaf, inner = self._shares, _NOTHING, _NOTHING
        for node in [*self._below[above]]:
            share = shares.get(node)
            if share is None:
                share = shares[node] = self._ledger.share_of(node)
            if node in self._below:
                if not share and node not in self._path:
                    self._leave(node)
                elif share >= inner[0]:
                    inner = (share, node)
            elif (not share and node != self._path[0]) or not self._has(node):
                self._leave(node)
            elif share > leaf[0] or (share == leaf[0] and self._is_sooner(node, leaf[1])):
                leaf = (share, node)
        if inner is leaf:
            self._leave(above)
            return None
        return self._largest(inner[1]) if inner[0] >= leaf[0] else leaf[1]

    def _leave(self, node: int) -> None:
        """Nothing at the node or below it is looked at again."""
        self._below.pop(node, None)
        self._below.get(self._ledger.tree.parents[node], {}).pop(node, None)

    def _is_sooner(self, queue: int, other: int) -> bool:
        first = (self._first[queue], self._first[other])
        return in_order(first, self._preemptor.queue)[0] is first[0]


_NOTHING: Final = (-1, -1)
_ALL: Final = 1 << 40
"""More pods than any workload has."""
