"""A replica of the dispatcher: a process that is started anew when it ended, and what it tells."""

import random
from collections.abc import Callable

from fairway.accelerators.catalogue import Catalogue
from fairway.visibility import QueueList
from queue_dispatcher.cache.tally import state_name
from queue_dispatcher.cycle.actions import Decision
from queue_dispatcher.cycle.earliest import Earliest
from queue_dispatcher.cycle.reasons import Reason
from queue_dispatcher.cycle.reservation import Reservation
from queue_dispatcher.cycle.snapshot import Snapshot
from queue_dispatcher.turn.writes import Write
from queue_dispatcher.visibility.notes import notes_of
from queue_dispatcher.visibility.views import Views
from queue_dispatcher.visibility.waiting import waiting_of
from sandbox.simulation.api_server import ApiServer
from sandbox.simulation.dispatcher import Estimators, Run
from sandbox.simulation.following import Decoder
from sandbox.simulation.process import Host


def _unseen(snapshot: Snapshot, decision: Decision, now_ms: int) -> None:
    """Nobody looks."""


def _unheard(replica: str) -> None:
    """Nobody listens."""


def _unread(writes: tuple[Write, ...], under_way: frozenset[str]) -> None:
    """Nobody reads."""


class Replica:
    """One replica of the dispatcher: a process that is started anew when it ended. ``rng`` is its chance.

    ``observe`` is told the purpose and the outcome of each write; ``wait_s``: see `Estimates`;
    ``preplaces``, ``guides``: see `Cache`.
    """

    def __init__(
        self,
        name: str,
        api: ApiServer,
        catalogue: Catalogue,
        decoder: Decoder,
        rng: random.Random,
        *,
        estimators: Estimators | None = None,
        preplaces: bool = True,
        guides: bool = True,
        wait_s: float = 60.0,
        observe: Callable[[str, str], None] = lambda purpose, outcome: None,
    ) -> None:
        self.name, self.api, self.catalogue, self.decoder, self.rng = name, api, catalogue, decoder, rng
        self.estimators, self.wait_s, self.observe = estimators, wait_s, observe
        self.preplaces, self.guides = preplaces, guides
        self.host = Host(api.timeline)
        self.slow_ms = 0
        self.decided = _unseen
        """Told of each decision: from what, what, and when."""
        self.turned: Callable[[str], None] = _unheard
        """Told its name at the beginning of each turn."""
        self.submitted = _unread
        """Told of the writes of each turn, and which bindings were being written when it made them."""
        self._starts = 0
        self._run: Run | None = None

    def start(self) -> None:
        """Begin a process, unless there is one."""
        if self._run is None:
            self._starts += 1
            self._run = Run(self, self._starts)

    def kill(self) -> None:
        """End the process where it stands."""
        if self._run is not None:
            self._run.end()
            self._run = None

    def restart_after(self, delay_ms: int) -> None:
        """Kill it, and let another come up."""
        self.kill()
        self.api.timeline.after(delay_ms, self.start)

    def pause(self) -> None:
        """Stop the process without ending it."""
        if self._run is not None:
            self._run.process.pause()

    def go_on(self) -> None:
        """Let a paused process go on."""
        if self._run is not None:
            self._run.process.go_on()

    def delay_ms(self) -> int:
        """How long the next request, or its answer, is on its way."""
        return self.rng.randint(1, 8) + (self.rng.randint(0, self.slow_ms) if self.slow_ms else 0)

    @property
    def is_leading(self) -> bool:
        """Whether its process believes that it leads, and may write."""
        return self._run is not None and self._run.candidate.may_write()

    @property
    def is_up(self) -> bool:
        """Whether there is a process, and it is not paused."""
        return self._run is not None and not self._run.process.is_paused

    def now_ms(self) -> int:
        """The time of day as its process has it, epoch milliseconds; of its host where there is none."""
        return self._run.clock.now_ms() if self._run is not None else int(self.host.wall_s() * 1000)

    def waits(self) -> dict[str, Reason]:
        """Why each binding waits, by key, as the process says now."""
        if self._run is None:
            return {}
        cache, view, now_ms = self._run.settled(), self._run.turns.view, self._run.clock.now_ms()
        told = ((entry, waiting_of(cache, view, entry, now_ms)) for entry in cache.entries.values())
        return {entry.binding.key: reason for entry, reason in told if reason is not None}

    def reservations(self) -> tuple[Reservation, ...]:
        """What is kept for whom, as the process decided last."""
        return self._run.turns.state.reservations.made if self._run is not None else ()

    def held_rooms(self) -> dict[str, Earliest]:
        """By uid of who waits, the room that its estimators keep."""
        estimates = self._run.turns.state.estimates if self._run is not None else None
        if estimates is None:
            return {}
        return {uid: held.earliest for uid, held in estimates.reservations()}

    def displacing(self) -> frozenset[str]:
        """By uid, those for whom it displaces others."""
        return frozenset(self._run.turns.state.displacements) if self._run is not None else frozenset()

    def states(self) -> dict[str, str]:
        """What whoever looks is told of each binding, by key: its state in one word, and notes."""
        if self._run is None:
            return {}
        cache, now_ms = self._run.settled(), self._run.clock.now_ms()
        return {
            entry.binding.key: f"{state_name(entry)}: {notes_of(entry, now_ms)}"
            for entry in cache.entries.values()
        }

    def queues(self) -> QueueList | None:
        """What it tells of queues; None while it has not heard of all that there is, or is writing."""
        if self._run is None or not self._run.is_current:
            return None
        cache, turns = self._run.settled(), self._run.turns
        views = Views(cache, turns.view, self._run.clock.now_ms())
        window = turns.state.window.size
        return views.queues(in_flight=len(cache.running.in_flight), window=window, is_leader=turns.is_leading)
