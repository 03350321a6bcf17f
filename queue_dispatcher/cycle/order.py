"""Whose turn it is within a queue: the higher priority first, then who came first.

Where LocalQueues share the queue, of equal priority the one that has used the least goes first, and who came
first only decides within it, and among those that have used the same.

Waiting raises priority by the ageing of the workload's ServiceClass, else of its queue, for this order only.
Among items of one class, an older one never has less of it, so the oldest is always the first of its class.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from queue_dispatcher.api.ageing import Ageing
from queue_dispatcher.cycle.items import Item

Rank = tuple[int, int, int, str]
"""Compares as the order does, the first the least: effective priority negated, the share of its LocalQueue
where those share the queue, time in the line, id."""

NOT_SHARED: Final[Mapping[str, int]] = {}
"""The shares in a queue that nobody shares."""


def rank(item: Item, queue_ageing: Ageing, now_ms: int, shares: Mapping[str, int] = NOT_SHARED) -> Rank:
    """Where an item stands at a time among those of its queue; ``shares``: by line."""
    priority, ageing = item.priority, item.ageing or queue_ageing
    if ageing.cap:
        priority += ageing.points(now_ms - item.enqueued_ms)
    return (-priority, shares.get(item.line, 0), item.enqueued_ms, item.id)


def standing(item: Item) -> tuple[int, int]:
    """Where it stands by priority and time in the line alone, the first the least; so others are displaced
    within a queue.
    """
    return -item.priority, item.enqueued_ms


def in_order_of_queues(items: Iterable[Item]) -> list[Item]:
    """The same, of which none comes before those of its queue that stand before it: it is moved back to after
    them, so that all others have before them whom they had, or fewer, besides those of their own queues.
    """
    by_queue: dict[str, list[tuple[tuple[int, int], int, Item]]] = {}
    for place, item in enumerate(items):
        by_queue.setdefault(item.queue, []).append((standing(item), place, item))
    found: list[tuple[int, tuple[int, int], int, Item]] = []
    for of in by_queue.values():
        last = 0
        # No two have the same place, so items are never compared.
        for own, place, item in sorted(of):
            last = max(last, place)
            found.append((last, own, place, item))
    return [item for *_, item in sorted(found)]


def next_point_ms(item: Item, queue_ageing: Ageing, now_ms: int) -> int | None:
    """When waiting next raises the item's priority; None if it never will again."""
    ageing = item.ageing or queue_ageing
    points = ageing.points(now_ms - item.enqueued_ms)
    if points >= ageing.cap:
        return None
    return item.enqueued_ms + (points + 1) * ageing.step_ms
