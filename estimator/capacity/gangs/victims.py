"""Which workloads have to end for a gang to fit, of those that may be ended.

As Kueue's preemption and kube-scheduler's: first the shortest run of them, the most preferred first, without
which the gang fits; then all of that run that need not end after all go on, the least preferred first. What
is left is minimal: with any one of them it does not fit. What leaves by itself is taken to be gone before.

Fewer pods that leave never make room that more would not, so a whole run goes on at once where that does, and
how long it is, is found by doubling and halves: some probes for each workload that is left, however many may
go on.

Of a workload that may run on with fewer pods each pod is one more that goes, in the order in which they do;
where that is not known, the gang has to fit whichever they are.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from estimator.capacity.assumed import OutOfTime
from estimator.capacity.departures import Chosen, Loose
from estimator.capacity.gangs.coming_room import ComingRoom
from estimator.capacity.gangs.earliest import earliest
from estimator.capacity.gangs.placements import EarliestRoom
from estimator.capacity.gangs.ways import Nodes, ways
from estimator.capacity.sets.first_fit import Placement
from estimator.cluster.columns import IntVector
from fairway.workloads.workload_name import WorkloadName


def victims(coming: ComingRoom, chosen: Chosen) -> EarliestRoom | None:
    """Which have to end, and where all copies go then; None where they do not fit even without all of them.

    ``coming``: room without ``chosen.pods``, in which the gang does not fit now. No workloads, but a time,
    where it fits as soon as what leaves by itself has left. Raises OutOfTime as long as no answer is known.
    """
    soon = earliest(coming, chosen.leaving)
    if soon is not None or not chosen.choices:
        return soon
    search = _Search(coming, chosen)
    if not search.shortest_run():
        return None
    try:
        search.let_go_on()
        may_be_fewer = not coming.is_proven
    except OutOfTime:
        may_be_fewer = True
    gone = search.gone
    try:
        placement = coming.sparing(gone)
    except OutOfTime:
        placement = search.placement
    ending = [chosen.choices[rank] for rank in sorted(search.ending)]
    gives = search.gives()
    return EarliestRoom(
        max(one.at_ms for one in ending),
        len(gone) - len(chosen.leaving.pods),
        coming.named(placement),
        tuple(gives),
        may_be_fewer,
        tuple(gives.values()) if any(gives.values()) else (),
    )


class _Search:
    """``ending``: ranks of those whose end is known to be enough; ``placement``: where all copies go then, in
    the last of the ways in which they may be ``gone``.
    """

    def __init__(self, coming: ComingRoom, chosen: Chosen) -> None:
        self._coming, self._chosen = coming, chosen
        self.ending: Sequence[int] = ()
        self.placement: Placement = {}
        self.gone = self._gone(())

    def gives(self) -> dict[WorkloadName, int]:
        """By workload that has to end, or to run on with fewer pods, how many; 0 for all."""
        chosen, found = self._chosen, dict[WorkloadName, int]()
        for rank in sorted(self.ending):
            step, name = self._step(rank), chosen.choices[rank].workload
            found[name] = step and max(step, found.get(name, step))
        ends = {chosen.choices[rank].workload for rank in self.ending if not self._step(rank)}
        return {name: 0 if name in ends else step for name, step in found.items()}

    def shortest_run(self) -> bool:
        """Find how many of the first have to end at least; False where the end of all is not enough."""
        low, high = 0, len(self._chosen.choices)
        if not self._is_enough(range(high)):
            return False
        while low + 1 < high:
            middle = (low + high) // 2
            if self._is_enough(range(middle)):
                high = middle
            else:
                low = middle
        return True

    def let_go_on(self) -> None:
        """Of that run, let go on who can."""
        undecided = list(self.ending)
        needed = self._with_steps_before(undecided)
        while undecided:
            # Of the last that are not decided so many can go on, and no more than ``high``.
            low, high, is_bounded = 0, len(undecided), False
            while low < high:
                count = (low + high + 1) // 2 if is_bounded else min(2 * low + 1, high)
                if self._is_enough((*undecided[: len(undecided) - count], *needed)):
                    low = count
                else:
                    high, is_bounded = count - 1, True
            del undecided[len(undecided) - low :]
            if undecided:
                needed += self._with_steps_before(undecided)

    def _with_steps_before(self, undecided: list[int]) -> list[int]:
        """The last of these, taken off them, and where it is one of several pods that go, those before it."""
        taken = [undecided.pop()]
        while undecided and self._step(taken[-1]) > 1 and self._is_step_before(undecided[-1], taken[-1]):
            taken.append(undecided.pop())
        return taken

    def _is_step_before(self, rank: int, other: int) -> bool:
        choices = self._chosen.choices
        return self._step(rank) > 0 and choices[rank] is choices[other]

    def _step(self, rank: int) -> int:
        return self._chosen.steps[rank] if self._chosen.steps else 0

    def _is_enough(self, ending: Sequence[int]) -> bool:
        found: tuple[Placement, IntVector] | None = None
        loose, coming = self._loose(ending), self._coming
        by_node = partial(coming.by_node, loose) if loose else _of_nobody
        for gone in ways(self._gone(ending), loose, by_node):
            placement = coming.placed_without(gone)
            if placement is None:
                return False
            found = placement, gone
        assert found is not None
        self.ending, (self.placement, self.gone) = tuple(ending), found
        return True

    def _loose(self, ending: Sequence[int]) -> list[Loose]:
        """Who goes besides of each workload that is to run on with so many pods fewer."""
        if not self._chosen.loose:
            return []
        last = {id(self._chosen.choices[rank]): rank for rank in sorted(ending)}
        return [one for rank in last.values() if (one := self._chosen.loose[rank]) is not None]

    def _gone(self, ending: Sequence[int]) -> IntVector:
        own = [self._chosen.of[rank] for rank in ending]
        return np.unique(np.concatenate([np.arange(len(self._chosen.leaving.pods)), *own]))


def _of_nobody(gone: IntVector, places: IntVector) -> Nodes:
    return ()
