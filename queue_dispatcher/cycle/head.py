"""QueueHead: the item with which a queue competes in a cycle.

That is the first item, in the queue's order, of those that have room: a workload that cannot start neither
speaks for its queue nor counts in its share. Classes that have been refused are parked.
"""

import heapq
from collections.abc import MutableMapping, Sequence

from queue_dispatcher.api.cluster_queue import QueueingStrategy
from queue_dispatcher.cycle.actions import ClassKey
from queue_dispatcher.cycle.headroom import Fit, Headroom, QueueHeadroom
from queue_dispatcher.cycle.items import Item
from queue_dispatcher.cycle.order import Rank, next_point_ms, rank
from queue_dispatcher.cycle.pending import PendingClass
from queue_dispatcher.cycle.reasons import queue_stopped
from queue_dispatcher.cycle.snapshot import QueueState
from queue_dispatcher.cycle.waits import Because, Behind, Refuser


class QueueHead:
    """A queue's classes, by whose first item is next. `look` before reading ``item`` and ``rank``.

    ``path``: its number in the tree and those above, up to the root.
    """

    def __init__(
        self, state: QueueState, headroom: Headroom, now_ms: int, refusers: MutableMapping[ClassKey, Refuser]
    ) -> None:
        self.name = state.name
        self.path = headroom.ledger.tree.paths.get(state.name, ())
        self.priority = state.priority
        self.changes_ms: int | None = None
        """When time alone may let another item be first in a StrictFIFO queue whose head is blocked."""
        self.looked = -1
        """`Headroom.changes` as of the last look."""
        self._ageing = state.ageing
        self._headroom = headroom
        self._now_ms = now_ms
        self._refusers = refusers
        self._ages = False
        self._is_strict = state.strategy is QueueingStrategy.STRICT_FIFO
        # A heap; ranks end with ids, so two entries never compare beyond them.
        self._heads: list[tuple[Rank, int, PendingClass]] = []
        classes = state.pending.classes(now_ms)
        stopped = state.stopped
        if stopped is None and not self.path:
            stopped = queue_stopped(state.name, "it has no place in the tree of quotas")
        if stopped is not None:
            refusers.update(dict.fromkeys((pending.key for pending in classes), Because(stopped)))
        elif classes:
            self._left = QueueHeadroom(headroom, state.name)
            if not (self._left.refuses(state.pending.least(now_ms)) and self._refuse(classes)):
                self._order(classes)

    @property
    def is_waiting(self) -> bool:
        """Whether any of its classes may still start in this cycle."""
        return bool(self._heads)

    @property
    def rank(self) -> Rank:
        """Where the item with which it competes stands."""
        return self._heads[0][0]

    @property
    def key(self) -> ClassKey:
        """The class of the item with which it competes."""
        return self._heads[0][2].key

    @property
    def item(self) -> Item:
        """The item with which it competes."""
        _, place, pending = self._heads[0]
        return pending.items[place]

    def look(self) -> Fit | None:
        """Find the first item that has room, park the classes before it; None once there is none."""
        self.looked = self._headroom.changes
        while self._heads:
            shape = self._heads[0][2].key.shape
            found = self._left.can_admit(shape)
            if found is not None:
                return found
            # Whoever comes to hold capacity for a blocked head does it here, where it is known to be one.
            self.park(self._left, blocks=self._left.can_ever_admit(shape))
        return None

    def move_up(self) -> None:
        """The head was admitted; the next of its class takes its place."""
        _, place, pending = self._heads[0]
        place += 1
        if place < len(pending.items):
            moved_up = rank(pending.items[place], self._ageing, self._now_ms)
            heapq.heapreplace(self._heads, (moved_up, place, pending))
        else:
            heapq.heappop(self._heads)

    def park(self, refuser: Refuser, blocks: bool = True) -> None:
        """The head has to wait, and with it its class; if it blocks a StrictFIFO queue, all others too."""
        _, place, parked = heapq.heappop(self._heads)
        refusers = self._refusers
        refusers[parked.key] = refuser
        if not self._is_strict or not blocks:
            return
        keys = [pending.key for _, _, pending in self._heads]
        refusers.update(dict.fromkeys(keys, Behind(parked.items[place], refuser)))
        if self._ages:
            points = (
                next_point_ms(pending.items[at], self._ageing, self._now_ms) for _, at, pending in self._heads
            )
            self.changes_ms = min((at for at in points if at is not None), default=None)
        self._heads.clear()

    def _refuse(self, classes: Sequence[PendingClass]) -> bool:
        """Refuse all classes, of which none has room; False if who blocks whom has to be looked at."""
        refuser: Refuser = self._left
        keys = (pending.key for pending in classes)
        if not self._is_strict:
            self._refusers.update(dict.fromkeys(keys, refuser))
            return True
        first = min(classes, key=_rank)
        if self._may_age(classes) or not self._left.can_ever_admit(first.key.shape):
            return False
        self._refusers.update(dict.fromkeys(keys, Behind(first.items[0], refuser)))
        self._refusers[first.key] = refuser
        return True

    def _order(self, classes: Sequence[PendingClass]) -> None:
        if not self._is_strict:
            # What has no room now has none later in the cycle, and on a full fleet that is most of it.
            refused = [one for one in classes if self._left.can_admit(one.key.shape) is None]
            self._refusers.update(dict.fromkeys((one.key for one in refused), self._left))
            if len(refused) == len(classes):
                return
            parked = set(refused)
            classes = [one for one in classes if one not in parked]
        ageing, now_ms = self._ageing, self._now_ms
        self._ages = self._may_age(classes)
        if self._ages:
            self._heads = [(rank(one.items[0], ageing, now_ms), 0, one) for one in classes]
        else:
            self._heads = [(one.rank, 0, one) for one in classes]
        heapq.heapify(self._heads)

    def _may_age(self, classes: Sequence[PendingClass]) -> bool:
        return bool(self._ageing.cap) or any(one.key.ageing for one in classes)


def _rank(pending: PendingClass) -> Rank:
    return pending.rank
