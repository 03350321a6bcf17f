"""The budget of preemption: how much work may be lost in a tree of queues as others are displaced.

Charged is what each that is displaced had run, devices times the time since it was admitted, whatever of it
is kept (as the completions of a Job are that is suspended in its place): how much that is nobody can tell.
What gives up pods beyond a minimum runs on, and nothing is charged. Who takes back what it owns counts as all
others do.
"""

from collections.abc import Iterable

from queue_dispatcher.api.budget import HOUR_MS
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.bindings.timestamp import format_ms
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.preemption.victims import Victim


def over_budget(cache: Cache, queue: str, victims: Iterable[Victim], now: Moment) -> str:
    """Why these may not be displaced now for a workload of the queue, for people; empty where they may."""
    tree, now_ms = cache.charges.ledger.tree, now.day_ms
    root = tree.root_of(queue)
    stated = cache.queues.queues.cluster_queues.get(root)
    budget = stated.preemption_budget if stated is not None else None
    if budget is None:
        return ""
    lost_ms = sum(
        cache.usages.lost_ms(one.candidate.charge, one.candidate.since_ms, now_ms)
        for one in victims
        if not one.candidate.pods
    )
    displaced_ms = cache.usages.of_queue(root, now_ms).displaced.device_ms
    left_ms = budget.device_ms - displaced_ms - _going_ms(cache, root, now_ms)
    # Of none at all nobody goes, however little would be lost.
    if budget.device_ms and lost_ms <= left_ms:
        return ""
    renews = format_ms(budget.period.renews_ms(now_ms))
    told = f"what may be lost by displacing others in queue {root} is used up until {renews}"
    return f"{told}: {_hours(left_ms)} device-hours are left, and {_hours(lost_ms)} would be lost for it"


def _going_ms(cache: Cache, root: str, now_ms: int) -> int:
    """What is lost with those that are to go and have not yet."""
    tree, going = cache.charges.ledger.tree, 0
    for uid, one in cache.ends.displaced_by.items():
        charged, running = cache.charges.get(uid), cache.running.get(uid)
        if one.fewer or charged is None or running is None or charged.queue not in tree.paths:
            continue
        if tree.root_of(charged.queue) == root:
            going += cache.usages.lost_ms(charged.charge, running.since_ms, now_ms)
    return going


def _hours(device_ms: int) -> str:
    return f"{max(0, device_ms) / HOUR_MS:.3g}"
