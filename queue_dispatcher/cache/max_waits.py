"""MaxWaits: what has waited for longer than its ServiceClass says it should. One writer.

The wait counts from when a workload came into its line, over all tries and whatever it waits for, until it
is admitted. Each is missed once: not again when it is taken back, nor by a process that finds it overdue.
"""

from collections.abc import Iterator

from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.bindings.state import Pending
from queue_dispatcher.cache.entry import Entry, MaxWaitMissedNotice
from queue_dispatcher.cache.items import promised_to
from queue_dispatcher.cache.order import Order

Of = tuple[str, str]
"""ClusterQueue and ServiceClass."""


class MaxWaits:
    """``lines``: by ClusterQueue and ServiceClass, those that wait, by when they should have started, epoch
    milliseconds.
    """

    def __init__(self) -> None:
        self.lines: dict[Of, Order] = {}
        self._of: dict[str, Of] = {}
        # By when the next is missed, monotonic; and which need not be told any more.
        self._due = Order()
        self._told: set[str] = set()

    def put(self, entry: Entry, now: Moment) -> None:
        """The entry waits as it does now, or waits no more."""
        uid, at_ms, of = entry.uid, deadline_ms(entry), _of(entry)
        before = self._of.get(uid)
        if before is not None and (at_ms is None or before != of):
            self._take_out(uid)
        if at_ms is None:
            return
        self._of[uid] = of
        self.lines.setdefault(of, Order()).put(uid, at_ms)
        if before is None and at_ms <= now.day_ms:
            self._told.add(uid)
        if uid not in self._told:
            self._due.put(uid, now.elapsed_ms + at_ms - now.day_ms)

    def drop(self, uid: str) -> None:
        """The binding is gone."""
        self._take_out(uid)
        self._told.discard(uid)

    def missed(self, elapsed_ms: int) -> Iterator[MaxWaitMissedNotice]:
        """Those that should have started by now, each once."""
        while (uid := self._due.first(elapsed_ms, elapsed_ms)) is not None:
            self._due.put(uid, None)
            self._told.add(uid)
            yield MaxWaitMissedNotice(uid, *self._of[uid])

    def overdue(self, now_ms: int) -> Iterator[tuple[Of, int]]:
        """By ClusterQueue and ServiceClass, for how long the first is overdue, milliseconds; 0 if none is."""
        for of, line in list(self.lines.items()):
            at_ms = line.next_rank()
            if at_ms is not None:
                yield of, max(0, now_ms - at_ms)

    def _take_out(self, uid: str) -> None:
        of = self._of.pop(uid, None)
        if of is None:
            return
        self._due.put(uid, None)
        self.lines[of].put(uid, None)
        if not len(self.lines[of]):
            del self.lines[of]


def deadline_ms(entry: Entry) -> int | None:
    """By when what waits should start, epoch milliseconds; None where nothing says so."""
    state, max_wait_ms = entry.state, promised_to(entry).max_wait_ms
    if max_wait_ms is None or not isinstance(state, Pending) or entry.record is not None:
        return None
    return state.enqueued_ms + max_wait_ms


def _of(entry: Entry) -> Of:
    state = entry.state
    queue = state.queue.cluster_queue if isinstance(state, Pending) else ""
    return queue, promised_to(entry).name
