"""What the metrics read when somebody scrapes them."""

from collections import Counter
from collections.abc import Generator, Sequence

from queue_dispatcher.clock import SteadyClock
from queue_dispatcher.cycle.reservation import Reservation, Reservations
from queue_dispatcher.dispatcher import Dispatcher
from queue_dispatcher.gauges import Readings, ReservationsReading, UsageReading
from queue_dispatcher.ledger.ledger import SHARE_ONE
from queue_dispatcher.sources import Sources
from queue_dispatcher.visibility.histories import budgets, sharer, used_by
from queue_dispatcher.visibility.usage import QueueUsage
from queue_dispatcher.visibility.waiting import beside, counts


def reading(dispatcher: Dispatcher, sources: Sources, clock: SteadyClock) -> Generator[None, None, Readings]:
    """The state of the queues now; in steps, each of a queue as it is by then."""
    cache, controller = dispatcher.cache, dispatcher.controller
    now_ms = clock.now_ms()
    unadmitted: Counter[tuple[str, str]] = Counter()
    for name in list(cache.pending.queues):
        for queue, kind, count in counts(cache, controller.view, now_ms, only=name):
            unadmitted[queue, kind] += count
            yield
    for queue, kind, count in beside(cache):
        unadmitted[queue, kind] += count
    pending: Counter[str] = Counter()
    for (queue, _), count in unadmitted.items():
        pending[queue] += count
    states: Counter[str] = Counter()
    for standing, count in cache.tally:
        states[standing.state] += count
    usages = QueueUsage(cache, controller.view.reservations, now_ms)
    usage: list[UsageReading] = []
    for name, stated in list(cache.queues.queues.cluster_queues.items()):
        yield
        if name in cache.resolved.tree.paths:
            usage += (
                UsageReading(
                    name, one.flavor, one.resource, one.used, one.nominal, one.borrowed, one.reserved
                )
                for one in usages.of(stated)
            )
    shares: dict[str, float] = {}
    for name in cache.resolved.tree.paths:
        yield
        share = cache.charges.ledger.share(name, ())
        if share:
            shares[name] = share[0] / SHARE_ONE
    costs: dict[str, float] = {}
    budget_hours: dict[tuple[str, str], tuple[float, float]] = {}
    local_usage: dict[tuple[str, str, str], float] = {}
    for name, stated in list(cache.queues.queues.cluster_queues.items()):
        yield
        if (used := used_by(cache, stated, now_ms)) is not None:
            costs[name] = used.cost_milli / 1000
        for budget in budgets(cache, stated, now_ms):
            budget_hours[name, budget.name] = (budget.used_milli / 1000, budget.device_hours_milli / 1000)
    for local in list(cache.queues.local_queues.values.values()):
        yield
        if (shared := sharer(cache, local, now_ms)) is not None:
            key = (local.cluster_queue, local.namespace, local.name)
            local_usage[key] = shared.decayed_milli / 1000
    oldest_ms = min(controller.view.full_since_ms.values(), default=None)
    return Readings(
        is_leading=controller.is_leading,
        observes=dispatcher.observes,
        is_synced=sources.is_synced,
        pending=pending,
        unadmitted=unadmitted,
        states=states,
        usage=usage,
        shares=shares,
        reservations=_reservations(controller.view.reservations, now_ms),
        costs=costs,
        budgets=budget_hours,
        local_usage=local_usage,
        in_flight=len(cache.running.in_flight),
        parked=len(cache.running.parked),
        window=dispatcher.window.size,
        writes_waiting=dispatcher.executor.waiting if dispatcher.executor is not None else 0,
        fits_but_waits_s=0.0 if oldest_ms is None else (clock.elapsed_ms() - oldest_ms) / 1000,
        overdue_s={of: late_ms / 1000 for of, late_ms in cache.max_waits.overdue(now_ms)},
        objects={state.resource: state.objects for state in sources.states()},
    )


def _reservations(reservations: Reservations, now_ms: int) -> dict[str, ReservationsReading]:
    """By ClusterQueue, those of its workloads."""
    of: dict[str, list[Reservation]] = {}
    for one in reservations.made:
        of.setdefault(one.item.queue, []).append(one)
    return {queue: _reading(held, now_ms) for queue, held in of.items()}


def _reading(held: Sequence[Reservation], now_ms: int) -> ReservationsReading:
    starts_ms = min((one.starts_ms for one in held if one.starts_ms is not None), default=None)
    return ReservationsReading(
        count=len(held),
        age_s=max(0, now_ms - min(one.since_ms for one in held)) / 1000,
        held_ratio=max((now_ms - one.since_ms) / (one.expires_ms - one.since_ms) for one in held),
        starts_s=None if starts_ms is None else max(0, starts_ms - now_ms) / 1000,
    )
