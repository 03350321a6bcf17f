"""The controller and its cycles in virtual time: turns that may be interrupted, and told of."""

from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial

from prometheus_client import CollectorRegistry

from queue_dispatcher.clock import SteadyClock
from queue_dispatcher.controller import Controller, Releases
from queue_dispatcher.cycle.actions import Decision
from queue_dispatcher.cycle.decide import AdmissionCycles
from queue_dispatcher.cycle.snapshot import Snapshot
from queue_dispatcher.metrics import DispatcherMetrics
from queue_dispatcher.turn.notices import Notice
from queue_dispatcher.turn.state import TurnState
from queue_dispatcher.turn.writes import Fate, Prepared, Write
from sandbox.simulation.coroutines import Later


def _metrics() -> DispatcherMetrics:
    # Nobody scrapes it: one for all.
    return DispatcherMetrics(CollectorRegistry(), version="simulated")


class Turns(Controller):
    """The controller, woken by the timeline instead of an event loop."""

    wake: Callable[[], None]
    soon: Callable[[Callable[[], None]], None]
    submitted: Callable[[tuple[Write, ...], frozenset[str]], None]
    """Told of the writes of each turn, and which bindings were being written when it made them."""
    is_turning = False
    """Whether a turn has begun and not ended yet."""

    def __init__(self, state: TurnState, clock: SteadyClock, is_synced: Callable[[], bool]) -> None:
        super().__init__(state, _metrics(), clock, is_synced, _untold)
        self._resting: list[Later[None]] = []
        self._releasing: Releases | None = None
        self._under_way: set[str] = set()

    def lead(self, releases: Releases | None) -> None:
        """See `Controller.lead`."""
        self._releasing = releases
        self._under_way = set()
        super().lead(self if releases is not None else None)

    def submit(self, writes: Iterable[Write]) -> None:
        """See `queue_dispatcher.controller.Releases`."""
        assert self._releasing is not None
        made = tuple(writes)
        self.submitted(made, frozenset(self._under_way))
        self._under_way |= {write.uid for write in made}
        self._releasing.submit(made)

    def prepare(self, write: Write) -> Prepared | None:
        """See `Controller.prepare`."""
        prepared = super().prepare(write)
        if prepared is None:
            self._under_way.discard(write.uid)
        return prepared

    def wrote(self, write: Write, fate: Fate, message: str = "") -> None:
        """See `Controller.wrote`."""
        self._under_way.discard(write.uid)
        super().wrote(write, fate, message)

    def changed(self) -> None:
        """See `Controller.changed`."""
        self.wake()

    @property
    def next_due_ms(self) -> int | None:
        """When time alone calls for a turn, by its own clock."""
        return self._next_due_ms

    def take(self) -> Iterator[None]:
        """What `Controller.step` does, in steps between which others may be let run."""
        if not self._is_synced():
            return
        self.settle()
        if not self._is_synced():
            return
        self.is_turning = True
        yield from self._turn()
        self.is_turning = False
        resting, self._resting = self._resting, []
        for one in resting:
            self.soon(partial(one.set, None))

    def settle(self) -> None:
        """As `Controller.settled`."""
        self.state.advance(self.now())
        self.state.cache.settle()

    async def at_rest(self) -> None:
        """See `Controller.at_rest`."""
        while self.is_turning:
            later = Later[None]()
            self._resting.append(later)
            await later


class Cycles(AdmissionCycles):
    """Admission cycles, each of which somebody is told of."""

    def __init__(self, tell: Callable[[Snapshot, Decision, int], None]) -> None:
        super().__init__()
        self._tell = tell

    def steps(self, snapshot: Snapshot, now_ms: int) -> Generator[None, None, Decision]:
        """See `AdmissionCycles.steps`."""
        decision = yield from super().steps(snapshot, now_ms)
        self._tell(snapshot, decision, now_ms)
        return decision


def _untold(notice: Notice) -> None:
    """Nobody is told."""
