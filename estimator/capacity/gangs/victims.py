"""Which workloads have to end for a gang to fit, of those that may be ended.

As Kueue's preemption and kube-scheduler's: first the shortest run of them, the most preferred first, without
which the gang fits; then all of that run that need not end after all go on, the least preferred first. What
is left is minimal: with any one of them it does not fit. What leaves by itself is taken to be gone before.

Fewer pods that leave never make room that more would not, so a whole run goes on at once where that does, and
how long it is, is found by doubling and halves: some probes for each workload that is left, however many may
go on.
"""

from collections.abc import Sequence

import numpy as np

from estimator.capacity.assumed import OutOfTime
from estimator.capacity.departures import Chosen
from estimator.capacity.gangs.coming_room import ComingRoom
from estimator.capacity.gangs.earliest import earliest
from estimator.capacity.gangs.placements import EarliestRoom
from estimator.capacity.sets.first_fit import Placement
from estimator.cluster.columns import IntVector


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
    return EarliestRoom(
        max(one.at_ms for one in ending),
        len(gone) - len(chosen.leaving.pods),
        coming.named(placement),
        tuple(one.workload for one in ending),
        may_be_fewer,
    )


class _Search:
    """``ending``: ranks of those whose end is known to be enough; ``placement``: where all copies go then."""

    def __init__(self, coming: ComingRoom, chosen: Chosen) -> None:
        self._coming, self._chosen = coming, chosen
        self.ending: Sequence[int] = ()
        self.placement: Placement = {}

    @property
    def gone(self) -> IntVector:
        """Who is gone then."""
        return self._gone(self.ending)

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
        *undecided, last = self.ending
        needed = [last]
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
                needed.append(undecided.pop())

    def _is_enough(self, ending: Sequence[int]) -> bool:
        placement = self._coming.placed_without(self._gone(ending))
        if placement is None:
            return False
        self.ending, self.placement = tuple(ending), placement
        return True

    def _gone(self, ending: Sequence[int]) -> IntVector:
        own = [self._chosen.of[rank] for rank in ending]
        return np.unique(np.concatenate([np.arange(len(self._chosen.leaving.pods)), *own]))
