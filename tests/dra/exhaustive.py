"""Allocation by trying everything, for small nodes; shares no code with what it checks.

`solutions` lists every way to serve one pod, in kube-scheduler's order. Taking the first again and again is
what kube-scheduler does; the best over all choices is what nobody can beat.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Gpu:
    """A device: its model and root (None: lacks it), what it takes of two counters, whether it is shared."""

    model: int
    root: int | None
    counters: tuple[int, int] = (0, 0)
    shared: bool = False
    memory: int = 4
    held: bool = False


@dataclass(frozen=True)
class Want:
    """Devices of a model (None: any), a count or all of them, with so much memory of each."""

    count: int | None
    model: int | None = None
    memory: int | None = None
    admin: bool = False


@dataclass(frozen=True)
class Pod:
    """Requests, each a list of alternatives; by number those with one root for all, or none twice."""

    requests: tuple[tuple[Want, ...], ...]
    alike: frozenset[int] = frozenset()
    unlike: frozenset[int] = frozenset()


@dataclass(frozen=True)
class State:
    """Devices held whole, and the memory taken of each; -1: no share was ever taken."""

    whole: frozenset[int]
    taken: tuple[int, ...]


class _Abort(Exception):
    pass


class Cluster:
    """One node."""

    def __init__(self, gpus: tuple[Gpu, ...], counters: tuple[int, int], pod: Pod) -> None:
        self.gpus, self.counters, self.pod = gpus, counters, pod
        held = frozenset(i for i, gpu in enumerate(gpus) if gpu.held)
        self.start = State(held, (-1,) * len(gpus))

    def first_fit(self, limit: int) -> int:
        state, count = self.start, 0
        while count < limit:
            following = next(self.solutions(state), None)
            if following is None:
                return count
            if following == state:
                return limit
            state, count = following, count + 1
        return count

    def best(self, limit: int) -> int:
        @cache
        def reach(state: State, left: int) -> int:
            if left == 0:
                return 0
            found = 0
            for following in set(self.solutions(state)):
                if following == state:
                    return left
                found = max(found, 1 + reach(following, left - 1))
                if found == left:
                    break
            return found

        return reach(self.start, limit)

    def solutions(self, state: State) -> Iterator[State]:
        try:
            yield from self._requests(0, state, (), state)
        except _Abort:
            return

    def _requests(
        self, index: int, state: State, picks: tuple[tuple[int, int, Want], ...], before: State
    ) -> Iterator[State]:
        if index == len(self.pod.requests):
            yield self._kept(before, picks)
            return
        for want in self.pod.requests[index]:
            if want.count is None:
                everything = [
                    i for i in range(len(self.gpus)) if self._matches(want, i) and self._room(want, i, before)
                ]
                if everything:
                    yield from self._all(index, want, everything, state, picks, before)
            else:
                yield from self._some(index, want, 0, want.count, state, picks, before)

    def _all(
        self,
        index: int,
        want: Want,
        left: list[int],
        state: State,
        picks: tuple[tuple[int, int, Want], ...],
        before: State,
    ) -> Iterator[State]:
        if not left:
            yield from self._requests(index + 1, state, picks, before)
            return
        if self._free(want, left[0], state, picks):
            if not self._allowed(index, left[0], picks):
                raise _Abort
            taken = self._take(want, left[0], state)
            yield from self._all(index, want, left[1:], taken, (*picks, (index, left[0], want)), before)

    def _some(
        self,
        index: int,
        want: Want,
        start: int,
        left: int,
        state: State,
        picks: tuple[tuple[int, int, Want], ...],
        before: State,
    ) -> Iterator[State]:
        if left == 0:
            yield from self._requests(index + 1, state, picks, before)
            return
        for i in range(start, len(self.gpus)):
            if (
                self._matches(want, i)
                and self._free(want, i, state, picks)
                and self._allowed(index, i, picks)
            ):
                taken = self._take(want, i, state)
                yield from self._some(index, want, i + 1, left - 1, taken, (*picks, (index, i, want)), before)

    def _matches(self, want: Want, i: int) -> bool:
        amount = self._amount(want, i)
        return want.model in (None, self.gpus[i].model) and amount <= self.gpus[i].memory

    def _amount(self, want: Want, i: int) -> int:
        return self.gpus[i].memory if want.memory is None else want.memory

    def _room(self, want: Want, i: int, state: State) -> bool:
        return max(0, state.taken[i]) + self._amount(want, i) <= self.gpus[i].memory

    def _free(self, want: Want, i: int, state: State, picks: tuple[tuple[int, int, Want], ...]) -> bool:
        gpu = self.gpus[i]
        if not want.admin and i in state.whole:
            return False
        if not gpu.shared and any(i == other for _, other, _ in picks):
            return False
        if gpu.shared and not self._room(want, i, state):
            return False
        if gpu.shared and state.taken[i] >= 0:
            return True
        used = [
            sum(g.counters[c] for j, g in enumerate(self.gpus) if j in state.whole or state.taken[j] >= 0)
            + sum(self.gpus[j].counters[c] for _, j, w in picks if w.admin and not self.gpus[j].shared)
            for c in (0, 1)
        ]
        return all(
            u + n <= have or n == 0 for u, n, have in zip(used, gpu.counters, self.counters, strict=True)
        )

    def _allowed(self, index: int, i: int, picks: tuple[tuple[int, int, Want], ...]) -> bool:
        root = self.gpus[i].root
        if index in self.pod.alike:
            others = [self.gpus[j].root for at, j, _ in picks if at in self.pod.alike]
            if root is None or any(root != other for other in others):
                return False
        if index in self.pod.unlike:
            others = [self.gpus[j].root for at, j, _ in picks if at in self.pod.unlike]
            if root is None or root in others:
                return False
        return True

    def _take(self, want: Want, i: int, state: State) -> State:
        if self.gpus[i].shared:
            taken = list(state.taken)
            taken[i] = max(0, taken[i]) + self._amount(want, i)
            return State(state.whole, tuple(taken))
        return state if want.admin else State(state.whole | {i}, state.taken)

    def _kept(self, before: State, picks: tuple[tuple[int, int, Want], ...]) -> State:
        state = before
        for _, i, want in picks:
            if not want.admin:
                state = self._take(want, i, state)
        return state
