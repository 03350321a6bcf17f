"""The gauges of the dispatcher: what there is when somebody scrapes, of which `Readings` says what it is."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

_P: Final = "fairway_"


@dataclass(frozen=True, slots=True)
class UsageReading:
    """One resource of one flavor in one queue; amounts in milli-cores of cpu, whole units of all else.

    ``reserved``: kept for workloads that wait.
    """

    queue: str
    flavor: str
    resource: str
    used: int
    nominal: int
    borrowed: int
    reserved: int = 0


@dataclass(frozen=True, slots=True)
class ReservationsReading:
    """The reservations of one queue. ``age_s``: of the oldest. ``held_ratio``: of the one that is nearest to
    being given up, which part of its time is over. ``starts_s``: until the first can start at the latest;
    None where nobody knows.
    """

    count: int
    age_s: float
    held_ratio: float
    starts_s: float | None = None


@dataclass(frozen=True, slots=True)
class Readings:
    """The state of the queues at one moment.

    ``pending``: by ClusterQueue, empty for workloads without one. ``unadmitted``: by ClusterQueue and reason.
    ``reservations``: by ClusterQueue, of those with any; of the leader, which alone knows them.
    ``states``: bindings by state. ``fits_but_waits_s``: for how long the workload that has waited longest
    with quota and room for it has not been released. ``overdue_s``: by ClusterQueue and ServiceClass, for how
    long the first should have started by its maxWait, 0 where none is late. ``costs``: by ClusterQueue of
    which it is counted. ``budgets``: by ClusterQueue and name, device-hours used and stated. ``local_usage``:
    by ClusterQueue that is shared, namespace and LocalQueue, device-hours by price and half-life.
    ``observes``: all of it is only what would be.
    """

    is_leading: bool = False
    observes: bool = False
    is_synced: bool = False
    pending: Mapping[str, int] = field(default_factory=dict)
    unadmitted: Mapping[tuple[str, str], int] = field(default_factory=dict)
    states: Mapping[str, int] = field(default_factory=dict)
    usage: Sequence[UsageReading] = ()
    shares: Mapping[str, float] = field(default_factory=dict)
    reservations: Mapping[str, ReservationsReading] = field(default_factory=dict)
    costs: Mapping[str, float] = field(default_factory=dict)
    budgets: Mapping[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    local_usage: Mapping[tuple[str, str, str], float] = field(default_factory=dict)
    in_flight: int = 0
    parked: int = 0
    window: int = 0
    writes_waiting: int = 0
    fits_but_waits_s: float = 0.0
    overdue_s: Mapping[tuple[str, str], float] = field(default_factory=dict)
    objects: Mapping[str, int] = field(default_factory=dict)


def gauges(now: Readings) -> Iterator[Metric]:
    """All of them, one after the other, so that others may run in between."""
    yield from _process_metrics(now)
    yield from _queue_metrics(now)


def _process_metrics(now: Readings) -> Iterator[Metric]:
    rows = (
        ("leading", "1 when this process leads and writes, else 0", float(now.is_leading)),
        ("observing", "1 when nothing is held and all is what would be, else 0", float(now.observes)),
        ("synced", "1 when everything watched has been read completely, else 0", float(now.is_synced)),
        ("release_window_inflight", "Bindings released and not yet placed", now.in_flight),
        ("release_window_parked", "Of those, bindings that Karmada put aside as unschedulable", now.parked),
        ("release_window_size", "How many may be released and not yet placed", now.window),
        ("writes_waiting", "Patches decided and not yet made", now.writes_waiting),
        (
            "fits_but_waits_seconds",
            "For how long a workload has not been released although it fits; 0 if there is none",
            now.fits_but_waits_s,
        ),
    )
    for name, text, value in rows:
        yield GaugeMetricFamily(f"{_P}{name}", text, value=value)


def _queue_metrics(now: Readings) -> Iterator[Metric]:
    pending = _gauge(
        "pending", "Workloads that wait; without a queue where none can be told", "cluster_queue"
    )
    for queue, count in now.pending.items():
        pending.add_metric([queue], count)
    yield pending
    unadmitted = _gauge("unadmitted", "Workloads that wait, by reason", "cluster_queue", "reason")
    for (queue, reason), count in now.unadmitted.items():
        unadmitted.add_metric([queue, reason], count)
    yield unadmitted
    overdue = _gauge(
        "max_wait_overdue_seconds",
        "For how long the workload that should have started first by its maxWait is late; 0 if none is",
        "cluster_queue",
        "class",
    )
    for (queue, service_class), late_s in now.overdue_s.items():
        overdue.add_metric([queue, service_class], late_s)
    yield overdue
    states = _gauge("bindings", "Bindings in scope, by state", "state")
    for state, count in now.states.items():
        states.add_metric([state], count)
    yield states
    where = ("cluster_queue", "flavor", "resource")
    used = _gauge("queue_usage", "What is charged; milli-cores of cpu, whole units of all else", *where)
    for usage in now.usage:
        used.add_metric([usage.queue, usage.flavor, usage.resource], usage.used)
    yield used
    nominal = _gauge("queue_nominal", "What the queue owns", *where)
    for usage in now.usage:
        nominal.add_metric([usage.queue, usage.flavor, usage.resource], usage.nominal)
    yield nominal
    borrowed = _gauge("queue_borrowed", "What is charged beyond what the queue and those below own", *where)
    for usage in now.usage:
        borrowed.add_metric([usage.queue, usage.flavor, usage.resource], usage.borrowed)
    yield borrowed
    reserved = _gauge("queue_reserved", "What is kept for workloads that wait, by reservations", *where)
    for usage in now.usage:
        reserved.add_metric([usage.queue, usage.flavor, usage.resource], usage.reserved)
    yield reserved
    yield from _reservation_metrics(now.reservations)
    shares = _gauge("weighted_share", "Dominant share beyond the quota, by weight; 0 within", "cluster_queue")
    for queue, share in now.shares.items():
        shares.add_metric([queue], share)
    yield shares
    yield from _history_metrics(now)
    objects = _gauge("objects", "Objects held, by resource", "resource")
    for resource, count in now.objects.items():
        objects.add_metric([resource], count)
    yield objects


def _history_metrics(now: Readings) -> Iterator[Metric]:
    costs = _gauge("queue_cost", "What the queue has cost so far, by the prices of flavors", "cluster_queue")
    for queue, cost in now.costs.items():
        costs.add_metric([queue], cost)
    yield costs
    told = "Device-hours of a budget that are used in its period"
    spent = _gauge("budget_used_device_hours", told, "cluster_queue", "budget")
    stated = _gauge("budget_device_hours", "Device-hours of a budget", "cluster_queue", "budget")
    for labels, (used_hours, stated_hours) in now.budgets.items():
        spent.add_metric(labels, used_hours)
        stated.add_metric(labels, stated_hours)
    yield spent
    yield stated
    told = "Device-hours by price and half-life of LocalQueues that share their ClusterQueue"
    local = _gauge("local_queue_usage", told, "cluster_queue", "namespace", "local_queue")
    for sharer, hours in now.local_usage.items():
        local.add_metric(sharer, hours)
    yield local


def _reservation_metrics(reservations: Mapping[str, ReservationsReading]) -> Iterator[Metric]:
    rows: tuple[tuple[str, str, Callable[[ReservationsReading], float | None]], ...] = (
        ("reservations_held", "Workloads that hold a reservation", lambda one: one.count),
        ("reservation_age_seconds", "For how long the oldest is held", lambda one: one.age_s),
        (
            "reservation_held_ratio",
            "Part of its holdTimeout that is over, of the one that is nearest to being given up",
            lambda one: one.held_ratio,
        ),
        (
            "reservation_starts_seconds",
            "Until the first can start at the latest; not there where nobody knows",
            lambda one: one.starts_s,
        ),
    )
    for name, text, of in rows:
        found = _gauge(name, text, "cluster_queue")
        for queue, reading in reservations.items():
            value = of(reading)
            if value is not None:
                found.add_metric([queue], value)
        yield found


def _gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{_P}{name}", text, labels=labels)
