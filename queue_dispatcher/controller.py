"""The loop: when something has changed, take a turn, and have carried out what follows from it.

It runs on every replica, so that followers answer questions and take over warm; only the leader has somebody
to hand writes to. It is woken by events, at the latest after a second, and waits for more of them: a few
milliseconds, or twice as long as the last turn took, so that turns take a third of the time at most. A turn
is taken in slices, between which everything else goes on that does not change what it decides about: to
settle the cache and to prepare a write wait until it has ended. A turn that fails by a defect of ours is
logged and tried again later, and stops nothing else.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable
from typing import Protocol

from fairway.kube.pace import Pace, in_slices
from fairway.service.lifecycle import collect_young
from queue_dispatcher.bindings.objects import ResourceBinding
from queue_dispatcher.bindings.phase import Moment
from queue_dispatcher.clock import SteadyClock
from queue_dispatcher.estimates.estimates import Probing
from queue_dispatcher.metrics import DispatcherMetrics
from queue_dispatcher.turn.events import Event, Led, Saw, Wrote
from queue_dispatcher.turn.notices import Notice
from queue_dispatcher.turn.outcomes import hear
from queue_dispatcher.turn.preparation import prepare
from queue_dispatcher.turn.state import TurnState, View
from queue_dispatcher.turn.turn import turning
from queue_dispatcher.turn.writes import Fate, Prepared, Write

logger = logging.getLogger(__name__)

FLOOR_S = 1.0
DEBOUNCE_S = 0.003
MAX_DEBOUNCE_S = 0.25
SLICE = 50
"""Bindings derived before others may run: a few milliseconds."""
MAX_BACKOFF_S = 30.0


class Releases(Protocol):
    """Where the leader's writes go."""

    def submit(self, writes: Iterable[Write]) -> None:
        """Make them, in order."""


class Questions(Protocol):
    """Where the leader's questions go."""

    def submit(self, probings: Iterable[Probing]) -> None:
        """Ask them."""


class Controller:
    """The turns of one process.

    ``is_synced`` tells whether everything has been read. ``questions`` is None where no estimators are asked.
    ``tell`` is given what there is to tell people and metrics, as it comes.
    """

    def __init__(
        self,
        state: TurnState,
        metrics: DispatcherMetrics,
        clock: SteadyClock,
        is_synced: Callable[[], bool],
        tell: Callable[[Notice], None],
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.state = state
        self.questions: Questions | None = None
        self._metrics = metrics
        self._clock = clock
        self._is_synced = is_synced
        self._tell = tell
        self._sleep = sleep
        self._changed = asyncio.Event()
        self._at_rest = asyncio.Event()
        self._at_rest.set()
        self._releases: Releases | None = None
        self._failures = 0
        self._has_started = False
        self._next_due_ms: int | None = None
        self._took_s = 0.0
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
        self.hear(Led(releases is not None))

    @property
    def is_leading(self) -> bool:
        """Whether this process leads."""
        return self.state.is_leading

    @property
    def view(self) -> View:
        """What the last turn found."""
        return self.state.view

    @property
    def is_synced(self) -> bool:
        """Whether everything has been read once."""
        return self._is_synced()

    def hear(self, event: Event) -> None:
        """Take an event in at once, and decide anew soon."""
        hear(self.state, event, self.now())
        self._tell_all()
        self.changed()

    def now(self) -> Moment:
        """The moment by both clocks."""
        return Moment(self._clock.now_ms(), self._clock.elapsed_ms())

    @property
    def is_turning(self) -> bool:
        """Whether a turn is under way; any thread may ask."""
        return not self._at_rest.is_set()

    # What the executor asks and tells.

    async def at_rest(self) -> None:
        """Return once no turn is under way."""
        while not self._at_rest.is_set():
            await self._at_rest.wait()

    def prepare(self, write: Write) -> Prepared | None:
        """See `queue_dispatcher.release.executor.Reconciler`."""
        return prepare(self.state, write, self.now())

    def saw(self, obj: ResourceBinding) -> None:
        """See `queue_dispatcher.release.executor.Reconciler`."""
        self.hear(Saw(obj))

    def wrote(self, write: Write, fate: Fate, message: str = "") -> None:
        """See `queue_dispatcher.release.executor.Reconciler`."""
        self.hear(Wrote(write, fate, message))

    # Turns.

    async def run(self) -> None:
        """Take turns whenever there is something to decide, until cancelled."""
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
            _log_start(self.state)
        self._at_rest.clear()
        try:
            await in_slices(self._turn())
        finally:
            self._at_rest.set()
        collect_young()

    async def settled(self) -> None:
        """Bring the cache up to date, and let others run meanwhile."""
        pace = Pace(time.monotonic)
        await self.at_rest()
        self.state.advance(self.now())
        while not self.state.cache.settle(SLICE):
            await pace.pause()
            await self.at_rest()

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
            await self._sleep(debounce_s(self._took_s))
        self._changed.clear()

    def _turn(self) -> Generator[None, None, None]:
        """One turn in steps, and what follows from it carried out."""
        started = self.now()
        self.state.leader = self._leader()
        turned = yield from turning(self.state, (), started)
        self._took_s = (self._clock.elapsed_ms() - started.elapsed_ms) / 1000
        if turned.has_decided:
            self._metrics.cycle(self._took_s)
        if self._releases is not None:
            self._releases.submit(turned.writes)
        if self.questions is not None:
            self.questions.submit(turned.probings)
        self._next_due_ms = turned.next_due_ms
        self._tell_all()

    def _tell_all(self) -> None:
        notices, self.state.notices = self.state.notices, []
        for notice in notices:
            self._tell(notice)


def debounce_s(took_s: float) -> float:
    """For how long events are collected before a turn, by how long the last one took."""
    return min(max(DEBOUNCE_S, 2 * took_s), MAX_DEBOUNCE_S)


def _log_start(state: TurnState) -> None:
    """Say once what was found, above all where more is charged than the quota allows."""
    cache = state.cache
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
