"""What queues have used over time, for people: hours, cost, budgets, and who shares a queue how."""

from collections.abc import Callable, Iterator

from fairway.visibility import DISPLACED, BudgetView, SharerView, UsedView
from queue_dispatcher.api.cluster_queue import ClusterQueue
from queue_dispatcher.api.history import NOTHING, History
from queue_dispatcher.api.local_queue import LocalQueue
from queue_dispatcher.bindings.timestamp import format_ms
from queue_dispatcher.cache.cache import Cache

MAX_SHARERS = 100
PREEMPTION = "preemption.budget"
"""By which the budget of preemption is told of; no other is named so."""
_MILLI_HOUR_MS = 3_600
_MILLI_PRICE_HOUR = 3_600_000


def used(history: History) -> UsedView:
    """Until its moment."""
    return UsedView(history.device_ms // _MILLI_HOUR_MS, history.cost // _MILLI_PRICE_HOUR)


def used_by(cache: Cache, queue: ClusterQueue, now_ms: int) -> UsedView | None:
    """What a queue has used by now; None where nobody asks."""
    return used(cache.usages.of_queue(queue.name, now_ms)) if cache.usages.is_counted(queue) else None


def budgets(cache: Cache, queue: ClusterQueue, now_ms: int) -> list[BudgetView]:
    """Its budgets, in their order; then that of preemption."""
    lost = queue.preemption_budget
    if not queue.budgets and lost is None:
        return []
    history = cache.usages.of_queue(queue.name, now_ms)
    spent = history.spent
    found = [
        BudgetView(
            one.name,
            one.period,
            one.policy,
            one.device_ms // _MILLI_HOUR_MS,
            spent.get(one.name, NOTHING).device_ms // _MILLI_HOUR_MS,
            format_ms(one.period.renews_ms(now_ms)),
        )
        for one in queue.budgets
    ]
    if lost is not None and not queue.parent:
        left = (lost.device_ms // _MILLI_HOUR_MS, history.displaced.device_ms // _MILLI_HOUR_MS)
        renews = format_ms(lost.period.renews_ms(now_ms))
        found.append(BudgetView(PREEMPTION, lost.period, DISPLACED, *left, renews))
    return found


def sharer(cache: Cache, local: LocalQueue, now_ms: int) -> SharerView | None:
    """What a LocalQueue has used of the queue that it shares; None where it shares none."""
    queue = cache.queues.queues.cluster_queues.get(local.cluster_queue)
    if queue is None or queue.fair_sharing is None:
        return None
    history = cache.usages.of_local(local.key, now_ms)
    return SharerView(
        local.namespace,
        local.name,
        local.weight_milli,
        cache.usages.share(local.key, now_ms) // _MILLI_PRICE_HOUR,
        history.decayed // _MILLI_PRICE_HOUR,
        used(history),
    )


def sharers(cache: Cache, queue: ClusterQueue, now_ms: int, sees: Callable[[str], bool]) -> list[SharerView]:
    """Those of namespaces that the reader ``sees``, whose turn is next first; no more than `MAX_SHARERS`."""
    if queue.fair_sharing is None:
        return []
    stated = cache.queues.queues.local_queues.values()
    own = (one for one in stated if one.cluster_queue == queue.name and sees(one.namespace))
    found: Iterator[SharerView] = filter(None, (sharer(cache, one, now_ms) for one in own))
    ordered = sorted(found, key=lambda one: (one.share_milli, one.namespace, one.name))
    return ordered[:MAX_SHARERS]
