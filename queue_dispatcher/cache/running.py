"""RunningSet: all that holds anything, beside the queues of what waits for it.

What was admitted or adopted, where it is, since when, what it is charged, and when it gives that back.
Release window, kicks, start timeouts and views read from here.
"""

from bisect import bisect_left, insort
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from queue_dispatcher.bindings.bound import is_half_bound
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.bindings.progress import pods_placed
from queue_dispatcher.bindings.requeue import RequeueRecord
from queue_dispatcher.bindings.state import (
    Admitted,
    Growing,
    HeldWithin,
    InFlight,
    Pending,
    Phase,
    Placed,
    Shrinking,
    Unobserved,
    Unplaced,
)
from queue_dispatcher.cache.charges import BindingCharge
from queue_dispatcher.cache.ends import expected_end_ms
from queue_dispatcher.cache.entry import Entry
from queue_dispatcher.cache.leaving import Departure, Leaving
from queue_dispatcher.cycle.endings import Endings


@dataclass(frozen=True, slots=True)
class Running:
    """One binding that is charged.

    ``phase``: None for what was not released by a record, or is held where it is. ``clusters``: where it is.
    ``since_ms``: when it was admitted, or created if it was adopted, epoch milliseconds.
    """

    uid: str
    charged: BindingCharge
    phase: Phase | None
    priority: int
    clusters: tuple[str, ...]
    since_ms: int


class RunningSet:
    """All of them by uid, and those whose start is not over by what has become of it."""

    def __init__(self) -> None:
        self.in_flight: set[str] = set()
        """Released, or about to be, and to be placed by Karmada any moment."""
        self.preplaced: set[str] = set()
        """About to be released to places that the release states."""
        self.parked: set[str] = set()
        """Released, and put aside by Karmada as unschedulable."""
        self.unobserved: set[str] = set()
        """Released, and overtaken by what was released later."""
        self.open: set[str] = set()
        """Perhaps released; nobody can tell yet, which may take for ever."""
        self.retried: set[str] = set()
        """Placed, after tries in vain that its record still counts."""
        self.starting: set[str] = set()
        """Placed, and not started yet: pods of it do not run, or Karmada cannot write it there."""
        self.unbound: set[str] = set()
        """Placed, and pods of it are known to have no nodes."""
        self.uncounted: set[str] = set()
        """Placed, and nobody has said how many of its pods have nodes."""
        self.outgrown: set[str] = set()
        """Released, and held again because it grew before any of it was placed."""
        self.gone: set[str] = set()
        """Taken off lost clusters, and waiting since."""
        self.recent: dict[str, None] = {}
        """Placed a moment ago, the first first: Karmada counts what runs only once it does."""
        self.endings = Endings()
        """When it gives back what it is charged."""
        self.leaving = Leaving()
        """The same by clusters."""
        self._running: dict[str, Running] = {}
        # By cluster, what was released and is placed there; and where each is.
        self._placed: dict[str, set[str]] = {}
        self._places: dict[str, tuple[str, ...]] = {}
        # By the queue that is charged, those of which not all is seen to run.
        self._idle: dict[str, set[str]] = {}
        # Likewise those that are elastic, and those that were released with others, or are being released.
        self._elastic: dict[str, set[str]] = {}
        self._bound: dict[str, set[str]] = {}
        # By queue, as of `in_order`; and how many there are in all by priority.
        self._in_order: dict[str, list[Running]] = {}
        self._counts: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._running)

    def __iter__(self) -> Iterator[Running]:
        return iter(self._running.values())

    def get(self, uid: str) -> Running | None:
        """What is known of one; None if it is charged nothing."""
        return self._running.get(uid)

    def in_order(self, queue: str) -> Sequence[Running]:
        """Those charged to the queue itself, the lowest priority first, then the latest to start."""
        return self._in_order.get(queue, ())

    def idle(self, queue: str) -> Collection[str]:
        """Those charged to the queue itself of which not all is seen to run."""
        return self._idle.get(queue, ())

    @property
    def lowest(self) -> int | None:
        """The lowest priority of all; None where there is nothing."""
        return min(self._counts, default=None)

    def are_apart(self, queue: str) -> bool:
        """Whether each of those charged to the queue itself is known to have been released by itself, and is
        as it was released then.
        """
        return queue not in self._bound

    def elastic(self, queue: str) -> Collection[str]:
        """Those charged to the queue itself that are elastic."""
        return self._elastic.get(queue, ())

    @property
    def clusters(self) -> Collection[str]:
        """Where anything is placed that was released."""
        return self._placed.keys()

    def on(self, cluster: str) -> Collection[str]:
        """What was released and is placed on the cluster."""
        return self._placed.get(cluster, ())

    def is_starting(self, uid: str) -> bool:
        """Whether it is released and lacks a place."""
        released = (self.in_flight, self.preplaced, self.parked, self.unobserved, self.open)
        return any(uid in uids for uids in released)

    @property
    def unplaced(self) -> Collection[str]:
        """What is released, or about to be, and lacks a place."""
        return self.in_flight | self.preplaced | self.parked | self.unobserved | self.open

    def put(self, entry: Entry, charged: BindingCharge | None, now: Moment) -> None:
        """The entry is as it is, charged so."""
        uid, binding, is_assumed = entry.uid, entry.binding, entry.record is not None
        phase = phase_of(entry)
        # What is held for a kick is about to be let go.
        is_kicked = isinstance(entry.state, HeldWithin) and entry.seen.kicks > 0
        is_open = is_assumed and entry.is_open
        is_sent = is_assumed and not is_open
        is_preplaced = is_sent and entry.admission is not None and uid in entry.admission.choices
        is_under_way = is_sent or is_kicked or isinstance(phase, InFlight)
        _keep(self.preplaced, uid, is_preplaced)
        _keep(self.in_flight, uid, is_under_way and not is_preplaced)
        _keep(self.parked, uid, isinstance(phase, Unplaced))
        _keep(self.unobserved, uid, isinstance(phase, Unobserved))
        _keep(self.open, uid, is_open)
        record = entry.effective_record
        placed = phase if isinstance(phase, Placed) else None
        unbound = placed.unbound if placed is not None else 0
        # Half a gang has not started, however long it is placed.
        is_half = is_half_bound(binding, unbound, entry.facts.gang_pods)
        # Nor has what Karmada cannot write there, as far as anybody knows.
        is_refused = bool(binding.progress.kept_out) and not entry.seen.has_run
        has_started = placed is not None and not placed.starting and not is_half and not is_refused
        _keep(self.starting, uid, placed is not None and not has_started)
        _keep(self.unbound, uid, bool(unbound))
        _keep(self.uncounted, uid, unbound is None)
        is_growing = isinstance(entry.state, Growing) and not is_assumed
        _keep(self.outgrown, uid, is_growing and record is not None and not binding.placed)
        _keep(self.retried, uid, has_started and record is not None and record.tries > 0)
        requeue = binding.requeue
        is_gone = isinstance(entry.state, Pending) and isinstance(requeue, RequeueRecord) and requeue.is_lost
        _keep(self.gone, uid, is_gone and not is_assumed)
        self._forget(uid)
        was_released = binding.record is not None and isinstance(entry.state, Admitted | Growing | Shrinking)
        clusters = tuple(share.cluster for share in binding.placed) if was_released else ()
        if clusters and clusters != self._places.get(uid) and (entry.seen.is_ours or entry.seen.was_lost):
            self.recent.pop(uid, None)
            self.recent[uid] = None
        self._place(uid, clusters)
        if charged is None:
            self.endings.drop(uid)
            self.leaving.drop(uid)
            return
        since_ms = record.admitted_ms if record is not None else binding.created_ms
        # What is suspended goes at once.
        is_going = binding.suspended is not None and not is_assumed
        has_none = not is_going and not pods_placed(binding.demand, binding.placed)
        if binding.progress.idle or has_none:
            self._idle.setdefault(charged.queue, set()).add(uid)
        if entry.elastic is not None:
            self._elastic.setdefault(charged.queue, set()).add(uid)
        if entry.group is not None or is_assumed:
            self._bound.setdefault(charged.queue, set()).add(uid)
        ends_ms = now.day_ms if is_going else expected_end_ms(entry, since_ms, now)
        if ends_ms is None and binding.is_endless:
            self.endings.drop(uid)
        else:
            self.endings.put(uid, charged.queue, charged.charge, ends_ms)
        if ends_ms is None:
            self.leaving.drop(uid)
        else:
            self.leaving.put(uid, clusters, Departure(binding.workload, ends_ms))
        self._running[uid] = running = Running(
            uid,
            charged,
            phase,
            record.priority if record is not None else entry.priority.value,
            tuple(share.cluster for share in binding.placed),
            since_ms,
        )
        insort(self._in_order.setdefault(charged.queue, []), running, key=_place_of)
        self._counts[running.priority] = self._counts.get(running.priority, 0) + 1

    def drop(self, uid: str) -> None:
        """The binding is gone."""
        started = (self.retried, self.starting, self.unbound, self.uncounted)
        released = (self.in_flight, self.preplaced, self.parked, self.unobserved, self.open)
        for uids in (*released, self.outgrown, self.gone, *started):
            uids.discard(uid)
        self.endings.drop(uid)
        self.leaving.drop(uid)
        self.recent.pop(uid, None)
        self._forget(uid)
        self._place(uid, ())

    def _place(self, uid: str, clusters: tuple[str, ...]) -> None:
        before = self._places.get(uid, ())
        if before == clusters:
            return
        for cluster in before:
            on = self._placed.get(cluster, set())
            on.discard(uid)
            if not on:
                self._placed.pop(cluster, None)
        for cluster in clusters:
            self._placed.setdefault(cluster, set()).add(uid)
        self._places.pop(uid, None)
        if clusters:
            self._places[uid] = clusters

    def _forget(self, uid: str) -> None:
        before = self._running.pop(uid, None)
        if before is None:
            return
        queue = before.charged.queue
        for of in (self._idle, self._elastic, self._bound):
            if uid in (some := of.get(queue, set())):
                some.discard(uid)
                if not some:
                    del of[queue]
        line = self._in_order[queue]
        del line[bisect_left(line, _place_of(before), key=_place_of)]
        if not line:
            del self._in_order[queue]
        self._counts[before.priority] -= 1
        if not self._counts[before.priority]:
            del self._counts[before.priority]


def _place_of(running: Running) -> tuple[int, int, str]:
    return running.priority, -running.since_ms, running.uid


def phase_of(entry: Entry) -> Phase | None:
    """What has become of what was released; None for all else, and while it is being released."""
    state = entry.state
    if entry.record is not None or not isinstance(state, Admitted | Shrinking):
        return None
    return state.phase


def is_placed(entry: Entry) -> bool:
    """Whether all of what was released is placed."""
    return isinstance(phase_of(entry), Placed)


def _keep(uids: set[str], uid: str, is_in: bool) -> None:
    if is_in:
        uids.add(uid)
    else:
        uids.discard(uid)
