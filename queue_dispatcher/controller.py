"""The loop: when something has changed, bring the cache up to date, decide, and hand the writes over.

It runs on every replica, so that followers answer questions and take over warm; only the leader has somebody
to hand writes to. It is woken by events, at the latest after a second, and waits a few milliseconds for more
of them. A cycle that fails by a defect of ours is logged and tried again later, and stops nothing else.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from fairway.kube.pace import Pace
from queue_dispatcher.api.cluster_queue import ClusterQueue
from queue_dispatcher.bindings.state import Admitted
from queue_dispatcher.cache.cache import Cache
from queue_dispatcher.cache.entry import Entry, FinishedNotice, PlacedNotice
from queue_dispatcher.cache.items import promised_to
from queue_dispatcher.clock import SteadyClock
from queue_dispatcher.cycle.actions import Admit, ClassKey, Decision, Probe
from queue_dispatcher.cycle.decide import decide
from queue_dispatcher.cycle.items import Item
from queue_dispatcher.cycle.reasons import Reason, queue_stopped
from queue_dispatcher.cycle.snapshot import QueueState, Snapshot, Verdict
from queue_dispatcher.estimates.probes import Probes, Subject
from queue_dispatcher.ledger.cells import Cell
from queue_dispatcher.metrics import DispatcherMetrics
from queue_dispatcher.release.desk import BindingDesk
from queue_dispatcher.release.executor import Write
from queue_dispatcher.turn.kicks import Parked, due_kicks
from queue_dispatcher.turn.overdue import due_ms, is_quietly_parked, why_overdue
from queue_dispatcher.turn.window import ReleaseWindow
from queue_dispatcher.visibility.following import NOT_DECIDED, asked_by, released_by

logger = logging.getLogger(__name__)

FLOOR_S = 1.0
DEBOUNCE_S = 0.003
SLICE = 200
"""Bindings derived before others may run: a few milliseconds."""
EXPIRY_MS = 30_000
"""How long a state older than our own write is held back."""
FOLLOWERS_EVERY_MS = 2_000
MAX_BACKOFF_S = 30.0


class Releases(Protocol):
    """Where the leader's writes go."""

    def submit(self, writes: list[Write]) -> None:
        """Make them, in order."""


@dataclass(slots=True)
class View:
    """What the last cycle found, for those who ask. ``full_since_ms``: by class, since when it only waits for
    the release window; times are of the monotonic clock. ``undecided``: of what is not in ``waits``.
    """

    waits: Mapping[ClassKey, Reason] = field(default_factory=dict)
    decided_ms: int = 0
    full_since_ms: dict[ClassKey, int] = field(default_factory=dict)
    undecided: Reason = NOT_DECIDED


@dataclass(frozen=True, slots=True)
class _Basis:
    """All that a decision looks at; ``tokens``: None while the release window keeps nobody waiting."""

    changes: int
    envelope: Mapping[Cell, int]
    verdicts: Mapping[str, Verdict]
    tokens: int | None


@dataclass(frozen=True, slots=True)
class _Decided:
    """When it was last decided, on what, and when time alone would change it."""

    basis: _Basis
    at_ms: int
    next_due_ms: int | None


class Controller:
    """The admission cycles of one process.

    ``is_synced`` tells whether everything has been read. ``probes`` is None where no estimators are asked.
    """

    def __init__(
        self,
        cache: Cache,
        desk: BindingDesk,
        window: ReleaseWindow,
        probes: Probes | None,
        metrics: DispatcherMetrics,
        clock: SteadyClock,
        is_synced: Callable[[], bool],
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.view = View()
        self._cache = cache
        self._desk = desk
        self._window = window
        self._probes = probes
        self._metrics = metrics
        self._clock = clock
        self._is_synced = is_synced
        self._sleep = sleep
        self._changed = asyncio.Event()
        self._releases: Releases | None = None
        self._failures = 0
        self._has_started = False
        self._room_ms: dict[str, int] = {}
        self._next_due_ms: int | None = None
        self._decided: _Decided | None = None
        self._leader: Callable[[], str] = str

    def led_by(self, leader: Callable[[], str]) -> None:
        """Where to look for the identity of whoever leads, empty for nobody."""
        self._leader = leader

    def changed(self) -> None:
        """Something may have to be decided anew."""
        self._changed.set()

    def lead(self, releases: Releases | None) -> None:
        """From now on this process leads and writes there; with None it does so no more."""
        self._releases = releases
        self._decided = None
        if releases is None:
            self._desk.abandon()
        self.changed()

    @property
    def is_leading(self) -> bool:
        """Whether this process leads."""
        return self._releases is not None

    async def run(self) -> None:
        """Decide whenever there is something to decide, until cancelled."""
        while True:
            await self._woken()
            try:
                await self.step()
                self._failures = 0
            except Exception:
                logger.exception("an admission cycle failed")
                self._metrics.cycle_error()
                self._failures += 1
                await self._sleep(min(MAX_BACKOFF_S, 2.0 ** min(self._failures, 5)))

    async def step(self) -> None:
        """One turn: nothing is decided before everything has been read once."""
        if not self._is_synced():
            return
        await self.settled()
        if not self._is_synced():
            # Kinds of workloads have come up that are still to be read.
            return
        if not self._has_started:
            self._has_started = True
            self._log_start()
        self._cycle()

    @property
    def is_synced(self) -> bool:
        """Whether everything has been read once."""
        return self._is_synced()

    async def settled(self) -> None:
        """Bring the cache up to date, and let others run meanwhile."""
        pace = Pace(time.monotonic)
        while not self._cache.settle(SLICE):
            await pace.pause()

    async def _woken(self) -> None:
        wait_s = FLOOR_S
        if self._next_due_ms is not None:
            wait_s = min(wait_s, max(0.0, (self._next_due_ms - self._clock.now_ms()) / 1000))
        try:
            async with asyncio.timeout(wait_s):
                await self._changed.wait()
        except TimeoutError:
            pass
        else:
            await self._sleep(DEBOUNCE_S)
        self._changed.clear()

    # One cycle.

    def _cycle(self) -> None:
        started_ms = self._clock.elapsed_ms()
        now_ms, cache = self._clock.now_ms(), self._cache
        self._take_notices(started_ms)
        self._window.under_way(len(cache.in_flight), started_ms)
        if self._releases is None and started_ms - self.view.decided_ms < FOLLOWERS_EVERY_MS:
            return
        writes: list[Write] = []
        due: list[int | None] = []
        if self._releases is not None:
            self._take_stale(started_ms)
            writes += self._desk.duties()
            due.append(self._desk.next_due_ms())
            due.append(self._overdue(writes, now_ms))
            self._kicks(writes, started_ms)
        last = self._last_decision(now_ms, started_ms)
        if last is not None:
            due.append(last.next_due_ms)
        else:
            decision = decide(self.snapshot(now_ms, started_ms), now_ms)
            due.append(decision.next_due_ms)
            self._see(decision, started_ms)
            if self._releases is not None:
                admissions = self._desk.admissions(decision.actions)
                writes += admissions
                self._tell_probes(decision)
                self._note(decision, len(admissions), started_ms)
            self._metrics.cycle((self._clock.elapsed_ms() - started_ms) / 1000)
        if self._releases is not None:
            self._window.under_way(len(cache.in_flight), started_ms)
            self._releases.submit(writes)
        self._next_due_ms = min((at for at in due if at is not None), default=None)

    def _last_decision(self, now_ms: int, elapsed_ms: int) -> _Decided | None:
        """The last decision, if to decide now would find the same; for at most `FLOOR_S` it is trusted.

        Of the events that a release causes, most only tell what was known: that it was written, and placed.
        """
        last = self._decided
        if last is None or self._releases is None or elapsed_ms - last.at_ms >= 1000 * FLOOR_S:
            return None
        if last.next_due_ms is not None and now_ms >= last.next_due_ms:
            return None
        return last if last.basis == self._basis(elapsed_ms, is_full=last.basis.tokens is not None) else None

    def _note(self, decision: Decision, written: int, elapsed_ms: int) -> None:
        """Keep what a decision was based on, with its admissions made, unless there is more to decide."""
        self._decided = None
        admitted = [action for action in decision.actions if isinstance(action, Admit)]
        is_made = written == sum(len(action.item.members) for action in admitted)
        if is_made and len(admitted) == len(decision.actions):
            basis = self._basis(elapsed_ms, is_full=bool(decision.window_full))
            self._decided = _Decided(basis, elapsed_ms, decision.next_due_ms)

    def _basis(self, elapsed_ms: int, *, is_full: bool) -> _Basis:
        return _Basis(
            self._cache.changes,
            self._cache.envelope(),
            self._probes.verdicts.current(elapsed_ms) if self._probes is not None else {},
            max(0, self._window.size - len(self._cache.in_flight)) if is_full else None,
        )

    def snapshot(self, now_ms: int, elapsed_ms: int) -> Snapshot:
        """What a cycle decides from, now; the cache must be settled."""
        cache = self._cache
        queues = cache.queues.queues.cluster_queues
        states = {}
        for name, line in cache.pending.queues.items():
            queue = queues.get(name)
            if queue is not None:
                line.advance(now_ms)
                states[name] = QueueState(
                    name=name,
                    pending=line,
                    strategy=queue.strategy,
                    ageing=queue.ageing,
                    priority=queue.priority,
                    stopped=self.stopped(queue),
                )
        in_flight = len(cache.in_flight)
        return Snapshot(
            ledger=cache.charges.ledger,
            queues=states,
            envelope=cache.envelope(),
            verdicts=self._probes.verdicts.current(elapsed_ms) if self._probes is not None else {},
            tokens=max(0, self._window.size - in_flight),
            in_flight=in_flight,
            elsewhere=None if self.is_leading else asked_by(self._leader()),
        )

    def stopped(self, queue: ClusterQueue) -> Reason | None:
        """Why a queue admits nothing, if so."""
        why = self._cache.resolved.refusal(queue.name)
        return queue_stopped(queue.name, why) if why else None

    def _take_notices(self, elapsed_ms: int) -> None:
        cache = self._cache
        notices, cache.notices = cache.notices, []
        for notice in notices:
            match notice:
                case PlacedNotice():
                    if notice.released_ms:
                        took_ms = elapsed_ms - notice.released_ms
                        self._window.placed(took_ms, elapsed_ms)
                        self._metrics.placed(notice.queue, took_ms / 1000)
                    entry = cache.entries.get(notice.uid)
                    if self._probes is not None and entry is not None:
                        self._probes.placed(notice.uid, [s.cluster for s in entry.binding.placed])
                case FinishedNotice():
                    self._metrics.finished(notice.queue)
        if cache.room:
            room, cache.room = cache.room, set()
            for cluster in room:
                self._room_ms[cluster] = elapsed_ms
            if self._probes is not None:
                self._probes.verdicts.room_given(room)

    def _take_stale(self, elapsed_ms: int) -> None:
        """Take what was held back because it was older than a write of ours, if nothing newer has come."""
        for entry in self._cache.take_held_back(elapsed_ms, EXPIRY_MS):
            logger.warning(
                "binding %s: the watch never told of our write; the older state counts", entry.binding.key
            )

    def _overdue(self, writes: list[Write], now_ms: int) -> int | None:
        """Take back what should have started; when the next one is due."""
        next_ms: int | None = None
        for uid in (*self._cache.in_flight, *self._cache.parked):
            entry = self._cache.entries[uid]
            state = entry.state
            if entry.record is not None or not isinstance(state, Admitted):
                continue
            if is_quietly_parked(entry.binding, now_ms - state.record.admitted_ms):
                self._cache.park(uid)
            timeout_ms = promised_to(entry).start_timeout_ms
            if why_overdue(entry.binding, state, timeout_ms, now_ms) is not None:
                write = self._desk.take_back(uid)
                if write is not None:
                    writes.append(write)
                continue
            at_ms = due_ms(state, timeout_ms)
            if at_ms > now_ms and (next_ms is None or at_ms < next_ms):
                next_ms = at_ms
        return next_ms

    def _kicks(self, writes: list[Write], elapsed_ms: int) -> None:
        parked = []
        for uid in self._cache.parked:
            entry = self._cache.entries[uid]
            if not entry.binding.placed and not entry.is_writing:
                parked.append(self._parked(entry, elapsed_ms))
        uids, _ = due_kicks(parked, elapsed_ms, self._window.size - len(self._cache.in_flight))
        for uid in uids:
            write = self._desk.kick(uid)
            if write is not None:
                writes.append(write)

    def _parked(self, entry: Entry, elapsed_ms: int) -> Parked:
        binding, record = entry.binding, entry.binding.record
        clusters = self._cache.fleet.permitted(binding.placement) if binding.placement is not None else ()
        if not entry.parked_ms:
            entry.parked_ms = elapsed_ms
        order = (-record.priority, record.enqueued_ms) if record is not None else (0, 0)
        return Parked(
            uid=entry.uid,
            since_ms=entry.parked_ms,
            room_ms=max((self._room_ms.get(cluster, 0) for cluster in clusters), default=0),
            order=(*order, entry.uid),
            kicked_ms=entry.kicked_ms,
            kicks=entry.kicks,
        )

    def _tell_probes(self, decision: Decision) -> None:
        if self._probes is None:
            return
        self._probes.retain(self._cache.in_flight | self._cache.parked)
        for action in decision.actions:
            match action:
                case Admit(item=item) if item.shape.probe:
                    entries = self._cache.entries
                    # By its name the estimators would take what runs for the growth that is on its way.
                    names = {
                        uid: "" if item.is_growth else entries[uid].binding.workload.name
                        for uid in item.members
                    }
                    self._probes.released(item.shape.probe, names)
                case Probe(item=item):
                    self._probes.ask(item, self._subjects(item))
                case _:
                    pass

    def _subjects(self, item: Item) -> list[Subject]:
        subjects = []
        for uid in item.members:
            entry = self._cache.entries[uid]
            placement = entry.binding.placement
            if placement is not None:
                fleet = self._cache.fleet
                copies = fleet.copies(placement, entry.binding.demand)
                permitted = fleet.permitted(placement)
                subjects.append(Subject(entry.binding, permitted, copies, item.is_growth))
        return subjects

    def _see(self, decision: Decision, elapsed_ms: int) -> None:
        since = self.view.full_since_ms
        full = {key: since.get(key, elapsed_ms) for key in decision.window_full}
        undecided = NOT_DECIDED if self.is_leading else released_by(self._leader())
        self.view = View(decision.waits, elapsed_ms, full, undecided)

    def _log_start(self) -> None:
        """Say once what was found, above all where more is charged than the quota allows."""
        cache = self._cache
        ledger, tree = cache.charges.ledger, cache.resolved.tree
        over = []
        for name, path in sorted(tree.paths.items()):
            for cell in range(len(cache.table)):
                if ledger.balance(name, cell) < -tree.limits(cell).borrowing[path[0]]:
                    flavor, resource = cache.table.name(cell)
                    over.append(f"{name}: {resource} of flavor {flavor}")
        states = Counter(type(entry.state).__name__ for entry in cache.entries.values())
        logger.info("everything has been read", extra={"bindings": len(cache.entries), **states})
        if over:
            logger.warning("more is charged than quotas allow: %s", "; ".join(over[:20]))
