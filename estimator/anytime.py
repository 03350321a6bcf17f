"""Hard questions: the best answer there is until the deadline, as of an anytime algorithm.

A solver is an iterator of answers. The first one is what a greedy placement finds, and everybody's first
answer goes before anybody's better one. Then the solver goes on for as long as it may and a thread is free.
Whenever time is up, what it has found by then is the answer, and an answer found is never given up for a
worse one. A solver whose question has been answered does not start, and one at work is told to end, as is
one that looks for a better answer while others wait for their first.

What is believed to take no more than a moment is solved on the event loop: how long work takes is measured
while working, and a clock ends it where that was wrong.
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Generic, TypeVar

from estimator.capacity.assumed import OutOfTime
from estimator.capacity.budget import Budget, Expired
from estimator.fair_queue import FairQueue

_A = TypeVar("_A")

FIRST_AT_ONCE, BETTER_AT_ONCE = 2, 1
"""Threads for first answers, and for better ones: computing, they all share one interpreter."""

_IMPROVES_WITHIN_S = 1.0
"""A better answer is looked for so long after the question: many clusters asked at once answer soon."""
_SEARCH_S = 0.2
# Of the time for an answer, what is left for its way back from the thread.
_SHARE_FOR_THE_WAY = 0.1
_AT_MOST_FOR_THE_WAY_S = 0.05
_MOMENT_S = 0.002
_NEW_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Terms:
    """How long a solver may go on.

    ``expired``: the answer is due. ``search`` is time for a better one than the first; to be called once the
    first has been given, since it counts from then.
    """

    expired: Expired
    search: Callable[[], Budget]


Solver = Callable[[Terms], Iterator[_A]]


@dataclass(frozen=True, slots=True)
class Problem(Generic[_A]):
    """A question to be solved.

    ``now`` solves it from live state, on the event loop; None where it might not look at its clock for long.
    ``later`` takes a copy there, and gives a solver for any thread. ``size`` is how much work a first answer
    is, as a multiple of what is alike for all of one ``kind``. ``better`` makes the best of two answers, and
    ``is_final`` tells whether no better one exists.
    """

    caller: str
    kind: str
    size: int
    now: Solver[_A] | None
    later: Callable[[], Solver[_A]]
    better: Callable[[_A, _A], _A]
    is_final: Callable[[_A], bool]


class Anytime:
    """Solves problems on threads of ``executor``. ``clock`` is monotonic, in seconds."""

    def __init__(self, executor: Executor, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._first = FairQueue(executor, FIRST_AT_ONCE)
        self._better = FairQueue(executor, BETTER_AT_ONCE, after=self._first)
        self._each_s: dict[str, float] = {}
        self._had_a_moment = False

    async def best(self, problem: Problem[_A], deadline_s: float) -> _A | None:
        """The best answer found by ``deadline_s``, None if there is none. Raises OutOfTime, as solvers do."""
        asked_s = self._clock()
        attempt = _Attempt(problem, self._clock, asked_s, deadline_s, lambda: self._first.is_crowded)
        self._in_a_moment(attempt)
        try:
            async with asyncio.timeout(max(0.0, deadline_s - asked_s)):
                await self._on_threads(attempt, asked_s)
        except TimeoutError:
            pass
        finally:
            attempt.ended = True
        return attempt.best

    async def _on_threads(self, attempt: "_Attempt[_A]", asked_s: float) -> None:
        if attempt.best is None:
            await self._first.run(attempt.problem.caller, attempt.first_later)
            self._note(attempt)
        if attempt.is_final:
            return
        async with asyncio.timeout(max(0.0, asked_s + _IMPROVES_WITHIN_S - self._clock())):
            await self._better.run(attempt.problem.caller, attempt.better_later)

    def _in_a_moment(self, attempt: "_Attempt[_A]") -> None:
        """Find the first answer on the event loop if that should be quick: one in each turn of the loop."""
        problem = attempt.problem
        if problem.now is None or self._had_a_moment:
            return
        if self._each_s.get(problem.kind, 0.0) * problem.size > _MOMENT_S:
            return
        self._had_a_moment = True
        asyncio.get_running_loop().call_soon(self._new_turn)
        attempt.first_now(problem.now)
        self._note(attempt)

    def _new_turn(self) -> None:
        self._had_a_moment = False

    def _note(self, attempt: "_Attempt[_A]") -> None:
        kind, each_s = attempt.problem.kind, attempt.took_s / max(1, attempt.problem.size)
        known_s = self._each_s.get(kind, each_s)
        self._each_s[kind] = known_s + _NEW_SHARE * (each_s - known_s)


class _Attempt(Generic[_A]):
    """One problem on its way to an answer. Whichever thread is at work writes ``best``; the loop reads it."""

    def __init__(
        self,
        problem: Problem[_A],
        clock: Callable[[], float],
        asked_s: float,
        deadline_s: float,
        others_wait: Callable[[], bool],
    ) -> None:
        self.problem = problem
        self.best: _A | None = None
        self.ended = False
        self.took_s = 0.0
        self._clock = clock
        self._others_wait = others_wait
        way_s = min(_AT_MOST_FOR_THE_WAY_S, _SHARE_FOR_THE_WAY * (deadline_s - asked_s))
        self._due_s = deadline_s - way_s
        self._search_ends_s = min(self._due_s, asked_s + _IMPROVES_WITHIN_S - way_s)
        self._answers: Iterator[_A] | None = None

    @property
    def is_final(self) -> bool:
        """Whether there is nothing better to be found."""
        return self.best is None or self.problem.is_final(self.best)

    def first_now(self, solver: Solver[_A]) -> None:
        """Find the first answer within a moment; one that was cut short does not count."""
        started_s = self._clock()
        cut = False

        def expired() -> bool:
            nonlocal cut
            cut = cut or self._clock() >= min(self._due_s, started_s + _MOMENT_S)
            return cut

        try:
            found = next(solver(Terms(expired, self._search)), None)
        except OutOfTime:
            found = None
        self.took_s = self._clock() - started_s
        if not cut:
            self.best = found

    def first_later(self) -> Callable[[], None]:
        """The work of finding the first answer."""
        self._answers = self.problem.later()(Terms(self._expired, self._search))
        return self._first

    def better_later(self) -> Callable[[], None]:
        """The work of finding better ones."""
        if self._answers is None:
            self.first_later()
        return self._rest

    def _first(self) -> None:
        assert self._answers is not None
        started_s = self._clock()
        self._keep(next(self._answers, None))
        self.took_s = self._clock() - started_s

    def _rest(self) -> None:
        assert self._answers is not None
        for found in self._answers:
            self._keep(found)
            if self.is_final or self._expired():
                return

    def _keep(self, found: _A | None) -> None:
        if found is not None:
            self.best = found if self.best is None else self.problem.better(self.best, found)

    def _expired(self) -> bool:
        return self.ended or self._clock() >= self._due_s

    def _search(self) -> Budget:
        now_s = self._clock()
        return Budget(self._search_clock, min(now_s + _SEARCH_S, self._search_ends_s))

    def _search_clock(self) -> float:
        return self._search_ends_s if self.ended or self._others_wait() else self._clock()
