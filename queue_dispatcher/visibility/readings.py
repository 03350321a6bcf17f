"""What the metrics read when somebody scrapes them."""

from collections import Counter

from queue_dispatcher.clock import SteadyClock
from queue_dispatcher.dispatcher import Dispatcher
from queue_dispatcher.ledger.ledger import SHARE_ONE
from queue_dispatcher.metrics import Readings, UsageReading
from queue_dispatcher.sources import Sources
from queue_dispatcher.visibility.usage import QueueUsage
from queue_dispatcher.visibility.waiting import counts


def readings_of(dispatcher: Dispatcher, sources: Sources, clock: SteadyClock) -> Readings:
    """The state of the queues now."""
    cache, controller = dispatcher.cache, dispatcher.controller
    view, now_ms = controller.view, clock.now_ms()
    unadmitted: Counter[tuple[str, str]] = Counter()
    for queue, kind, count in counts(cache, view, now_ms):
        unadmitted[queue, kind] += count
    pending: Counter[str] = Counter()
    for (queue, _), count in unadmitted.items():
        pending[queue] += count
    states: Counter[str] = Counter()
    for standing, count in cache.tally:
        states[standing.state] += count
        if standing.reason:
            unadmitted["", standing.reason] += count
            pending[""] += count
    usages = QueueUsage(cache, now_ms)
    queues = cache.queues.queues.cluster_queues
    tree = cache.resolved.tree
    usage = [
        UsageReading(name, one.flavor, one.resource, one.used, one.nominal, one.borrowed)
        for name, queue in queues.items()
        if name in tree.paths
        for one in usages.of(queue)
    ]
    shares = {name: cache.charges.ledger.share(name, ()) for name in tree.paths}
    oldest_ms = min(view.full_since_ms.values(), default=None)
    return Readings(
        is_leading=controller.is_leading,
        observes=dispatcher.observes,
        is_synced=sources.is_synced,
        pending=pending,
        unadmitted=unadmitted,
        states=states,
        usage=usage,
        shares={name: share[0] / SHARE_ONE for name, share in shares.items() if share},
        in_flight=len(cache.running.in_flight),
        parked=len(cache.running.parked),
        window=dispatcher.window.size,
        writes_waiting=dispatcher.executor.waiting if dispatcher.executor is not None else 0,
        fits_but_waits_s=0.0 if oldest_ms is None else (clock.elapsed_ms() - oldest_ms) / 1000,
        objects={state.resource: state.objects for state in sources.states()},
    )
