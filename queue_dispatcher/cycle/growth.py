"""Growth: elastic workloads take what a cycle leaves, pod by pod, once everybody else has had their turn.

What has just started with its minimum grows as well as what runs with a part of its pods: the lowest share
first, of equal ones whoever has the least of what it asks for; behind all others what is in a queue that has
used up a soft budget. None of it delays anybody. A pod is only taken
where quota, capacity and the estimators have room for it, and where whoever waits could take as much of it
afterwards as before, or all that waits there: that is more than a reservation keeps for anybody. What waits
for one flavor does not stop growth in another, nor does a queue that has used up its own quota.
"""

import heapq
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from queue_dispatcher.cycle.actions import Admit, ClassKey, Probe
from queue_dispatcher.cycle.head import QueueHead
from queue_dispatcher.cycle.headroom import Headroom
from queue_dispatcher.cycle.items import Alternative, Item, probe_of
from queue_dispatcher.cycle.order import Rank
from queue_dispatcher.cycle.pending import PendingClass
from queue_dispatcher.cycle.snapshot import Verdict
from queue_dispatcher.ledger.cells import Cell, Charge

MAX_GROWING: Final = 16
"""How many of those that run may grow in one cycle."""
MAX_PROBES: Final = 4
"""How many questions about growth one cycle may raise."""
_STEPS: Final = 8
"""What is left to an elastic workload is given it in so many steps, or more, each to whoever is next."""
_SCALE: Final = 1 << 20
_PACE: Final = 16

_Place = tuple[bool, int, int, Rank]
Wanted = Mapping[Cell, Mapping[str, int]]
"""By cell and queue, what waits there and could ever start, where anything is left."""


@dataclass(slots=True, eq=False)
class _Growing:
    """``pod``: what one pod is charged, which goes where the estimators find room; ``more``: it gets so many
    beyond those that it has. ``started``: its admission in this cycle; None of what runs.
    """

    item: Item
    alternative: Alternative
    pod: Charge
    verdict: Verdict
    has: int
    started: Admit | None = None
    more: int = 0

    @property
    def wants(self) -> int:
        """How many pods it asks for in all."""
        return self.item.runs + self.item.most

    @property
    def left(self) -> int:
        """How many pods it lacks."""
        return self.wants - self.has - self.more


def has_room(headroom: Headroom, item: Item) -> bool:
    """Whether quota and capacity have room for one pod more, whoever else could use it."""
    way, path = item.shape.preferred, headroom.ledger.tree.paths.get(item.queue)
    if way is None or path is None:
        return False
    return all(amount <= headroom.available(item.queue, path, cell) for cell, amount in way.charge)


def waiting_for(
    headroom: Headroom,
    classes: Mapping[str, Sequence[PendingClass]],
    heads: Mapping[str, QueueHead],
    admitted: Mapping[ClassKey, int],
    cells: Collection[Cell],
) -> Generator[None, None, Wanted]:
    """What waits after a cycle for those of these cells of which its queue has anything left, in steps.
    ``classes``: by queue, what waited before it, and ``heads``, as they were found in it; ``admitted``: how
    many of each class wait no more.
    """
    found: dict[Cell, dict[str, int]] = {cell: {} for cell in cells}
    for at, (queue, waiting) in enumerate(classes.items()):
        if not at % _PACE:
            yield
        if not any(_usable(headroom, queue, cell) for cell in cells):
            continue
        head = heads[queue]
        for number, one in enumerate(waiting):
            if not number % _PACE:
                yield
            count = len(one.items) - admitted.get(one.key, 0)
            ways = head.ways_ever(one.key.shape) if count > 0 else ()
            for cell, amount in (pair for way in ways for pair in way.charge):
                if cell in found:
                    found[cell][queue] = found[cell].get(queue, 0) + amount * count
    return found


class Growth:
    """The growth of one cycle. ``wanted``: by `waiting_for`. ``barred``: cells about which somebody who goes
    first is being asked. ``tokens``: how many of those that run may grow. ``last``: queues behind all others.
    """

    def __init__(
        self,
        headroom: Headroom,
        wanted: Wanted,
        barred: Iterable[Cell],
        tokens: int,
        last: Collection[str],
    ) -> None:
        self.grown: list[Admit] = []
        """What is admitted beyond what was: those that started, with more, and those that run."""
        self.probes: list[Probe] = []
        self._headroom = headroom
        self._wanted = wanted
        self._barred = frozenset(barred)
        self._tokens = min(tokens, MAX_GROWING)
        self._last = last
        # By cell, the queues in which somebody waits that could take of it now, and how much; until something
        # grows.
        self._takers: dict[Cell, list[tuple[str, int]]] = {}

    def run(self, started: Iterable[Admit], running: Iterable[Item]) -> Generator[None, None, None]:
        """Let those grow that have just ``started``, and those that run; in steps."""
        growing = [one for action in started if (one := self._started(action)) is not None]
        running = sorted(running, key=self._share_of)
        for number, item in enumerate(running):
            if not number % _PACE:
                yield
            one = self._running(item)
            if one is not None:
                growing.append(one)
        turns = [(*self._key(one), number) for number, one in enumerate(growing)]
        heapq.heapify(turns)
        while turns:
            yield
            number = turns[0][-1]
            one = growing[number]
            turn = (*self._key(one), number)
            if turn > turns[0]:
                # Others of its queue have grown since.
                heapq.heapreplace(turns, turn)
            elif not self._take(one):
                heapq.heappop(turns)
            else:
                heapq.heapreplace(turns, (*self._key(one), number))
        for one in growing:
            if one.more and one.started is not None:
                self.grown.append(replace(one.started, more=one.more))
            elif one.more:
                self.grown.append(Admit(one.item, one.alternative, more=one.more - 1))

    def _started(self, action: Admit) -> _Growing | None:
        item, alternative = action.item, action.alternative
        verdict = self._headroom.verdicts.get(probe_of(item.shape, alternative))
        if item.most <= item.pods or verdict is None or verdict.rooms is None:
            return None
        pod = tuple((cell, amount // item.pods) for cell, amount in alternative.charge)
        return _Growing(item, alternative, pod, verdict, item.pods, action)

    def _running(self, item: Item) -> _Growing | None:
        """What runs, if it may grow by one pod as far as is known; the estimators are asked if need be."""
        alternative = item.shape.preferred
        if alternative is None or not item.shape.probe or not self._may_take(item, alternative.charge):
            return None
        probe = probe_of(item.shape, alternative)
        verdict = self._headroom.verdicts.get(probe)
        if verdict is None and len(self.probes) < MAX_PROBES:
            self.probes.append(Probe(item, probe, alternative))
        if verdict is None or verdict.fits <= 0 or verdict.rooms is None:
            return None
        return _Growing(item, alternative, alternative.charge, verdict, item.runs)

    def _take(self, one: _Growing) -> bool:
        """Give it a step's worth of pods, or one; whether there was room, and it lacks more."""
        if one.left <= 0 or (one.started is None and not one.more and self._tokens <= 0):
            return False
        room = self._headroom.pods_left(one.item, one.alternative, one.verdict)
        step = min(-(-one.left // _STEPS), room)
        for pods in (step, 1) if step > 1 else (step,):
            charge = tuple((cell, amount * pods) for cell, amount in one.pod)
            if pods > 0 and self._may_take(one.item, charge):
                probe = probe_of(one.item.shape, one.alternative)
                self._headroom.grow(one.item.queue, probe, one.verdict, charge, pods)
                self._takers.clear()
                self._tokens -= one.started is None and not one.more
                one.more += pods
                return one.left > 0
        return False

    def _may_take(self, item: Item, charge: Charge) -> bool:
        headroom, queue = self._headroom, item.queue
        path = headroom.ledger.tree.paths[queue]
        for cell, amount in charge:
            if cell in self._barred or amount > headroom.available(queue, path, cell):
                return False
        return not self._hurts(queue, charge)

    def _hurts(self, queue: str, charge: Charge) -> bool:
        """Whether somebody who waits could take less of it afterwards, and not all that waits there."""
        takers = [(name, cell, could) for cell, _ in charge for name, could in self._takers_of(cell)]
        if not takers:
            return False
        ledger = self._headroom.ledger
        ledger.charge(queue, charge)
        hurts = any(_usable(self._headroom, name, cell) < could for name, cell, could in takers)
        ledger.give_back(queue, charge)
        return hurts

    def _takers_of(self, cell: Cell) -> list[tuple[str, int]]:
        takers = self._takers.get(cell)
        if takers is None:
            wanted = self._wanted.get(cell, {}).items()
            could = ((name, min(need, _usable(self._headroom, name, cell))) for name, need in wanted)
            takers = self._takers[cell] = [(name, amount) for name, amount in could if amount > 0]
        return takers

    def _key(self, one: _Growing) -> _Place:
        return self._place(one.item, one.pod, one.has + one.more, one.wants)

    def _share_of(self, item: Item) -> _Place:
        return self._place(item, (), item.runs, item.runs + item.most)

    def _place(self, item: Item, charge: Charge, has: int, wants: int) -> _Place:
        """Where it stands with so many of the pods that it wants; ``charge``: of the next."""
        share = self._headroom.ledger.share_at(item.queue, charge, 0)
        rank = (-item.priority, 0, item.enqueued_ms, item.id)
        return item.queue in self._last, share, has * _SCALE // max(1, wants), rank


def _usable(headroom: Headroom, queue: str, cell: Cell) -> int:
    """What quota and capacity leave of a cell."""
    return max(0, min(headroom.ledger.available(queue, cell), headroom.free(cell)))
