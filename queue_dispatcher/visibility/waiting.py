"""Why a binding waits, as of the last cycle."""

from collections.abc import Iterator

from queue_dispatcher.bindings.state import Pending
from queue_dispatcher.bindings.timestamp import format_ms
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.pending_queues import own_line
from queue_dispatcher.cycle.actions import ClassKey
from queue_dispatcher.cycle.items import Item
from queue_dispatcher.cycle.reasons import Reason, backing_off
from queue_dispatcher.turn.state import View


def class_key(item: Item) -> ClassKey:
    """The class of an item."""
    return ClassKey(item.queue, item.shape, item.priority, item.ageing)


def waiting_of(cache: Cache, view: View, entry: Entry, now_ms: int) -> Reason | None:
    """Why the binding, or its growth, has not been admitted; None for one that does not wait."""
    if entry.record is not None:
        return None
    if entry.waits is not None:
        return entry.waits
    item = cache.pending.item_of(entry)
    if item is None:
        return None
    if item.due_ms > now_ms:
        return _backing_off(entry, item.due_ms)
    return view.waits.get(class_key(item), view.undecided)


def _backing_off(entry: Entry, due_ms: int) -> Reason:
    until = format_ms(due_ms)
    state = entry.state
    if entry.note:
        return backing_off(until, entry.failures, entry.note[:200])
    if isinstance(state, Pending) and state.tries:
        return backing_off(until, state.tries, state.because)
    return backing_off(until, 1, "another of its group was taken back")


def positions(cache: Cache, item: Item, now_ms: int) -> tuple[int, int]:
    """The item's place in its ClusterQueue, and among those of its LocalQueue, from 1; 0 in no line."""
    line = cache.pending.queues.get(item.queue)
    queue = cache.queues.queues.cluster_queues.get(item.queue)
    if line is None or queue is None:
        return 0, 0
    position = line.position(item.id, now_ms, queue.ageing)
    own = cache.pending.own_lines.get(own_line(item))
    if not position or own is None:
        return position, 0
    own.advance(now_ms)
    return position, own.position(item.id, now_ms, queue.ageing)


def counts(cache: Cache, view: View, now_ms: int) -> Iterator[tuple[str, str, int]]:
    """Queue, kind of reason, and how many items in its line wait for that; more than once where it varies."""
    for name, line in cache.pending.queues.items():
        for pending in line.classes(now_ms):
            reason = view.waits.get(pending.key, view.undecided)
            yield name, reason.kind, len(pending.items)
        later = len(line.later(now_ms))
        if later:
            yield name, "BackingOff", later
