"""Waits: why each class of items waits, worked out when somebody reads it.

A full fleet refuses the same thousands of classes in every cycle, and people look at few of the reasons. So a
cycle only notes what was left in the end, and what is not told by that. Nothing of it changes after the
cycle, so a reason is the same whenever it is read: as of the cycle's end.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from queue_dispatcher.cycle.actions import ClassKey
from queue_dispatcher.cycle.headroom import Fit, Headroom
from queue_dispatcher.cycle.items import Item
from queue_dispatcher.cycle.kept_room import KeptRoom
from queue_dispatcher.cycle.order import rank
from queue_dispatcher.cycle.pending import PendingClass
from queue_dispatcher.cycle.queue_headroom import QueueHeadroom
from queue_dispatcher.cycle.reasons import Reason, behind_head, behind_reservation
from queue_dispatcher.cycle.reservation import Reservation
from queue_dispatcher.cycle.reserved import lacking_of, start_of
from queue_dispatcher.cycle.runtime import longest_within
from queue_dispatcher.cycle.snapshot import QueueState
from queue_dispatcher.ledger.cells import Charge


@dataclass(slots=True)
class Outcome:
    """How a cycle ended.

    ``classes``: by queue, what waited in the beginning. ``stopped``: queues that admit nothing, and why.
    ``blocked``: the heads that hold up their StrictFIFO queues, and their classes. ``whole``: the classes of
    which all were admitted. ``set_aside``: the classes whose next item was passed over, and why; ``kept``:
    what that keeps from others in its queue; ``others``: what those wait for that have room beside them.
    ``full``: by `Fit.is_preplaced`, what whoever has room waits for where no more of that kind may be
    released. ``reserved``: what is kept for reservations. ``queues``: by name.
    """

    headroom: Headroom
    classes: Mapping[str, Sequence[PendingClass]]
    stopped: Mapping[str, Reason]
    others: Reason
    blocked: dict[str, tuple[ClassKey, Item]] = field(default_factory=dict)
    whole: set[ClassKey] = field(default_factory=set)
    set_aside: dict[ClassKey, Reason] = field(default_factory=dict)
    kept: dict[str, list[Charge]] = field(default_factory=dict)
    full: Mapping[bool, Reason] = field(default_factory=dict)
    reserved: KeptRoom | None = None
    now_ms: int = 0
    queues: Mapping[str, QueueState] = field(default_factory=dict)


class Waits(Mapping[ClassKey, Reason]):
    """Reasons by class."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome
        self._left: dict[str, QueueHeadroom] = {}
        self._keys: dict[str, set[ClassKey]] = {}
        self._reasons: dict[ClassKey, Reason] = {}

    def __getitem__(self, key: ClassKey) -> Reason:
        reason = self._reasons.get(key)
        if reason is None:
            if key not in self._waiting_in(key.queue):
                raise KeyError(key)
            reason = self._reasons[key] = self._why(key)
        return reason

    def __iter__(self) -> Iterator[ClassKey]:
        outcome = self._outcome
        for queue in sorted(outcome.classes):
            for one in outcome.classes[queue]:
                if one.key not in outcome.whole:
                    yield one.key

    def __len__(self) -> int:
        outcome = self._outcome
        return sum(map(len, outcome.classes.values())) - len(outcome.whole)

    def _waiting_in(self, queue: str) -> set[ClassKey]:
        keys = self._keys.get(queue)
        if keys is None:
            outcome = self._outcome
            keys = {one.key for one in outcome.classes.get(queue, ())} - outcome.whole
            self._keys[queue] = keys
        return keys

    def _left_of(self, queue: str) -> QueueHeadroom:
        left = self._left.get(queue)
        if left is None:
            left = self._left[queue] = QueueHeadroom(self._outcome.headroom, queue)
            for charge in self._outcome.kept.get(queue, ()):
                left.keep(charge)
        return left

    def _why(self, key: ClassKey) -> Reason:
        outcome, shape = self._outcome, key.shape
        stopped = outcome.stopped.get(key.queue)
        if stopped is not None:
            return stopped
        if key in outcome.set_aside:
            return outcome.set_aside[key]
        left, blocked = self._left_of(key.queue), outcome.blocked.get(key.queue)
        if blocked is not None and blocked[0] != key and left.can_ever_admit(shape):
            head_key, head = blocked
            why = outcome.set_aside.get(head_key) or left.why(head.shape)
            return behind_head(head.name, why.text, head.namespace)
        fit = left.can_admit(shape)
        if fit is None:
            return left.why(shape)
        reservation = self._kept_from(key, fit) if outcome.reserved is not None else None
        if reservation is not None:
            return self._behind(reservation)
        return outcome.full.get(fit.is_preplaced, outcome.others)

    def _kept_from(self, key: ClassKey, fit: Fit) -> Reservation | None:
        """The reservation that the first of a class would delay."""
        kept = self._outcome.reserved
        first = next((one for one in self._outcome.classes[key.queue] if one.key == key), None)
        if kept is None or first is None:
            return None
        item, state = first.items[0], self._outcome.queues[key.queue]
        own = rank(item, state.ageing, self._outcome.now_ms, state.shares)
        return kept.refusing(item, own, key.runtime_ms, fit.alternative)

    def _behind(self, reservation: Reservation) -> Reason:
        item, now_ms = reservation.item, self._outcome.now_ms
        # What runs no longer than a step counts as running that long.
        most_s = longest_within(reservation.passes_ms(now_ms)) // 1000
        lacking = lacking_of(reservation, self._outcome.headroom.ledger.tree.table)
        return behind_reservation(item.name, lacking, start_of(reservation, now_ms), most_s, item.namespace)
