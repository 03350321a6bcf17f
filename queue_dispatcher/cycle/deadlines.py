"""Deadlines: who gets a reservation first, and how early. Pure.

A ServiceClass may say how long its workloads should wait at the most. That decides no order in the line, and
is no promise: it is by when, of those of equal priority that lack room, one has room kept for it. Who states
none, or a longer one, counts as if it stated how long a reservation is held, so nobody is passed without end
by those that keep coming with a shorter one.
"""

from queue_dispatcher.api.reservation import ReservationPolicy
from queue_dispatcher.cycle.items import Item
from queue_dispatcher.cycle.order import Rank


def after_ms(item: Item, policy: ReservationPolicy) -> int:
    """For how long the item waits before it may get a reservation: at the most half of its maxWait."""
    return policy.after_ms if item.max_wait_ms is None else min(policy.after_ms, item.max_wait_ms // 2)


def by_deadline(rank: Rank, item: Item, policy: ReservationPolicy) -> Rank:
    """Where the item, which stands by ``rank`` in the line of its queue, stands among those that want a
    reservation: as in the line, but by the deadline in place of the time in it.
    """
    most_ms = policy.hold_timeout_ms
    waits_ms = most_ms if item.max_wait_ms is None else min(most_ms, item.max_wait_ms)
    return (rank[0], rank[1], item.enqueued_ms + waits_ms, item.id)
