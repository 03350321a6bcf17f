"""Waits: why each class of items waits, worked out when somebody reads it.

A full fleet refuses the same thousands of classes in every cycle, and people look at few of the reasons. So a
cycle only notes what was left in the end, and what is not told by that. Nothing of it changes after the
cycle, so a reason is the same whenever it is read: as of the cycle's end.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from queue_dispatcher.cycle.actions import ClassKey
from queue_dispatcher.cycle.headroom import Headroom
from queue_dispatcher.cycle.items import Item
from queue_dispatcher.cycle.pending import PendingClass
from queue_dispatcher.cycle.queue_headroom import QueueHeadroom
from queue_dispatcher.cycle.reasons import Reason, behind_head
from queue_dispatcher.ledger.cells import Charge


@dataclass(slots=True)
class Outcome:
    """How a cycle ended.

    ``classes``: by queue, what waited in the beginning. ``stopped``: queues that admit nothing, and why.
    ``blocked``: the heads that hold up their StrictFIFO queues, and their classes. ``whole``: the classes of
    which all were admitted. ``set_aside``: the classes whose next item was passed over, and why; ``kept``:
    what that keeps from others in its queue; ``others``: what those wait for that have room beside them.
    ``full``: by `Fit.is_preplaced`, what whoever has room waits for where no more of that kind may be
    released.
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
        return outcome.full.get(fit.is_preplaced, outcome.others)
