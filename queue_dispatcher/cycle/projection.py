"""Projection: what would start when, if nobody else came and what runs ended when it says. Pure.

It is played by the admission cycle itself on a fork of the ledger, ending by ending, so strategies, fairness,
borrowing and reservations are as they will be. It goes by quotas and amounts: which nodes are free it does
not know. Of what the estimators found no nodes for, it is told when they expect some, or nothing starts
before something else has ended that has the same.

The number of its steps is bounded: endings that are close together, as seen from now, count as one, the last
of them.
"""

import heapq
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from queue_dispatcher.cycle.actions import Admit
from queue_dispatcher.cycle.decide import AdmissionCycles
from queue_dispatcher.cycle.endings import Endings
from queue_dispatcher.cycle.items import Item, Shape
from queue_dispatcher.cycle.pending import PendingQueue
from queue_dispatcher.cycle.reservation import NO_RESERVATIONS
from queue_dispatcher.cycle.snapshot import QueueState, Snapshot
from queue_dispatcher.cycle.turns import NO_TURNS, Turns
from queue_dispatcher.ledger.cells import Cell, Charge
from queue_dispatcher.ledger.ledger import Ledger

MAX_STEPS: Final = 200
"""So many endings are played,"""
MIN_STEPS: Final = 40
"""but no fewer than so many, however many queues there are."""
MAX_LOOKS: Final = 20_000
"""So many heads of queues are looked at in all these steps."""
GRAIN: Final = 32
"""Endings whose distances from now differ by less than one part in so many count as one; where fewer are
played, in as many parts less.
"""
MAX_ENDS: Final = 4_096
"""So many of what runs are known to end: the first."""
_MANY: Final = 1 << 30
_PACE: Final = 50


@dataclass(frozen=True, slots=True)
class Run:
    """What is charged. ``ends_ms``: when it ends at the latest; ``likely_ms``: when it is likely to, by
    history; epoch milliseconds, None where that is not known. ``is_endless``: it never does by itself.
    """

    id: str
    queue: str
    charge: Charge
    ends_ms: int | None = None
    likely_ms: int | None = None
    is_endless: bool = False


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits. ``likely_ms``: for how long it is likely to run, None where that is not known.

    ``is_refused``: the estimators find no nodes for it now; ``opens_ms``: when they expect some, epoch
    milliseconds, None where they have not said.
    """

    item: Item
    likely_ms: int | None = None
    is_refused: bool = False
    opens_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is known at a time, epoch milliseconds. ``ledger``: a fork, which is forked again.

    ``capacity``: by cell, what there is in all, where that is known. ``queues``: how they are set up; what is
    pending in them is not looked at, but ``waiting``. ``turns``: who has had how many.
    """

    now_ms: int
    ledger: Ledger
    capacity: Mapping[Cell, int]
    queues: Mapping[str, QueueState]
    waiting: Sequence[Waiting]
    runs: Sequence[Run]
    turns: Turns = NO_TURNS

    @property
    def has_history(self) -> bool:
        """Whether history says anything that bounds do not."""
        runs, waiting = self.runs, self.waiting
        return any(one.likely_ms is not None for one in runs) or any(
            one.likely_ms is not None for one in waiting
        )


def project(outlook: Outlook, *, is_likely: bool) -> Generator[None, None, dict[str, int]]:
    """By item, when it would start, epoch milliseconds; without those of which that is not found out.

    ``is_likely``: by what is likely, where that is sooner than what bounds it; else by bounds alone.
    """
    return (yield from _Play(outlook, is_likely=is_likely).play())


class _Play:
    """One projection under way."""

    def __init__(self, outlook: Outlook, *, is_likely: bool) -> None:
        self._outlook = outlook
        self._is_likely = is_likely
        self._steps = max(MIN_STEPS, min(MAX_STEPS, MAX_LOOKS // max(1, len(outlook.queues))))
        self._grain = max(1, GRAIN * self._steps // MAX_STEPS)
        self._ledger = outlook.ledger.fork()
        self._endings = Endings()
        # When something ends, or an item may be tried; the former with whose charge.
        self._events: list[tuple[int, str]] = []
        self._charges: dict[str, tuple[str, Charge]] = {}
        self._first_end: dict[Cell, int] = {}
        self._likely = {one.item.id: one.likely_ms for one in outlook.waiting}
        self._queues = {
            name: replace(state, pending=PendingQueue(name), looks=None)
            for name, state in outlook.queues.items()
        }

    def _begin(self) -> Iterator[None]:
        """What runs and what waits, as it is now."""
        now_ms, shapes = self._outlook.now_ms, dict[Shape, Shape]()
        # The first of those that end, the last of them on top.
        first: list[tuple[int, int]] = []
        for number, run in enumerate(self._outlook.runs):
            if not number % _PACE:
                yield
            ends_ms = self._end_of(run)
            if ends_ms is not None and not run.is_endless:
                heapq.heappush(first, (-ends_ms, number))
                if len(first) > MAX_ENDS:
                    heapq.heappop(first)
        ends = {number: -negative_ms for negative_ms, number in first}
        for number, run in enumerate(self._outlook.runs):
            if not number % _PACE:
                yield
            if not run.is_endless:
                self._runs(run.id, run.queue, run.charge, ends.get(number), now_ms)
        for number, one in enumerate(self._outlook.waiting):
            if not number % _PACE:
                yield
            self._waits(one, shapes)

    def play(self) -> Generator[None, None, dict[str, int]]:
        """To the end."""
        yield from self._begin()
        cycles, reservations, turns = AdmissionCycles(), NO_RESERVATIONS, self._outlook.turns
        starts: dict[str, int] = {}
        now_ms = self._outlook.now_ms
        for _ in range(self._steps):
            snapshot = self._snapshot(now_ms)
            snapshot = replace(snapshot, reservations=reservations, turns=turns)
            decision = yield from cycles.steps(snapshot, now_ms)
            reservations, turns = decision.reservations, decision.turns
            for action in decision.actions:
                yield
                if isinstance(action, Admit):
                    starts[action.item.id] = now_ms
                    self._start(action, now_ms)
            if len(starts) == len(self._outlook.waiting):
                break
            next_ms = yield from self._advance(now_ms)
            if next_ms is None:
                break
            now_ms = next_ms
        return starts

    def _snapshot(self, now_ms: int) -> Snapshot:
        totals, capacity = self._ledger.totals, self._outlook.capacity
        for state in self._queues.values():
            state.pending.advance(now_ms)
        return Snapshot(
            ledger=self._ledger,
            queues={name: state for name, state in self._queues.items() if len(state.pending)},
            envelope={cell: amount - totals.get(cell, 0) for cell, amount in capacity.items()},
            tokens=_MANY,
            preplaced_tokens=_MANY,
            endings=self._endings,
        )

    def _start(self, action: Admit, now_ms: int) -> None:
        item, charge = action.item, action.alternative.charge
        self._queues[item.queue].pending.remove(item.id)
        self._ledger.charge(item.queue, charge)
        runtimes = [item.runtime_ms, self._likely.get(item.id) if self._is_likely else None]
        known = [one for one in runtimes if one is not None]
        self._runs(item.id, item.queue, charge, now_ms + min(known) if known else None, now_ms)

    def _advance(self, now_ms: int) -> Generator[None, None, int | None]:
        """What ends next gives back; when that is, None if nothing more is known to."""
        if not self._events:
            return None
        first_ms = self._events[0][0]
        last_ms = first_ms + (first_ms - self._outlook.now_ms) // self._grain
        while self._events and self._events[0][0] <= last_ms:
            yield
            first_ms, name = heapq.heappop(self._events)
            ended = self._charges.pop(name, None)
            if ended is not None:
                self._ledger.give_back(*ended)
                self._endings.drop(name)
        return max(first_ms, now_ms)

    def _runs(self, name: str, queue: str, charge: Charge, ends_ms: int | None, now_ms: int) -> None:
        self._endings.put(name, queue, charge, ends_ms)
        if ends_ms is None:
            return
        # What should have ended ends any moment.
        ends_ms = max(ends_ms, now_ms)
        self._charges[name] = (queue, charge)
        heapq.heappush(self._events, (ends_ms, name))
        for cell, _ in charge:
            self._first_end[cell] = min(ends_ms, self._first_end.get(cell, ends_ms))

    def _end_of(self, run: Run) -> int | None:
        known = [run.ends_ms, run.likely_ms] if self._is_likely else [run.ends_ms]
        return min((one for one in known if one is not None), default=None)

    def _waits(self, one: Waiting, shapes: dict[Shape, Shape]) -> None:
        item = one.item
        due_ms = item.due_ms
        if one.is_refused:
            opens_ms = one.opens_ms
            if opens_ms is None:
                ways = item.shape.parts[0] if item.shape.parts else ()
                ends = (self._first_end.get(cell) for way in ways for cell, _ in way.charge)
                opens_ms = min((at for at in ends if at is not None), default=None)
            if opens_ms is None:
                return
            due_ms = max(due_ms, opens_ms)
        shape = shapes.get(item.shape)
        if shape is None:
            shape = shapes[item.shape] = replace(item.shape, probe="")
        self._queues[item.queue].pending.add(replace(item, shape=shape, due_ms=due_ms))
        if due_ms > self._outlook.now_ms:
            heapq.heappush(self._events, (due_ms, ""))
