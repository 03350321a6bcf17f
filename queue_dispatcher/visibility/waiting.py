"""Why a binding waits, as of the last cycle."""

import heapq
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from queue_dispatcher.api.ageing import Ageing
from queue_dispatcher.bindings.state import Growing, Pending
from queue_dispatcher.bindings.timestamp import format_ms
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.pending_queues import own_line
from queue_dispatcher.cycle.actions import class_key
from queue_dispatcher.cycle.items import Item
from queue_dispatcher.cycle.order import Rank, rank
from queue_dispatcher.cycle.pending import PendingQueue
from queue_dispatcher.cycle.reasons import Reason, backing_off, displaced
from queue_dispatcher.turn.state import View


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
    preempted = entry.binding.preempted
    if preempted is not None and not entry.note:
        return displaced(until, preempted.reason)
    if entry.note:
        return backing_off(until, entry.failures, entry.note[:200])
    if isinstance(state, Pending | Growing) and state.tries:
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


def page(line: PendingQueue, offset: int, limit: int, now_ms: int, ageing: Ageing) -> Iterator[Item]:
    """Items of the line as `PendingQueue.ordered` has them, from an offset on, without a walk over others."""

    def place(item: Item) -> Rank:
        return rank(item, ageing, now_ms, line.shares)

    lines = [one.items for one in line.classes(now_ms)]
    due = sum(map(len, lines))
    starts = _split(lines, min(offset, due), place)
    parts = [items[start : start + limit] for items, start in zip(lines, starts, strict=True)]
    later = line.later(now_ms)[max(0, offset - due) : max(0, offset + limit - due)]
    yield from islice(heapq.merge(*parts, key=place), limit)
    yield from later


def _split(lines: Sequence[Sequence[Item]], count: int, place: Callable[[Item], Rank]) -> list[int]:
    """How many of each line are among the first so many of all; each line is in order."""
    least, most = [0] * len(lines), [len(items) for items in lines]
    while any(low < high for low, high in zip(least, most, strict=True)):
        widest = max(range(len(lines)), key=lambda number: most[number] - least[number])
        middle = (least[widest] + most[widest]) // 2
        pivot = place(lines[widest][middle])
        before = [
            bisect_left(items, pivot, low, high, key=place)
            for items, low, high in zip(lines, least, most, strict=True)
        ]
        if sum(before) < count:
            least = before
            least[widest] = middle + 1
        else:
            most = before
    return least


def counts(cache: Cache, view: View, now_ms: int, only: str = "") -> Iterator[tuple[str, str, int]]:
    """Queue, kind of reason, and how many items in its line wait for that, more than once where it varies;
    but for what stands in no line (`beside`).

    ``only``: if not empty, the queue that is meant.
    """
    queues = cache.pending.queues
    for name in queues if not only else {only} & queues.keys():
        line = queues[name]
        for pending in line.classes(now_ms):
            reason = view.waits.get(pending.key, view.undecided)
            yield name, reason.kind, len(pending.items)
        later = len(line.later(now_ms))
        if later:
            yield name, "BackingOff", later


def beside(cache: Cache, only: str = "") -> Iterator[tuple[str, str, int]]:
    """As `counts`, of workloads that wait in no line: for a word, or for others of their group. The queue is
    empty where none can be told.
    """
    for standing, count in cache.tally:
        if standing.reason and (not only or standing.queue == only):
            yield standing.queue, standing.reason, count
